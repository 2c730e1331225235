#include <samebit/inspect.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "rules/cost.h"
#include "runtime/model.h"

/* Formulas of counts may be long; beyond this they are cut. */
#define FORMULA_BYTES 1024
#define ATTRIBUTES_BYTES 1024
/* List elements shown of one attribute. */
#define SHOWN_ELEMENTS 16

struct sb_inspection {
    const char *name;
    int node_count, value_count, input_count, output_count;
    sb_inspected_node *nodes;
    sb_inspected_value *values;
    const int *inputs, *outputs;
    sb_inspected_totals totals;
    /* Everything that the pointers above and those of nodes and values point to. */
    size_t block_count, block_capacity;
    void **blocks;
    size_t tensor_count, tensor_capacity;
    sb_tensor **tensors; /* retained */
    size_t body_count, body_capacity;
    sb_inspection **bodies;
};

/* What one graph's snapshot is made from. */
typedef struct source {
    const sb_program *program;
    const sb_graph *graph;
    sb_scope *scope;
    sb_fact *facts; /* one per value */
    bool *counted;  /* per value: its parameters belong to a node already */
    sb_dim flops;   /* the sum so far */
} source;

static void destroy(sb_inspection *inspection) {
    for (size_t i = 0; i < inspection->body_count; i++)
        destroy(inspection->bodies[i]);
    for (size_t i = 0; i < inspection->tensor_count; i++)
        sb_tensor_release(inspection->tensors[i]);
    for (size_t i = 0; i < inspection->block_count; i++)
        sb_free(inspection->blocks[i]);
    sb_free(inspection->bodies);
    sb_free(inspection->tensors);
    sb_free(inspection->blocks);
    sb_free(inspection);
}

/* Zeroed memory that lives as long as the snapshot. */
static sb_status keep(sb_inspection *inspection, size_t count, size_t size, void *memory, sb_error *error) {
    if (!sb_grow((void **)&inspection->blocks, &inspection->block_capacity, inspection->block_count + 1,
                 sizeof *inspection->blocks))
        return sb_fail_memory(error, sizeof *inspection->blocks);
    void *block = sb_allocate_array(count, size);
    if (block == NULL)
        return sb_fail_memory(error, count * size);
    inspection->blocks[inspection->block_count++] = block;
    *(void **)memory = block;
    return SB_OK;
}

static sb_status keep_text(sb_inspection *inspection, const char *text, const char **kept, sb_error *error) {
    size_t bytes = strlen(text) + 1;
    char *copy;
    SB_TRY(keep(inspection, bytes, 1, &copy, error));
    memcpy(copy, text, bytes);
    *kept = copy;
    return SB_OK;
}

static sb_status keep_indices(sb_inspection *inspection, size_t count, const sb_value_id *values, const int **kept,
                              sb_error *error) {
    int *copy;
    SB_TRY(keep(inspection, count, sizeof *copy, &copy, error));
    for (size_t i = 0; i < count; i++)
        copy[i] = values[i];
    *kept = copy;
    return SB_OK;
}

/* ---- values ---- */

static int64_t count_elements(const sb_fact *fact) {
    int64_t dims[SB_MAX_RANK], elements;
    if (!sb_fact_is_concrete(fact, dims) || sb_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != SB_OK)
        return -1;
    return elements;
}

