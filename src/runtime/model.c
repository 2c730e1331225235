#include "runtime/model.h"

#include <string.h>

#include "base/allocation.h"
#include "onnx/import.h"
#include "passes/passes.h"
#include "runtime/memory_limit.h"

/* ---- descriptions ---- */

#define DIM_TEXT_BYTES 256

static iv_status describe(const iv_value_info *info, iv_value_description *description,
                          iv_error *error) {
    const iv_fact *fact = &info->fact;
    *description = (iv_value_description){.name = info->name,
                                          .kind = fact->kind,
                                          .optional = fact->optional,
                                          .dtype = fact->dtype,
                                          .rank = fact->rank};
    size_t rank = fact->rank > 0 ? (size_t)fact->rank : 0;
    int64_t *dims = iv_allocate_array(rank, sizeof *dims);
    const char **texts = iv_allocate_array(rank, sizeof *texts);
    description->dims = dims;
    description->dim_texts = texts;
    if (dims == NULL || texts == NULL)
        return iv_fail_memory(error, rank * sizeof *texts);
    for (size_t d = 0; d < rank; d++) {
        char text[DIM_TEXT_BYTES];
        dims[d] = -1;
        iv_dim_is_constant(fact->dims[d], &dims[d]);
        texts[d] = iv_duplicate_string(iv_dim_text(fact->dims[d], text, sizeof text));
        if (texts[d] == NULL)
            return iv_fail_memory(error, DIM_TEXT_BYTES);
    }
    return IV_OK;
}

static void clear_description(iv_value_description *description) {
    for (int d = 0; d < description->rank && description->dim_texts != NULL; d++)
        iv_free((void *)description->dim_texts[d]);
    iv_free((void *)description->dim_texts);
    iv_free((void *)description->dims);
}

static iv_status describe_all(iv_model *model, iv_error *error) {
    const iv_graph *graph = model->graph;
    size_t count = graph->input_count + graph->output_count;
    model->descriptions = iv_allocate_array(count, sizeof *model->descriptions);
    if (model->descriptions == NULL)
        return iv_fail_memory(error, count * sizeof *model->descriptions);
    model->input_count = (int)graph->input_count;
    model->output_count = (int)graph->output_count;
    for (size_t i = 0; i < count; i++) {
        iv_value_id value = i < graph->input_count ? graph->inputs[i]
                                                   : graph->outputs[i - graph->input_count];
        IV_TRY(describe(&graph->values[value], &model->descriptions[i], error));
    }
    return IV_OK;
}

/* ---- loading ---- */

/* Where a model comes from: a path, or bytes. */
typedef struct source {
    const char *path;
    const void *bytes;
    size_t size;
} source;

static iv_status read_options(const iv_model_options *given, iv_model_options *options,
                              iv_error *error) {
    *options = (iv_model_options)IV_MODEL_OPTIONS_DEFAULT;
    if (given != NULL) {
        if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
            return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                           "iv_model_options has %zu bytes where this library knows %zu: start from "
                           "IV_MODEL_OPTIONS_DEFAULT",
                           given->struct_bytes, sizeof *given);
        memcpy(options, given, given->struct_bytes);
    }
    return iv_isa_resolve(options->isa, &options->isa, error);
}

static iv_status fill_model(iv_model *model, const source *from, const iv_model_options *options,
                            iv_error *error) {
    IV_TRY(iv_scope_create(&model->scope, error));
    if (from->path != NULL)
        IV_TRY(iv_onnx_load_file(from->path, model->scope, &model->graph, NULL, error));
    else
        IV_TRY(iv_onnx_load(from->bytes, from->size, NULL, model->scope, &model->graph, NULL, error));
    if (options->passes)
        IV_TRY(iv_passes_run(model->graph, model->scope, error));
    IV_TRY(iv_program_create(model->graph, options->isa, options->reference_only, &model->program,
                             error));
    return describe_all(model, error);
}

static iv_status load(const source *from, const iv_model_options *given, iv_model **model,
                      iv_error *error) {
    iv_model_options options;
    IV_TRY(read_options(given, &options, error));
    iv_model *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    fresh->references = 1;
    /* What is loaded keeps the budget alive; nothing more is charged to it later. */
    iv_memory_budget *budget = NULL;
    iv_status status = iv_memory_limit_begin(options.memory_limit, &budget, error);
    if (status == IV_OK) {
        iv_memory_budget *outer = iv_memory_budget_enter(budget);
        status = fill_model(fresh, from, &options, error);
        iv_memory_budget_enter(outer);
    }
    iv_memory_budget_release(budget);
    if (status != IV_OK) {
        iv_model_release(fresh);
        return status;
    }
    *model = fresh;
    return IV_OK;
}

iv_status iv_model_load(const char *path, const iv_model_options *options, iv_model **model,
                        iv_error *error) {
    return load(&(source){.path = path}, options, model, error);
}

iv_status iv_model_load_memory(const void *bytes, size_t size, const iv_model_options *options,
                               iv_model **model, iv_error *error) {
    return load(&(source){.bytes = bytes, .size = size}, options, model, error);
}

iv_model *iv_model_retain(iv_model *model) {
    atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
    return model;
}

void iv_model_release(iv_model *model) {
    if (model == NULL ||
        atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; model->descriptions != NULL && i < model->input_count + model->output_count; i++)
        clear_description(&model->descriptions[i]);
    iv_free(model->descriptions);
    iv_program_destroy(model->program);
    iv_graph_destroy(model->graph);
    iv_scope_destroy(model->scope);
    iv_free(model);
}

/* ---- looking at it ---- */

int iv_model_input_count(const iv_model *model) {
    return model->input_count;
}

int iv_model_output_count(const iv_model *model) {
    return model->output_count;
}

const iv_value_description *iv_model_input(const iv_model *model, int index) {
    return &model->descriptions[index];
}

const iv_value_description *iv_model_output(const iv_model *model, int index) {
    return &model->descriptions[model->input_count + index];
}

static int find_description(const iv_value_description *descriptions, int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(descriptions[i].name, name) == 0)
            return i;
    }
    return -1;
}

int iv_model_input_index(const iv_model *model, const char *name) {
    return find_description(model->descriptions, model->input_count, name);
}

int iv_model_output_index(const iv_model *model, const char *name) {
    return find_description(model->descriptions + model->input_count, model->output_count, name);
}
