/* The tiled kernels of contractions in f32: one template for all shapes of tiles, and for both kinds of right operand.
 *
 * Every element is one chain: its thread takes all k, ascending. A k that is not there takes no part (an fma of
 * zeros would turn a -0 into +0). While a tile is used, the following ones arrive, and while a k is used, the
 * operands of the next one are loaded: the wait for a tile, and the barrier, come before the last k of the tile
 * before it. Rows and columns of a thread lie in groups of four, spread evenly over the tile, so that
 * neighbours load neighbouring 16 bytes. */
#ifndef SB_CUDA_CONTRACTION_TILE_KERNEL_CUH
#define SB_CUDA_CONTRACTION_TILE_KERNEL_CUH

#include "cuda/contraction/tile.cuh"
#include "numerics/scalar.h"

/* All shapes of tiles. X(m, n, k, stages, rows, columns, side, blocks):
 *
 *     m, n           the rows and columns that a block computes
 *     k              how many k it fetches at once
 *     stages         how many such tiles are in shared memory
 *     rows, columns  what a thread computes: 1, 2 or 4 rows, or a multiple of 4; 1 column, or a multiple of 4
 *     side           how many threads of a warp lie side by side in a row
 *     blocks         how many blocks a multiprocessor shall take
 *
 * How they are chosen is in cuda/contraction/tiles.c, whose table has the numbers once more. */
#define SB_TILE_SHAPES(X)                                                                                              \
    X(128, 256, 8, 3, 8, 16, 8, 1)                                                                                     \
    X(128, 128, 16, 2, 8, 8, 8, 2)                                                                                     \
    X(128, 64, 16, 2, 8, 8, 8, 4)                                                                                      \
    X(64, 128, 16, 2, 8, 8, 8, 4)                                                                                      \
    X(64, 64, 16, 3, 4, 8, 8, 5)                                                                                       \
    X(32, 64, 16, 4, 4, 4, 8, 6)                                                                                       \
    X(32, 32, 32, 3, 2, 4, 8, 6)                                                                                       \
    X(8, 32, 64, 3, 4, 1, 32, 4)                                                                                       \
    X(1, 32, 64, 4, 1, 1, 32, 6)

/* The threads of a block. */
#define SB_TILE_THREADS(m, n, rows, columns) ((m) / (rows) * ((n) / (columns)))

/* A shape, and what follows from it. */
template <int rows_of_tile, int columns_of_tile, int k_of_tile, int stage_count, int thread_rows, int thread_columns,
          int side_by_side>
struct sb_tile_shape {
    static constexpr int m = rows_of_tile, n = columns_of_tile, k = k_of_tile, stages = stage_count;
    static constexpr int rows = thread_rows, columns = thread_columns, side = side_by_side;
    static constexpr int row_width = rows < 4 ? rows : 4, column_width = columns < 4 ? columns : 4;
    static constexpr int row_groups = rows / row_width, column_groups = columns / column_width;
    static constexpr int threads_per_row = n / columns, threads = SB_TILE_THREADS(m, n, rows, columns);
    static constexpr int warp_rows = 32 / side, warps_per_row = threads_per_row / side;
    static constexpr int a_pitch = SB_TILE_PITCH(m), b_pitch = SB_TILE_PITCH(n), stage = k * (a_pitch + b_pitch);
    /* Finished chains pass through shared memory, where each thread has its own place, so that one
     * evaluator serves all of them: groups of them that fit at once. */
    static constexpr int groups = rows * column_groups, room = stages * stage / (threads * column_width);
    static constexpr int parked = groups <= room       ? groups
                                  : groups / 2 <= room ? groups / 2
                                  : groups / 4 <= room ? groups / 4
                                                       : 1;
};

/* Operands of a k for the thread's chains; `a` and `b` are its first elements of the tile's. */
template <typename shape>
SB_CUDA_FUNCTION void sb_tile_load_operands(const float *a, const float *b, int k, float *left, float *right) {
    SB_CUDA_UNROLL
    for (int g = 0; g < shape::row_groups; g++)
        sb_tile_take(a + k * shape::a_pitch + g * (shape::m / shape::row_groups), shape::row_width,
                     left + g * shape::row_width);
    SB_CUDA_UNROLL
    for (int g = 0; g < shape::column_groups; g++)
        sb_tile_take(b + k * shape::b_pitch + g * (shape::n / shape::column_groups), shape::column_width,
                     right + g * shape::column_width);
}

template <typename shape>
SB_CUDA_FUNCTION void sb_tile_continue_chains(const float *left, const float *right, float *chains) {
    SB_CUDA_UNROLL
    for (int i = 0; i < shape::rows; i++) {
        SB_CUDA_UNROLL
        for (int j = 0; j < shape::columns; j++)
            chains[i * shape::columns + j] = sb_fma_f32(left[i], right[j], chains[i * shape::columns + j]);
    }
}

/* The ring of tiles that are being fetched. */
struct sb_tile_ring {
    int64_t fetched; /* how many tiles have been asked for */
    int stage;       /* where the next one goes */
};

/* Begins to fetch the next tile, if there is one. */
template <typename shape, typename parameters, typename pair>
SB_CUDA_FUNCTION void sb_tile_fetch_next(const parameters *p, float *tiles, sb_tile_ring *ring, pair *sources) {
    if (ring->fetched * shape::k < p->base.k) {
        float *to = tiles + ring->stage * shape::stage;
        int64_t there = p->base.k - ring->fetched * shape::k;
        sb_tile_fetch(&sources->a, to, there, shape::m, shape::k, shape::threads);
        sb_tile_fetch_right(p, &sources->b, to + shape::k * shape::a_pitch, there, shape::n, shape::k, shape::threads);
        ring->fetched++;
        ring->stage = ring->stage + 1 == shape::stages ? 0 : ring->stage + 1;
    }
    SB_CUDA_COPIES_END();
}

