/* All shapes of tiles, as kernels of the source that includes this and defines SB_TILE_CONVOLUTION,
 * SB_TILE_BOUNDED and SB_TILE_SHAPE(m, n), the name of the kernel with tiles of m rows and n columns. How they are
 * chosen is in cuda/contraction/tiles.c, whose table has the numbers once more. */
#define SB_TILE_NAME SB_TILE_SHAPE(128, 256)
#define SB_TILE_M 128
#define SB_TILE_N 256
#define SB_TILE_K 8
#define SB_TILE_STAGES 3
#define SB_TILE_ROWS 8
#define SB_TILE_COLUMNS 16
#define SB_TILE_LANES 8
#define SB_TILE_BLOCKS 1
#include "cuda/contraction/tile_kernel.cuh"

#define SB_TILE_NAME SB_TILE_SHAPE(128, 128)
#define SB_TILE_M 128
#define SB_TILE_N 128
#define SB_TILE_K 16
#define SB_TILE_STAGES 2
#define SB_TILE_ROWS 8
#define SB_TILE_COLUMNS 8
#define SB_TILE_LANES 8
#define SB_TILE_BLOCKS 2
#include "cuda/contraction/tile_kernel.cuh"

#define SB_TILE_NAME SB_TILE_SHAPE(128, 64)
#define SB_TILE_M 128
#define SB_TILE_N 64
#define SB_TILE_K 16
#define SB_TILE_STAGES 2
#define SB_TILE_ROWS 8
#define SB_TILE_COLUMNS 8
#define SB_TILE_LANES 8
#define SB_TILE_BLOCKS 4
#include "cuda/contraction/tile_kernel.cuh"

#define SB_TILE_NAME SB_TILE_SHAPE(64, 128)
#define SB_TILE_M 64
#define SB_TILE_N 128
#define SB_TILE_K 16
#define SB_TILE_STAGES 2
#define SB_TILE_ROWS 8
#define SB_TILE_COLUMNS 8
#define SB_TILE_LANES 8
#define SB_TILE_BLOCKS 4
#include "cuda/contraction/tile_kernel.cuh"

#define SB_TILE_NAME SB_TILE_SHAPE(64, 64)
#define SB_TILE_M 64
#define SB_TILE_N 64
#define SB_TILE_K 16
#define SB_TILE_STAGES 3
#define SB_TILE_ROWS 4
#define SB_TILE_COLUMNS 8
#define SB_TILE_LANES 8
#define SB_TILE_BLOCKS 5
#include "cuda/contraction/tile_kernel.cuh"

#define SB_TILE_NAME SB_TILE_SHAPE(32, 64)
#define SB_TILE_M 32
#define SB_TILE_N 64
#define SB_TILE_K 16
#define SB_TILE_STAGES 4
#define SB_TILE_ROWS 4
#define SB_TILE_COLUMNS 4
#define SB_TILE_LANES 8
#define SB_TILE_BLOCKS 6
#include "cuda/contraction/tile_kernel.cuh"

#define SB_TILE_NAME SB_TILE_SHAPE(32, 32)
#define SB_TILE_M 32
#define SB_TILE_N 32
#define SB_TILE_K 32
#define SB_TILE_STAGES 3
#define SB_TILE_ROWS 2
#define SB_TILE_COLUMNS 4
#define SB_TILE_LANES 8
#define SB_TILE_BLOCKS 6
#include "cuda/contraction/tile_kernel.cuh"

#define SB_TILE_NAME SB_TILE_SHAPE(8, 32)
#define SB_TILE_M 8
#define SB_TILE_N 32
#define SB_TILE_K 64
#define SB_TILE_STAGES 3
#define SB_TILE_ROWS 4
#define SB_TILE_COLUMNS 1
#define SB_TILE_LANES 32
#define SB_TILE_BLOCKS 4
#include "cuda/contraction/tile_kernel.cuh"

/* A chain for each thread: for products so small that the longest chain is what they wait for. */
#define SB_TILE_NAME SB_TILE_SHAPE(4, 32)
#define SB_TILE_M 4
#define SB_TILE_N 32
#define SB_TILE_K 32
#define SB_TILE_STAGES 4
#define SB_TILE_ROWS 1
#define SB_TILE_COLUMNS 1
#define SB_TILE_LANES 32
#define SB_TILE_BLOCKS 4
#include "cuda/contraction/tile_kernel.cuh"

#define SB_TILE_NAME SB_TILE_SHAPE(1, 32)
#define SB_TILE_M 1
#define SB_TILE_N 32
#define SB_TILE_K 64
#define SB_TILE_STAGES 4
#define SB_TILE_ROWS 1
#define SB_TILE_COLUMNS 1
#define SB_TILE_LANES 32
#define SB_TILE_BLOCKS 6
#include "cuda/contraction/tile_kernel.cuh"
