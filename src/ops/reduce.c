/* Reductions over axes: ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceSumSquare,
 * ReduceLogSum and ReduceLogSumExp.
 *
 * The reduced elements of one output element are numbered in row-major order of the reduced axes, whatever the
 * strides, and added in the order of numerics/reduce.h (multiplied: numerics/product.h). f16 and bf16 are
 * computed in f32 and rounded once.
 *
 *     Mean       sum / (float)n
 *     Max, Min   a NaN wins, +0 > -0; of nothing: the least, the greatest value of the type (infinities for floats)
 *     L1         sum of |x|
 *     L2         sqrt(sum of squares)
 *     SumSquare  sum of squares
 *     LogSum     log(sum)
 *     LogSumExp  log(sum of exp(x - m)) + m with m the maximum, or +0 where that is infinite; of nothing: -inf
 *
 * Integers: sums and products modulo 2^64, cut to the type; the mean is the quotient truncated toward zero; L2, LogSum
 * and LogSumExp are computed in f64 and cut back by the rules of Cast. */
#include "ops/reduce.h"

#include <string.h>

#include "base/allocation.h"
#include "numerics/elementary.h"
#include "numerics/minmax.h"
#include "numerics/product.h"
#include "ops/convert_loops.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/rows.h"

typedef enum reduction { SUM, MEAN, MAX, MIN, PROD, L1, L2, SUM_SQUARE, LOG_SUM, LOG_SUM_EXP } reduction;

/* In the order of sb_ops_reduce; the operator set from which on the axes are an input. */
static const struct reduce_traits {
    reduction kind;
    int axes_input_since;
} traits[] = {
    {SUM, 13}, {MEAN, 18}, {MAX, 18},        {MIN, 18},     {PROD, 18},
    {L1, 18},  {L2, 18},   {SUM_SQUARE, 18}, {LOG_SUM, 18}, {LOG_SUM_EXP, 18},
};

/* ---- one row ---- */

#define REAL_REDUCTION(type, suffix, dtype)                                                                            \
    /* What `map` makes of a block in place, and how it is added. */                                                   \
    static type part_##suffix(reduction kind, type *values, int64_t count, type highest) {                             \
        if (kind == PROD)                                                                                              \
            return sb_product_##suffix(values, 1, count);                                                              \
        if (kind == L2 || kind == SUM_SQUARE)                                                                          \
            return sb_sum_of_squares_##suffix(values, 1, count);                                                       \
        for (int64_t i = 0; i < count && kind == L1; i++)                                                              \
            values[i] = sb_abs_##suffix(values[i]);                                                                    \
        for (int64_t i = 0; i < count && kind == LOG_SUM_EXP; i++)                                                     \
            values[i] = sb_exp_##suffix(values[i] - highest);                                                          \
        return sb_sum_##suffix(values, 1, count);                                                                      \
    }                                                                                                                  \
    static type extreme_##suffix(const sb_rows *rows, int64_t row, bool least, type *values) {                         \
        type best = least ? sb_infinity_##suffix() : -sb_infinity_##suffix();                                          \
        for (int64_t begin = 0; begin < rows->length; begin += SB_REDUCE_BLOCK) {                                      \
            int64_t left = rows->length - begin;                                                                       \
            int64_t count = left < SB_REDUCE_BLOCK ? left : SB_REDUCE_BLOCK;                                           \
            sb_rows_load(rows, row, begin, count, dtype, values);                                                      \
            for (int64_t i = 0; i < count; i++)                                                                        \
                best = least ? sb_min_##suffix(best, values[i]) : sb_max_##suffix(best, values[i]);                    \
        }                                                                                                              \
        return best;                                                                                                   \
    }                                                                                                                  \
    static type reduce_##suffix(reduction kind, const sb_rows *rows, int64_t row, type *values) {                      \
        if (kind == MAX || kind == MIN)                                                                                \
            return extreme_##suffix(rows, row, kind == MIN, values);                                                   \
        type highest = 0, total = kind == PROD ? 1 : 0;                                                                \
        if (kind == LOG_SUM_EXP) {                                                                                     \
            highest = extreme_##suffix(rows, row, false, values);                                                      \
            highest = sb_abs_##suffix(highest) == sb_infinity_##suffix() ? 0 : highest;                                \
        }                                                                                                              \
        for (int64_t begin = 0; begin < rows->length; begin += SB_REDUCE_BLOCK) {                                      \
            int64_t left = rows->length - begin;                                                                       \
            int64_t count = left < SB_REDUCE_BLOCK ? left : SB_REDUCE_BLOCK;                                           \
            sb_rows_load(rows, row, begin, count, dtype, values);                                                      \
            type part = part_##suffix(kind, values, count, highest);                                                   \
            total = begin == 0 ? part : kind == PROD ? total * part : total + part;                                    \
        }                                                                                                              \
        switch (kind) {                                                                                                \
        case MEAN:                                                                                                     \
            return total / (type)rows->length;                                                                         \
        case L2:                                                                                                       \
            return sb_sqrt_##suffix(total);                                                                            \
        case LOG_SUM:                                                                                                  \
            return sb_log_##suffix(total);                                                                             \
        case LOG_SUM_EXP:                                                                                              \
            return sb_log_##suffix(total) + highest;                                                                   \
        default:                                                                                                       \
            return total;                                                                                              \
        }                                                                                                              \
    }
