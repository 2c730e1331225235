#include <invar/inspect.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/flops.h"
#include "runtime/model.h"

/* Formulas of counts may be long; beyond this they are cut. */
#define FORMULA_BYTES 1024
#define ATTRIBUTES_BYTES 1024
/* List elements shown of one attribute. */
#define SHOWN_ELEMENTS 16

struct iv_inspection {
    const char *name;
    int node_count, value_count, input_count, output_count;
    iv_inspected_node *nodes;
    iv_inspected_value *values;
    const int *inputs, *outputs;
    iv_inspected_totals totals;
    /* Everything that the pointers above and those of nodes and values point to. */
    size_t block_count, block_capacity;
    void **blocks;
    size_t tensor_count, tensor_capacity;
    iv_tensor **tensors; /* retained */
    size_t body_count, body_capacity;
    iv_inspection **bodies;
};

/* What one graph's snapshot is made from. */
typedef struct source {
    const iv_program *program;
    const iv_graph *graph;
    iv_scope *scope;
    iv_fact *facts; /* one per value */
    bool *counted;  /* per value: its parameters belong to a node already */
    iv_dim flops;   /* the sum so far */
} source;

static void destroy(iv_inspection *inspection) {
    for (size_t i = 0; i < inspection->body_count; i++)
        destroy(inspection->bodies[i]);
    for (size_t i = 0; i < inspection->tensor_count; i++)
        iv_tensor_release(inspection->tensors[i]);
    for (size_t i = 0; i < inspection->block_count; i++)
        iv_free(inspection->blocks[i]);
    iv_free(inspection->bodies);
    iv_free(inspection->tensors);
    iv_free(inspection->blocks);
    iv_free(inspection);
}

/* Zeroed memory that lives as long as the snapshot. */
static iv_status keep(iv_inspection *inspection, size_t count, size_t size, void *memory,
                      iv_error *error) {
    if (!iv_grow((void **)&inspection->blocks, &inspection->block_capacity,
                 inspection->block_count + 1, sizeof *inspection->blocks))
        return iv_fail_memory(error, sizeof *inspection->blocks);
    void *block = iv_allocate_array(count, size);
    if (block == NULL)
        return iv_fail_memory(error, count * size);
    inspection->blocks[inspection->block_count++] = block;
    *(void **)memory = block;
    return IV_OK;
}

static iv_status keep_text(iv_inspection *inspection, const char *text, const char **kept,
                           iv_error *error) {
    size_t bytes = strlen(text) + 1;
    char *copy;
    IV_TRY(keep(inspection, bytes, 1, &copy, error));
    memcpy(copy, text, bytes);
    *kept = copy;
    return IV_OK;
}

static iv_status keep_indices(iv_inspection *inspection, size_t count, const iv_value_id *values,
                              const int **kept, iv_error *error) {
    int *copy;
    IV_TRY(keep(inspection, count, sizeof *copy, &copy, error));
    for (size_t i = 0; i < count; i++)
        copy[i] = values[i];
    *kept = copy;
    return IV_OK;
}

/* ---- values ---- */

static int64_t count_elements(const iv_fact *fact) {
    int64_t dims[IV_MAX_RANK], elements;
    if (!iv_fact_is_concrete(fact, dims) ||
        iv_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != IV_OK)
        return -1;
    return elements;
}

static iv_status describe_value(iv_inspection *inspection, const source *source, size_t index,
                                iv_error *error) {
    const iv_value_info *info = &source->graph->values[index];
    const iv_fact *fact = &source->facts[index];
    iv_inspected_value *value = &inspection->values[index];
    char text[IV_FACT_TEXT_BYTES];
    IV_TRY(keep_text(inspection, info->name, &value->name, error));
    bool known = fact->kind != IV_KIND_NONE;
    IV_TRY(keep_text(inspection, known ? iv_fact_text(fact, text, sizeof text) : "?", &value->fact,
                     error));
    value->kind = fact->kind;
    value->dtype = fact->dtype;
    value->elements = count_elements(fact);
    value->producer = info->producer;
    value->initialiser = info->producer < 0 && fact->constant != NULL;
    if (fact->constant == NULL)
        return IV_OK;
    if (!iv_grow((void **)&inspection->tensors, &inspection->tensor_capacity,
                 inspection->tensor_count + 1, sizeof(iv_tensor *)))
        return iv_fail_memory(error, sizeof(iv_tensor *));
    value->constant = fact->constant;
    inspection->tensors[inspection->tensor_count++] = iv_tensor_retain(fact->constant);
    return IV_OK;
}

