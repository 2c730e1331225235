/* The element-wise programs that have kernels of their own: what models are full of, alone and as exporters take
 * activations apart. In the normal form that fixed.c brings programs to:
 *
 * - inputs are numbered as they are first read, and are not loaded ahead;
 * - values that are kept are numbered as they are made, and the value of the step before is PREVIOUS;
 * - of operands that may be exchanged the first is PREVIOUS, then a kept value, an input, a number; a number in
 *   the second place is b. */
#ifndef SB_CUDA_ELEMENTWISE_FIXED_PROGRAMS_H
#define SB_CUDA_ELEMENTWISE_FIXED_PROGRAMS_H

#include "cuda/elementwise/fixed_parameters.h"

/* clang-format off */
#define SB_FIXED_P SB_CUDA_EPILOGUE_PREVIOUS
#define SB_FIXED_K SB_CUDA_EPILOGUE_REGISTER
#define SB_FIXED_A SB_CUDA_EPILOGUE_IMMEDIATE_A
#define SB_FIXED_B SB_CUDA_EPILOGUE_IMMEDIATE_B
#define SB_FIXED_0 SB_CUDA_EPILOGUE_INPUT
#define SB_FIXED_1 (SB_CUDA_EPILOGUE_INPUT + 1)
#define SB_FIXED_2 (SB_CUDA_EPILOGUE_INPUT + 2)
#define SB_FIXED_5 (SB_CUDA_EPILOGUE_INPUT + 5)
#define SB_FIXED_UNARY(op, x) {SB_CUDA_EPILOGUE_##op, {SB_FIXED_##x, 0, 0}, 0}
#define SB_FIXED_BINARY(op, x, y) {SB_CUDA_EPILOGUE_##op, {SB_FIXED_##x, SB_FIXED_##y, 0}, 0}
#define SB_FIXED_KEPT(op, x, y) {SB_CUDA_EPILOGUE_##op, {SB_FIXED_##x, SB_FIXED_##y, 0}, SB_FIXED_K}
#define SB_FIXED_CLIP(x) {SB_CUDA_EPILOGUE_Clip, {SB_FIXED_##x, SB_FIXED_A, SB_FIXED_B}, 0}
/* Of input 0 by inputs 1 to 4. */
#define SB_FIXED_NORMALIZE {SB_CUDA_EPILOGUE_Normalize, {SB_FIXED_0, SB_FIXED_1, 0}, 0}
#define SB_FIXED_KEPT_NORMALIZE {SB_CUDA_EPILOGUE_Normalize, {SB_FIXED_0, SB_FIXED_1, 0}, SB_FIXED_K}
/* From x / sqrt 2 on; `x` is what is multiplied by 1 + erf. */
#define SB_FIXED_GELU(x) \
    SB_FIXED_UNARY(Erf, P), SB_FIXED_BINARY(Add, P, B), SB_FIXED_BINARY(Mul, P, x), SB_FIXED_BINARY(Mul, P, B)

/* X(name, inputs, steps, …): the name of an operator where it is that alone. */
#define SB_CUDA_FIXED_PROGRAMS(X) \
    X(Add, 2, 1, SB_FIXED_BINARY(Add, 0, 1)) \
    X(Sub, 2, 1, SB_FIXED_BINARY(Sub, 0, 1)) \
    X(Mul, 2, 1, SB_FIXED_BINARY(Mul, 0, 1)) \
    X(Div, 2, 1, SB_FIXED_BINARY(Div, 0, 1)) \
    X(Relu, 1, 1, SB_FIXED_UNARY(Relu, 0)) \
    X(HardSwish, 1, 1, SB_FIXED_UNARY(HardSwish, 0)) \
    X(Sigmoid, 1, 1, SB_FIXED_UNARY(Sigmoid, 0)) \
    X(Tanh, 1, 1, SB_FIXED_UNARY(Tanh, 0)) \
    X(Erf, 1, 1, SB_FIXED_UNARY(Erf, 0)) \
    X(Gelu, 1, 1, SB_FIXED_UNARY(Gelu, 0)) \
    X(GeluTanh, 1, 1, SB_FIXED_UNARY(GeluTanh, 0)) \
    X(Swish, 1, 1, SB_FIXED_UNARY(Swish, 0)) \
    X(add_relu, 2, 2, SB_FIXED_BINARY(Add, 0, 1), SB_FIXED_UNARY(Relu, P)) \
    X(add_clip, 2, 2, SB_FIXED_BINARY(Add, 0, 1), SB_FIXED_CLIP(P)) \
    X(add_add, 3, 2, SB_FIXED_BINARY(Add, 0, 1), SB_FIXED_BINARY(Add, P, 2)) \
    X(normalize, 5, 1, SB_FIXED_NORMALIZE) \
    X(normalize_relu, 5, 2, SB_FIXED_NORMALIZE, SB_FIXED_UNARY(Relu, P)) \
    X(normalize_clip, 5, 2, SB_FIXED_NORMALIZE, SB_FIXED_CLIP(P)) \
    X(normalize_hard_swish, 5, 2, SB_FIXED_NORMALIZE, SB_FIXED_UNARY(HardSwish, P)) \
    X(normalize_silu, 5, 3, SB_FIXED_KEPT_NORMALIZE, SB_FIXED_UNARY(Sigmoid, P), SB_FIXED_BINARY(Mul, P, K)) \
    X(normalize_add, 6, 2, SB_FIXED_NORMALIZE, SB_FIXED_BINARY(Add, P, 5)) \
    X(normalize_add_relu, 6, 3, SB_FIXED_NORMALIZE, SB_FIXED_BINARY(Add, P, 5), SB_FIXED_UNARY(Relu, P)) \
    X(scale_mul_shift, 3, 2, SB_FIXED_BINARY(Mul, 0, 1), SB_FIXED_BINARY(Add, P, 2)) \
    X(mul_mask, 2, 2, SB_FIXED_BINARY(Mul, 0, B), SB_FIXED_BINARY(Add, P, 1)) \
    X(div_mask, 2, 2, SB_FIXED_BINARY(Div, 0, B), SB_FIXED_BINARY(Add, P, 1)) \
    X(gelu_div, 1, 5, SB_FIXED_BINARY(Div, 0, B), SB_FIXED_GELU(0)) \
    X(gelu_mul, 1, 5, SB_FIXED_BINARY(Mul, 0, B), SB_FIXED_GELU(0)) \
    X(bias_gelu_div, 2, 6, SB_FIXED_KEPT(Add, 0, 1), SB_FIXED_BINARY(Div, P, B), SB_FIXED_GELU(K)) \
    X(bias_gelu_mul, 2, 6, SB_FIXED_KEPT(Add, 0, 1), SB_FIXED_BINARY(Mul, P, B), SB_FIXED_GELU(K)) \
    X(bias_gelu, 2, 2, SB_FIXED_BINARY(Add, 0, 1), SB_FIXED_UNARY(Gelu, P)) \
    X(bias_gelu_tanh, 2, 2, SB_FIXED_BINARY(Add, 0, 1), SB_FIXED_UNARY(GeluTanh, P)) \
    X(silu, 1, 2, SB_FIXED_UNARY(Sigmoid, 0), SB_FIXED_BINARY(Mul, P, 0)) \
    X(silu_gate, 2, 3, SB_FIXED_UNARY(Sigmoid, 0), SB_FIXED_BINARY(Mul, P, 0), SB_FIXED_BINARY(Mul, P, 1))
/* clang-format on */

#endif