static sb_status describe_value(sb_inspection *inspection, const source *source, size_t index, sb_error *error) {
    const sb_value_info *info = &source->graph->values[index];
    const sb_fact *fact = &source->facts[index];
    sb_inspected_value *value = &inspection->values[index];
    char text[SB_FACT_TEXT_BYTES];
    SB_TRY(keep_text(inspection, info->name, &value->name, error));
    bool known = fact->kind != SB_KIND_NONE;
    SB_TRY(keep_text(inspection, known ? sb_fact_text(fact, text, sizeof text) : "?", &value->fact, error));
    value->kind = fact->kind;
    value->dtype = fact->dtype;
    value->elements = count_elements(fact);
    value->producer = info->producer;
    value->initialiser = info->producer < 0 && fact->constant != NULL;
    if (fact->constant == NULL)
        return SB_OK;
    if (!sb_grow((void **)&inspection->tensors, &inspection->tensor_capacity, inspection->tensor_count + 1,
                 sizeof(sb_tensor *)))
        return sb_fail_memory(error, sizeof(sb_tensor *));
    value->constant = fact->constant;
    inspection->tensors[inspection->tensor_count++] = sb_tensor_retain(fact->constant);
    return SB_OK;
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
    int wanted = vsnprintf(line->text + line->used, sizeof line->text - line->used, format, arguments);
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

static void append_element(line *line, const sb_attribute *attribute, int64_t index) {
    if (attribute->kind == SB_ATTRIBUTE_INTS)
        append(line, "%lld", (long long)attribute->ints[index]);
    else if (attribute->kind == SB_ATTRIBUTE_FLOATS)
        append_float(line, attribute->floats[index]);
    else
        append(line, "\"%s\"", attribute->strings[index]);
}

static void append_attribute(line *line, const sb_attribute *attribute) {
    append(line, "%s%s=", line->used != 0 ? " " : "", attribute->name);
    if (attribute->kind == SB_ATTRIBUTE_TENSOR) {
        char dims[SB_DIMS_TEXT_BYTES];
        append(line, "%s%s", sb_dtype_name(attribute->tensor->dtype),
               sb_dims_text(attribute->tensor->rank, attribute->tensor->dims, dims));
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

static sb_status describe_attributes(sb_inspection *inspection, const sb_node *node, const char **kept,
                                     sb_error *error) {
    line line = {0};
    for (size_t i = 0; i < node->attributes.count; i++) {
        if (node->attributes.items[i].kind != SB_ATTRIBUTE_GRAPH)
            append_attribute(&line, &node->attributes.items[i]);
    }
    return keep_text(inspection, line.text, kept, error);
}

/* ---- bodies ---- */

static sb_status inspect_graph(const sb_program *program, sb_scope *scope, sb_fact *facts, sb_inspection **inspection,
                               sb_dim *flops, sb_error *error);

/* The facts inside a body. Those of a Fused node and of a branch follow from the node's inputs; inside Loop and Scan
 * they differ from step to step, so that only what the file declares is known. */
static sb_status infer_body(const source *outer, const sb_node *node, const sb_graph *body, sb_fact *facts,
                            sb_error *error) {
    size_t own = body->input_count - (size_t)node->capture_count;
    size_t first = (node->op->flags & SB_OP_FUSED) != 0 ? 0
                   : own == 0                           ? (size_t)(node->input_count - node->capture_count)
                                                        : (size_t)node->input_count;
    bool follows = (size_t)node->input_count - first == body->input_count;
    sb_status status = SB_OK;
    for (size_t i = 0; i < body->input_count && status == SB_OK && follows; i++) {
        sb_value_id value = node->inputs[first + i];
        if (value != SB_NO_VALUE)
            status = sb_fact_copy(&facts[body->inputs[i]], &outer->facts[value], error);
    }
    if (status == SB_OK && follows)
        status = sb_graph_infer(body, outer->scope, facts, error);
    /* A branch that will never run may contradict what is known outside: then nothing is known inside. */
    if (status != SB_OK && status != SB_ERROR_OUT_OF_MEMORY) {
        follows = false;
        status = sb_scope_check(outer->scope, NULL) == SB_ERROR_OUT_OF_MEMORY ? SB_ERROR_OUT_OF_MEMORY : SB_OK;
    }
    for (size_t v = 0; v < body->value_count && status == SB_OK && !follows; v++)
        status = sb_fact_copy(&facts[v], &body->values[v].fact, error);
    return status;
}

static sb_status inspect_body(sb_inspection *inspection, const source *outer, const sb_step *step, const sb_graph *body,
                              const sb_inspection **kept, sb_dim *flops, sb_error *error) {
    const sb_program *program = sb_step_program(step, body);
    if (program == NULL)
        return sb_fail(error, SB_ERROR_INTERNAL, "node %s: graph %s has no program", step->node->name, body->name);
    if (!sb_grow((void **)&inspection->bodies, &inspection->body_capacity, inspection->body_count + 1,
                 sizeof *inspection->bodies))
        return sb_fail_memory(error, sizeof *inspection->bodies);
    sb_fact *facts = sb_allocate_array(body->value_count, sizeof *facts);
    if (facts == NULL)
        return sb_fail_memory(error, body->value_count * sizeof *facts);
    sb_status status = infer_body(outer, step->node, body, facts, error);
    sb_inspection *inside = NULL;
    if (status == SB_OK)
        status = inspect_graph(program, outer->scope, facts, &inside, flops, error);
    for (size_t v = 0; v < body->value_count; v++)
        sb_fact_clear(&facts[v]);
    sb_free(facts);
    if (status != SB_OK)
        return status;
    inspection->bodies[inspection->body_count++] = inside;
    *kept = inside;
    return SB_OK;
}

/* *flops: of a Fused node's body, else NULL (how often other bodies run, only the data tell). */
static sb_status describe_bodies(sb_inspection *inspection, const source *source, const sb_step *step,
                                 sb_inspected_node *described, sb_dim *flops, sb_error *error) {
    const sb_attributes *attributes = &step->node->attributes;
    const char **names;
    const sb_inspection **bodies;
    SB_TRY(keep(inspection, step->graph_count, sizeof *names, &names, error));
    SB_TRY(keep(inspection, step->graph_count, sizeof *bodies, &bodies, error));
    described->body_names = names;
    described->bodies = bodies;
    *flops = NULL;
    for (size_t i = 0; i < attributes->count; i++) {
        const sb_attribute *attribute = &attributes->items[i];
        if (attribute->kind != SB_ATTRIBUTE_GRAPH)
            continue;
        sb_dim inside;
        int index = described->body_count;
        SB_TRY(keep_text(inspection, attribute->name, &names[index], error));
        SB_TRY(inspect_body(inspection, source, step, attribute->graph, &bodies[index], &inside, error));
        if ((step->node->op->flags & SB_OP_FUSED) != 0 && bodies[index]->totals.nodes_without_flops == 0)
            *flops = inside;
        described->parameters += bodies[index]->totals.parameters;
        inspection->totals.parameters += bodies[index]->totals.parameters;
        inspection->totals.parameter_bytes += bodies[index]->totals.parameter_bytes;
        described->body_count++;
    }
    return SB_OK;
}

/* ---- nodes ---- */

static void count_parameters(sb_inspection *inspection, source *source, const sb_node *node,
                             sb_inspected_node *described) {
    for (int i = 0; i < node->input_count; i++) {
        sb_value_id id = node->inputs[i];
        if (id == SB_NO_VALUE || source->counted[id] || !inspection->values[id].initialiser)
            continue;
        source->counted[id] = true;
        sb_dtype dtype = source->facts[id].dtype;
        if (dtype == SB_S64 || dtype == SB_U64 || dtype == SB_BOOL || dtype == SB_STRING)
            continue;
        int64_t elements = sb_tensor_elements(source->facts[id].constant);
        described->parameters += elements;
        inspection->totals.parameters += elements;
        inspection->totals.parameter_bytes += elements * (int64_t)sb_dtype_size(dtype);
    }
}

/* Whether all outputs are known before running, and whether their extents are. */
static void look_at_outputs(const source *source, const sb_node *node, bool *known, bool *concrete) {
    *known = (node->op->flags & SB_OP_RANDOM) == 0;
    *concrete = true;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == SB_NO_VALUE)
            continue;
        const sb_fact *fact = &source->facts[node->outputs[i]];
        *known = *known && fact->constant != NULL;
        *concrete = *concrete && sb_fact_is_concrete(fact, NULL);
    }
}

static sb_status choose_kernel(sb_inspection *inspection, const source *source, const sb_kernel_query *query,
                               sb_inspected_node *described, sb_error *error) {
    bool known, concrete;
    char why[SB_WHY_BYTES] = "";
    described->why = "";
    look_at_outputs(source, query->node, &known, &concrete);
    if (known) {
        described->kernel = "constant";
    } else if (source->program->reference_only) {
        described->kernel = "reference";
        described->why = "the model was loaded with reference_only";
    } else if (concrete) {
        const sb_kernel *kernel;
        SB_TRY(sb_find_host_kernel(query, &kernel, why, error));
        described->kernel = kernel != NULL ? kernel->name : "reference";
        if (kernel == NULL)
            return keep_text(inspection, why, &described->why, error);
    }
    return SB_OK;
}

static sb_status describe_count(sb_inspection *inspection, sb_dim number, const char **text, int64_t *count,
                                sb_error *error) {
    char formula[FORMULA_BYTES];
    *count = -1;
    *text = NULL;
    if (number == NULL)
        return SB_OK;
    sb_dim_is_constant(number, count);
    return keep_text(inspection, sb_dim_text(number, formula, sizeof formula), text, error);
}

/* The facts of a node's inputs and outputs, side by side: *inputs is to be freed, `outputs` are borrowed copies. */
static sb_status gather_facts(const source *source, const sb_node *node, const sb_fact ***inputs, sb_fact **outputs,
                              sb_error *error) {
    size_t bytes = (size_t)node->output_count * sizeof(sb_fact) + (size_t)node->input_count * sizeof(sb_fact *);
    *outputs = sb_allocate_array(1, bytes);
    if (*outputs == NULL)
        return sb_fail_memory(error, bytes);
    *inputs = (const sb_fact **)(void *)(*outputs + node->output_count);
    for (int i = 0; i < node->input_count; i++)
        (*inputs)[i] = node->inputs[i] != SB_NO_VALUE ? &source->facts[node->inputs[i]] : NULL;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != SB_NO_VALUE)
            (*outputs)[i] = source->facts[node->outputs[i]];
    }
    return SB_OK;
}

