#include "cpu/site.h"

#include <stdio.h>
#include <string.h>

#include "cpu/tail_steps.h"
#include "ops/contraction.h"
#include "ops/real.h"

iv_site iv_site_of(const iv_node *node) {
    const iv_graph *body =
        (node->op->flags & IV_OP_FUSED) != 0 ? iv_node_graph(node, "body") : NULL;
    if (body == NULL || body->node_count == 0)
        return (iv_site){node, NULL};
    return (iv_site){body->nodes[0], body};
}

/* The body's value behind an input of the contraction, and which input of the Fused node it is (-1:
 * a constant of the body). */
static iv_value_id body_value(const iv_site *site, int input, int *outer) {
    iv_value_id value = input < site->node->input_count ? site->node->inputs[input] : IV_NO_VALUE;
    *outer = -1;
    for (size_t i = 0; i < site->body->input_count; i++) {
        if (site->body->inputs[i] == value)
            *outer = (int)i;
    }
    return value;
}

const iv_fact *iv_site_fact(const iv_site *site, const iv_kernel_query *query, int input) {
    if (site->body == NULL)
        return input < site->node->input_count ? query->inputs[input] : NULL;
    int outer;
    iv_value_id value = body_value(site, input, &outer);
    if (value == IV_NO_VALUE)
        return NULL;
    return outer >= 0 ? query->inputs[outer] : &site->body->values[value].fact;
}

iv_tensor *iv_site_tensor(const iv_site *site, const iv_call *call, int input) {
    if (site->body == NULL)
        return iv_call_input(call, input);
    int outer;
    iv_value_id value = body_value(site, input, &outer);
    if (value == IV_NO_VALUE)
        return NULL;
    return outer >= 0 ? call->inputs[outer].tensor : site->body->values[value].fact.constant;
}

iv_status iv_site_program(const iv_site *site, const iv_kernel_query *query,
                          iv_tile_program **program, iv_error *error) {
    *program = NULL;
    if (site->body == NULL)
        return IV_OK;
    return iv_tile_program_create(site->body, 1, query->inputs, query->isa, program, error);
}

bool iv_site_supports_tail(const iv_site *site, const iv_kernel_query *query, iv_dtype dtype,
                           char *why) {
    iv_tile_program *program;
    iv_error error;
    if (site->body == NULL)
        return true;
    if (query->outputs[0].dtype != dtype) {
        snprintf(why, IV_WHY_BYTES, "the fused result is %s, not %s",
                 iv_dtype_name(query->outputs[0].dtype), iv_dtype_name(dtype));
        return false;
    }
    iv_status status = iv_site_program(site, query, &program, &error);
    if (status != IV_OK) {
        *query->exhausted = status == IV_ERROR_OUT_OF_MEMORY;
        snprintf(why, IV_WHY_BYTES, "%.200s", error.message);
        return false;
    }
    iv_tile_program_destroy(program);
    return true;
}

int iv_site_addend(const iv_site *site, const iv_kernel_query *query) {
    if (site->body == NULL || query->outputs[0].dtype != IV_F32)
        return -1;
    for (size_t i = 0; i < site->body->input_count; i++) {
        int uses = 0, sums = 0;
        for (size_t n = 0; n < site->body->node_count; n++) {
            const iv_node *node = site->body->nodes[n];
            for (int j = 0; j < node->input_count; j++) {
                bool used = node->inputs[j] == site->body->inputs[i];
                uses += used;
                sums += used && n > 0 && strcmp(node->op->name, "Add") == 0;
            }
        }
        if (uses == 1 && sums == 1 && iv_fact_same_shape(query->inputs[i], &query->outputs[0]))
            return (int)i;
    }
    return -1;
}

/* `operand` has the extents that it is broadcast to. */
static void describe_operand(const iv_tensor *operand, const char *data, int column_axis, int index,
                             iv_site_tail *tail) {
    int64_t size = (int64_t)iv_dtype_size(operand->dtype);
    int row_axis = 0;
    tail->data[index] = data;
    tail->column_steps[index] = 0;
    for (int d = 0; d < operand->rank; d++) {
        int64_t step = operand->strides[d] * size;
        if (d == column_axis)
            tail->column_steps[index] = step;
        else
            tail->row_steps[index][row_axis++] = step;
    }
}

/* Whether two tensors lie in the same place, element by element. */
static bool coincide(const iv_tensor *left, const iv_tensor *right) {
    if (left->data != right->data)
        return false;
    for (int d = 0; d < left->rank; d++) {
        if (left->dims[d] != 1 && left->strides[d] != right->strides[d])
            return false;
    }
    return true;
}

/* Describes a tail operand, broadcast to y's extents; *in_place says that y coincides with it. An operand that overlaps y
 * otherwise, or when `detach`, is described by a copy. */