/* The body of the kernel with tiles of this shape. For its parameters there are
 *
 *     sb_tile_open_both     a struct of the operands' sources, `a` and `b`, for the tile with row m and column n first
 *     sb_tile_fetch_right   sb_tile_fetch for the right operand
 *     sb_tile_store_group   what becomes of neighbours of a row whose chains are finished */
template <typename shape, typename parameters> SB_CUDA_FUNCTION void sb_tile_compute(const parameters *p) {
    SB_CUDA_SHARED float tiles[shape::stages * shape::stage] __attribute__((aligned(16)));
    const sb_cuda_contraction *base = &p->base;
    const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int thread_column = warp % shape::warps_per_row * shape::side + lane % shape::side;
    const int thread_row = warp / shape::warps_per_row * shape::warp_rows + lane / shape::side;
    const int64_t count = base->batches * base->m_tiles * base->n_tiles;
    SB_CUDA_KEEP_LOOP
    for (int64_t index = blockIdx.x; index < count; index += gridDim.x) {
        const sb_tile_place tile = sb_tile_place_of(base, index);
        const int64_t m = tile.m * shape::m, n = tile.n * shape::n;
        float chains[shape::rows * shape::columns];
        float left[2][shape::rows], right[2][shape::columns];
        auto sources = sb_tile_open_both(p, tile.batch, m, n, shape::m, shape::n, shape::threads);
        SB_CUDA_UNROLL
        for (int i = 0; i < shape::rows * shape::columns; i++)
            chains[i] = 0.0f;
        sb_tile_ring ring = {0, 0};
        int stage = 0;
        SB_CUDA_KEEP_LOOP
        for (int s = 0; s < shape::stages; s++)
            sb_tile_fetch_next<shape>(p, tiles, &ring, &sources);
        SB_CUDA_COPIES_WAIT(shape::stages - 1);
        SB_CUDA_BARRIER();
        const float *a_at = tiles + thread_row * shape::row_width;
        const float *b_at = tiles + shape::k * shape::a_pitch + thread_column * shape::column_width;
        sb_tile_load_operands<shape>(a_at, b_at, 0, left[0], right[0]);
        SB_CUDA_KEEP_LOOP
        for (int64_t whole = base->k / shape::k; whole > 0; whole--) {
            SB_CUDA_UNROLL
            for (int k = 0; k + 1 < shape::k; k++) {
                sb_tile_load_operands<shape>(a_at, b_at, k + 1, left[(k + 1) % 2], right[(k + 1) % 2]);
                sb_tile_continue_chains<shape>(left[k % 2], right[k % 2], chains);
            }
            /* Everybody has loaded all of this tile, so that another one may take its place. */
            SB_CUDA_COPIES_WAIT(shape::stages - 2);
            SB_CUDA_BARRIER();
            sb_tile_fetch_next<shape>(p, tiles, &ring, &sources);
            stage = stage + 1 == shape::stages ? 0 : stage + 1;
            a_at = tiles + stage * shape::stage + thread_row * shape::row_width;
            b_at = tiles + stage * shape::stage + shape::k * shape::a_pitch + thread_column * shape::column_width;
            sb_tile_load_operands<shape>(a_at, b_at, 0, left[0], right[0]);
            sb_tile_continue_chains<shape>(left[(shape::k - 1) % 2], right[(shape::k - 1) % 2], chains);
        }
        SB_CUDA_KEEP_LOOP
        for (int k = 0; k < (int)(base->k % shape::k); k++) {
            sb_tile_load_operands<shape>(a_at, b_at, k, left[0], right[0]);
            sb_tile_continue_chains<shape>(left[0], right[0], chains);
        }
        const int64_t first_row = m + thread_row * shape::row_width,
                      first_column = n + thread_column * shape::column_width;
        SB_CUDA_BARRIER(); /* the tiles are not needed any more */
        SB_CUDA_KEEP_LOOP
        for (int start = 0; start < shape::groups; start += shape::parked) {
            SB_CUDA_UNROLL
            for (int i = 0; i < shape::parked; i++)
                sb_tile_put(tiles + (i * shape::threads + thread) * shape::column_width, shape::column_width,
                            chains + i * shape::column_width);
            SB_CUDA_UNROLL
            for (int i = 0; i + shape::parked * shape::column_width < shape::rows * shape::columns; i++)
                chains[i] = chains[i + shape::parked * shape::column_width];
            SB_CUDA_KEEP_LOOP
            for (int i = 0; i < shape::parked; i++) {
                const int line = (start + i) / shape::column_groups, group = (start + i) % shape::column_groups;
                const int64_t row =
                    first_row + line / shape::row_width * (shape::m / shape::row_groups) + line % shape::row_width;
                const int64_t column = first_column + group * (shape::n / shape::column_groups);
                if (row >= base->m || column >= base->n)
                    continue;
                float finished[shape::column_width];
                sb_tile_take(tiles + (i * shape::threads + thread) * shape::column_width, shape::column_width,
                             finished);
                sb_tile_store_group(p, tile.batch, row, column, shape::column_width, finished);
            }
        }
        SB_CUDA_BARRIER();
    }
}

/* The kernel of this name for a line of SB_TILE_SHAPES. */
#define SB_TILE_KERNEL(name, type, m, n, k, stages, rows, columns, side, blocks)                                       \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(name, type, p, SB_TILE_THREADS(m, n, rows, columns), blocks) {                        \
        sb_tile_compute<sb_tile_shape<m, n, k, stages, rows, columns, side>>(p);                                       \
    }

#endif