static sb_status add_flops(sb_inspection *inspection, source *source, sb_dim flops, sb_error *error) {
    inspection->totals.nodes_without_flops += flops == NULL;
    if (flops != NULL && source->flops != NULL)
        source->flops = sb_dim_add(source->scope, source->flops, flops);
    /* A sum beyond the scope's bounds is an unknown sum; what is inferred later in this scope must
     * not fail for it. */
    sb_status status = sb_scope_check(source->scope, error);
    return status == SB_ERROR_OUT_OF_MEMORY ? status : SB_OK;
}

/* What is read and what is written together; NULL where either is not known. */
static sb_status count_bytes(source *source, const sb_node *node, const sb_fact *const *inputs, const sb_fact *outputs,
                             sb_dim *bytes, sb_error *error) {
    sb_dim read, written;
    SB_TRY(sb_node_bytes(node, source->scope, inputs, outputs, &read, &written, error));
    *bytes = read != NULL && written != NULL ? sb_dim_add(source->scope, read, written) : NULL;
    sb_status status = sb_scope_check(source->scope, error);
    return status == SB_ERROR_OUT_OF_MEMORY ? status : SB_OK;
}

static sb_status describe_costs(sb_inspection *inspection, source *source, const sb_node *node, sb_dim body_flops,
                                sb_inspected_node *described, sb_error *error) {
    const sb_fact **inputs;
    sb_fact *outputs;
    SB_TRY(gather_facts(source, node, &inputs, &outputs, error));
    sb_kernel_query query = {.node = node, .inputs = inputs, .outputs = outputs, .isa = source->program->isa};
    sb_status status = choose_kernel(inspection, source, &query, described, error);
    sb_dim flops = body_flops, bytes = NULL;
    if (status == SB_OK && described->kernel != NULL && strcmp(described->kernel, "constant") == 0) {
        flops = bytes = sb_dim_constant(source->scope, 0);
    } else if (status == SB_OK) {
        if (flops == NULL && described->body_count == 0)
            status = sb_node_flops(node, source->scope, inputs, outputs, &flops, error);
        if (status == SB_OK)
            status = count_bytes(source, node, inputs, outputs, &bytes, error);
    }
    sb_free(outputs);
    SB_TRY(status);
    SB_TRY(add_flops(inspection, source, flops, error));
    SB_TRY(describe_count(inspection, flops, &described->flops, &described->flop_count, error));
    return describe_count(inspection, bytes, &described->bytes, &described->byte_count, error);
}

