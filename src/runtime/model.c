#include "runtime/model.h"

#include <string.h>

#include "base/allocation.h"
#include "passes/passes.h"
#include "runtime/memory_limit.h"
#include "runtime/model_digest.h"

/* ---- descriptions ---- */

#define DIM_TEXT_BYTES 256

static sb_status describe(const sb_value_info *info, sb_value_description *description, sb_error *error) {
    const sb_fact *fact = &info->fact;
    *description = (sb_value_description){
        .name = info->name, .kind = fact->kind, .optional = fact->optional, .dtype = fact->dtype, .rank = fact->rank};
    size_t rank = fact->rank > 0 ? (size_t)fact->rank : 0;
    int64_t *dims = sb_allocate_array(rank, sizeof *dims);
    const char **texts = sb_allocate_array(rank, sizeof *texts);
    description->dims = dims;
    description->dim_texts = texts;
    if (dims == NULL || texts == NULL)
        return sb_fail_memory(error, rank * sizeof *texts);
    for (size_t d = 0; d < rank; d++) {
        char text[DIM_TEXT_BYTES];
        dims[d] = -1;
        sb_dim_is_constant(fact->dims[d], &dims[d]);
        texts[d] = sb_duplicate_string(sb_dim_text(fact->dims[d], text, sizeof text));
        if (texts[d] == NULL)
            return sb_fail_memory(error, DIM_TEXT_BYTES);
    }
    return SB_OK;
}

static void clear_description(sb_value_description *description) {
    for (int d = 0; d < description->rank && description->dim_texts != NULL; d++)
        sb_free((void *)description->dim_texts[d]);
    sb_free((void *)description->dim_texts);
    sb_free((void *)description->dims);
}

static void clear_entry(sb_model_entry *entry) {
    for (int i = 0; entry->descriptions != NULL && i < entry->input_count + entry->output_count; i++)
        clear_description(&entry->descriptions[i]);
    sb_free(entry->descriptions);
    sb_program_destroy(entry->program);
}

static sb_status describe_all(sb_model_entry *entry, sb_error *error) {
    const sb_graph *graph = entry->graph;
    size_t count = graph->input_count + graph->output_count;
    entry->descriptions = sb_allocate_array(count, sizeof *entry->descriptions);
    if (entry->descriptions == NULL)
        return sb_fail_memory(error, count * sizeof *entry->descriptions);
    entry->input_count = (int)graph->input_count;
    entry->output_count = (int)graph->output_count;
    for (size_t i = 0; i < count; i++) {
        sb_value_id value = i < graph->input_count ? graph->inputs[i] : graph->outputs[i - graph->input_count];
        SB_TRY(describe(&graph->values[value], &entry->descriptions[i], error));
    }
    return SB_OK;
}

/* ---- making it ---- */

static sb_status read_options(const sb_model_options *given, sb_model_options *options, sb_error *error) {
    *options = (sb_model_options)SB_MODEL_OPTIONS_DEFAULT;
    if (given != NULL) {
        if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "sb_model_options has %zu bytes where this library knows %zu: start from "
                           "SB_MODEL_OPTIONS_DEFAULT",
                           given->struct_bytes, sizeof *given);
        memcpy(options, given, given->struct_bytes);
    }
    return sb_isa_resolve(options->isa, &options->isa, error);
}

static sb_status fill_entry(sb_model *model, const sb_entry *from, const sb_model_options *options,
                            sb_model_entry *entry, sb_error *error) {
    entry->name = from->name;
    entry->graph = from->graph;
    if (options->passes)
        SB_TRY(sb_passes_run(entry->graph, model->graphs.scope, error));
    SB_TRY(sb_program_create(entry->graph, options->isa, options->reference_only, &entry->program, error));
    return describe_all(entry, error);
}