REAL_REDUCTION(float, f32, SB_F32)
REAL_REDUCTION(double, f64, SB_F64)

/* The least or greatest value of an integer type or bool, as the bits of an s64 or u64. */
static uint64_t integer_bound(sb_dtype dtype, bool least) {
    int bits = 8 * (int)sb_dtype_size(dtype);
    if (dtype == SB_BOOL)
        return !least;
    if ((SB_SET(dtype) & SB_SET_UNSIGNED) != 0)
        return least ? 0 : UINT64_MAX >> (64 - bits);
    return least ? ~(uint64_t)0 << (bits - 1) : UINT64_MAX >> (65 - bits);
}

/* Adds a block to the running value `total`, all as bits of 64-bit integers. */
static uint64_t join_integers(reduction kind, bool is_signed, uint64_t total, const uint64_t *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t value = values[i];
        bool negative = is_signed && (int64_t)value < 0;
        bool above = is_signed ? (int64_t)value > (int64_t)total : value > total;
        switch (kind) {
        case MAX:
            total = above ? value : total;
            break;
        case MIN:
            total = above ? total : value;
            break;
        case PROD:
            total *= value;
            break;
        case L1:
            total += negative ? 0 - value : value;
            break;
        case SUM_SQUARE:
            total += value * value;
            break;
        default:
            total += value;
        }
    }
    return total;
}

static uint64_t reduce_integers(reduction kind, const sb_rows *rows, int64_t row, uint64_t *values) {
    sb_dtype dtype = rows->tensor->dtype;
    bool is_signed = (SB_SET(dtype) & SB_SET_SIGNED) != 0;
    uint64_t total = kind == MAX || kind == MIN ? integer_bound(dtype, kind == MAX) : kind == PROD;
    for (int64_t begin = 0; begin < rows->length; begin += SB_REDUCE_BLOCK) {
        int64_t left = rows->length - begin;
        int64_t count = left < SB_REDUCE_BLOCK ? left : SB_REDUCE_BLOCK;
        sb_rows_load(rows, row, begin, count, is_signed ? SB_S64 : SB_U64, values);
        total = join_integers(kind, is_signed, total, values, count);
    }
    if (kind != MEAN || rows->length == 0)
        return total;
    uint64_t length = (uint64_t)rows->length;
    return is_signed && (int64_t)total < 0 ? 0 - (0 - total) / length : total / length;
}

/* ---- all rows ---- */

static void reduce_rows(reduction kind, const sb_rows *rows, sb_tensor *output, void *values) {
    sb_dtype dtype = output->dtype, computed = sb_computing_dtype(dtype);
    bool wide = kind == L2 || kind == LOG_SUM || kind == LOG_SUM_EXP;
    if (!sb_dtype_is_float(dtype))
        computed = wide ? SB_F64 : (SB_SET(dtype) & SB_SET_SIGNED) != 0 ? SB_S64 : SB_U64;
    for (int64_t row = 0; row < rows->count; row++) {
        union {
            float f32;
            double f64;
            uint64_t bits;
        } result;
        if (computed == SB_F32)
            result.f32 = reduce_f32(kind, rows, row, values);
        else if (computed == SB_F64)
            result.f64 = reduce_f64(kind, rows, row, values);
        else
            result.bits = reduce_integers(kind, rows, row, values);
        sb_convert_row(dtype, output->data + row * (int64_t)sb_dtype_size(dtype), computed, &result, 0, 1);
    }
}

sb_status sb_reduce_describe(sb_call *call, sb_rows *rows, int *rank, int64_t *dims) {
    const sb_reduce_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    uint32_t reduced;
    SB_TRY(sb_axes_of_call(call, &params->axes, input->rank, &reduced));
    *rank = 0;
    for (int d = 0; d < input->rank; d++) {
        bool gone = (reduced >> d & 1) != 0;
        if (!gone || params->keep)
            dims[(*rank)++] = gone ? 1 : input->dims[d];
    }
    sb_rows_start(rows, input, reduced);
    if (traits[call->node->op - sb_ops_reduce].kind == MEAN && rows->length == 0 && rows->count != 0 &&
        !sb_dtype_is_float(input->dtype))
        return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "the mean of no integers is undefined");
    return SB_OK;
}