static sb_status describe_node(sb_inspection *inspection, source *source, size_t index, sb_error *error) {
    const sb_step *step = &source->program->steps[index];
    const sb_node *node = step->node;
    sb_inspected_node *described = &inspection->nodes[index];
    sb_dim body_flops;
    SB_TRY(keep_text(inspection, node->name, &described->name, error));
    /* The table of ops outlives every snapshot. */
    described->op = node->op->name;
    described->domain = node->op->domain;
    described->version = node->version;
    described->input_count = node->input_count;
    described->capture_count = node->capture_count;
    described->output_count = node->output_count;
    SB_TRY(describe_attributes(inspection, node, &described->attributes, error));
    SB_TRY(keep_indices(inspection, (size_t)node->input_count, node->inputs, &described->inputs, error));
    SB_TRY(keep_indices(inspection, (size_t)node->output_count, node->outputs, &described->outputs, error));
    count_parameters(inspection, source, node, described);
    SB_TRY(describe_bodies(inspection, source, step, described, &body_flops, error));
    return describe_costs(inspection, source, node, body_flops, described, error);
}

/* ---- graphs ---- */

static sb_status fill(sb_inspection *inspection, source *source, sb_error *error) {
    const sb_graph *graph = source->graph;
    SB_TRY(keep_text(inspection, graph->name != NULL ? graph->name : "", &inspection->name, error));
    SB_TRY(keep(inspection, graph->value_count, sizeof *inspection->values, &inspection->values, error));
    SB_TRY(keep(inspection, graph->node_count, sizeof *inspection->nodes, &inspection->nodes, error));
    SB_TRY(keep_indices(inspection, graph->input_count, graph->inputs, &inspection->inputs, error));
    SB_TRY(keep_indices(inspection, graph->output_count, graph->outputs, &inspection->outputs, error));
    inspection->value_count = (int)graph->value_count;
    inspection->node_count = (int)graph->node_count;
    inspection->input_count = (int)graph->input_count;
    inspection->output_count = (int)graph->output_count;
    for (size_t v = 0; v < graph->value_count; v++)
        SB_TRY(describe_value(inspection, source, v, error));
    for (size_t i = 0; i < graph->input_count; i++)
        inspection->values[graph->inputs[i]].initialiser = false;
    for (size_t n = 0; n < graph->node_count; n++)
        SB_TRY(describe_node(inspection, source, n, error));
    return describe_count(inspection, source->flops, &inspection->totals.flops, &inspection->totals.flop_count, error);
}

