/* CumSum and CumProd: y[i] = x[0] + x[1] + … + x[i] (or the product), one addition after the other in this order.
 *
 * reverse: from the other end. exclusive: y[i] goes without x[i] itself, and begins with +0 (with 1 for products). f16
 * and bf16 keep the running value in f32 and round each result once; integers wrap around. */
#include "ops/ordering.h"

#include "base/allocation.h"
#include "ops/convert_loops.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/rows.h"

static sb_status prepare_cumulative(sb_node *node, sb_error *error) {
    sb_cumulative_params *params = node->params;
    int64_t exclusive, reverse;
    SB_TRY(sb_node_int(node, "exclusive", 0, &exclusive, error));
    SB_TRY(sb_node_int(node, "reverse", 0, &reverse, error));
    params->exclusive = exclusive != 0;
    params->reverse = reverse != 0;
    return SB_OK;
}

static sb_status infer_cumulative(sb_infer *infer) {
    const sb_fact *input;
    int64_t axis;
    int count, normalised;
    bool known;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_NUMBER, &input));
    SB_TRY(sb_infer_numbers(infer, 1, 1, &axis, &count, &known));
    if (count == 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the axis is empty");
    if (known && input->rank != SB_RANK_UNKNOWN)
        SB_TRY(sb_infer_axis(infer, axis, input->rank, &normalised));
    sb_infer_shape_of(infer, 0, input, input->dtype);
    return SB_OK;
}

#define RUN(name, type, operation)                                                                                     \
    static void name(type *values, int64_t count, const sb_cumulative_params *params, type neutral) {                  \
        int64_t at = params->reverse ? count - 1 : 0, step = params->reverse ? -1 : 1;                                 \
        type running = neutral;                                                                                        \
        for (int64_t i = 0; i < count; i++, at += step) {                                                              \
            type value = values[at];                                                                                   \
            type joined = i == 0 ? value : (type)(running operation value);                                            \
            values[at] = params->exclusive ? running : joined;                                                         \
            running = joined;                                                                                          \
        }                                                                                                              \
    }
RUN(sum_f32, float, +)
RUN(sum_f64, double, +)
RUN(sum_u64, uint64_t, +)
RUN(product_f32, float, *)
RUN(product_f64, double, *)
RUN(product_u64, uint64_t, *)

static void run_row(sb_dtype computed, void *values, int64_t count, const sb_cumulative_params *params, bool product) {
    if (computed == SB_F32)
        (product ? product_f32 : sum_f32)(values, count, params, product ? 1.0f : 0.0f);
    else if (computed == SB_F64)
        (product ? product_f64 : sum_f64)(values, count, params, product ? 1.0 : 0.0);
    else
        (product ? product_u64 : sum_u64)(values, count, params, product);
}

sb_status sb_cumulative_inner(const sb_call *call, uint32_t *inner) {
    const sb_tensor *place = sb_call_input(call, 1);
    int64_t given;
    int axis;
    sb_convert_row(SB_S64, &given, place->dtype, place->data, 0, 1);
    SB_TRY(sb_move_axis(call, given, sb_call_input(call, 0)->rank, &axis));
    *inner = UINT32_C(1) << axis;
    return SB_OK;
}

static sb_status eval_cumulative(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    uint32_t inner;
    SB_TRY(sb_cumulative_inner(call, &inner));
    SB_TRY(sb_call_output(call, 0, &output));
    sb_rows from, to;
    sb_rows_start(&from, input, inner);
    sb_rows_start(&to, output, inner);
    sb_dtype computed = sb_dtype_is_float(input->dtype) ? sb_computing_dtype(input->dtype) : SB_U64;
    int64_t *values = sb_allocate_array((size_t)from.length, sizeof *values);
    if (values == NULL)
        return sb_fail_memory(call->error, (size_t)from.length * sizeof *values);
    for (int64_t row = 0; row < from.count && from.length != 0; row++) {
        sb_rows_load(&from, row, 0, from.length, computed, values);
        run_row(computed, values, from.length, call->node->params, call->node->op == &sb_ops_cumulative[1]);
        sb_rows_store(&to, row, 0, from.length, computed, values);
    }
    sb_free(values);
    return SB_OK;
}

/* clang-format off */
#define CUMULATIVE_OP(op_name)                                                                     \
    {.name = op_name, .domain = "", .least_inputs = 2, .most_inputs = 2, .least_outputs = 1,       \
     .most_outputs = 1, .params_size = sizeof(sb_cumulative_params), .prepare = prepare_cumulative,\
     .infer = infer_cumulative, .eval = eval_cumulative}

const sb_op sb_ops_cumulative[] = {
    CUMULATIVE_OP("CumSum"),
    CUMULATIVE_OP("CumProd"),
    {0},
};
/* clang-format on */