/* ---- attributes as text ---- */

/* Text that grows to the end of its buffer and is cut there. */
typedef struct line {
    size_t used;
    char text[ATTRIBUTES_BYTES];
} line;

static void append(line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(line *line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int wanted =
        vsnprintf(line->text + line->used, sizeof line->text - line->used, format, arguments);
    va_end(arguments);
    size_t room = sizeof line->text - 1 - line->used;
    line->used += wanted < 0 ? 0 : (size_t)wanted < room ? (size_t)wanted : room;
}

/* With as few digits as give the same float back. */
static void append_float(line *line, float number) {
    char digits[32];
    for (int precision = 6; precision <= 9; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)number);
        if (strtof(digits, NULL) == number)
            break;
    }
    append(line, "%s", digits);
}

static void append_element(line *line, const iv_attribute *attribute, int64_t index) {
    if (attribute->kind == IV_ATTRIBUTE_INTS)
        append(line, "%lld", (long long)attribute->ints[index]);
    else if (attribute->kind == IV_ATTRIBUTE_FLOATS)
        append_float(line, attribute->floats[index]);
    else
        append(line, "\"%s\"", attribute->strings[index]);
}

static void append_attribute(line *line, const iv_attribute *attribute) {
    append(line, "%s%s=", line->used != 0 ? " " : "", attribute->name);
    if (attribute->kind == IV_ATTRIBUTE_TENSOR) {
        char dims[IV_DIMS_TEXT_BYTES];
        append(line, "%s%s", iv_dtype_name(attribute->tensor->dtype),
               iv_dims_text(attribute->tensor->rank, attribute->tensor->dims, dims));
        return;
    }
    if (attribute->scalar && attribute->count == 1) {
        append_element(line, attribute, 0);
        return;
    }
    append(line, "[");
    for (int64_t i = 0; i < attribute->count && i < SHOWN_ELEMENTS; i++) {
        append(line, "%s", i > 0 ? "," : "");
        append_element(line, attribute, i);
    }
    append(line, attribute->count > SHOWN_ELEMENTS ? ",…]" : "]");
}

static iv_status describe_attributes(iv_inspection *inspection, const iv_node *node,
                                     const char **kept, iv_error *error) {
    line line = {0};
    for (size_t i = 0; i < node->attributes.count; i++) {
        if (node->attributes.items[i].kind != IV_ATTRIBUTE_GRAPH)
            append_attribute(&line, &node->attributes.items[i]);
    }
    return keep_text(inspection, line.text, kept, error);
}

/* ---- bodies ---- */

static iv_status inspect_graph(const iv_program *program, iv_scope *scope, iv_fact *facts,
                               iv_inspection **inspection, iv_dim *flops, iv_error *error);

/* The facts inside a body. Those of a Fused node and of a branch follow from the node's inputs;
 * inside Loop and Scan they differ from step to step, so that only what the file declares is known.
 */
