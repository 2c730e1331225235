/* What happens to a finished chain of a product: the epilogue of <invar/gemm.h>, once for the CPU
 * and for kernels. Every function treats one element, in f32, and rounds after each operation in
 * the order written. */
#ifndef IV_GEMM_EPILOGUE_H
#define IV_GEMM_EPILOGUE_H

#include <stdint.h>

#include <invar/gemm.h>

#include "numerics/convert.h"
#include "ops/unary_formulas.h"

/* A matrix that is added. */
typedef struct iv_gemm_addend {
    const void *data;                                /* NULL: none */
    int64_t row_stride, column_stride, batch_stride; /* in elements; a bias has a row_stride of 0 */
    int32_t dtype;                                   /* IV_F32, IV_BF16 or IV_F16 */
} iv_gemm_addend;

/* Plain data, so that it also travels among a kernel's parameters. */
typedef struct iv_gemm_epilogue {
    float scale;
    int32_t activation;  /* iv_activation */
    int32_t gate;        /* iv_gate */
    int32_t dtype;       /* of C: IV_F32, IV_BF16 or IV_F16 */
    int64_t columns;     /* of C */
    iv_gemm_addend bias; /* over B's columns */
    iv_gemm_addend residual;
} iv_gemm_epilogue;

/** Whether nothing is done but the rounding to C. */
static IV_HD_HOT int iv_gemm_is_plain(const iv_gemm_epilogue *e) {
    return e->scale == 1.0f && !e->bias.data && e->activation == IV_ACTIVATION_NONE &&
           e->gate == IV_GATE_NONE && !e->residual.data;
}

/** The column of B that column `column` of C takes its gate from (without a gate: its only one). */
static IV_HD_HOT int64_t iv_gemm_gate_column(const iv_gemm_epilogue *e, int64_t column) {
    return e->gate == IV_GATE_INTERLEAVED ? 2 * column : column;
}

/** … and the one that it takes its value from (without a gate: not meaningful). */
static IV_HD_HOT int64_t iv_gemm_value_column(const iv_gemm_epilogue *e, int64_t column) {
    return e->gate == IV_GATE_INTERLEAVED ? 2 * column + 1 : e->columns + column;
}

/** Element `index` of an array of floats of 16 or 32 bits, as f32. */
static IV_HD_HOT float iv_gemm_load(const void *data, int32_t dtype, int64_t index) {
    if (dtype == IV_F32)
        return ((const float *)data)[index];
    uint16_t bits = ((const uint16_t *)data)[index];
    return dtype == IV_BF16 ? iv_bf16_to_f32(bits) : iv_f16_to_f32(bits);
}

/** An element of an addend that is there. */
static IV_HD_HOT float iv_gemm_load_addend(const iv_gemm_addend *addend, int64_t batch, int64_t row,
                                           int64_t column) {
    return iv_gemm_load(addend->data, addend->dtype,
                        batch * addend->batch_stride + row * addend->row_stride +
                            column * addend->column_stride);
}

/** The scale; y * 1 is y, so it needs no question. */
static IV_HD_HOT float iv_gemm_scale(const iv_gemm_epilogue *e, float y) {
    return y * e->scale;
}

/** Scale and bias of a chain of column `b_column` of B. */
static IV_HD_HOT float iv_gemm_scale_and_bias(const iv_gemm_epilogue *e, int64_t batch,
                                              int64_t b_column, float y) {
    y = iv_gemm_scale(e, y);
    return e->bias.data ? y + iv_gemm_load_addend(&e->bias, batch, 0, b_column) : y;
}

/** The activation. The formulas are the operators' own. */
static IV_HD_HOT float iv_gemm_activate(int32_t activation, float y) {
    switch (activation) {
    case IV_ACTIVATION_RELU:
        return iv_unary_Relu_f32(y, 0.0f, 0.0f);
    case IV_ACTIVATION_SILU:
        return iv_unary_Swish_f32(y, 1.0f, 0.0f);
    case IV_ACTIVATION_GELU:
        return iv_unary_Gelu_f32(y, 0.0f, 0.0f);
    case IV_ACTIVATION_GELU_TANH:
        return iv_unary_GeluTanh_f32(y, 0.0f, 0.0f);
    default:
        return y;
    }
}

/** The whole epilogue of element (row, column): `gate` is its chain, or with a gate the gate's, and
 * `value` the value's, which is not read without one. The result is not rounded to C yet. */
static IV_HD float iv_gemm_finish(const iv_gemm_epilogue *e, int64_t batch, int64_t row,
                                  int64_t column, float gate, float value) {
    float y = iv_gemm_scale_and_bias(e, batch, iv_gemm_gate_column(e, column), gate);
    y = iv_gemm_activate(e->activation, y);
    if (e->gate != IV_GATE_NONE)
        y = y * iv_gemm_scale_and_bias(e, batch, iv_gemm_value_column(e, column), value);
    if (e->residual.data)
        y = y + iv_gemm_load_addend(&e->residual, batch, row, column);
    return y;
}

/** The one NaN of the contract for every NaN: chains and operations differ between machines in
 * which NaN they give. */
static IV_HD_HOT float iv_gemm_canonical(float y) {
    return y == y ? y : iv_nan_f32();
}

/** Rounds once to C and stores at element `index`. */
static IV_HD_HOT void iv_gemm_store(const iv_gemm_epilogue *e, void *c, int64_t index, float y) {
    if (e->dtype == IV_F32)
        ((float *)c)[index] = iv_gemm_canonical(y);
    else
        ((uint16_t *)c)[index] = e->dtype == IV_BF16 ? iv_bf16_from_f32(y) : iv_f16_from_f32(y);
}

#endif