static sb_status fill_model(sb_model *model, sb_model_source *source, void *context, const sb_model_options *options,
                            sb_error *error) {
    SB_TRY(source(context, &model->graphs, error));
    SB_TRY(sb_graphs_settle(&model->graphs, error));
    SB_TRY(sb_model_digest_graphs(model, error));
    model->entries = sb_allocate_array(model->graphs.count, sizeof *model->entries);
    if (model->entries == NULL)
        return sb_fail_memory(error, model->graphs.count * sizeof *model->entries);
    for (size_t i = 0; i < model->graphs.count; i++) {
        SB_TRY(fill_entry(model, &model->graphs.entries[i], options, &model->entries[i], error));
    }
    return sb_model_digest_dropped(model, error);
}

sb_status sb_model_make(sb_model_source *source, void *context, const sb_model_options *given, sb_model **model,
                        sb_error *error) {
    sb_model_options options;
    SB_TRY(read_options(given, &options, error));
    sb_model *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->references = 1;
    pthread_mutex_init(&fresh->digest_lock, NULL);
    /* What is loaded keeps the budget alive; nothing more is charged to it later. */
    sb_memory_budget *budget = NULL;
    sb_status status = sb_memory_limit_begin(options.memory_limit, &budget, error);
    if (status == SB_OK) {
        sb_memory_budget *outer = sb_memory_budget_enter(budget);
        status = fill_model(fresh, source, context, &options, error);
        sb_memory_budget_enter(outer);
    }
    sb_memory_budget_release(budget);
    if (status != SB_OK) {
        sb_model_release(fresh);
        return status;
    }
    *model = fresh;
    return SB_OK;
}

sb_model *sb_model_retain(sb_model *model) {
    atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
    return model;
}

void sb_model_release(sb_model *model) {
    if (model == NULL || atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; model->entries != NULL && i < model->graphs.count; i++)
        clear_entry(&model->entries[i]);
    sb_free(model->entries);
    sb_graphs_clear(&model->graphs);
    sb_model_digest_clear(model);
    pthread_mutex_destroy(&model->digest_lock);
    sb_free(model);
}

/* ---- looking at it ---- */

int sb_model_warning_count(const sb_model *model) {
    return (int)model->graphs.warnings.count;
}

const char *sb_model_warning(const sb_model *model, int index) {
    return model->graphs.warnings.texts[index];
}

const sb_model_metadata *sb_model_describe(const sb_model *model) {
    return model->graphs.metadata.producer_name != NULL ? &model->graphs.metadata : NULL;
}

int sb_model_input_count(const sb_model *model) {
    return model->entries[0].input_count;
}

int sb_model_output_count(const sb_model *model) {
    return model->entries[0].output_count;
}

const sb_value_description *sb_model_input(const sb_model *model, int index) {
    return &model->entries[0].descriptions[index];
}

const sb_value_description *sb_model_output(const sb_model *model, int index) {
    return &model->entries[0].descriptions[model->entries[0].input_count + index];
}

int sb_model_entry_count(const sb_model *model) {
    return (int)model->graphs.count;
}

const char *sb_model_entry_name(const sb_model *model, int entry) {
    return model->entries[entry].name;
}

int sb_model_entry_index(const sb_model *model, const char *name) {
    for (size_t i = 0; i < model->graphs.count; i++) {
        if (strcmp(model->entries[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

int sb_model_entry_input_count(const sb_model *model, int entry) {
    return model->entries[entry].input_count;
}

int sb_model_entry_output_count(const sb_model *model, int entry) {
    return model->entries[entry].output_count;
}

const sb_value_description *sb_model_entry_input(const sb_model *model, int entry, int index) {
    return &model->entries[entry].descriptions[index];
}

const sb_value_description *sb_model_entry_output(const sb_model *model, int entry, int index) {
    return &model->entries[entry].descriptions[model->entries[entry].input_count + index];
}

static int find_description(const sb_value_description *descriptions, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(descriptions[i].name, name) == 0)
            return i;
    }
    return -1;
}

int sb_model_input_index(const sb_model *model, const char *name) {
    return find_description(model->entries[0].descriptions, model->entries[0].input_count, name);
}

int sb_model_output_index(const sb_model *model, const char *name) {
    return find_description(model->entries[0].descriptions + model->entries[0].input_count,
                            model->entries[0].output_count, name);
}
