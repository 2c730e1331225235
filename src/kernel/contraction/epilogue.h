/* What happens to a finished chain of a product: the epilogue of <samebit/gemm.h>, once for the CPU
 * and for kernels. Every function treats one element, in f32, and rounds after each operation in
 * the order written. */
#ifndef SB_KERNEL_CONTRACTION_EPILOGUE_H
#define SB_KERNEL_CONTRACTION_EPILOGUE_H

#include <stdint.h>

#include <samebit/gemm.h>

#include "numerics/convert.h"
#include "ops/unary_formulas.h"

/* A matrix that is added. */
typedef struct sb_gemm_addend {
    const void *data;                                /* NULL: none */
    int64_t row_stride, column_stride, batch_stride; /* in elements; a bias has a row_stride of 0 */
    int32_t dtype;                                   /* SB_F32, SB_BF16 or SB_F16 */
    float scale; /* what elements are multiplied by, in f32, before they are added */
} sb_gemm_addend;

/* Plain data, so that it also travels among a kernel's parameters. */
typedef struct sb_gemm_epilogue {
    float scale;
    int32_t activation;  /* sb_activation */
    int32_t gate;        /* sb_gate */
    int32_t dtype;       /* of C: SB_F32, SB_BF16 or SB_F16 */
    int32_t rounds;      /* whether chains are rounded to C's 16 bits first, as by a node of their own */
    int64_t columns;     /* of C */
    sb_gemm_addend bias; /* over B's columns */
    sb_gemm_addend residual;
} sb_gemm_epilogue;

/** Whether nothing is done but the rounding to C. */
static SB_HD_HOT int sb_gemm_is_plain(const sb_gemm_epilogue *e) {
    return e->scale == 1.0f && !e->bias.data && e->activation == SB_ACTIVATION_NONE && e->gate == SB_GATE_NONE &&
           !e->residual.data;
}

/** The column of B that column `column` of C takes its gate from (without a gate: its only one). */
static SB_HD_HOT int64_t sb_gemm_gate_column(const sb_gemm_epilogue *e, int64_t column) {
    return e->gate == SB_GATE_INTERLEAVED ? 2 * column : column;
}

/** … and the one that it takes its value from (without a gate: not meaningful). */
static SB_HD_HOT int64_t sb_gemm_value_column(const sb_gemm_epilogue *e, int64_t column) {
    return e->gate == SB_GATE_INTERLEAVED ? 2 * column + 1 : e->columns + column;
}

/** Element `index` of an array of floats of 16 or 32 bits, as f32. */
static SB_HD_HOT float sb_gemm_load(const void *data, int32_t dtype, int64_t index) {
    if (dtype == SB_F32)
        return ((const float *)data)[index];
    uint16_t bits = ((const uint16_t *)data)[index];
    return dtype == SB_BF16 ? sb_bf16_to_f32(bits) : sb_f16_to_f32(bits);
}

/** An element of an addend that is there, scaled: times 1 it is what it is. */
static SB_HD_HOT float sb_gemm_load_addend(const sb_gemm_addend *addend, int64_t batch, int64_t row, int64_t column) {
    return addend->scale *
           sb_gemm_load(addend->data, addend->dtype,
                        batch * addend->batch_stride + row * addend->row_stride + column * addend->column_stride);
}

/** A chain as a node of its own would give it on, where the epilogue is that of nodes behind it. */
static SB_HD_HOT float sb_gemm_round_chain(const sb_gemm_epilogue *e, float y) {
    if (!e->rounds)
        return y;
    return e->dtype == SB_BF16 ? sb_bf16_to_f32(sb_bf16_from_f32(y)) : sb_f16_to_f32(sb_f16_from_f32(y));
}

/** The scale; y * 1 is y, so it needs no question. */
static SB_HD_HOT float sb_gemm_scale(const sb_gemm_epilogue *e, float y) {
    return y * e->scale;
}

/** Scale and bias of a chain of column `b_column` of B. */
static SB_HD_HOT float sb_gemm_scale_and_bias(const sb_gemm_epilogue *e, int64_t batch, int64_t b_column, float y) {
    y = sb_gemm_scale(e, y);
    return e->bias.data ? y + sb_gemm_load_addend(&e->bias, batch, 0, b_column) : y;
}

/** The activation. The formulas are the operators' own. */
static SB_HD_HOT float sb_gemm_activate(int32_t activation, float y) {
    switch (activation) {
    case SB_ACTIVATION_RELU:
        return sb_unary_Relu_f32(y, 0.0f, 0.0f);
    case SB_ACTIVATION_SILU:
        return sb_unary_Swish_f32(y, 1.0f, 0.0f);
    case SB_ACTIVATION_GELU:
        return sb_unary_Gelu_f32(y, 0.0f, 0.0f);
    case SB_ACTIVATION_GELU_TANH:
        return sb_unary_GeluTanh_f32(y, 0.0f, 0.0f);
    default:
        return y;
    }
}

/** The whole epilogue of element (row, column): `gate` is its chain, or with a gate the gate's, and
 * `value` the value's, which is not read without one. The result is not rounded to C yet. */
static SB_HD float sb_gemm_epilogue_apply(const sb_gemm_epilogue *e, int64_t batch, int64_t row, int64_t column,
                                          float gate, float value) {
    float y = sb_gemm_scale_and_bias(e, batch, sb_gemm_gate_column(e, column), sb_gemm_round_chain(e, gate));
    y = sb_gemm_activate(e->activation, y);
    if (e->gate != SB_GATE_NONE)
        y = y * sb_gemm_scale_and_bias(e, batch, sb_gemm_value_column(e, column), sb_gemm_round_chain(e, value));
    if (e->residual.data)
        y = y + sb_gemm_load_addend(&e->residual, batch, row, column);
    return y;
}

/** The one NaN of the contract for every NaN: chains and operations differ between machines in
 * which NaN they give. */
static SB_HD_HOT float sb_gemm_canonical(float y) {
    return y == y ? y : sb_nan_f32();
}

/** Rounds once to C and stores at element `index`. */
static SB_HD_HOT void sb_gemm_store(const sb_gemm_epilogue *e, void *c, int64_t index, float y) {
    if (e->dtype == SB_F32)
        ((float *)c)[index] = sb_gemm_canonical(y);
    else
        ((uint16_t *)c)[index] = e->dtype == SB_BF16 ? sb_bf16_from_f32(y) : sb_f16_from_f32(y);
}

#endif
