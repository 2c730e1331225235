/* Shapes of the tiles in which f32 contractions are computed, and the choice among them. */
#ifndef SB_CUDA_CONTRACTION_TILES_H
#define SB_CUDA_CONTRACTION_TILES_H

#include "cuda/common/call.h"
#include "cuda/contraction/contraction_parameters.h"

/* A kernel's tile; kernels/tile_kernels.cuh defines them. */
typedef struct sb_cuda_tile {
    const char *name; /* behind sb_cuda_matmul_f32_ and sb_cuda_conv_f32_ */
    int m, n, threads;
    /* Steps of chains per cycle and multiprocessor, of at most 128: full of blocks, and with one. */
    double whole, alone;
    int instructions; /* of a warp for each k, but for fetching */
} sb_cuda_tile;

/** The number of shapes, and shape `index`. */
int sb_cuda_tile_count(void);
const sb_cuda_tile *sb_cuda_tile_at(int index);

/** The shape for `batches` matrices of m rows and n columns on a device with that many
 * multiprocessors. `patch` is how many instructions an element of the right operand takes that is made on the way, 0 where
 * it lies there. Results do not depend on the choice. */
const sb_cuda_tile *sb_cuda_tile_choose(int64_t batches, int64_t m, int64_t n, int patch, int multiprocessors);

/** For tests and measurements: makes shape `index` the choice for everything from now on; -1 leaves
 * the choice alone again. */
void sb_cuda_tile_force(int index);

/** How an operand is fetched in tiles of `tile` elements, when `extent` are there: data and steps
 * of `operand` are set, `others` are further distances between matrices, in elements. */
sb_cuda_fetch sb_cuda_tile_fetch(const sb_cuda_operand *operand, int tile, int64_t extent, int other_count,
                                 const int64_t *others);

/** Fills in the counts of tiles, launches "<prefix><tile's name>" of `module` for the contraction
 * `base`, with which the work's parameters begin, and names the output's range. */
sb_status sb_cuda_tile_launch(sb_call *call, sb_cuda_work *work, const char *module, const char *prefix,
                              const sb_cuda_tile *tile, sb_cuda_contraction *base);

#endif
