/* ArgMax and ArgMin: where along an axis the largest or smallest element lies, as s64.
 *
 * The order is that of Max and Min: a NaN beats everything, +0 > -0. Ties go to the lowest index,
 * or to the highest one with select_last_index. */
#include "ops/ordering.h"

#include "base/allocation.h"
#include "numerics/minmax.h"
#include "ops/list.h"
#include "ops/rows.h"

#define CHUNK 512

static sb_status prepare_arg(sb_node *node, sb_error *error) {
    sb_arg_params *params = node->params;
    int64_t keep, last;
    SB_TRY(sb_node_int(node, "axis", 0, &params->axis, error));
    SB_TRY(sb_node_int(node, "keepdims", 1, &keep, error));
    SB_TRY(sb_node_int(node, "select_last_index", 0, &last, error));
    params->keep = keep != 0;
    params->last = last != 0;
    return SB_OK;
}

static sb_status infer_arg(sb_infer *infer) {
    const sb_arg_params *params = infer->node->params;
    const sb_fact *input;
    sb_dim dims[SB_MAX_RANK];
    int axis, rank = 0;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_NUMBER, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], SB_S64, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    SB_TRY(sb_infer_axis(infer, params->axis, input->rank, &axis));
    for (int d = 0; d < input->rank; d++) {
        if (d != axis || params->keep)
            dims[rank++] = d == axis ? sb_dim_constant(infer->scope, 1) : input->dims[d];
    }
    sb_fact_set_tensor(&infer->outputs[0], SB_S64, rank, dims);
    return SB_OK;
}

/* An element as an integer that orders as the elements do, larger meaning better. */
static int64_t rank_of(sb_dtype computed, const void *values, int64_t index, bool least) {
    switch (computed) {
    case SB_F32: {
        float value = ((const float *)values)[index];
        return least ? ~(int64_t)sb_bits_order_nan_low_f32(value) : sb_bits_order_f32(value);
    }
    case SB_F64: {
        double value = ((const double *)values)[index];
        return least ? ~sb_bits_order_nan_low_f64(value) : sb_bits_order_f64(value);
    }
    case SB_U64: {
        int64_t value = (int64_t)(((const uint64_t *)values)[index] ^ (uint64_t)INT64_MIN);
        return least ? ~value : value;
    }
    default: {
        int64_t value = ((const int64_t *)values)[index];
        return least ? ~value : value;
    }
    }
}

static sb_dtype ordering_dtype(sb_dtype dtype) {
    if (sb_dtype_is_float(dtype))
        return sb_computing_dtype(dtype);
    return (SB_SET(dtype) & SB_SET_SIGNED) != 0 ? SB_S64 : SB_U64;
}

static int64_t find_best(const sb_rows *rows, int64_t row, bool least, bool last) {
    sb_dtype computed = ordering_dtype(rows->tensor->dtype);
    int64_t values[CHUNK], best = 0, best_rank = 0;
    for (int64_t begin = 0; begin < rows->length; begin += CHUNK) {
        int64_t count = rows->length - begin < CHUNK ? rows->length - begin : CHUNK;
        sb_rows_load(rows, row, begin, count, computed, values);
        for (int64_t i = 0; i < count; i++) {
            int64_t rank = rank_of(computed, values, i, least);
            if (begin + i == 0 || rank > best_rank || (last && rank == best_rank)) {
                best = begin + i;
                best_rank = rank;
            }
        }
    }
    return best;
}

static sb_status eval_arg(sb_call *call) {
    const sb_arg_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t axis = params->axis < 0 ? params->axis + input->rank : params->axis;
    sb_rows rows;
    sb_tensor *output;
    sb_rows_start(&rows, input, UINT32_C(1) << axis);
    if (rows.length == 0 && rows.count != 0)
        return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "axis %lld has no elements to choose from",
                            (long long)params->axis);
    SB_TRY(sb_call_output(call, 0, &output));
    bool least = call->node->op == &sb_ops_arg_reduce[1];
    for (int64_t row = 0; row < rows.count; row++)
        ((int64_t *)(void *)output->data)[row] = find_best(&rows, row, least, params->last);
    return SB_OK;
}

/* clang-format off */
#define ARG_OP(op_name)                                                                            \
    {.name = op_name, .domain = "", .least_inputs = 1, .most_inputs = 1, .least_outputs = 1,       \
     .most_outputs = 1, .params_size = sizeof(sb_arg_params), .prepare = prepare_arg,              \
     .infer = infer_arg, .eval = eval_arg}

const sb_op sb_ops_arg_reduce[] = {
    ARG_OP("ArgMax"),
    ARG_OP("ArgMin"),
    {0},
};
/* clang-format on */
