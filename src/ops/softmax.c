/* Softmax, LogSoftmax (formulas: softmax_row.h) and Hardmax: 1 at the maximum, of equal ones the
 * first, and +0 elsewhere.
 *
 * Before operator set 13 the row is everything from `axis` on; since then it is that axis alone.
 * f16 and bf16 are computed in f32 and rounded once. */
#include "ops/softmax.h"

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/rows.h"
#include "ops/softmax_row.h"

static sb_status prepare_softmax(sb_node *node, sb_error *error) {
    sb_softmax_params *params = node->params;
    params->flatten = node->version < 13;
    return sb_node_int(node, "axis", params->flatten ? 1 : -1, &params->axis, error);
}

static sb_status infer_softmax(sb_infer *infer) {
    const sb_softmax_params *params = infer->node->params;
    const sb_fact *input;
    int axis;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    /* An axis just past the end makes rows of one element. */
    bool past = params->flatten && params->axis == input->rank;
    if (input->rank != SB_RANK_UNKNOWN && !past)
        SB_TRY(sb_infer_axis(infer, params->axis, input->rank, &axis));
    sb_infer_shape_of(infer, 0, input, input->dtype);
    return SB_OK;
}

#define HARDMAX(type, suffix)                                                                                          \
    static void hardmax_##suffix(type *values, int64_t count) {                                                        \
        int64_t best = 0;                                                                                              \
        for (int64_t i = 1; i < count; i++)                                                                            \
            best = sb_argmax_beats_##suffix(values[i], i, values[best], best) ? i : best;                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            values[i] = i == best;                                                                                     \
    }
HARDMAX(float, f32)
HARDMAX(double, f64)

static void (*const functions_f32[])(float *, int64_t) = {sb_softmax_row_f32, sb_log_softmax_row_f32, hardmax_f32};
static void (*const functions_f64[])(double *, int64_t) = {sb_softmax_row_f64, sb_log_softmax_row_f64, hardmax_f64};

uint32_t sb_softmax_axes(const sb_softmax_params *params, int rank) {
    int64_t axis = params->axis < 0 ? params->axis + rank : params->axis;
    uint32_t below = (UINT32_C(1) << axis) - 1, all = (UINT32_C(1) << rank) - 1;
    return params->flatten ? all & ~below : UINT32_C(1) << axis;
}

static sb_status eval_softmax(sb_call *call) {
    const sb_softmax_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    uint32_t inner = sb_softmax_axes(params, input->rank);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    sb_rows from, to;
    sb_rows_start(&from, input, inner);
    sb_rows_start(&to, output, inner);
    sb_dtype computed = sb_computing_dtype(input->dtype);
    void *values = sb_allocate_array((size_t)from.length, sizeof(double));
    if (values == NULL)
        return sb_fail_memory(call->error, (size_t)from.length * sizeof(double));
    ptrdiff_t which = call->node->op - sb_ops_softmax;
    for (int64_t row = 0; row < from.count && from.length != 0; row++) {
        sb_rows_load(&from, row, 0, from.length, computed, values);
        if (computed == SB_F32)
            functions_f32[which](values, from.length);
        else
            functions_f64[which](values, from.length);
        sb_rows_store(&to, row, 0, from.length, computed, values);
    }
    sb_free(values);
    return SB_OK;
}

/* clang-format off */
#define SOFTMAX_OP(op_name)                                                                        \
    {.name = op_name, .domain = "", .least_inputs = 1, .most_inputs = 1, .least_outputs = 1,       \
     .most_outputs = 1, .params_size = sizeof(sb_softmax_params), .prepare = prepare_softmax,      \
     .infer = infer_softmax, .eval = eval_softmax}

const sb_op sb_ops_softmax[] = {
    SOFTMAX_OP("Softmax"),
    SOFTMAX_OP("LogSoftmax"),
    SOFTMAX_OP("Hardmax"),
    {0},
};
/* clang-format on */
