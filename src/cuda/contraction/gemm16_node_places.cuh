/* Nodes behind products of 16 bits, for kernels of all generations: where elements of inputs lie. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_NODE_PLACES_CUH
#define SB_CUDA_CONTRACTION_GEMM16_NODE_PLACES_CUH

#include "cuda/common/half_arithmetic.cuh"
#include "cuda/common/kernel.cuh"
#include "cuda/contraction/gemm16_nodes_parameters.h"
#include "ops/unary_formulas.h"

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
