/* The nodes of a model behind a product of f16 or bf16, as kernels take them. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_NODES_PARAMETERS_H
#define SB_CUDA_CONTRACTION_GEMM16_NODES_PARAMETERS_H

#include "cuda/contraction/epilogue_parameters.h"

/* Programs behind products of f16 and bf16: no jumps and no registers, since each step has the value of the step before,
 * and perhaps an element of an input, which has the product's dtype, or a number. Each is rounded to that dtype, and so is
 * the chain before the first. */
typedef enum sb_gemm16_operation {
    SB_GEMM16_NODE_ADD,
    SB_GEMM16_NODE_SUB,
    SB_GEMM16_NODE_SUB_FROM, /* the other less the value */
    SB_GEMM16_NODE_MUL,
    SB_GEMM16_NODE_DIV,
    SB_GEMM16_NODE_DIV_INTO, /* the other over the value */
    SB_GEMM16_NODE_RELU,
    SB_GEMM16_NODE_CLIP /* between a and b */
} sb_gemm16_operation;

typedef struct sb_gemm16_node {
    uint8_t operation;
    uint8_t input; /* its number plus 1; 0: a is the other number */
    uint8_t unused[2];
    float a, b;
} sb_gemm16_node;

#define SB_GEMM16_NODES 31 /* as many nodes as a pass puts behind a product */

typedef struct sb_gemm16_nodes {
    int32_t count, unused;
    int64_t inner_batch; /* as in sb_cuda_epilogue, like the inputs */
    sb_cuda_epilogue_input inputs[SB_CUDA_EPILOGUE_INPUTS];
    sb_gemm16_node steps[SB_GEMM16_NODES];
} sb_gemm16_nodes;

#endif
