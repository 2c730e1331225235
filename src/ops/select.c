/* Where and Clip: elements chosen, none computed. */
#include <float.h>
#include <string.h>

#include "base/allocation.h"
#include "ops/clip.h"
#include "ops/convert_loops.h"
#include "ops/list.h"
#include "ops/loops.h"

/* ---- Where: condition ? x : y ---- */

#define WHERE_LOOP(name, type)                                                                     \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {       \
        for (int64_t i = 0; i < count; i++)                                                        \
            IV_AT(type, data[0], steps[0], i) = IV_CONST_AT(uint8_t, data[1], steps[1], i) != 0    \
                                                    ? IV_CONST_AT(type, data[2], steps[2], i)      \
                                                    : IV_CONST_AT(type, data[3], steps[3], i);     \
    }
WHERE_LOOP(where_1, uint8_t)
WHERE_LOOP(where_2, uint16_t)
WHERE_LOOP(where_4, uint32_t)
WHERE_LOOP(where_8, uint64_t)
WHERE_LOOP(where_text, iv_string)

static iv_walk_row *where_loop(iv_dtype dtype) {
    switch (dtype == IV_STRING ? 0 : iv_dtype_size(dtype)) {
    case 0:
        return where_text;
    case 1:
        return where_1;
    case 2:
        return where_2;
    case 4:
        return where_4;
    default:
        return where_8;
    }
}

static iv_status infer_where(iv_infer *infer) {
    const iv_fact *facts[3];
    IV_TRY(iv_infer_require(infer, 0, IV_SET(IV_BOOL), &facts[0]));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_ANY, &facts[1]));
    IV_TRY(iv_infer_require(infer, 2, IV_SET_ANY, &facts[2]));
    if (facts[1]->dtype != facts[2]->dtype)
        return iv_infer_fail(
            infer, IV_ERROR_INVALID_MODEL,
            "inputs 1 and 2 have dtypes %s and %s, which must be equal: put a Cast "
            "before one",
            iv_dtype_name(facts[1]->dtype), iv_dtype_name(facts[2]->dtype));
    return iv_infer_broadcast(infer, 0, facts[1]->dtype, 3, facts);
}

static void run_where(const iv_call *call, const iv_tensor *output) {
    const iv_tensor *operands[4] = {output, iv_call_input(call, 0), iv_call_input(call, 1),
                                    iv_call_input(call, 2)};
    iv_walk walk;
    iv_walk_start(&walk, output->rank, output->dims, 4, operands);
    iv_walk_run(&walk, where_loop(output->dtype), NULL);
}

/* Text belongs to its tensor: the chosen entries are gathered, then copied with their text. */
static iv_status where_strings(iv_call *call) {
    int64_t dims[IV_MAX_RANK], elements;
    iv_fact_is_concrete(&call->facts[0], dims);
    int rank = call->facts[0].rank;
    IV_TRY(iv_count_elements(IV_STRING, rank, dims, &elements, call->error));
    iv_string *entries = iv_allocate_array((size_t)elements, sizeof *entries);
    if (entries == NULL)
        return iv_fail_memory(call->error, (size_t)elements * sizeof *entries);
    iv_tensor gathered = {.dtype = IV_STRING, .rank = rank, .data = (char *)entries};
    memcpy(gathered.dims, dims, sizeof gathered.dims);
    iv_row_major_strides(rank, dims, gathered.strides);
    run_where(call, &gathered);
    iv_tensor *output;
    iv_status status = iv_tensor_from_strings(rank, dims, entries, &output, call->error);
    iv_free(entries);
    return status == IV_OK ? iv_call_set_output(call, 0, output) : status;
}

static iv_status eval_where(iv_call *call) {
    if (call->facts[0].dtype == IV_STRING)
        return where_strings(call);
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    run_where(call, output);
    return IV_OK;
}

/* ---- Clip: t = x < least ? least : x, then t > most ? most : t. NaN stays, and a NaN bound bounds
 * nothing ---- */

static void set_bounds(iv_clip_params *params, float least, float most) {
    *params = (iv_clip_params){.least = least, .most = most};
    params->f32.least.f32 = least;
    params->f32.most.f32 = most;
    params->f64.least.f64 = (double)least;
    params->f64.most.f64 = (double)most;
}

