/* Attention as a model's nodes write it, for the host and for the device: attention_nodes.cu. */
#ifndef SB_CUDA_CONTRACTION_ATTENTION_NODES_PARAMETERS_H
#define SB_CUDA_CONTRACTION_ATTENTION_NODES_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/attention_nodes.h"

/* Warps that share 16 rows of queries, and the rows of a block: of attention_nodes.cu, and of attention_nodes_long.cu. Two have less in
 * common to do than four, where there are blocks enough and registers for what a thread has. */
#define SB_CUDA_ATTENTION_TEAM(rows, keys) ((rows) == 64 && (keys) <= 128 ? 2 : 4)
#define SB_CUDA_ATTENTION_THREADS(rows, keys) ((rows) / 16 * SB_CUDA_ATTENTION_TEAM(rows, keys) * 32)
#define SB_CUDA_ATTENTION_MOST_ROWS(keys) ((keys) > 256 ? 32 : 64)
#define SB_CUDA_ATTENTION_LEAST_ROWS 16
#define SB_CUDA_ATTENTION_LONG_THREADS 128
#define SB_CUDA_ATTENTION_LONG_ROWS 64
/* Most keys whose scores stay in registers, and most of all: numbers of chunks are int. */
#define SB_CUDA_ATTENTION_REGISTER_KEYS 512
#define SB_CUDA_ATTENTION_MOST_KEYS (1 << 28)
/* The widest heads. */
#define SB_CUDA_ATTENTION_WIDTH 128

/* Bytes of shared memory: a ring of four times 64 lines of keys and of values, rows of queries and then of weights, the highest
 * scores of rows and the parts of their sums, and where the operands are. */
#define SB_CUDA_ATTENTION_SHARED(rows, keys, width)                                                                    \
    (4 * 64 * (width)*2 + (rows) * ((keys) > (width) ? (keys) : (width)) * 2 +                                         \
     (rows)*34 * SB_CUDA_ATTENTION_TEAM(rows, keys) + 16 + 8 * SB_CUDA_ATTENTION_OPERANDS)

#define SB_CUDA_ATTENTION_LONG_STAGES(width) ((width) == 64 ? 4 : 2)
#define SB_CUDA_ATTENTION_LONG_SHARED(width)                                                                           \
    ((SB_CUDA_ATTENTION_LONG_STAGES(width) + 1) * 64 * (width)*2 + 16 + 8 * SB_CUDA_ATTENTION_OPERANDS)

/* X(rows, most keys, widest head, …) of each kernel. */
#define SB_CUDA_ATTENTION_SHAPES(X, ...)                                                                               \
    SB_CUDA_ATTENTION_BLOCKS(X, 128, 64, __VA_ARGS__)                                                                  \
    SB_CUDA_ATTENTION_BLOCKS(X, 128, 128, __VA_ARGS__)                                                                 \
    SB_CUDA_ATTENTION_BLOCKS(X, 256, 64, __VA_ARGS__)                                                                  \
    SB_CUDA_ATTENTION_BLOCKS(X, 256, 128, __VA_ARGS__)                                                                 \
    SB_CUDA_ATTENTION_SMALL_BLOCKS(X, 512, 64, __VA_ARGS__)                                                            \
    SB_CUDA_ATTENTION_SMALL_BLOCKS(X, 512, 128, __VA_ARGS__)
#define SB_CUDA_ATTENTION_SMALL_BLOCKS(X, ...) X(16, __VA_ARGS__) X(32, __VA_ARGS__)
#define SB_CUDA_ATTENTION_BLOCKS(X, ...) SB_CUDA_ATTENTION_SMALL_BLOCKS(X, __VA_ARGS__) X(64, __VA_ARGS__)

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
    int64_t key_step;
} sb_cuda_attention_step;

/* Operands: the three factors, the result, whose data are written, and those of the steps. */
enum {
    SB_CUDA_ATTENTION_QUERIES,
    SB_CUDA_ATTENTION_KEYS,
    SB_CUDA_ATTENTION_VALUES,
    SB_CUDA_ATTENTION_RESULT,
    SB_CUDA_ATTENTION_STEPS,
    SB_CUDA_ATTENTION_OPERANDS = SB_CUDA_ATTENTION_STEPS + SB_ATTENTION_NODE_STEPS
};

typedef struct sb_cuda_attention_nodes {
    sb_cuda_attention_operand operands[SB_CUDA_ATTENTION_OPERANDS];
    int64_t rows, key_count, width, value_width; /* widths are multiples of 8 */
    const int64_t *used_rows, *used_keys;        /* as sb_call_used */
    int64_t tile_rows, row_tiles, first_tile; /* of a block: its rows; a launch begins with the tile of that number */
    int32_t rank, step_count;
    int64_t dims[SB_CUDA_ATTENTION_RANK];
    sb_cuda_attention_step steps[SB_ATTENTION_NODE_STEPS];
} sb_cuda_attention_nodes;

#endif
