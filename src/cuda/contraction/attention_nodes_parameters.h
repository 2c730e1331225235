/* Attention as a model's nodes write it, for the host and for the device: attention_nodes.cu. */
#ifndef SB_CUDA_CONTRACTION_ATTENTION_NODES_PARAMETERS_H
#define SB_CUDA_CONTRACTION_ATTENTION_NODES_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/attention_nodes.h"

/* Warps that share 16 rows of queries, and the rows of a block: of attention_nodes.cu, and of attention_nodes_long.cu. */
#define SB_CUDA_ATTENTION_TEAM 4
#define SB_CUDA_ATTENTION_THREADS(rows) ((rows) / 16 * SB_CUDA_ATTENTION_TEAM * 32)
#define SB_CUDA_ATTENTION_MOST_ROWS 64
#define SB_CUDA_ATTENTION_LEAST_ROWS 16
#define SB_CUDA_ATTENTION_LONG_THREADS 128
#define SB_CUDA_ATTENTION_LONG_ROWS 64
/* Most keys whose scores stay in registers, and most of all: numbers of chunks are int. */
#define SB_CUDA_ATTENTION_REGISTER_KEYS 256
#define SB_CUDA_ATTENTION_KEYS (1 << 28)
/* The widest heads. */
#define SB_CUDA_ATTENTION_WIDTH 128

/* Bytes of shared memory: a ring of four times 64 lines of keys and of values, rows of queries and then of weights, the highest
 * scores of rows and the parts of their sums. */
#define SB_CUDA_ATTENTION_SHARED(rows, keys, width)                                                                    \
    (4 * 64 * (width)*2 + (rows) * ((keys) > (width) ? (keys) : (width)) * 2 + (rows)*2 * SB_CUDA_ATTENTION_TEAM +     \
     (rows)*32 * SB_CUDA_ATTENTION_TEAM)

/* X(rows, most keys, widest head, …) of each kernel. */
#define SB_CUDA_ATTENTION_SHAPES(X, ...)                                                                               \
    SB_CUDA_ATTENTION_BLOCKS(X, 128, 64, __VA_ARGS__)                                                                  \
    SB_CUDA_ATTENTION_BLOCKS(X, 128, 128, __VA_ARGS__)                                                                 \
    SB_CUDA_ATTENTION_BLOCKS(X, 256, 64, __VA_ARGS__)                                                                  \
    SB_CUDA_ATTENTION_BLOCKS(X, 256, 128, __VA_ARGS__)
#define SB_CUDA_ATTENTION_BLOCKS(X, ...) X(16, __VA_ARGS__) X(32, __VA_ARGS__) X(64, __VA_ARGS__)

/* Dimensions besides those of a matrix. */
#define SB_CUDA_ATTENTION_RANK (SB_CUDA_RANK - 2)

/* Steps are in elements. Lines are queries, keys, values and rows of the result, whose elements lie side by side. */
typedef struct sb_cuda_attention_operand {
    const uint16_t *data;
    int64_t line_step;
    int64_t steps[SB_CUDA_ATTENTION_RANK];
} sb_cuda_attention_operand;

/* A node between the scores and Softmax: scores · number, scores / number or scores + addend. */
typedef struct sb_cuda_attention_step {
    int32_t operation; /* an sb_attention_operation */
    sb_cuda_attention_operand operand;
    int64_t key_step;
} sb_cuda_attention_step;

typedef struct sb_cuda_attention_nodes {
    sb_cuda_attention_operand queries, keys, values, result; /* data of the result is written */
    int64_t rows, key_count, width, value_width;             /* widths are multiples of 8 */
    const int64_t *used_rows, *used_keys;                    /* as sb_call_used */
    int64_t tile_rows, row_tiles, tiles;                     /* blocks' */
    int32_t rank, step_count;
    int64_t dims[SB_CUDA_ATTENTION_RANK];
    sb_cuda_attention_step steps[SB_ATTENTION_NODE_STEPS];
} sb_cuda_attention_nodes;

#endif