static iv_status infer_body(const source *outer, const iv_node *node, const iv_graph *body,
                            iv_fact *facts, iv_error *error) {
    size_t own = body->input_count - (size_t)node->capture_count;
    size_t first = (node->op->flags & IV_OP_FUSED) != 0 ? 0
                   : own == 0 ? (size_t)(node->input_count - node->capture_count)
                              : (size_t)node->input_count;
    bool follows = (size_t)node->input_count - first == body->input_count;
    iv_status status = IV_OK;
    for (size_t i = 0; i < body->input_count && status == IV_OK && follows; i++) {
        iv_value_id value = node->inputs[first + i];
        if (value != IV_NO_VALUE)
            status = iv_fact_copy(&facts[body->inputs[i]], &outer->facts[value], error);
    }
    if (status == IV_OK && follows)
        status = iv_graph_infer(body, outer->scope, facts, error);
    /* A branch that will never run may contradict what is known outside: then nothing is known
     * inside. */
    if (status != IV_OK && status != IV_ERROR_OUT_OF_MEMORY) {
        follows = false;
        status = iv_scope_check(outer->scope, NULL) == IV_ERROR_OUT_OF_MEMORY
                     ? IV_ERROR_OUT_OF_MEMORY
                     : IV_OK;
    }
    for (size_t v = 0; v < body->value_count && status == IV_OK && !follows; v++)
        status = iv_fact_copy(&facts[v], &body->values[v].fact, error);
    return status;
}

static iv_status inspect_body(iv_inspection *inspection, const source *outer, const iv_step *step,
                              const iv_graph *body, const iv_inspection **kept, iv_dim *flops,
                              iv_error *error) {
    const iv_program *program = iv_step_program(step, body);
    if (program == NULL)
        return iv_fail(error, IV_ERROR_INTERNAL, "node %s: graph %s has no program",
                       step->node->name, body->name);
    if (!iv_grow((void **)&inspection->bodies, &inspection->body_capacity,
                 inspection->body_count + 1, sizeof *inspection->bodies))
        return iv_fail_memory(error, sizeof *inspection->bodies);
    iv_fact *facts = iv_allocate_array(body->value_count, sizeof *facts);
    if (facts == NULL)
        return iv_fail_memory(error, body->value_count * sizeof *facts);
    iv_status status = infer_body(outer, step->node, body, facts, error);
    iv_inspection *inside = NULL;
    if (status == IV_OK)
        status = inspect_graph(program, outer->scope, facts, &inside, flops, error);
    for (size_t v = 0; v < body->value_count; v++)
        iv_fact_clear(&facts[v]);
    iv_free(facts);
    if (status != IV_OK)
        return status;
    inspection->bodies[inspection->body_count++] = inside;
    *kept = inside;
    return IV_OK;
}

/* *flops: of a Fused node's body, else NULL (how often other bodies run, only the data tell). */
static iv_status describe_bodies(iv_inspection *inspection, const source *source,
                                 const iv_step *step, iv_inspected_node *described, iv_dim *flops,
                                 iv_error *error) {
    const iv_attributes *attributes = &step->node->attributes;
    const char **names;
    const iv_inspection **bodies;
    IV_TRY(keep(inspection, step->graph_count, sizeof *names, &names, error));
    IV_TRY(keep(inspection, step->graph_count, sizeof *bodies, &bodies, error));
    described->body_names = names;
    described->bodies = bodies;
    *flops = NULL;
    for (size_t i = 0; i < attributes->count; i++) {
        const iv_attribute *attribute = &attributes->items[i];
        if (attribute->kind != IV_ATTRIBUTE_GRAPH)
            continue;
        iv_dim inside;
        int index = described->body_count;
        IV_TRY(keep_text(inspection, attribute->name, &names[index], error));
        IV_TRY(inspect_body(inspection, source, step, attribute->graph, &bodies[index], &inside,
                            error));
        if ((step->node->op->flags & IV_OP_FUSED) != 0 &&
            bodies[index]->totals.nodes_without_flops == 0)
            *flops = inside;
        described->parameters += bodies[index]->totals.parameters;
        inspection->totals.parameters += bodies[index]->totals.parameters;
        inspection->totals.parameter_bytes += bodies[index]->totals.parameter_bytes;
        described->body_count++;
    }
    return IV_OK;
}

/* ---- nodes ---- */

static void count_parameters(iv_inspection *inspection, source *source, const iv_node *node,
                             iv_inspected_node *described) {
    for (int i = 0; i < node->input_count; i++) {
        iv_value_id id = node->inputs[i];
        if (id == IV_NO_VALUE || source->counted[id] || !inspection->values[id].initialiser)
            continue;
        source->counted[id] = true;
        iv_dtype dtype = source->facts[id].dtype;
        if (dtype == IV_S64 || dtype == IV_U64 || dtype == IV_BOOL || dtype == IV_STRING)
            continue;
        int64_t elements = iv_tensor_elements(source->facts[id].constant);
        described->parameters += elements;
        inspection->totals.parameters += elements;
        inspection->totals.parameter_bytes += elements * (int64_t)iv_dtype_size(dtype);
    }
}

