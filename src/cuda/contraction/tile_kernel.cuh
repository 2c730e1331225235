/* A tiled kernel of a contraction. Included by a source that defines
 *
 *     SB_TILE_NAME                 the kernel's name
 *     SB_TILE_CONVOLUTION          1 where the right operand is the input of a convolution, else 0
 *     SB_TILE_BOUNDED              1 where chains end at the used k, and tiles behind the used rows or
 *                                  columns are left out, else 0: the bound takes registers
 *     SB_TILE_M, SB_TILE_N         the rows and columns that a block computes
 *     SB_TILE_K                    how many k it fetches at once
 *     SB_TILE_STAGES               how many such tiles are in shared memory
 *     SB_TILE_ROWS, SB_TILE_COLUMNS  what a thread computes: 1, 2 or 4 rows, or a multiple of 4;
 *                                  1 column, or a multiple of 4
 *     SB_TILE_LANES                how many threads of a warp lie side by side in a row
 *     SB_TILE_BLOCKS               how many blocks a multiprocessor shall take
 *
 * all of which this file undefines again.
 *
 * Every element is one chain: its thread takes all k, ascending. A k that is not there takes no
 * part (an fma of zeros would turn a -0 into +0). While a tile is used, the following ones arrive,
 * and while a k is used, the operands of the next one are loaded: the wait for a tile, and the
 * barrier, come before the last k of the tile before it. Rows and columns of a thread lie in groups
 * of four, spread evenly over the tile, so that neighbours load neighbouring 16 bytes. */
#define ROW_WIDTH (SB_TILE_ROWS < 4 ? SB_TILE_ROWS : 4)
#define COLUMN_WIDTH (SB_TILE_COLUMNS < 4 ? SB_TILE_COLUMNS : 4)
#define ROW_GROUPS (SB_TILE_ROWS / ROW_WIDTH)
#define COLUMN_GROUPS (SB_TILE_COLUMNS / COLUMN_WIDTH)
#define THREADS_PER_ROW (SB_TILE_N / SB_TILE_COLUMNS)
#define THREADS (SB_TILE_M / SB_TILE_ROWS * THREADS_PER_ROW)
#define LANE_ROWS (32 / SB_TILE_LANES)
#define WARPS_PER_ROW (THREADS_PER_ROW / SB_TILE_LANES)
#define A_PITCH SB_TILE_PITCH(SB_TILE_M)
#define B_PITCH SB_TILE_PITCH(SB_TILE_N)
#define STAGE (SB_TILE_K * (A_PITCH + B_PITCH))
/* Finished chains pass through shared memory, where each thread has its own place, so that one
 * evaluator serves all of them: groups of them that fit at once. */
#define GROUPS (SB_TILE_ROWS * COLUMN_GROUPS)
#define ROOM (SB_TILE_STAGES * STAGE / (THREADS * COLUMN_WIDTH))
#define PARKED (GROUPS <= ROOM ? GROUPS : GROUPS / 2 <= ROOM ? GROUPS / 2 : GROUPS / 4 <= ROOM ? GROUPS / 4 : 1)

#if SB_TILE_CONVOLUTION
#define TYPE sb_cuda_convolution
#else
#define TYPE sb_cuda_matmul
#endif
#if SB_TILE_BOUNDED
#define DEPTH depth
#else
#define DEPTH base->k
#endif

#define LOAD_OPERANDS(k, into)                                                                                         \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int g = 0; g < ROW_GROUPS; g++)                                                                           \
            sb_tile_take(a_at + (k)*A_PITCH + g * (SB_TILE_M / ROW_GROUPS), ROW_WIDTH, left[into] + g * ROW_WIDTH);    \
        SB_CUDA_UNROLL                                                                                                 \
        for (int g = 0; g < COLUMN_GROUPS; g++)                                                                        \
            sb_tile_take(b_at + (k)*B_PITCH + g * (SB_TILE_N / COLUMN_GROUPS), COLUMN_WIDTH,                           \
                         right[into] + g * COLUMN_WIDTH);                                                              \
    } while (0)

#define CONTINUE_CHAINS(from)                                                                                          \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SB_TILE_ROWS; i++) {                                                                       \
            SB_CUDA_UNROLL                                                                                             \
            for (int j = 0; j < SB_TILE_COLUMNS; j++)                                                                  \
                chains[i * SB_TILE_COLUMNS + j] =                                                                      \
                    sb_fma_f32(left[from][i], right[from][j], chains[i * SB_TILE_COLUMNS + j]);                        \
        }                                                                                                              \
    } while (0)