static iv_status add_operand(iv_call *call, const iv_tensor *operand, const iv_tensor *y,
                             int column_axis, bool detach, bool *in_place, int index,
                             iv_site_tail *tail) {
    bool shares = iv_tensors_overlap(operand, y);
    if (!shares || (!detach && coincide(operand, y))) {
        *in_place = *in_place || shares;
        describe_operand(operand, operand->data, column_axis, index, tail);
        return IV_OK;
    }
    iv_tensor dense = {.dtype = operand->dtype, .rank = operand->rank};
    void *copy;
    IV_TRY(iv_call_scratch(call, (size_t)iv_tensor_elements(operand) * iv_dtype_size(operand->dtype),
                           &copy));
    iv_gather_dense(iv_dtype_size(operand->dtype), operand->rank, operand->dims,
                    operand->strides, operand->data, copy);
    iv_row_major_strides(operand->rank, operand->dims, dense.strides);
    describe_operand(&dense, copy, column_axis, index, tail);
    return IV_OK;
}

static iv_status add_operands(iv_call *call, const iv_tensor *y, int column_axis, bool detach,
                              bool *in_place, iv_site_tail *tail) {
    for (int i = 0; i < tail->operands; i++) {
        int graph_input;
        iv_tensor *operand, *spread;
        iv_tile_program_input(tail->program, i, &graph_input, &operand);
        if (graph_input >= 0)
            operand = call->inputs[graph_input].tensor;
        IV_TRY(iv_tensor_broadcast(operand, y->rank, y->dims, &spread, call->error));
        iv_status status = add_operand(call, spread, y, column_axis, detach, in_place, i, tail);
        iv_tensor_release(spread); /* the call's inputs keep the memory alive */
        IV_TRY(status);
    }
    return IV_OK;
}

iv_status iv_site_tail_start(iv_call *call, iv_tile_program *program, const iv_tensor *y,
                             int column_axis, bool one_pass, iv_site_tail *tail) {
    bool in_place = false;
    tail->program = program;
    tail->dtype = y->dtype;
    tail->first_row = 0;
    tail->row_axes = 0;
    tail->operands = program != NULL ? iv_tile_program_inputs(program) : 0;
    for (int d = 0; d < y->rank; d++) {
        if (d != column_axis)
            tail->row_dims[tail->row_axes++] = y->dims[d];
    }
    IV_TRY(add_operands(call, y, column_axis, !one_pass, &in_place, tail));
    iv_epilogue epilogue = {.count = 1}; /* a bias may come first */
    if (in_place && !iv_tail_steps(tail, &epilogue))
        return add_operands(call, y, column_axis, true, &in_place, tail);
    return IV_OK;
}

/* Runs the program over a piece of at most IV_TILE_ELEMENTS of a row of f32. */
static void run_piece_f32(const iv_site_tail *tail, float *row, int64_t count, char **data,
                          int64_t *steps) {
    float base[IV_TILE_ELEMENTS];
    memcpy(base, row, (size_t)count * sizeof *base);
    data[0] = (char *)row;
    data[1] = (char *)base;
    steps[0] = steps[1] = (int64_t)sizeof(float);
    iv_tile_program_row(tail->program, count, data, steps);
}

/* The same for f16 and bf16: rounded before the program, as the contraction's own output would be;
 * what comes out widens exactly and is stored without another rounding. */
static void run_piece_16(const iv_site_tail *tail, float *row, int64_t count, char **data,
                         int64_t *steps) {
    uint16_t base[IV_TILE_ELEMENTS], out[IV_TILE_ELEMENTS];
    for (int64_t i = 0; i < count; i++)
        iv_real_store_f32(tail->dtype, base, i, row[i]);
    data[0] = (char *)out;
    data[1] = (char *)base;
    steps[0] = steps[1] = (int64_t)sizeof(uint16_t);
    iv_tile_program_row(tail->program, count, data, steps);
    for (int64_t i = 0; i < count; i++)
        row[i] = iv_real_load_f32(tail->dtype, out, i);
}

static void run_tail(void *context, float *row, int64_t m, int64_t n, int64_t count) {
    const iv_site_tail *tail = context;
    char *data[2 + IV_TILE_INPUTS];
    int64_t steps[2 + IV_TILE_INPUTS], rest = m + tail->first_row;
    for (int i = 0; i < tail->operands; i++) {
        data[2 + i] = (char *)tail->data[i] + n * tail->column_steps[i];
        steps[2 + i] = tail->column_steps[i];
    }
    for (int d = tail->row_axes - 1; d >= 0; d--) {
        int64_t index = d > 0 ? rest % tail->row_dims[d] : rest;
        rest = d > 0 ? rest / tail->row_dims[d] : 0;
        for (int i = 0; i < tail->operands; i++)
            data[2 + i] += index * tail->row_steps[i][d];
    }
    for (int64_t start = 0; start < count; start += IV_TILE_ELEMENTS) {
        int64_t piece = count - start < IV_TILE_ELEMENTS ? count - start : IV_TILE_ELEMENTS;
        if (tail->dtype == IV_F32)
            run_piece_f32(tail, row + start, piece, data, steps);
        else
            run_piece_16(tail, row + start, piece, data, steps);
        for (int i = 0; i < tail->operands; i++)
            data[2 + i] += piece * steps[2 + i];
    }
}

void iv_site_tail_append(iv_site_tail *tail, iv_epilogue *epilogue) {
    if (tail->program == NULL || iv_tail_steps(tail, epilogue))
        return;
    epilogue->steps[epilogue->count++] =
        (iv_epilogue_step){.kind = IV_EPILOGUE_CALL, .call = run_tail, .context = tail};
}