/* Whether all outputs are known before running, and whether their extents are. */
static void look_at_outputs(const source *source, const iv_node *node, bool *known,
                            bool *concrete) {
    *known = (node->op->flags & IV_OP_RANDOM) == 0;
    *concrete = true;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == IV_NO_VALUE)
            continue;
        const iv_fact *fact = &source->facts[node->outputs[i]];
        *known = *known && fact->constant != NULL;
        *concrete = *concrete && iv_fact_is_concrete(fact, NULL);
    }
}

static iv_status choose_kernel(iv_inspection *inspection, const source *source,
                               const iv_kernel_query *query, iv_inspected_node *described,
                               iv_error *error) {
    bool known, concrete;
    char why[IV_WHY_BYTES] = "";
    described->why = "";
    look_at_outputs(source, query->node, &known, &concrete);
    if (known) {
        described->kernel = "constant";
    } else if (source->program->reference_only) {
        described->kernel = "reference";
        described->why = "the model was loaded with reference_only";
    } else if (concrete) {
        const iv_kernel *kernel;
        IV_TRY(iv_cpu_find_kernel(query, &kernel, why, error));
        described->kernel = kernel != NULL ? kernel->name : "reference";
        if (kernel == NULL)
            return keep_text(inspection, why, &described->why, error);
    }
    return IV_OK;
}

static iv_status describe_flops(iv_inspection *inspection, iv_dim flops, const char **text,
                                int64_t *count, iv_error *error) {
    char formula[FORMULA_BYTES];
    *count = -1;
    *text = NULL;
    if (flops == NULL)
        return IV_OK;
    iv_dim_is_constant(flops, count);
    return keep_text(inspection, iv_dim_text(flops, formula, sizeof formula), text, error);
}

/* The facts of a node's inputs and outputs, side by side: *inputs is to be freed, `outputs` are
 * borrowed copies. */
static iv_status gather_facts(const source *source, const iv_node *node, const iv_fact ***inputs,
                              iv_fact **outputs, iv_error *error) {
    size_t bytes = (size_t)node->output_count * sizeof(iv_fact) +
                   (size_t)node->input_count * sizeof(iv_fact *);
    *outputs = iv_allocate_array(1, bytes);
    if (*outputs == NULL)
        return iv_fail_memory(error, bytes);
    *inputs = (const iv_fact **)(void *)(*outputs + node->output_count);
    for (int i = 0; i < node->input_count; i++)
        (*inputs)[i] = node->inputs[i] != IV_NO_VALUE ? &source->facts[node->inputs[i]] : NULL;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != IV_NO_VALUE)
            (*outputs)[i] = source->facts[node->outputs[i]];
    }
    return IV_OK;
}

static iv_status add_flops(iv_inspection *inspection, source *source, iv_dim flops,
                           iv_error *error) {
    inspection->totals.nodes_without_flops += flops == NULL;
    if (flops != NULL && source->flops != NULL)
        source->flops = iv_dim_add(source->scope, source->flops, flops);
    /* A sum beyond the scope's bounds is an unknown sum; what is inferred later in this scope must
     * not fail for it. */
    iv_status status = iv_scope_check(source->scope, error);
    return status == IV_ERROR_OUT_OF_MEMORY ? status : IV_OK;
}

