#include "runtime/model.h"

#include <string.h>

#include "base/allocation.h"
#include "onnx/import.h"
#include "passes/passes.h"
#include "runtime/memory_limit.h"

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

static sb_status describe_all(sb_model *model, sb_error *error) {
    const sb_graph *graph = model->graph;
    size_t count = graph->input_count + graph->output_count;
    model->descriptions = sb_allocate_array(count, sizeof *model->descriptions);
    if (model->descriptions == NULL)
        return sb_fail_memory(error, count * sizeof *model->descriptions);
    model->input_count = (int)graph->input_count;
    model->output_count = (int)graph->output_count;
    for (size_t i = 0; i < count; i++) {
        sb_value_id value = i < graph->input_count ? graph->inputs[i] : graph->outputs[i - graph->input_count];
        SB_TRY(describe(&graph->values[value], &model->descriptions[i], error));
    }
    return SB_OK;
}

/* ---- loading ---- */

/* Where a model comes from: a path, or bytes. */
typedef struct source {
    const char *path;
    const void *bytes;
    size_t size;
} source;

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

static sb_status fill_model(sb_model *model, const source *from, const sb_model_options *options, sb_error *error) {
    SB_TRY(sb_scope_create(&model->scope, error));
    if (from->path != NULL)
        SB_TRY(sb_onnx_load_file(from->path, model->scope, &model->graph, NULL, error));
    else
        SB_TRY(sb_onnx_load(from->bytes, from->size, NULL, model->scope, &model->graph, NULL, error));
    if (options->passes)
        SB_TRY(sb_passes_run(model->graph, model->scope, error));
    SB_TRY(sb_program_create(model->graph, options->isa, options->reference_only, &model->program, error));
    return describe_all(model, error);
}

static sb_status load(const source *from, const sb_model_options *given, sb_model **model, sb_error *error) {
    sb_model_options options;
    SB_TRY(read_options(given, &options, error));
    sb_model *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->references = 1;
    /* What is loaded keeps the budget alive; nothing more is charged to it later. */
    sb_memory_budget *budget = NULL;
    sb_status status = sb_memory_limit_begin(options.memory_limit, &budget, error);
    if (status == SB_OK) {
        sb_memory_budget *outer = sb_memory_budget_enter(budget);
        status = fill_model(fresh, from, &options, error);
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

sb_status sb_model_load(const char *path, const sb_model_options *options, sb_model **model, sb_error *error) {
    return load(&(source){.path = path}, options, model, error);
}

sb_status sb_model_load_memory(const void *bytes, size_t size, const sb_model_options *options, sb_model **model,
                               sb_error *error) {
    return load(&(source){.bytes = bytes, .size = size}, options, model, error);
}

sb_model *sb_model_retain(sb_model *model) {
    atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
    return model;
}

void sb_model_release(sb_model *model) {
    if (model == NULL || atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; model->descriptions != NULL && i < model->input_count + model->output_count; i++)
        clear_description(&model->descriptions[i]);
    sb_free(model->descriptions);
    sb_program_destroy(model->program);
    sb_graph_destroy(model->graph);
    sb_scope_destroy(model->scope);
    sb_free(model);
}

/* ---- looking at it ---- */

int sb_model_input_count(const sb_model *model) {
    return model->input_count;
}

int sb_model_output_count(const sb_model *model) {
    return model->output_count;
}

const sb_value_description *sb_model_input(const sb_model *model, int index) {
    return &model->descriptions[index];
}

const sb_value_description *sb_model_output(const sb_model *model, int index) {
    return &model->descriptions[model->input_count + index];
}

static int find_description(const sb_value_description *descriptions, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(descriptions[i].name, name) == 0)
            return i;
    }
    return -1;
}

int sb_model_input_index(const sb_model *model, const char *name) {
    return find_description(model->descriptions, model->input_count, name);
}

int sb_model_output_index(const sb_model *model, const char *name) {
    return find_description(model->descriptions + model->input_count, model->output_count, name);
}
