/* One node with its inputs, run by its definition, and the same node on inputs with more rows.
 * Include after cmocka.h. */
#ifndef SB_TESTS_AXIS_CASE_H
#define SB_TESTS_AXIS_CASE_H

#include "ops/node_runner.h"
#include "rules/axes.h"
#include "support/must.h"

/* How often an axis is repeated when it grows: whole multiples keep blocks whole. */
#define GROWTH 2
/* Lists up to this length are known to inference, as constants of a model would be. */
#define KNOWN_ELEMENTS 64

/* What lies behind the used rows. */
typedef enum garbage {
    GARBAGE_NAN,   /* floats are NaN, other elements copies of used ones in another order */
    GARBAGE_LEAST, /* the least value: minus infinity, the least integer */
    GARBAGE_LEGAL, /* copies of used elements in another order */
    GARBAGE_ZERO
} garbage;

typedef struct axis_case {
    const sb_node *node;
    sb_value *inputs; /* [node->input_count]; owned */
    sb_scope *scope;
    sb_fact *facts;              /* of the inputs */
    const sb_fact **input_facts; /* NULL where omitted */
    sb_fact *output_facts;       /* [node->output_count] */
    sb_value *outputs;
} axis_case;

/* ---- running definitions ---- */

/* One thread for all runs. */
static sb_workers *definition_workers;

static sb_status run_graph_by_definition(sb_frame *frame, const sb_call *call, const sb_graph *graph, int input_count,
                                         const sb_value *inputs, sb_value *outputs);

static sb_status run_definition(const sb_node *node, const sb_value *inputs, const sb_fact *output_facts,
                                sb_value *outputs, sb_error *error) {
    node_frame frame = {.frame = {node_allocate, node_workspace, run_graph_by_definition}};
    sb_call call = {.node = node,
                    .input_count = node->input_count,
                    .inputs = inputs,
                    .output_count = node->output_count,
                    .facts = output_facts,
                    .outputs = outputs,
                    .frame = &frame.frame,
                    .workers = definition_workers,
                    .isa = SB_ISA_BEST,
                    .error = error};
    sb_status status = sb_call_run(&call, node->op->eval);
    for (int i = 0; i < frame.count; i++)
        sb_free(frame.blocks[i]);
    return status;
}

static inline void clear_case(axis_case *c) {
    for (int i = 0; i < c->node->input_count; i++) {
        if (c->facts != NULL)
            sb_fact_clear(&c->facts[i]);
        if (c->inputs != NULL)
            sb_value_release(&c->inputs[i]);
    }
    for (int o = 0; o < c->node->output_count; o++) {
        if (c->output_facts != NULL)
            sb_fact_clear(&c->output_facts[o]);
        if (c->outputs != NULL)
            sb_value_release(&c->outputs[o]);
    }
    sb_free(c->inputs);
    sb_free(c->facts);
    sb_free((void *)c->input_facts);
    sb_free(c->output_facts);
    sb_free(c->outputs);
    sb_scope_destroy(c->scope);
    *c = (axis_case){.node = c->node};
}

static inline bool is_known(sb_value value) {
    return value.kind == SB_KIND_TENSOR && value.tensor->rank <= 1 &&
           sb_tensor_elements(value.tensor) <= KNOWN_ELEMENTS;
}

/* Takes over the inputs' references (not the array). On failure the case is cleared. */
static inline sb_status start_case(axis_case *c, const sb_node *node, const sb_value *inputs, sb_error *error) {
    size_t in = (size_t)node->input_count, out = (size_t)node->output_count;
    *c = (axis_case){.node = node,
                     .inputs = sb_allocate_array(in + 1, sizeof *c->inputs),
                     .facts = sb_allocate_array(in + 1, sizeof *c->facts),
                     .input_facts = sb_allocate_array(in + 1, sizeof *c->input_facts),
                     .output_facts = sb_allocate_array(out + 1, sizeof *c->output_facts),
                     .outputs = sb_allocate_array(out + 1, sizeof *c->outputs)};
    for (size_t i = 0; i < in; i++)
        c->inputs[i] = inputs[i];
    sb_status status = sb_scope_create(&c->scope, error);
    for (size_t i = 0; i < in && status == SB_OK; i++) {
        if (node->inputs[i] == SB_NO_VALUE)
            continue;
        c->input_facts[i] = &c->facts[i];
        if (inputs[i].kind != SB_KIND_NONE)
            status = sb_fact_of_value(&c->facts[i], c->scope, inputs[i], is_known(inputs[i]), error);
    }
    if (status == SB_OK)
        status = sb_node_infer(node, c->scope, c->input_facts, c->output_facts, error);
    if (status == SB_OK)
        status = run_definition(node, c->inputs, c->output_facts, c->outputs, error);
    if (status != SB_OK)
        clear_case(c);
    return status;
}

