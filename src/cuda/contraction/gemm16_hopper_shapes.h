/* Shapes of tiles of the schedules by TMA and wgmma, and what products cost in them: between gemm16_hopper.c, which has the shapes, and
 * gemm16_hopper_cost.c. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_HOPPER_SHAPES_H
#define SB_CUDA_CONTRACTION_GEMM16_HOPPER_SHAPES_H

#include "cuda/contraction/gemm16.h"

#define SB_GEMM16_TILE_K 64

/* A shape of tiles: the numbers of its source, and what it costs on an H200. */
typedef struct sb_gemm16_shape {
    const char *modules[2]; /* of bf16 and of f16; their kernels' names begin so too */
    const char *fused[2];   /* those that compute the nodes behind the product; NULL: there are none */
    int rows, n, boxes, stages, cluster;
    unsigned form;
    /* In microseconds: what a tile takes for 64 k, a product before its first tile and behind its last one, and a tile before and behind
     * its k. And in 10^6 bytes a microsecond what the second-level cache and the memory give to all tiles at the same time. */
    double step, around, turnover, cache, memory;
} sb_gemm16_shape;
enum {
    SB_GEMM16_SWAPPED = 1,   /* B's columns are the kernel's rows, for products of few rows */
    SB_GEMM16_B_K_MAJOR = 2, /* the kernel's B must be K-major */
    SB_GEMM16_MAPPED = 4,    /* with a row map, A and B MN-major */
    SB_GEMM16_TURNS =
        8, /* a tile is one warpgroup's, whose end the other one's products hide; A K-major, results in bulk */
    SB_GEMM16_BOTH_K_MAJOR = 16, /* A and B must be; without gates, and k that end where a run says */
    SB_GEMM16_ROW = 32,          /* of one row, which lies in shared memory whole */
};

static inline bool sb_gemm16_has(const sb_gemm16_shape *shape, unsigned form) {
    return (shape->form & form) != 0;
}

/* Whether two warpgroups' results of gates before their values leave by TMA: half of the tile's columns, whole boxes of 64. */
static inline bool sb_gemm16_stores_gates_in_bulk(const sb_gemm16_shape *shape) {
    return shape->rows == 128 && shape->n % 128 == 0;
}

/* Columns of B. */
static inline int64_t sb_gemm16_b_lines(const sb_gemm_plan *plan) {
    return plan->gemm->gate != SB_GATE_NONE ? 2 * plan->n : plan->n;
}

/** Clusters that run at the same time. */
int sb_gemm16_clusters_at_once(const sb_cuda_device *device, const sb_gemm16_shape *shape);
/** Tiles of 64 k. */
int64_t sb_gemm16_k_blocks(const sb_gemm16_shape *shape, const sb_gemm_plan *plan);
/** The rows that a tile takes: swapped, so few of the weights' that all multiprocessors have some. */
int sb_gemm16_tile_rows(const sb_gemm16_shape *shape, const sb_cuda_device *device, const sb_gemm_plan *plan);
/** About how many microseconds a product takes. `is_whole`: the shape's times are of whole tiles, with their ends, as those of logits
 * and convolutions are. */
double sb_gemm16_shape_cost(const sb_gemm16_shape *shape, const sb_cuda_device *device, const sb_gemm_plan *plan,
                            bool is_whole);

#endif