/* *flops is the sum over the nodes whose count is known; NULL when it is too large to hold. */
static sb_status inspect_graph(const sb_program *program, sb_scope *scope, sb_fact *facts, sb_inspection **inspection,
                               sb_dim *flops, sb_error *error) {
    source source = {.program = program,
                     .graph = program->graph,
                     .scope = scope,
                     .facts = facts,
                     .flops = sb_dim_constant(scope, 0)};
    sb_inspection *fresh = sb_allocate_array(1, sizeof *fresh);
    source.counted = sb_allocate_array(program->graph->value_count, sizeof *source.counted);
    sb_status status = SB_OK;
    if (fresh == NULL || source.counted == NULL)
        status = sb_fail_memory(error, program->graph->value_count);
    if (status == SB_OK)
        status = sb_scope_check(scope, error);
    if (status == SB_OK)
        status = fill(fresh, &source, error);
    sb_free(source.counted);
    if (status != SB_OK) {
        if (fresh != NULL)
            destroy(fresh);
        return status;
    }
    *flops = source.flops;
    *inspection = fresh;
    return SB_OK;
}

static sb_status read_options(const sb_inspect_options *given, sb_inspect_options *options, sb_error *error) {
    *options = (sb_inspect_options)SB_INSPECT_OPTIONS_DEFAULT;
    if (given == NULL)
        return SB_OK;
    if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_inspect_options has %zu bytes where this library knows %zu: start from "
                       "SB_INSPECT_OPTIONS_DEFAULT",
                       given->struct_bytes, sizeof *given);
    memcpy(options, given, given->struct_bytes);
    for (int i = 0; i < options->symbol_count; i++) {
        if (options->symbol_values[i] < 0)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "symbol %s is given the value %lld", options->symbols[i],
                           (long long)options->symbol_values[i]);
    }
    return SB_OK;
}