/* Runs the nodes of a graph whose inputs have their values in `values` [values of the graph], which fills. `visit` (may
 * be NULL) is called for each node that ran. */
static sb_status run_nodes(const sb_graph *graph, sb_value *values, void (*visit)(void *context, axis_case *c),
                           void *context, sb_error *error) {
    for (size_t v = 0; v < graph->value_count; v++) {
        const sb_value_info *info = &graph->values[v];
        if (info->producer < 0 && info->fact.constant != NULL && values[v].kind == SB_KIND_NONE)
            values[v] = sb_value_of_tensor(sb_tensor_retain(info->fact.constant));
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        sb_value *inputs = sb_allocate_array((size_t)node->input_count + 1, sizeof *inputs);
        axis_case c;
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != SB_NO_VALUE)
                inputs[i] = sb_value_retain(values[node->inputs[i]]);
        }
        sb_status status = start_case(&c, node, inputs, error);
        sb_free(inputs);
        SB_TRY(status);
        for (int o = 0; o < node->output_count; o++) {
            if (node->outputs[o] != SB_NO_VALUE)
                values[node->outputs[o]] = sb_value_retain(c.outputs[o]);
        }
        if (visit != NULL)
            visit(context, &c);
        clear_case(&c);
    }
    return SB_OK;
}

static inline void release_values(const sb_graph *graph, sb_value *values) {
    for (size_t v = 0; v < graph->value_count; v++)
        sb_value_release(&values[v]);
    sb_free(values);
}

static sb_status run_graph_by_definition(sb_frame *frame, const sb_call *call, const sb_graph *graph, int input_count,
                                         const sb_value *inputs, sb_value *outputs) {
    const sb_node *node = call->node;
    sb_value *values = sb_allocate_array(graph->value_count + 1, sizeof *values);
    for (size_t i = 0; i < graph->input_count; i++) {
        /* A call hands over the graph's own inputs; the captures, which come last, are the node's. */
        int capture = (int)i - input_count;
        values[graph->inputs[i]] =
            sb_value_retain(capture < 0 ? inputs[i] : call->inputs[node->input_count - node->capture_count + capture]);
    }
    sb_status status = run_nodes(graph, values, NULL, NULL, call->error);
    for (size_t o = 0; o < graph->output_count && status == SB_OK; o++)
        outputs[o] = sb_value_retain(values[graph->outputs[o]]);
    release_values(graph, values);
    return status;
}

/* ---- tensors with more rows ---- */

/* The bits of an element of garbage, the rest 0. False where garbage is a copy of a used element. */
static inline bool garbage_bits(sb_dtype dtype, garbage kind, uint64_t *bits) {
    static const uint64_t least[SB_DTYPE_COUNT] = {
        [SB_S8] = 0x80,    [SB_S16] = 0x8000,  [SB_S32] = 0x80000000, [SB_S64] = UINT64_C(0x8000000000000000),
        [SB_F16] = 0xfc00, [SB_BF16] = 0xff80, [SB_F32] = 0xff800000, [SB_F64] = UINT64_C(0xfff0000000000000)};
    static const uint64_t nan[SB_DTYPE_COUNT] = {
        [SB_F16] = 0x7e00, [SB_BF16] = 0x7fc0, [SB_F32] = 0x7fc00000, [SB_F64] = UINT64_C(0x7ff8000000000000)};
    *bits = kind == GARBAGE_NAN ? nan[dtype] : least[dtype];
    if (kind == GARBAGE_ZERO)
        *bits = 0;
    if (kind == GARBAGE_NAN)
        return sb_dtype_is_float(dtype);
    return (kind == GARBAGE_LEAST || kind == GARBAGE_ZERO) && dtype != SB_STRING;
}