static iv_status describe_costs(iv_inspection *inspection, source *source, const iv_node *node,
                                iv_dim body_flops, iv_inspected_node *described, iv_error *error) {
    const iv_fact **inputs;
    iv_fact *outputs;
    IV_TRY(gather_facts(source, node, &inputs, &outputs, error));
    iv_kernel_query query = {
        .node = node, .inputs = inputs, .outputs = outputs, .isa = source->program->isa};
    iv_status status = choose_kernel(inspection, source, &query, described, error);
    iv_dim flops = body_flops;
    if (status == IV_OK && described->kernel != NULL && strcmp(described->kernel, "constant") == 0)
        flops = iv_dim_constant(source->scope, 0);
    else if (status == IV_OK && flops == NULL && described->body_count == 0)
        status = iv_node_flops(node, source->scope, inputs, outputs, &flops, error);
    iv_free(outputs);
    IV_TRY(status);
    IV_TRY(add_flops(inspection, source, flops, error));
    return describe_flops(inspection, flops, &described->flops, &described->flop_count, error);
}

static iv_status describe_node(iv_inspection *inspection, source *source, size_t index,
                               iv_error *error) {
    const iv_step *step = &source->program->steps[index];
    const iv_node *node = step->node;
    iv_inspected_node *described = &inspection->nodes[index];
    iv_dim body_flops;
    IV_TRY(keep_text(inspection, node->name, &described->name, error));
    /* The table of ops outlives every snapshot. */
    described->op = node->op->name;
    described->domain = node->op->domain;
    described->version = node->version;
    described->input_count = node->input_count;
    described->capture_count = node->capture_count;
    described->output_count = node->output_count;
    IV_TRY(describe_attributes(inspection, node, &described->attributes, error));
    IV_TRY(keep_indices(inspection, (size_t)node->input_count, node->inputs, &described->inputs,
                        error));
    IV_TRY(keep_indices(inspection, (size_t)node->output_count, node->outputs, &described->outputs,
                        error));
    count_parameters(inspection, source, node, described);
    IV_TRY(describe_bodies(inspection, source, step, described, &body_flops, error));
    return describe_costs(inspection, source, node, body_flops, described, error);
}

/* ---- graphs ---- */

static iv_status fill(iv_inspection *inspection, source *source, iv_error *error) {
    const iv_graph *graph = source->graph;
    IV_TRY(keep_text(inspection, graph->name != NULL ? graph->name : "", &inspection->name, error));
    IV_TRY(keep(inspection, graph->value_count, sizeof *inspection->values, &inspection->values,
                error));
    IV_TRY(
        keep(inspection, graph->node_count, sizeof *inspection->nodes, &inspection->nodes, error));
    IV_TRY(keep_indices(inspection, graph->input_count, graph->inputs, &inspection->inputs, error));
    IV_TRY(
        keep_indices(inspection, graph->output_count, graph->outputs, &inspection->outputs, error));
    inspection->value_count = (int)graph->value_count;
    inspection->node_count = (int)graph->node_count;
    inspection->input_count = (int)graph->input_count;
    inspection->output_count = (int)graph->output_count;
    for (size_t v = 0; v < graph->value_count; v++)
        IV_TRY(describe_value(inspection, source, v, error));
    for (size_t i = 0; i < graph->input_count; i++)
        inspection->values[graph->inputs[i]].initialiser = false;
    for (size_t n = 0; n < graph->node_count; n++)
        IV_TRY(describe_node(inspection, source, n, error));
    return describe_flops(inspection, source->flops, &inspection->totals.flops,
                          &inspection->totals.flop_count, error);
}

/* *flops is the sum over the nodes whose count is known; NULL when it is too large to hold. */
static iv_status inspect_graph(const iv_program *program, iv_scope *scope, iv_fact *facts,
                               iv_inspection **inspection, iv_dim *flops, iv_error *error) {
    source source = {.program = program,
                     .graph = program->graph,
                     .scope = scope,
                     .facts = facts,
                     .flops = iv_dim_constant(scope, 0)};
    iv_inspection *fresh = iv_allocate_array(1, sizeof *fresh);
    source.counted = iv_allocate_array(program->graph->value_count, sizeof *source.counted);
    iv_status status = IV_OK;
    if (fresh == NULL || source.counted == NULL)
        status = iv_fail_memory(error, program->graph->value_count);
    if (status == IV_OK)
        status = iv_scope_check(scope, error);
    if (status == IV_OK)
        status = fill(fresh, &source, error);
    iv_free(source.counted);
    if (status != IV_OK) {
        if (fresh != NULL)
            destroy(fresh);
        return status;
    }
    *flops = source.flops;
    *inspection = fresh;
    return IV_OK;
}

