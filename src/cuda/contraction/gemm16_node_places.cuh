/* Nodes behind products of 16 bits, for kernels of all generations: roundings, and where elements of inputs lie. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_NODE_PLACES_CUH
#define SB_CUDA_CONTRACTION_GEMM16_NODE_PLACES_CUH

#include "cuda/common/kernel.cuh"
#include "cuda/contraction/gemm16_nodes_parameters.h"
#include "cuda/elementwise/fixed_formulas.h"
#include "numerics/convert.h"
#include "ops/unary_formulas.h"

/* The nearest number of the dtype. Which NaN comes out is settled where results are stored. */
#if defined(__CUDACC__)
SB_CUDA_FUNCTION float sb_rounded_f16(float value) {
    asm("{.reg .b16 half; cvt.rn.f16.f32 half, %0; cvt.f32.f16 %0, half;}" : "+f"(value));
    return value;
}
SB_CUDA_FUNCTION float sb_rounded_bf16(float value) {
    asm("{.reg .b16 brain, zero; cvt.rn.bf16.f32 brain, %0; mov.b16 zero, 0; mov.b32 %0, {zero, brain};}"
        : "+f"(value));
    return value;
}
#else
SB_CUDA_FUNCTION float sb_rounded_f16(float value) {
    return sb_f16_to_f32(sb_f16_from_f32(value));
}
SB_CUDA_FUNCTION float sb_rounded_bf16(float value) {
    return sb_bf16_to_f32(sb_bf16_from_f32(value));
}
#endif

/* The two numbers of a register. */
SB_CUDA_FUNCTION void sb_widen_pair_f16(uint32_t pair, float *low, float *high) {
#if defined(__CUDACC__)
    asm("{.reg .b16 one, other; mov.b32 {one, other}, %2; cvt.f32.f16 %0, one; cvt.f32.f16 %1, other;}"
        : "=f"(*low), "=f"(*high)
        : "r"(pair));
#else
    *low = sb_f16_to_f32((uint16_t)pair);
    *high = sb_f16_to_f32((uint16_t)(pair >> 16));
#endif
}
SB_CUDA_FUNCTION void sb_widen_pair_bf16(uint32_t pair, float *low, float *high) {
    *low = sb_bits_to_f32(pair << 16);
    *high = sb_bits_to_f32(pair & 0xffff0000u);
}

/* An element of the product. */
typedef struct sb_gemm16_node_place {
    int64_t outer, inner; /* batch */
    int64_t row, column;
} sb_gemm16_node_place;

/* The place of a batch's first element. */
SB_CUDA_FUNCTION sb_gemm16_node_place sb_gemm16_nodes_begin(const sb_gemm16_nodes *program, int64_t batch) {
    const int64_t inner = program->inner_batch;
    const bool narrow = batch <= UINT32_MAX && inner <= UINT32_MAX;
    sb_gemm16_node_place place;
    place.outer = inner == 1 ? batch : narrow ? (uint32_t)batch / (uint32_t)inner : batch / inner;
    place.inner = batch - place.outer * inner;
    place.row = place.column = 0;
    return place;
}

/* Where an input's element for that one lies. */
SB_CUDA_FUNCTION const char *sb_gemm16_input_at(const sb_cuda_epilogue_input *input,
                                                const sb_gemm16_node_place *place) {
    return input->data + place->outer * input->steps[0] + place->inner * input->steps[1] +
           place->row * input->steps[2] + place->column * input->steps[3];
}

#endif