/* Where the element of a grown tensor at row-major place `at` comes from: *used tells whether it is a used one. */
static inline int64_t source_of(const sb_tensor *tensor, uint32_t axes, int64_t at, bool *used) {
    int64_t offset = 0, places[SB_MAX_RANK];
    *used = true;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        int64_t extent = tensor->dims[d] * ((axes >> d & 1) != 0 ? GROWTH : 1);
        places[d] = at % extent;
        at /= extent;
        *used = *used && places[d] < tensor->dims[d];
    }
    for (int d = 0; d < tensor->rank; d++) {
        int64_t place = places[d] % tensor->dims[d];
        /* Another order, so that a copy is not the same by chance. */
        offset += (*used || (axes >> d & 1) == 0 ? place : tensor->dims[d] - 1 - place) * tensor->strides[d];
    }
    return offset;
}

/* The tensor with GROWTH times the rows for each axis of the set; not for empty tensors. */
static inline sb_tensor *grow_tensor(const sb_tensor *tensor, uint32_t axes, garbage kind) {
    int64_t dims[SB_MAX_RANK], count = 1;
    for (int d = 0; d < tensor->rank; d++) {
        dims[d] = tensor->dims[d] * ((axes >> d & 1) != 0 ? GROWTH : 1);
        count *= dims[d];
    }
    size_t size = sb_dtype_size(tensor->dtype);
    uint64_t bits;
    bool marks = garbage_bits(tensor->dtype, kind, &bits);
    char *elements = sb_allocate_array((size_t)count, size);
    assert_non_null(elements);
    for (int64_t at = 0; at < count; at++) {
        bool used;
        const char *from = tensor->data + source_of(tensor, axes, at, &used) * (int64_t)size;
        memcpy(elements + (size_t)at * size, !used && marks ? (const char *)&bits : from, size);
    }
    sb_tensor *grown;
    if (tensor->dtype == SB_STRING)
        MUST(sb_tensor_from_strings(tensor->rank, dims, (const sb_string *)(void *)elements, &grown, error));
    else
        MUST(sb_tensor_from_data(tensor->dtype, tensor->rank, dims, elements, &grown, error));
    sb_free(elements);
    return grown;
}

/* The tensor itself as a view of a larger one: GROWTH times the extent of every axis. */
static inline sb_tensor *view_in_garbage(const sb_tensor *tensor) {
    sb_tensor *view = grow_tensor(tensor, (UINT32_C(1) << tensor->rank) - 1, GARBAGE_NAN);
    for (int d = 0; d < tensor->rank; d++) {
        sb_tensor *part;
        assert_int_equal(sb_tensor_slice(view, d, 0, tensor->dims[d], 1, &part, NULL), SB_OK);
        sb_tensor_release(view);
        view = part;
    }
    return view;
}

/* ---- comparing ---- */

static inline bool same_bits(sb_tensor *left, sb_tensor *right) {
    if (left->dtype != right->dtype || left->rank != right->rank ||
        memcmp(left->dims, right->dims, (size_t)left->rank * sizeof left->dims[0]) != 0)
        return false;
    if (left->dtype == SB_STRING)
        return sb_tensor_equal(left, right);
    sb_tensor *first, *second;
    assert_int_equal(sb_tensor_contiguous(left, &first, NULL), SB_OK);
    assert_int_equal(sb_tensor_contiguous(right, &second, NULL), SB_OK);
    size_t bytes = (size_t)sb_tensor_elements(left) * sb_dtype_size(left->dtype);
    bool same = bytes == 0 || memcmp(first->data, second->data, bytes) == 0;
    sb_tensor_release(first);
    sb_tensor_release(second);
    return same;
}

/* Whether `grown` begins with `exact` on `axis` (SB_AXIS_NONE: is equal to it). */
static inline bool begins_with(sb_tensor *grown, sb_tensor *exact, int axis) {
    sb_tensor *part;
    if (axis == SB_AXIS_NONE)
        return same_bits(grown, exact);
    if (grown->rank != exact->rank || axis >= grown->rank || grown->dims[axis] < exact->dims[axis])
        return false;
    assert_int_equal(sb_tensor_slice(grown, axis, 0, exact->dims[axis], 1, &part, NULL), SB_OK);
    bool same = same_bits(part, exact);
    sb_tensor_release(part);
    return same;
}

#endif