static iv_status read_options(const iv_inspect_options *given, iv_inspect_options *options,
                              iv_error *error) {
    *options = (iv_inspect_options)IV_INSPECT_OPTIONS_DEFAULT;
    if (given == NULL)
        return IV_OK;
    if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "iv_inspect_options has %zu bytes where this library knows %zu: start from "
                       "IV_INSPECT_OPTIONS_DEFAULT",
                       given->struct_bytes, sizeof *given);
    memcpy(options, given, given->struct_bytes);
    for (int i = 0; i < options->symbol_count; i++) {
        if (options->symbol_values[i] < 0)
            return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "symbol %s is given the value %lld",
                           options->symbols[i], (long long)options->symbol_values[i]);
    }
    return IV_OK;
}

/* The input's fact with each symbol that has a value replaced by it. */
static iv_status bind_input(const iv_fact *input, iv_scope *scope, const iv_binding *binding,
                            iv_fact *fact, iv_error *error) {
    *fact = (iv_fact){.kind = input->kind,
                      .optional = input->optional,
                      .dtype = input->dtype,
                      .rank = input->rank};
    for (int d = 0; d < input->rank; d++)
        fact->dims[d] = iv_dim_substitute(scope, input->dims[d], binding);
    return iv_scope_check(scope, error);
}

iv_status iv_model_inspect(const iv_model *model, const iv_inspect_options *given,
                           iv_inspection **inspection, iv_error *error) {
    iv_inspect_options options;
    IV_TRY(read_options(given, &options, error));
    iv_binding binding = {options.symbol_count, options.symbols, options.symbol_values};
    const iv_graph *graph = model->graph;
    iv_scope *scope;
    iv_dim flops;
    IV_TRY(iv_scope_create(&scope, error));
    iv_fact *facts = iv_allocate_array(graph->value_count, sizeof *facts);
    iv_status status = IV_OK;
    if (facts == NULL)
        status = iv_fail_memory(error, graph->value_count * sizeof *facts);
    for (size_t i = 0; i < graph->input_count && status == IV_OK; i++) {
        iv_value_id value = graph->inputs[i];
        status = bind_input(&graph->values[value].fact, scope, &binding, &facts[value], error);
    }
    if (status == IV_OK)
        status = iv_graph_infer(graph, scope, facts, error);
    if (status == IV_OK)
        status = inspect_graph(model->program, scope, facts, inspection, &flops, error);
    for (size_t v = 0; facts != NULL && v < graph->value_count; v++)
        iv_fact_clear(&facts[v]);
    iv_free(facts);
    iv_scope_destroy(scope);
    return status;
}

void iv_inspection_release(iv_inspection *inspection) {
    if (inspection != NULL)
        destroy(inspection);
}

/* ---- looking at it ---- */

const char *iv_inspection_name(const iv_inspection *inspection) {
    return inspection->name;
}

int iv_inspection_node_count(const iv_inspection *inspection) {
    return inspection->node_count;
}

const iv_inspected_node *iv_inspection_node(const iv_inspection *inspection, int index) {
    return &inspection->nodes[index];
}

int iv_inspection_value_count(const iv_inspection *inspection) {
    return inspection->value_count;
}

const iv_inspected_value *iv_inspection_value(const iv_inspection *inspection, int index) {
    return &inspection->values[index];
}

int iv_inspection_input_count(const iv_inspection *inspection) {
    return inspection->input_count;
}

int iv_inspection_input(const iv_inspection *inspection, int index) {
    return inspection->inputs[index];
}

int iv_inspection_output_count(const iv_inspection *inspection) {
    return inspection->output_count;
}

int iv_inspection_output(const iv_inspection *inspection, int index) {
    return inspection->outputs[index];
}

const iv_inspected_totals *iv_inspection_totals(const iv_inspection *inspection) {
    return &inspection->totals;
}
