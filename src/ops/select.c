/* Where and Clip: elements chosen, none computed. */
#include <float.h>
#include <string.h>

#include "base/allocation.h"
#include "ops/clip.h"
#include "ops/convert_loops.h"
#include "ops/list.h"
#include "ops/loops.h"

/* ---- Where: condition ? x : y ---- */

/* Rows without gaps, of either or both a repeated element, by masks, which vectorise. */
#define WHERE_LOOP(name, type)                                                                                         \
    static bool name##_dense(int64_t count, char *const *data, const int64_t *steps) {                                 \
        const int64_t size = sizeof(type);                                                                             \
        if (steps[0] != size || steps[1] != 1 || (steps[2] != size && steps[2] != 0) ||                                \
            (steps[3] != size && steps[3] != 0))                                                                       \
            return false;                                                                                              \
        type *restrict out = (type *)(void *)data[0];                                                                  \
        const uint8_t *restrict condition = (const uint8_t *)data[1];                                                  \
        const type *restrict x = (const type *)(const void *)data[2];                                                  \
        const type *restrict y = (const type *)(const void *)data[3];                                                  \
        const type x0 = count > 0 ? *x : 0, y0 = count > 0 ? *y : 0;                                                   \
        if (steps[2] == 0 && steps[3] == 0)                                                                            \
            WHERE_MASKED(type, x0, y0)                                                                                 \
        else if (steps[2] == 0)                                                                                        \
            WHERE_MASKED(type, x0, y[i])                                                                               \
        else if (steps[3] == 0)                                                                                        \
            WHERE_MASKED(type, x[i], y0)                                                                               \
        else                                                                                                           \
            WHERE_MASKED(type, x[i], y[i])                                                                             \
        return true;                                                                                                   \
    }                                                                                                                  \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                           \
        if (name##_dense(count, data, steps))                                                                          \
            return;                                                                                                    \
        WHERE_STRIDED(type)                                                                                            \
    }
#define WHERE_MASKED(type, chosen, otherwise)                                                                          \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        const type mask = (type) - (type)(condition[i] != 0);                                                          \
        out[i] = (type)(((chosen)&mask) | ((otherwise) & (type)~mask));                                                \
    }
#define WHERE_STRIDED(type)                                                                                            \
    for (int64_t i = 0; i < count; i++)                                                                                \
        SB_AT(type, data[0], steps[0], i) = SB_CONST_AT(uint8_t, data[1], steps[1], i) != 0                            \
                                                ? SB_CONST_AT(type, data[2], steps[2], i)                              \
                                                : SB_CONST_AT(type, data[3], steps[3], i);
WHERE_LOOP(where_1, uint8_t)
WHERE_LOOP(where_2, uint16_t)
WHERE_LOOP(where_4, uint32_t)
WHERE_LOOP(where_8, uint64_t)

static void where_text(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    WHERE_STRIDED(sb_string)
}

static sb_walk_row *where_loop(sb_dtype dtype) {
    switch (dtype == SB_STRING ? 0 : sb_dtype_size(dtype)) {
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

static sb_status infer_where(sb_infer *infer) {
    const sb_fact *facts[3];
    SB_TRY(sb_infer_require(infer, 0, SB_SET(SB_BOOL), &facts[0]));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_ANY, &facts[1]));
    SB_TRY(sb_infer_require(infer, 2, SB_SET_ANY, &facts[2]));
    if (facts[1]->dtype != facts[2]->dtype)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL,
                             "inputs 1 and 2 have dtypes %s and %s, which must be equal: put a Cast "
                             "before one",
                             sb_dtype_name(facts[1]->dtype), sb_dtype_name(facts[2]->dtype));
    return sb_infer_broadcast(infer, 0, facts[1]->dtype, 3, facts);
}

static void run_where(const sb_call *call, const sb_tensor *output) {
    const sb_tensor *operands[4] = {output, sb_call_input(call, 0), sb_call_input(call, 1), sb_call_input(call, 2)};
    sb_walk walk;
    sb_walk_start(&walk, output->rank, output->dims, 4, operands);
    sb_walk_run(&walk, where_loop(output->dtype), NULL);
}

/* Text belongs to its tensor: the chosen entries are gathered, then copied with their text. */
static sb_status where_strings(sb_call *call) {
    int64_t dims[SB_MAX_RANK], elements;
    sb_fact_is_concrete(&call->facts[0], dims);
    int rank = call->facts[0].rank;
    SB_TRY(sb_count_elements(SB_STRING, rank, dims, &elements, call->error));
    sb_string *entries = sb_allocate_array((size_t)elements, sizeof *entries);
    if (entries == NULL)
        return sb_fail_memory(call->error, (size_t)elements * sizeof *entries);
    sb_tensor gathered = {.dtype = SB_STRING, .rank = rank, .data = (char *)entries};
    memcpy(gathered.dims, dims, sizeof gathered.dims);
    sb_row_major_strides(rank, dims, gathered.strides);
    run_where(call, &gathered);
    sb_tensor *output;
    sb_status status = sb_tensor_from_strings(rank, dims, entries, &output, call->error);
    sb_free(entries);
    return status == SB_OK ? sb_call_set_output(call, 0, output) : status;
}