/* The input's fact with each symbol that has a value replaced by it. */
static sb_status bind_input(const sb_fact *input, sb_scope *scope, const sb_binding *binding, sb_fact *fact,
                            sb_error *error) {
    *fact = (sb_fact){.kind = input->kind, .optional = input->optional, .dtype = input->dtype, .rank = input->rank};
    for (int d = 0; d < input->rank; d++)
        fact->dims[d] = sb_dim_substitute(scope, input->dims[d], binding);
    return sb_scope_check(scope, error);
}

sb_status sb_model_inspect(const sb_model *model, const sb_inspect_options *given, sb_inspection **inspection,
                           sb_error *error) {
    sb_inspect_options options;
    SB_TRY(read_options(given, &options, error));
    SB_TRY(sb_program_keep_elements(model->entries[0].program, error)); /* constants are shown, bodies' too */
    sb_binding binding = {options.symbol_count, options.symbols, options.symbol_values};
    const sb_graph *graph = model->entries[0].graph;
    sb_scope *scope;
    sb_dim flops;
    SB_TRY(sb_scope_create(&scope, error));
    sb_fact *facts = sb_allocate_array(graph->value_count, sizeof *facts);
    sb_status status = SB_OK;
    if (facts == NULL)
        status = sb_fail_memory(error, graph->value_count * sizeof *facts);
    for (size_t i = 0; i < graph->input_count && status == SB_OK; i++) {
        sb_value_id value = graph->inputs[i];
        status = bind_input(&graph->values[value].fact, scope, &binding, &facts[value], error);
    }
    for (size_t i = 0; i < graph->read_count && status == SB_OK; i++) {
        sb_value_id value = graph->reads[i].value;
        status = bind_input(&graph->values[value].fact, scope, &binding, &facts[value], error);
    }
    if (status == SB_OK)
        status = sb_graph_infer(graph, scope, facts, error);
    if (status == SB_OK)
        status = inspect_graph(model->entries[0].program, scope, facts, inspection, &flops, error);
    for (size_t v = 0; facts != NULL && v < graph->value_count; v++)
        sb_fact_clear(&facts[v]);
    sb_free(facts);
    sb_scope_destroy(scope);
    return status;
}

void sb_inspection_release(sb_inspection *inspection) {
    if (inspection != NULL)
        destroy(inspection);
}

/* ---- looking at it ---- */

const char *sb_inspection_name(const sb_inspection *inspection) {
    return inspection->name;
}

int sb_inspection_node_count(const sb_inspection *inspection) {
    return inspection->node_count;
}

const sb_inspected_node *sb_inspection_node(const sb_inspection *inspection, int index) {
    return &inspection->nodes[index];
}

int sb_inspection_value_count(const sb_inspection *inspection) {
    return inspection->value_count;
}

const sb_inspected_value *sb_inspection_value(const sb_inspection *inspection, int index) {
    return &inspection->values[index];
}

int sb_inspection_input_count(const sb_inspection *inspection) {
    return inspection->input_count;
}

int sb_inspection_input(const sb_inspection *inspection, int index) {
    return inspection->inputs[index];
}

int sb_inspection_output_count(const sb_inspection *inspection) {
    return inspection->output_count;
}

int sb_inspection_output(const sb_inspection *inspection, int index) {
    return inspection->outputs[index];
}

const sb_inspected_totals *sb_inspection_totals(const sb_inspection *inspection) {
    return &inspection->totals;
}
