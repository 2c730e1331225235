/* The nodes of a model behind a product of f16 or bf16, as kernels take them. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_NODES_PARAMETERS_H
#define SB_CUDA_CONTRACTION_GEMM16_NODES_PARAMETERS_H

#include "cuda/contraction/epilogue_parameters.h"

/* Programs behind products of f16 and bf16: no jumps, since each step has the value of the step before, and perhaps an
 * element of an input, which has the product's dtype, or a number, or one value that an earlier step has kept. Each is rounded
 * to that dtype, and so is the chain before the first. Programs that keep a value or compute an elementary function are heavy,
 * for which not every kernel has the registers. */
typedef enum sb_gemm16_operation {
    SB_GEMM16_NODE_ADD,
    SB_GEMM16_NODE_SUB,
    SB_GEMM16_NODE_SUB_FROM, /* the other less the value */
    SB_GEMM16_NODE_MUL,
    SB_GEMM16_NODE_DIV,
    SB_GEMM16_NODE_DIV_INTO, /* the other over the value */
    SB_GEMM16_NODE_RELU,
    SB_GEMM16_NODE_CLIP,     /* between a and b */
    SB_GEMM16_NODE_QUOTIENT, /* the value over a, both of f16, where b is 1 / a */
    SB_GEMM16_NODE_ERF,
    SB_GEMM16_NODE_FIRST_HEAVY = SB_GEMM16_NODE_ERF,
    SB_GEMM16_NODE_SIGMOID,
    SB_GEMM16_NODE_TANH,
    SB_GEMM16_NODE_GELU,
    SB_GEMM16_NODE_GELU_TANH,
    SB_GEMM16_NODE_SWISH /* the value times the sigmoid of a times it */
} sb_gemm16_operation;

enum {
    SB_GEMM16_NODE_OWN = 254, /* the other is the value too */
    SB_GEMM16_NODE_KEPT = 255 /* the other is the value that was kept last */
};

typedef struct sb_gemm16_node {
    uint8_t operation;
    uint8_t input; /* its number plus 1; 0: a is the other number; or SB_GEMM16_NODE_OWN, … */
    uint8_t keeps; /* whether the result is kept */
    uint8_t unused;
    float a, b;
} sb_gemm16_node;

#define SB_GEMM16_NODES 31 /* as many nodes as a pass puts behind a product */

typedef struct sb_gemm16_nodes {
    int32_t count;
    uint8_t keeps_chain; /* whether the rounded chain is kept */
    uint8_t heavy;
    uint8_t unused[2];
    int64_t inner_batch; /* as in sb_cuda_epilogue, like the inputs */
    sb_cuda_epilogue_input inputs[SB_CUDA_EPILOGUE_INPUTS];
    sb_gemm16_node steps[SB_GEMM16_NODES];
} sb_gemm16_nodes;

#endif