static sb_status eval_where(sb_call *call) {
    if (call->facts[0].dtype == SB_STRING)
        return where_strings(call);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    run_where(call, output);
    return SB_OK;
}

/* ---- Clip: t = x < least ? least : x, then t > most ? most : t. NaN stays, and a NaN bound bounds nothing ---- */

static void set_bounds(sb_clip_params *params, float least, float most) {
    *params = (sb_clip_params){.least = least, .most = most};
    params->f32.least.f32 = least;
    params->f32.most.f32 = most;
    params->f64.least.f64 = (double)least;
    params->f64.most.f64 = (double)most;
}

static sb_status prepare_clip(sb_node *node, sb_error *error) {
    sb_clip_params *params = node->params;
    if (node->version >= 11) {
        /* Converted to an integer type, infinities become its ends. */
        set_bounds(params, -sb_infinity_f32(), sb_infinity_f32());
        return SB_OK;
    }
    if (node->input_count - node->capture_count > 1)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s: Clip takes its bounds as attributes before operator set 11", node->name);
    float least, most;
    SB_TRY(sb_node_float(node, "min", -FLT_MAX, &least, error));
    SB_TRY(sb_node_float(node, "max", FLT_MAX, &most, error));
    set_bounds(params, least, most);
    return SB_OK;
}

static sb_status infer_clip(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_NUMBER, &input));
    for (int i = 1; i < 3; i++) {
        const sb_fact *bound = sb_infer_input(infer, i);
        if (bound == NULL)
            continue;
        SB_TRY(sb_infer_require(infer, i, SB_SET(input->dtype), &bound));
        int64_t extent = 1;
        if (bound->rank > 1 || (bound->rank == 1 && sb_dim_is_constant(bound->dims[0], &extent) && extent != 1))
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "bound %d is not a scalar", i);
    }
    sb_infer_shape_of(infer, 0, input, input->dtype);
    return SB_OK;
}

static sb_status read_bound(const sb_call *call, int index, float otherwise, sb_dtype computed, sb_clip_bound *bound) {
    const sb_tensor *tensor = sb_call_input(call, index);
    if (tensor == NULL) {
        sb_convert_row(computed, bound, SB_F32, &otherwise, 0, 1);
        return SB_OK;
    }
    if (sb_tensor_elements(tensor) != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "bound %d is not a scalar", index);
    sb_convert_row(computed, bound, tensor->dtype, tensor->data, 0, 1);
    return SB_OK;
}

static sb_status eval_clip(sb_call *call) {
    const sb_clip_params *params = call->node->params;
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    bool half = output->dtype == SB_F16 || output->dtype == SB_BF16;
    sb_dtype computed = half ? SB_F32 : output->dtype;
    sb_clip_bounds context;
    SB_TRY(read_bound(call, 1, params->least, computed, &context.least));
    SB_TRY(read_bound(call, 2, params->most, computed, &context.most));
    const sb_tensor *operands[2] = {output, sb_call_input(call, 0)};
    sb_walk walk;
    sb_walk_start(&walk, output->rank, output->dims, 2, operands);
    sb_walk_run(&walk, sb_clip_loops_scalar[0][output->dtype], &context);
    return SB_OK;
}

static sb_walk_row *loop_where(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    *context = NULL;
    return dtypes[1] != SB_STRING ? where_loop(dtypes[1]) : NULL;
}

/* Bounds from attributes are in the context, both bounds as inputs are operands; so is a lower one beside the context's
 * upper one. */
static sb_walk_row *loop_clip(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    sb_clip_params *params = node->params;
    int count = node->input_count - node->capture_count;
    *context = dtypes[0] == SB_F64 ? &params->f64 : &params->f32;
    if (count == 1 && sb_dtype_is_float(dtypes[0]))
        return SB_PICK_LOOPS(sb_clip_loops, isa)[0][dtypes[0]];
    if (count == 2 && sb_dtype_is_float(dtypes[0]) && dtypes[1] == dtypes[0])
        return SB_PICK_LOOPS(sb_clip_loops, isa)[2][dtypes[0]];
    if (count == 3 && dtypes[1] == dtypes[0] && dtypes[2] == dtypes[0])
        return SB_PICK_LOOPS(sb_clip_loops, isa)[1][dtypes[0]];
    return NULL;
}

/* With both bounds; fewer operands leave the value open. */
static sb_dim formula_clip(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    if (count < 3)
        return count == 2 ? sb_dim_maximum(scope, operands[0], operands[1]) : operands[0];
    return sb_dim_minimum(scope, sb_dim_maximum(scope, operands[0], operands[1]), operands[2]);
}

const sb_op sb_ops_select[] = {
    {.name = "Where",
     .domain = "",
     .least_inputs = 3,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_ELEMENTWISE,
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
     .flags = SB_OP_ELEMENTWISE,
     .params_size = sizeof(sb_clip_params),
     .prepare = prepare_clip,
     .infer = infer_clip,
     .eval = eval_clip,
     .formula = formula_clip,
     .loop = loop_clip},
    {0},
};