static iv_status prepare_clip(iv_node *node, iv_error *error) {
    iv_clip_params *params = node->params;
    if (node->version >= 11) {
        /* Converted to an integer type, infinities become its ends. */
        set_bounds(params, -iv_infinity_f32(), iv_infinity_f32());
        return IV_OK;
    }
    if (node->input_count - node->capture_count > 1)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s: Clip takes its bounds as attributes before operator set 11",
                       node->name);
    float least, most;
    IV_TRY(iv_node_float(node, "min", -FLT_MAX, &least, error));
    IV_TRY(iv_node_float(node, "max", FLT_MAX, &most, error));
    set_bounds(params, least, most);
    return IV_OK;
}

static iv_status infer_clip(iv_infer *infer) {
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_NUMBER, &input));
    for (int i = 1; i < 3; i++) {
        const iv_fact *bound = iv_infer_input(infer, i);
        if (bound == NULL)
            continue;
        IV_TRY(iv_infer_require(infer, i, IV_SET(input->dtype), &bound));
        int64_t extent = 1;
        if (bound->rank > 1 ||
            (bound->rank == 1 && iv_dim_is_constant(bound->dims[0], &extent) && extent != 1))
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "bound %d is not a scalar", i);
    }
    iv_infer_shape_of(infer, 0, input, input->dtype);
    return IV_OK;
}

static iv_status read_bound(const iv_call *call, int index, float otherwise, iv_dtype computed,
                            iv_clip_bound *bound) {
    const iv_tensor *tensor = iv_call_input(call, index);
    if (tensor == NULL) {
        iv_convert_row(computed, bound, IV_F32, &otherwise, 0, 1);
        return IV_OK;
    }
    if (iv_tensor_elements(tensor) != 1)
        return iv_call_fail(call, IV_ERROR_SHAPE, "bound %d is not a scalar", index);
    iv_convert_row(computed, bound, tensor->dtype, tensor->data, 0, 1);
    return IV_OK;
}

static iv_status eval_clip(iv_call *call) {
    const iv_clip_params *params = call->node->params;
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    bool half = output->dtype == IV_F16 || output->dtype == IV_BF16;
    iv_dtype computed = half ? IV_F32 : output->dtype;
    iv_clip_bounds context;
    IV_TRY(read_bound(call, 1, params->least, computed, &context.least));
    IV_TRY(read_bound(call, 2, params->most, computed, &context.most));
    const iv_tensor *operands[2] = {output, iv_call_input(call, 0)};
    iv_walk walk;
    iv_walk_start(&walk, output->rank, output->dims, 2, operands);
    iv_walk_run(&walk, iv_clip_loops_scalar[0][output->dtype], &context);
    return IV_OK;
}

static iv_walk_row *loop_where(const iv_node *node, const iv_dtype *dtypes, iv_isa isa,
                               void **context) {
    *context = NULL;
    return dtypes[1] != IV_STRING ? where_loop(dtypes[1]) : NULL;
}

/* Bounds from attributes are in the context, both bounds as inputs are operands; a single bound is
 * left to evaluation. */
static iv_walk_row *loop_clip(const iv_node *node, const iv_dtype *dtypes, iv_isa isa,
                              void **context) {
    iv_clip_params *params = node->params;
    int count = node->input_count - node->capture_count;
    *context = dtypes[0] == IV_F64 ? &params->f64 : &params->f32;
    if (count == 1 && iv_dtype_is_float(dtypes[0]))
        return IV_PICK_LOOPS(iv_clip_loops, isa)[0][dtypes[0]];
    if (count == 3 && dtypes[1] == dtypes[0] && dtypes[2] == dtypes[0])
        return IV_PICK_LOOPS(iv_clip_loops, isa)[1][dtypes[0]];
    return NULL;
}

/* With both bounds; fewer operands leave the value open. */
static iv_dim formula_clip(const iv_node *node, iv_scope *scope, int count,
                           const iv_dim *operands) {
    if (count < 3)
        return count == 2 ? iv_dim_maximum(scope, operands[0], operands[1]) : operands[0];
    return iv_dim_minimum(scope, iv_dim_maximum(scope, operands[0], operands[1]), operands[2]);
}

const iv_op iv_ops_select[] = {
    {.name = "Where",
     .domain = "",
     .least_inputs = 3,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = IV_OP_ELEMENTWISE,
     .moved_inputs = 6,
     .infer = infer_where,
     .eval = eval_where,
     .loop = loop_where},
    {.name = "Clip",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = IV_OP_ELEMENTWISE,
     .params_size = sizeof(iv_clip_params),
     .prepare = prepare_clip,
     .infer = infer_clip,
     .eval = eval_clip,
     .formula = formula_clip,
     .loop = loop_clip},
    {0},
};
