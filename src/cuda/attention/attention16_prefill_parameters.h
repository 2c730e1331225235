/* What the kernels of attention by warpgroups take: tiles of up to 128 rows, which TMA brings and wgmma multiplies. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_PREFILL_PARAMETERS_H
#define SB_CUDA_ATTENTION_ATTENTION16_PREFILL_PARAMETERS_H

#include "cuda/attention/attention_parameters.h"
#include "cuda/common/divisor.h"
#include "cuda/contraction/gemm16_hopper_parameters.h"

/* Rows that a tile has room for: 64 of each of two warpgroups, or of heads of more than 128 the same 64 of both, which then share the columns of
 * values; with a third that fetches. */
#define SB_CUDA_ATTENTION16_PREFILL_ROWS(width) ((width) == 256 ? 64 : 128)
#define SB_CUDA_ATTENTION16_PREFILL_THREADS 384
/* A unit of shared memory has 128 lines of up to 128 elements, in bytes: keys or values, of heads of more than that in parts, or all queries of a
 * tile. One has the queries of a tile, the others are a ring. */
#define SB_CUDA_ATTENTION16_PREFILL_UNIT(width) ((width) == 64 ? 128 * 64 * 2 : 128 * 128 * 2)
#define SB_CUDA_ATTENTION16_PREFILL_PARTS(width) ((width) == 256 ? 2 : 1)
#define SB_CUDA_ATTENTION16_PREFILL_STAGES(width) ((width) == 64 ? 8 : 4)
/* Units, the totals of splits, and what the first address is rounded up by. */
#define SB_CUDA_ATTENTION16_PREFILL_UNITS(width)                                                                       \
    ((SB_CUDA_ATTENTION16_PREFILL_STAGES(width) + 1) * SB_CUDA_ATTENTION16_PREFILL_UNIT(width))
#define SB_CUDA_ATTENTION16_PREFILL_SHARED(width)                                                                      \
    (SB_CUDA_ATTENTION16_PREFILL_UNITS(width) + SB_CUDA_ATTENTION16_PREFILL_ROWS(width) * (width)*4 + 1024)
/* Warps of a tile, 16 rows each, which say by a word each whether the definition has to compute their rows. */
#define SB_CUDA_ATTENTION16_PREFILL_WARPS 8

/* Tiles of rows. A tile has all heads of a head of keys for as many queries as fit. */
typedef struct sb_cuda_attention16_tiles {
    sb_cuda_attention attention; /* row_tiles: in tiles of `rows` */
    int64_t tiles;               /* of all heads and samples; with pages not fewer than there are */
    int32_t *again;              /* of each tile and warp whether the definition has to compute its rows */
    int32_t rows;                /* of a tile: a multiple of the group */
    int32_t row_warps; /* warps that have rows of their own: all, or half of them, whose rows the others have too */
    int32_t queries;   /* the same in queries */
    uint32_t head_bytes, query_bytes; /* of the output, from a head and from a query to the next */
    sb_cuda_divisor by_group, by_key_heads, by_batch;
} sb_cuda_attention16_tiles;

/* Maps have the dimensions width, heads, queries (rows, keys for k and v: keys, heads), samples; or for k and v with pages lines of a page,
 * heads, pages. */
typedef struct sb_cuda_attention16_prefill {
    sb_cuda_attention16_tiles work;
    sb_tensor_map q;    /* boxes of 64 elements, the group, and a tile's queries */
    sb_tensor_map k, v; /* boxes of 64 elements and 128 keys, or with pages so many that `copies` of them bring 128 */
    /* With pages that lie one behind the other, the same as if all were one, whose boxes have 128 lines. */
    sb_tensor_map k_together, v_together;
    int32_t copies, are_together;
    sb_cuda_divisor by_page; /* lines of a page */
} sb_cuda_attention16_prefill;

#endif