static sb_status eval_reduce(sb_call *call) {
    sb_rows rows;
    sb_tensor *output;
    int64_t dims[SB_MAX_RANK];
    int rank;
    SB_TRY(sb_reduce_describe(call, &rows, &rank, dims));
    SB_TRY(sb_call_output_shape(call, 0, sb_call_input(call, 0)->dtype, rank, dims, &output));
    double *values = sb_allocate(SB_REDUCE_BLOCK * sizeof *values);
    if (values == NULL)
        return sb_fail_memory(call->error, SB_REDUCE_BLOCK * sizeof *values);
    reduce_rows(traits[call->node->op - sb_ops_reduce].kind, &rows, output, values);
    sb_free(values);
    return SB_OK;
}

/* ---- facts ---- */

static sb_status prepare_reduce(sb_node *node, sb_error *error) {
    sb_reduce_params *params = node->params;
    int64_t keep;
    SB_TRY(sb_node_int(node, "keepdims", 1, &keep, error));
    params->keep = keep != 0;
    return sb_axes_prepare(node, traits[node->op - sb_ops_reduce].axes_input_since, &params->axes, error);
}

/* A list of shape arithmetic reduced to one number stays a formula. */
static sb_status infer_formula(sb_infer *infer) {
    sb_dim values[SB_FACT_ELEMENTS];
    int count;
    bool known;
    reduction kind = traits[infer->node->op - sb_ops_reduce].kind;
    SB_TRY(sb_infer_integers(infer, 0, SB_FACT_ELEMENTS, values, &count, &known));
    if (!known || count == 0 || (kind != SUM && kind != PROD && kind != MAX && kind != MIN))
        return SB_OK;
    sb_dim result = values[0];
    for (int i = 1; i < count; i++) {
        if (kind == SUM)
            result = sb_dim_add(infer->scope, result, values[i]);
        else if (kind == PROD)
            result = sb_dim_multiply(infer->scope, result, values[i]);
        else if (kind == MAX)
            result = sb_dim_maximum(infer->scope, result, values[i]);
        else
            result = sb_dim_minimum(infer->scope, result, values[i]);
    }
    sb_error ignored; /* a formula that overflows only means that the value stays unknown */
    if (sb_scope_check(infer->scope, &ignored) != SB_OK || result == NULL)
        return SB_OK;
    return sb_infer_set_elements(infer, 0, 1, &result);
}

static sb_status infer_reduce(sb_infer *infer) {
    const sb_reduce_params *params = infer->node->params;
    reduction kind = traits[infer->node->op - sb_ops_reduce].kind;
    const sb_fact *input;
    sb_dim dims[SB_MAX_RANK];
    uint32_t reduced;
    int named;
    bool known;
    SB_TRY(sb_infer_require(infer, 0, kind == MAX || kind == MIN ? SB_SET_PLAIN : SB_SET_NUMBER, &input));
    SB_TRY(sb_axes_of_infer(infer, &params->axes, input->rank, &reduced, &named, &known));
    if (input->rank == SB_RANK_UNKNOWN || (!known && !params->keep && named < 0)) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    int rank = 0;
    if (known) {
        for (int d = 0; d < input->rank; d++) {
            bool gone = (reduced >> d & 1) != 0;
            if (!gone || params->keep)
                dims[rank++] = gone ? sb_dim_constant(infer->scope, 1) : input->dims[d];
        }
    } else {
        rank = params->keep ? input->rank : input->rank - named;
        for (int d = 0; d < rank; d++)
            dims[d] = sb_infer_fresh(infer, 0, d);
    }
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, rank, dims);
    int64_t extent;
    if (known && reduced == 1 && input->rank == 1 && input->dtype == SB_S64 &&
        sb_dim_is_constant(input->dims[0], &extent) && extent <= SB_FACT_ELEMENTS)
        return infer_formula(infer);
    return SB_OK;
}

/* clang-format off */
#define REDUCE_OP(op_name)                                                                         \
    {.name = op_name, .domain = "", .least_inputs = 1, .most_inputs = 2, .least_outputs = 1,       \
     .most_outputs = 1, .params_size = sizeof(sb_reduce_params), .prepare = prepare_reduce,        \
     .infer = infer_reduce, .eval = eval_reduce}

const sb_op sb_ops_reduce[] = {
    REDUCE_OP("ReduceSum"),
    REDUCE_OP("ReduceMean"),
    REDUCE_OP("ReduceMax"),
    REDUCE_OP("ReduceMin"),
    REDUCE_OP("ReduceProd"),
    REDUCE_OP("ReduceL1"),
    REDUCE_OP("ReduceL2"),
    REDUCE_OP("ReduceSumSquare"),
    REDUCE_OP("ReduceLogSum"),
    REDUCE_OP("ReduceLogSumExp"),
    {0},
};
/* clang-format on */