#if SB_TILE_CONVOLUTION
#define FETCH_B(to, there) sb_patch_fetch(p, &b_source, to, there, SB_TILE_N, SB_TILE_K, THREADS)
#else
#define FETCH_B(to, there) sb_tile_fetch(&b_source, to, there, SB_TILE_N, SB_TILE_K, THREADS)
#endif
/* Begins to fetch tile `fetched`, if there is one. */
#define FETCH_NEXT()                                                                                                   \
    do {                                                                                                               \
        if (fetched * SB_TILE_K < DEPTH) {                                                                             \
            float *to = tiles + fetch_stage * STAGE;                                                                   \
            int64_t there = DEPTH - fetched * SB_TILE_K;                                                               \
            sb_tile_fetch(&a_source, to, there, SB_TILE_M, SB_TILE_K, THREADS);                                        \
            FETCH_B(to + SB_TILE_K * A_PITCH, there);                                                                  \
            fetched++;                                                                                                 \
            fetch_stage = fetch_stage + 1 == SB_TILE_STAGES ? 0 : fetch_stage + 1;                                     \
        }                                                                                                              \
        SB_CUDA_COPIES_END();                                                                                          \
    } while (0)

SB_TILE_KERNEL(SB_TILE_NAME, TYPE, p, THREADS, SB_TILE_BLOCKS) {
    SB_CUDA_SHARED float tiles[SB_TILE_STAGES * STAGE] __attribute__((aligned(16)));
    const sb_cuda_contraction *base = &p->base;
    const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int thread_column = warp % WARPS_PER_ROW * SB_TILE_LANES + lane % SB_TILE_LANES;
    const int thread_row = warp / WARPS_PER_ROW * LANE_ROWS + lane / SB_TILE_LANES;
    const int64_t count = base->batches * base->m_tiles * base->n_tiles;
    SB_CUDA_KEEP_LOOP
    for (int64_t index = blockIdx.x; index < count; index += gridDim.x) {
        const sb_tile_place tile = sb_tile_place_of(base, index);
        const int64_t m = tile.m * SB_TILE_M, n = tile.n * SB_TILE_N;
#if SB_TILE_BOUNDED
        if (m >= sb_cuda_used(base->used_m, base->m) || n >= sb_cuda_used(base->used_n, base->n))
            continue;
        const int64_t depth = sb_cuda_used(base->used_k, base->k);
#endif
        float chains[SB_TILE_ROWS * SB_TILE_COLUMNS];
        float left[2][SB_TILE_ROWS], right[2][SB_TILE_COLUMNS];
#if SB_TILE_CONVOLUTION
        sb_tile_source a_source = sb_tile_open(&base->a, base->a.data + tile.batch * p->a_group + m * base->a.step,
                                               base->m - m, SB_TILE_M, THREADS);
        sb_patch_source b_source = sb_patch_open(p, tile.batch, n, SB_TILE_N, SB_TILE_K);
#else
        int64_t a_offset = 0, b_offset = 0, rest = tile.batch;
        SB_CUDA_KEEP_LOOP
        for (int d = p->rank - 1; d >= 0; d--) {
            int64_t at = sb_cuda_take(&rest, p->dims[d]);
            a_offset += at * p->a_steps[d];
            b_offset += at * p->b_steps[d];
        }
        sb_tile_source a_source =
            sb_tile_open(&base->a, base->a.data + a_offset + m * base->a.step, base->m - m, SB_TILE_M, THREADS);
        sb_tile_source b_source =
            sb_tile_open(&base->b, base->b.data + b_offset + n * base->b.step, base->n - n, SB_TILE_N, THREADS);
#endif
        SB_CUDA_UNROLL
        for (int i = 0; i < SB_TILE_ROWS * SB_TILE_COLUMNS; i++)
            chains[i] = 0.0f;
        int64_t fetched = 0;
        int fetch_stage = 0, stage = 0;
        SB_CUDA_KEEP_LOOP
        for (int s = 0; s < SB_TILE_STAGES; s++)
            FETCH_NEXT();
        SB_CUDA_COPIES_WAIT(SB_TILE_STAGES - 1);
        SB_CUDA_BARRIER();
        const float *a_at = tiles + thread_row * ROW_WIDTH;
        const float *b_at = tiles + SB_TILE_K * A_PITCH + thread_column * COLUMN_WIDTH;
        LOAD_OPERANDS(0, 0);
        SB_CUDA_KEEP_LOOP
        for (int64_t whole = DEPTH / SB_TILE_K; whole > 0; whole--) {
            SB_CUDA_UNROLL
            for (int k = 0; k + 1 < SB_TILE_K; k++) {
                LOAD_OPERANDS(k + 1, (k + 1) % 2);
                CONTINUE_CHAINS(k % 2);
            }
            /* Everybody has loaded all of this tile, so that another one may take its place. */
            SB_CUDA_COPIES_WAIT(SB_TILE_STAGES - 2);
            SB_CUDA_BARRIER();
            FETCH_NEXT();
            stage = stage + 1 == SB_TILE_STAGES ? 0 : stage + 1;
            a_at = tiles + stage * STAGE + thread_row * ROW_WIDTH;
            b_at = tiles + stage * STAGE + SB_TILE_K * A_PITCH + thread_column * COLUMN_WIDTH;
            LOAD_OPERANDS(0, 0);
            CONTINUE_CHAINS((SB_TILE_K - 1) % 2);
        }
        SB_CUDA_KEEP_LOOP
        for (int k = 0; k < (int)(DEPTH % SB_TILE_K); k++) {
            LOAD_OPERANDS(k, 0);
            CONTINUE_CHAINS(0);
        }
        const int64_t first_row = m + thread_row * ROW_WIDTH, first_column = n + thread_column * COLUMN_WIDTH;
        SB_CUDA_BARRIER(); /* the tiles are not needed any more */
        SB_CUDA_KEEP_LOOP
        for (int start = 0; start < GROUPS; start += PARKED) {
            SB_CUDA_UNROLL
            for (int i = 0; i < PARKED; i++)
                sb_tile_put(tiles + (i * THREADS + thread) * COLUMN_WIDTH, COLUMN_WIDTH, chains + i * COLUMN_WIDTH);
            SB_CUDA_UNROLL
            for (int i = 0; i + PARKED * COLUMN_WIDTH < SB_TILE_ROWS * SB_TILE_COLUMNS; i++)
                chains[i] = chains[i + PARKED * COLUMN_WIDTH];
            SB_CUDA_KEEP_LOOP
            for (int i = 0; i < PARKED; i++) {
                const int line = (start + i) / COLUMN_GROUPS, group = (start + i) % COLUMN_GROUPS;
                const int64_t row = first_row + line / ROW_WIDTH * (SB_TILE_M / ROW_GROUPS) + line % ROW_WIDTH;
                const int64_t column = first_column + group * (SB_TILE_N / COLUMN_GROUPS);
                if (row >= base->m || column >= base->n)
                    continue;
                float finished[COLUMN_WIDTH];
                sb_tile_take(tiles + (i * THREADS + thread) * COLUMN_WIDTH, COLUMN_WIDTH, finished);
#if SB_TILE_CONVOLUTION
                sb_patch_store(p, tile.batch, row, column, COLUMN_WIDTH, finished);
#else
                sb_product_store(p, tile.batch, row, column, COLUMN_WIDTH, finished);
#endif
            }
        }
        SB_CUDA_BARRIER();
    }
}

#undef ROW_WIDTH
#undef COLUMN_WIDTH
#undef ROW_GROUPS
#undef COLUMN_GROUPS
#undef THREADS_PER_ROW
#undef THREADS
#undef LANE_ROWS
#undef WARPS_PER_ROW
#undef A_PITCH
#undef B_PITCH
#undef STAGE
#undef GROUPS
#undef ROOM
#undef PARKED
#undef TYPE
#undef DEPTH
#undef LOAD_OPERANDS
#undef CONTINUE_CHAINS
#undef FETCH_B
#undef FETCH_NEXT
#undef SB_TILE_NAME
#undef SB_TILE_M
#undef SB_TILE_N
#undef SB_TILE_K
#undef SB_TILE_STAGES
#undef SB_TILE_ROWS
#undef SB_TILE_COLUMNS
#undef SB_TILE_LANES
#undef SB_TILE_BLOCKS
