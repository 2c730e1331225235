/* What the kernels of attention16_stream.cuh take. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_STREAM_PARAMETERS_H
#define SB_CUDA_ATTENTION_ATTENTION16_STREAM_PARAMETERS_H

#include "cuda/attention/attention_parameters.h"
#include "cuda/contraction/gemm16_hopper_parameters.h"

/* Rows of a tile; and threads of a block: four warps that compute, and one that fetches. */
#define SB_CUDA_ATTENTION16_STREAM_ROWS 8
#define SB_CUDA_ATTENTION16_STREAM_THREADS (SB_CUDA_ATTENTION16_THREADS + 32)
/* A stage of the ring is 64 keys, or their values: a unit of 16 for each of four warps that score. */
#define SB_CUDA_ATTENTION16_STREAM_KEYS 16
#define SB_CUDA_ATTENTION16_STREAM_STAGE(width) (4 * SB_CUDA_ATTENTION16_STREAM_KEYS * (width)*2)
/* Stages of a block of threads that has a multiprocessor for itself, or of all blocks there; at most as many blocks. */
#define SB_CUDA_ATTENTION16_STREAM_STAGES(width) ((width) == 64 ? 24 : (width) == 128 ? 12 : 6)
#define SB_CUDA_ATTENTION16_STREAM_BLOCKS(width) ((width) == 256 ? 1 : 2)
/* The ring, weights of a split, and what the first address is rounded up by. */
#define SB_CUDA_ATTENTION16_STREAM_SHARED(width, stages)                                                               \
    ((stages)*SB_CUDA_ATTENTION16_STREAM_STAGE(width) +                                                                \
     SB_CUDA_ATTENTION16_STREAM_ROWS * SB_CUDA_ATTENTION16_PITCH(512) * 2 + 1024)

/* Maps have the dimensions 64 elements of the width, keys (of a page), the other 64s, heads, samples (pages), or all of the width in the
 * first where it is no multiple of 64. What they bring at once, a copy of a stage: all 64 keys, or 16 where these may lie on pages of
 * their own; all of the width, or 64 elements of it. */
typedef struct sb_cuda_attention16_stream {
    sb_cuda_attention attention;
    sb_cuda_divisor by_key_heads, by_batch, by_row_tiles, by_group;
    int32_t left, right; /* as the attention's, but for windows that reach further than any key */
    sb_tensor_map k, v;
    uint32_t *
        arrived; /* words of tiles whose splits count themselves, 0 before and behind the launch; NULL: another kernel folds them */
    int32_t stages;
    int32_t copies;                   /* of a stage's keys: 1 or 4 */
    int32_t key_slices, value_slices; /* of the width: 1, or its 64s */
    int32_t key_bytes, value_bytes;   /* of 16 keys, as they are brought */
} sb_cuda_attention16_stream;

#endif
