/* A kernel of 16-bit products by TMA and wgmma. Included by gemm16_hopper_layouts.cuh, which defines
 *
 *     SB_GEMM_NAME         the kernel's name
 *     SB_GEMM_TYPE         "bf16" or "f16", and SB_GEMM_SUFFIX bf16 or f16
 *     SB_GEMM_A_MN_MAJOR, SB_GEMM_B_MN_MAJOR  1 where the rows of A, the columns of B, lie side by side, else the k do
 *
 * which this file undefines again, for a source that defines
 *
 *     SB_GEMM_N        the columns of a block's tile, for which wgmma.cuh has a macro
 *     SB_GEMM_GROUPS   the warpgroups that multiply, of 64 rows of the tile each
 *     SB_GEMM_BOXES    how many tiles of 64 k are in a stage
 *     SB_GEMM_STAGES   how many stages are in shared memory, at most: with one warpgroup as many as fit
 *     SB_GEMM_CLUSTER  the blocks of a cluster, which lie below each other and share B; more than one with one box only
 *     SB_GEMM_MAPPED   defined where k is cut into the groups of a row map, for MN-major matrices (gemm16_mapped.cuh)
 *     SB_GEMM_CONV     defined where the rows of a K-major A are what positions of a convolution see (gemm16_conv.cuh)
 *     SB_GEMM_TURNS    defined where two warpgroups take whole tiles of 128 rows in turns, so that one's results are finished
 *                      and sent while the other's products go on (gemm16_turns.cuh): for results that leave in bulk alone
 *     SB_GEMM_LOGITS   defined where results are logits, which are reduced (gemm16_logits.cuh) and not stored
 *     SB_GEMM_FUSED    defined where the nodes behind the product are computed too (gemm16_fused.cuh); there are no gates
 *                      and no activations then, and two warpgroups send results in bulk alone
 *     SB_GEMM_NORMED   defined where threads normalise the tile's columns, which are at most eight rows, and bring all k of them to
 *                      shared memory before the first tile (gemm16_normed.cuh): of one warpgroup, one batch and a K-major B
 *     SB_GEMM_ROW      defined where the tile has one column, a row that comes to shared memory once, in pieces that belong to the
 *                      first tile's stages: of one warpgroup and one batch
 *
 * These numbers are once more in cuda/contraction/gemm16_hopper.c.
 *
 * A block has a warpgroup that fetches and others that multiply. The fetching threads keep the ring of stages full
 * across tiles: a stage is filled when its bytes have arrived (`full`) and free when the warpgroups of all blocks that
 * its data went to have used it (`empty`). Blocks take tiles a grid apart. Each element is one chain over ascending k;
 * the zeros that TMA puts behind the last k change no chain. */
#define TILE_M (64 * SB_GEMM_GROUPS)
#define TILE_N SB_GEMM_N
#define TILE_K 64
#define GROUP_THREADS 128
/* Registers are given out to four warps at a time, so with two warpgroups that multiply the one that fetches gives most
 * of its registers to the others. */
#define GIVES_REGISTERS (SB_GEMM_GROUPS > 1)
#define THREADS ((SB_GEMM_GROUPS + 1) * GROUP_THREADS)
/* Bytes of a stage. Columns that lie side by side come in 64s. */
#define A_BYTES (TILE_M * TILE_K * 2)
#define B_WIDTH (SB_GEMM_B_MN_MAJOR ? (TILE_N + 63) / 64 * 64 : TILE_N)
#define B_BYTES (B_WIDTH * TILE_K * 2)
#define BOXES SB_GEMM_BOXES
/* With one warpgroup, A may have fewer rows than the tile, and the ring as many stages as fit then. */
#define ONE_WARPGROUP (SB_GEMM_GROUPS == 1)
/* Shapes that take B's columns as rows too, which may be gates and values. */
#if defined(SB_GEMM_CONV) || defined(SB_GEMM_LOGITS)
#define SWAPS 0
#else
#define SWAPS ONE_WARPGROUP
#endif
/* The first row of a cluster's tile, of which a swapped product may take fewer rows than there are, so that all
 * multiprocessors have some; and the first column. The last ones begin so early that they end with the matrix: what reaches
 * over it the copy engine fills with zeros, which takes it longer than fetching. What two tiles compute then has the
 * same bits. */
#define FIRST_ROW(tile) ((tile) * (SWAPS ? p->tile_rows : TILE_M) * SB_GEMM_CLUSTER)
#define FIRST_COLUMN(tile) ((tile)*TILE_N)
#define NOT_BEHIND(first, last) ((first) < (last) ? (first) : (last))
#define ROW_OF(place) (NOT_BEHIND(FIRST_ROW((place).m), p->last_row) + (int)rank * (SWAPS ? p->tile_rows : TILE_M))
#define COLUMN_OF(place) NOT_BEHIND(FIRST_COLUMN((place).n), p->last_column)
/* Who fetches a stage: with one warpgroup a thread each for A and B, of two that take turns. */
#if defined(SB_GEMM_NORMED)
#define FILLERS 1
#define FETCHERS 2
#else
#define FILLERS (ONE_WARPGROUP ? 2 : 1)
#define FETCHERS (ONE_WARPGROUP ? 4 : 1)
#endif
/* Whether all k of the tile's columns lie in shared memory behind the ring, without a swizzle. */
#if defined(SB_GEMM_NORMED) || defined(SB_GEMM_ROW)
#define ROWS 1
#else
#define ROWS 0
#endif
#define A_BOX (ONE_WARPGROUP ? p->a_box_bytes : A_BYTES)
#define B_BOX (ONE_WARPGROUP ? p->b_box_bytes : B_BYTES)
/* What is fetched of them, where a block fetches all of both. */
#define A_FETCHED (SB_GEMM_CLUSTER > 1 && !ONE_WARPGROUP ? A_BYTES : p->a_box_bytes)
#define B_FETCHED (SB_GEMM_CLUSTER > 1 ? B_BYTES : p->b_box_bytes)
#define STAGES (ONE_WARPGROUP ? p->stages : SB_GEMM_STAGES)
#define STAGE_BYTES (ONE_WARPGROUP ? (uint32_t)p->stage_bytes : (uint32_t)(BOXES * (A_BYTES + B_BYTES)))
#define CHUNK_BYTES (64 * TILE_K * 2)
/* Bytes from one chunk to the next, and from 16 k to the next: groups of a row map are fetched one by one,
 * each with all its chunks. */
#if defined(SB_GEMM_MAPPED)
#define CHUNK_STEP 2048
#define A_STEP (TILE_M / 64 * CHUNK_STEP)
#define B_STEP (B_WIDTH / 64 * CHUNK_STEP)
#else
#define CHUNK_STEP CHUNK_BYTES
#define A_STEP 2048
#define B_STEP 2048
#endif
/* From 64 rows of A to the next 64. */
#define A_HALF (SB_GEMM_A_MN_MAJOR ? CHUNK_STEP : 64 * 128)
/* A warpgroup's room for results on their way out: two boxes of 64 rows of 128 bytes. */
#define BOX_BYTES (64 * 128)
#define ROOM_BYTES (2 * BOX_BYTES)
/* Whether a tile is one warpgroup's, and how many times 64 rows a warpgroup multiplies. */
#if defined(SB_GEMM_TURNS)
#define TURNS 1
#else
#define TURNS 0
#endif
#define HALVES (TURNS ? 2 : 1)
#define SUMS (HALVES * TILE_N / 2)
#define RESULTS (SUMS < SB_GEMM16_RESULTS ? SUMS : SB_GEMM16_RESULTS)

#define NAME2(a, b) a##b
#define NAME(a, b) NAME2(a, b)
#define MULTIPLY NAME(SB_WGMMA_, SB_GEMM_N)

#if defined(SB_GEMM_LOGITS)
#define SB_GEMM_GIVEN sb_gemm16_logits
#define SB_GEMM_PRODUCT(given) (&(given).product)
#elif defined(SB_GEMM_CONV)
#define SB_GEMM_GIVEN sb_gemm16_conv
#define SB_GEMM_PRODUCT(given) (&(given).product)
#elif defined(SB_GEMM_NORMED)
#define SB_GEMM_GIVEN sb_gemm16_normed
#define SB_GEMM_PRODUCT(given) (&(given).product)
#elif defined(SB_GEMM_FUSED)
#define SB_GEMM_GIVEN sb_gemm16_fused
#define SB_GEMM_PRODUCT(given) (&(given).product)
#else
#define SB_GEMM_GIVEN sb_gemm16_hopper
#define SB_GEMM_PRODUCT(given) (&(given))
#endif

/* Tiles of one row, or of rows that are normalised, are what tokens of language models take. Before those who multiply wait for the kernels
 * ahead, they go through the end of a tile that lies behind the last row and column, whose results nobody stores: a kernel takes
 * a few microseconds, and its instructions come from the second-level cache, behind the weights. */
#define REHEARSES ROWS
#define FAR_BEHIND (1 << 29)
/* In tiles for few rows, who fetches weights that no kernel ahead writes (`ahead`) waits for none, and fills the ring. */
#if SB_GEMM_GROUPS == 1 && SB_GEMM_N <= 16 && SB_GEMM_CLUSTER == 1
#define DEPEND() SB_CUDA_DEPEND_UNLESS(group == SB_GEMM_GROUPS ? streams && p->ahead < 0 : REHEARSES)
/* But no quicker than memory can give what all blocks ask for: whatever else is read meanwhile, by the kernels that this one waits for,
 * stands behind all that has been asked for. */
#define BEGIN_PACE() const uint32_t begun = sb_clock()
#define KEEP_PACE()                                                                                                    \
    do {                                                                                                               \
        if (streams && p->ahead < 0 && asked < STAGES)                                                                 \
            sb_clock_wait(begun, (uint32_t)(asked * p->pace));                                                         \
    } while (0)
#else
#define DEPEND() SB_CUDA_DEPEND()
#define BEGIN_PACE() (void)0
#define KEEP_PACE() (void)0
#endif
/* Where one is in the ring. With two warpgroups the address of a stage's barrier and the descriptors of its matrices go along: the compiler
 * would find them anew for each stage, by a third of the loop's instructions. With one, where other numbers of stages and columns need
 * uniform registers too, they would push those of a row's columns out; and with groups of a row map nothing was gained. */
#define AT_STAGE (stages + (uint32_t)stage * STAGE_BYTES)
#define AT_EMPTY (AT_FULL + (empty - full))
#if ONE_WARPGROUP || defined(SB_GEMM_MAPPED)
#define BEGIN_RING()                                                                                                   \
    int stage = 0;                                                                                                     \
    uint32_t phase = 0
#define AT_FULL (full + 8 * stage)
#define AT_MATRICES ((AT_STAGE & 0x3ffffu) >> 4)
#define NEXT_STAGE()                                                                                                   \
    do {                                                                                                               \
        if (++stage == STAGES) {                                                                                       \
            stage = 0;                                                                                                 \
            phase ^= 1;                                                                                                \
        }                                                                                                              \
    } while (0)
#else
#define BEGIN_RING()                                                                                                   \
    int stage = 0;                                                                                                     \
    uint32_t phase = 0, at_full = full, at_matrices = (stages & 0x3ffffu) >> 4
#define AT_FULL at_full
#define AT_MATRICES at_matrices
#define NEXT_STAGE()                                                                                                   \
    do {                                                                                                               \
        const int by = stage + 1 == STAGES ? 1 - STAGES : 1;                                                           \
        phase ^= by != 1;                                                                                              \
        MOVE_IN_RING(by);                                                                                              \
    } while (0)
/* Goes by what a tile takes of the ring. */
#define SKIP_STAGES(count)                                                                                             \
    do {                                                                                                               \
        const int by = (stage + (count)) % STAGES - stage;                                                             \
        phase ^= (uint32_t)((stage + (count)) / STAGES) & 1;                                                           \
        MOVE_IN_RING(by);                                                                                              \
    } while (0)
#define MOVE_IN_RING(by)                                                                                               \
    do {                                                                                                               \
        stage += (by);                                                                                                 \
        at_full += (uint32_t)(8 * (by));                                                                               \
        at_matrices += (uint32_t)(by) * (STAGE_BYTES / 16);                                                            \
    } while (0)
#endif
/* What comes before a stage's products: of groups that lack rows, zeros where these would be. */
#if defined(SB_GEMM_MAPPED)
#define BEGIN_GROUPS()                                                                                                 \
    int counted = 0; /* stages */                                                                                      \
    uint32_t counts = sb_gemm16_counts_of(&p->product, 0)
#define NEXT_GROUPS() counts = sb_gemm16_counts_of(&p->product, ++counted)
#define FILL_GROUPS()                                                                                                  \
    do {                                                                                                               \
        if (counts != SB_GEMM16_WHOLE_GROUPS) {                                                                        \
            sb_gemm16_clear_rows(AT_STAGE + a_part, A_STEP, 1, counts);                                                \
            sb_gemm16_clear_rows(AT_STAGE + A_BYTES, B_STEP, B_WIDTH / 64, counts);                                    \
            sb_shared_written();                                                                                       \
            sb_warpgroup_sync(1 + group);                                                                              \
        }                                                                                                              \
    } while (0)
#else
#define BEGIN_GROUPS() (void)0
#define NEXT_GROUPS() (void)0
#define FILL_GROUPS() (void)0
#endif
/* Whether k may end where memory says: in the widest tiles, and with nodes behind, registers would not do for it. */
#if defined(SB_GEMM_MAPPED) || defined(SB_GEMM_LOGITS) || defined(SB_GEMM_CONV) || defined(SB_GEMM_FUSED) ||           \
    defined(SB_GEMM_TURNS) || ROWS || SB_GEMM_N > 128
#define MAY_CUT 0
#else
#define MAY_CUT 1
#endif
/* Makes zeros of the k behind the used ones in the stage of block `block`, which has just come: a warpgroup of its own rows of
 * A and of all of B, which the other one overwrites with the same. */
#define CUT_STAGE(block)                                                                                               \
    do {                                                                                                               \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int i = 0; i < BOXES; i++) {                                                                              \
            const int used = sb_gemm16_used_in(p, block, i);                                                           \
            sb_gemm16_clear_k(AT_STAGE + i * A_BOX + a_part, ONE_WARPGROUP ? A_BOX / 128 : 64, SB_GEMM_A_MN_MAJOR,     \
                              used);                                                                                   \
            sb_gemm16_clear_k(AT_STAGE + BOXES * A_BOX + i * B_BOX, ONE_WARPGROUP ? B_BOX / 128 : B_WIDTH,             \
                              SB_GEMM_B_MN_MAJOR, used);                                                               \
        }                                                                                                              \
        sb_shared_written();                                                                                           \
        sb_warpgroup_sync(1 + group);                                                                                  \
    } while (0)
/* A stage's rows; its columns, behind them or in their place among all k, which `rows_matrix` goes through; and of the 16 k of a step. */
#define MATRIX(behind) (sb_matrix_descriptor(behind, CHUNK_STEP, 1024) + AT_MATRICES)
#if ROWS
#define B_MATRIX() rows_matrix
#define B_BEHIND(matrix, step) ((matrix) + (uint64_t)((step)*sixteen))
#define NEXT_ROWS() rows_matrix += (uint64_t)(BOXES * TILE_K / 16 * sixteen)
#else
#define B_MATRIX() MATRIX(BOXES *A_BOX)
#define B_BEHIND(matrix, step)                                                                                         \
    ((matrix) + (step) / 4 * (B_BOX / 16) + (SB_GEMM_B_MN_MAJOR ? B_STEP / 16 : 32 / 16) * ((step) % 4))
#define NEXT_ROWS() (void)0
#endif
/* Begins the products of a stage; with `adds` 0 the chains begin too. With `cuts` it is the one that k ends in. */
#define MULTIPLY_STAGE(adds, cuts)                                                                                     \
    do {                                                                                                               \
        const uint64_t a_matrix = MATRIX(a_part), b_matrix = B_MATRIX();                                               \
        sb_barrier_wait(AT_FULL, phase);                                                                               \
        FILL_GROUPS();                                                                                                 \
        if (MAY_CUT && (cuts))                                                                                         \
            CUT_STAGE(depth.cut);                                                                                      \
        SB_WGMMA_BEGIN();                                                                                              \
        SB_CUDA_UNROLL                                                                                                 \
        for (int step = 0; step < BOXES * TILE_K / 16; step++) {                                                       \
            SB_CUDA_UNROLL                                                                                             \
            for (int half = 0; half < HALVES; half++)                                                                  \
                MULTIPLY((sums + half * (TILE_N / 2)), step > 0 || (adds),                                             \
                         a_matrix + step / 4 * (A_BOX / 16) + half * (A_HALF / 16) +                                   \
                             (SB_GEMM_A_MN_MAJOR ? A_STEP / 16 : 32 / 16) * (step % 4),                                \
                         B_BEHIND(b_matrix, step), SB_GEMM_TYPE, SB_GEMM_A_MN_MAJOR, SB_GEMM_B_MN_MAJOR);              \
        }                                                                                                              \
        SB_WGMMA_END();                                                                                                \
        NEXT_GROUPS();                                                                                                 \
    } while (0)
#include "cuda/contraction/gemm16_hopper_fetch.cuh"

/* Goes on to the next tile where nobody looks at this one: all threads of a cluster do. */
#if defined(SB_GEMM_MAPPED) || defined(SB_GEMM_LOGITS) || defined(SB_GEMM_CONV)
#define SKIP_UNUSED() (void)0
#else
#define SKIP_UNUSED()                                                                                                  \
    if (!sb_gemm16_is_used(p, FIRST_ROW(at.m), FIRST_COLUMN(at.n)))                                                    \
    continue
#endif
/* Tells the fetching threads of the cluster that the warpgroup has used a stage: by the first thread, or by one for each block. */
#define RELEASE(barrier)                                                                                               \
    do {                                                                                                               \
        if (SB_GEMM_CLUSTER == 1 && leads)                                                                             \
            sb_barrier_arrive(barrier);                                                                                \
        else if (SB_GEMM_CLUSTER > 1 && thread % GROUP_THREADS < SB_GEMM_CLUSTER)                                      \
            sb_barrier_arrive_at(barrier, thread % GROUP_THREADS);                                                     \
    } while (0)

#include "cuda/contraction/gemm16_hopper_send.cuh"
#include "cuda/contraction/gemm16_hopper_wide.cuh"

/* What comes ahead of a block's first tile: where nothing has been waited for yet, that. */
#if REHEARSES
#define AWAIT_ROWS() SB_CUDA_AWAIT()
#else
#define AWAIT_ROWS() (void)0
#endif
#if defined(SB_GEMM_NORMED)
#define BEGIN_TILES()                                                                                                  \
    do {                                                                                                               \
        AWAIT_ROWS();                                                                                                  \
        CLEAR_BEHIND_ROW();                                                                                            \
        float *const lanes = (float *)(void *)(shared_memory + (behind_rows - sb_shared_address(shared_memory)));      \
        NAME(sb_gemm16_normalize_rows_, SB_GEMM_SUFFIX)(&given.norm, rows, behind_rows, lanes);                        \
    } while (0)
#else
#define BEGIN_TILES()                                                                                                  \
    do {                                                                                                               \
        AWAIT_ROWS();                                                                                                  \
        CLEAR_BEHIND_ROW();                                                                                            \
    } while (0)
#endif

#if SB_HOPPER
SB_HOPPER_KERNEL(SB_GEMM_NAME, SB_GEMM_GIVEN, given, SB_GEMM_CLUSTER, THREADS) {
    const sb_gemm16_hopper *p = SB_GEMM_PRODUCT(given);
    SB_HOPPER_DYNAMIC_SHARED(shared_memory);
    SB_HOPPER_BARRIER_PAIRS(full_barriers, empty_barriers, SB_GEMM_STAGES);
#if TURNS
    SB_HOPPER_BARRIERS(turn_barriers, SB_GEMM_GROUPS);
    const uint32_t turns = sb_shared_address(turn_barriers);
#endif
    const uint32_t stages = (sb_shared_address(shared_memory) + 1023) / 1024 * 1024;
#if ROWS
    const uint32_t rows = stages + STAGES * STAGE_BYTES;
    const uint32_t behind_rows = rows + (uint32_t)SB_GEMM16_ROWS_BYTES((int)p->columns, p->k_blocks, BOXES);
#endif
#if ROWS && defined(SB_GEMM_FUSED)
    const uint32_t rooms = behind_rows;
#elif BULK || defined(SB_GEMM_FUSED)
    const uint32_t rooms = stages + STAGES * STAGE_BYTES;
#endif
    const uint32_t full = sb_shared_address(full_barriers), empty = sb_shared_address(empty_barriers);
    /* Said so that the compiler sees that all threads of a warp go the same way,
     * and keeps what they share in uniform registers. */
    const int thread = (int)threadIdx.x, group = __shfl_sync(0xffffffffu, thread / GROUP_THREADS, 0);
    /* Which of the fetching warps it is; the first thread of each fetches. */
    const int fetcher = __shfl_sync(0xffffffffu, thread / 32 - SB_GEMM_GROUPS * 4, 0);
    const bool fetches = fetcher >= 0 && fetcher < FETCHERS && thread % 32 == 0;
    const uint32_t rank = SB_GEMM_CLUSTER > 1 ? sb_cluster_rank() : 0;
    const int clusters = (int)gridDim.x / SB_GEMM_CLUSTER, first = (int)blockIdx.x / SB_GEMM_CLUSTER;
    if (fetches && fetcher == 0) {
        sb_tensor_map_prefetch(&p->a);
        if (!ROWS)
            sb_tensor_map_prefetch(&p->b);
        if (p->storing & (SB_GEMM16_BULK | SB_GEMM16_WIDE_BULK))
            sb_tensor_map_prefetch(&p->c);
    }
    if (thread < STAGES) {
        sb_barrier_init(full + 8 * thread, FILLERS);
        sb_barrier_init(empty + 8 * thread, (TURNS ? 1 : SB_GEMM_GROUPS) * SB_GEMM_CLUSTER);
#if TURNS
        if (thread < SB_GEMM_GROUPS)
            sb_barrier_init(turns + 8 * thread, 1);
#endif
        sb_barrier_init_done();
    }
    /* Where the first tile is takes divisions, which are done before there is anything to wait for. */
    sb_gemm16_place at = sb_gemm16_place_of(p, first);
    sb_gemm16_keep_place(&at);
#if ONE_WARPGROUP
    const bool fetches_a = fetcher < 2, fetches_b = !fetches_a, streams = p->streams == 1 + fetcher / 2;
    const uint64_t policy = sb_streaming_policy();
    /* The copy engine may read weights before the kernel ahead has ended, even while that writes them: only the
     * second-level cache gets them, which holds what is written too. */
    if (fetches && streams && fetcher % 2 == 0) {
        const sb_gemm16_batch batch = sb_gemm16_batch_of(p, at.batch);
        const sb_gemm16_batch a_batch = sb_gemm16_batch_in(&p->a_steps, &batch);
        const sb_gemm16_batch b_batch = sb_gemm16_batch_in(&p->b_steps, &batch);
        (void)a_batch; /* a convolution's is not asked for */
        (void)b_batch; /* nor is what a cluster shares */
        SB_CUDA_KEEP_LOOP
        for (int block = 0; block < p->ahead; block += BOXES) {
            const int k = block * TILE_K;
            (void)k;
            if (fetches_a)
                FETCH_A(ASK, 0, ROW_OF(at), a_batch);
#if SB_GEMM_CLUSTER == 1
            else
                FETCH_B(ASK, 0, COLUMN_OF(at), b_batch);
#endif
        }
    }
#else
    const bool fetches_a = true, fetches_b = true;
#endif
#if defined(SB_GEMM_NORMED)
    if (group == 0)
        sb_gemm16_ask_for_scales(&given.norm);
#endif
    __syncthreads();
    if (SB_GEMM_CLUSTER > 1)
        sb_cluster_sync();
    DEPEND();

    if (group == SB_GEMM_GROUPS) {
#if GIVES_REGISTERS
        SB_HOPPER_GIVE_REGISTERS(40);
#endif
        if (fetches) {
            const uint32_t bytes = (fetches_a ? BOXES * A_FETCHED : 0) + (fetches_b ? BOXES * B_FETCHED : 0);
            int turn = fetcher % 2, asked = 0; /* stages */
            BEGIN_RING();
            BEGIN_ROW();
            BEGIN_PACE();
            const sb_gemm16_depth depth = sb_gemm16_depth_of(p, BOXES, MAY_CUT);
            SB_CUDA_KEEP_LOOP
            for (int index = first; index < p->tiles; index += clusters) {
                if (index != first)
                    at = sb_gemm16_place_of(p, index);
                SKIP_UNUSED();
                const int m = ROW_OF(at), n = COLUMN_OF(at);
                const sb_gemm16_batch batch = sb_gemm16_batch_of(p, at.batch);
                const sb_gemm16_batch a_batch = sb_gemm16_batch_in(&p->a_steps, &batch);
                const sb_gemm16_batch b_batch = sb_gemm16_batch_in(&p->b_steps, &batch);
                (void)n; /* a row is fetched as it lies */
                (void)b_batch;
                FETCH_SUMS();
#if defined(SB_GEMM_MAPPED)
                /* Read while the stage before is being fetched. */
                sb_gemm16_stage_groups groups = sb_gemm16_stage_groups_of(&p->product, 0);
#endif
#if defined(SB_GEMM_CONV)
                sb_gemm16_pixels pixels = sb_gemm16_pixels_of(&given, a_batch.inner, m);
#endif
                SB_CUDA_KEEP_LOOP
                for (int block = 0; block < depth.blocks; block += BOXES) {
                    const uint32_t arrived = AT_FULL, a = AT_STAGE, b = a + BOXES * A_BOX;
                    (void)b;
                    if (!ONE_WARPGROUP || turn == 0) {
                        KEEP_PACE();
                        sb_barrier_wait(AT_EMPTY, phase ^ 1);
                        EXPECT_STAGE();
#if defined(SB_GEMM_MAPPED)
                        SB_CUDA_UNROLL
                        for (int g = 0; g < 4; g++) {
                            sb_tensor_load(a + g * A_BOX / 4, &p->a, arrived, 0, (int)groups.row[g], m / 64,
                                           a_batch.inner);
                            if (SB_GEMM_CLUSTER == 1)
                                sb_tensor_load(b + g * B_BYTES / 4, &p->b, arrived, 0, (int)groups.row[g], n / 64,
                                               b_batch.inner);
                            else if (g / (4 / SB_GEMM_CLUSTER) == (int)rank)
                                sb_tensor_load_all(b + g * B_BYTES / 4, &p->b, arrived, 0, (int)groups.row[g], n / 64,
                                                   b_batch.inner, (1 << SB_GEMM_CLUSTER) - 1);
                        }
                        groups = sb_gemm16_stage_groups_of(&p->product, block + 1);
#else
                        const int k = block * TILE_K;
                        if (fetches_a)
                            FETCH_A(LOAD, a, m, a_batch);
                        if (fetches_b && !ROW_IS_THERE)
                            FETCH_B(LOAD, b, n, b_batch);
#endif
                    }
#if defined(SB_GEMM_CONV)
                    else {
                        CONV_SKIP();
                    }
#endif
                    turn ^= 1;
                    asked++;
                    NEXT_STAGE();
                }
                END_ROW();
            }
        }
    } else {
#if GIVES_REGISTERS
        SB_HOPPER_TAKE_REGISTERS(232);
#endif
        BEGIN_RING();
        const sb_gemm16_depth depth = sb_gemm16_depth_of(p, BOXES, MAY_CUT);
        const uint32_t a_part = TURNS ? 0 : group * A_HALF;
        const bool leads = thread % GROUP_THREADS == 0;
#if ROWS
        /* Of 16 k, in the units of descriptors. */
        const int sixteen = 2 * (int)p->columns;
#endif
#if !REHEARSES
        BEGIN_TILES();
#endif
#if TURNS
        int number = 0, turn = 0; /* of tiles, and of the rooms for results */
#elif BULK
        /* Rounded results leave while the products of the next tile have begun. */
#if !SENDS_AT_ONCE
        uint32_t rounded[SUMS / 2];
#endif
        int rounded_m = -1, rounded_n = 0, rounded_batch = 0, turn = 0;
#if GATES_IN_BULK
        int rounded_columns = TILE_N;
#endif
#endif
#if defined(SB_GEMM_FUSED)
        sb_gemm16_node_pieces pieces;
#endif
        SB_CUDA_KEEP_LOOP
        for (int index = REHEARSES ? first - clusters : first; index < p->tiles; index += clusters) {
            const bool rehearses = REHEARSES && index < first;
            if (index > first)
                at = sb_gemm16_place_of(p, index);
#if REHEARSES
            if (index == first)
                BEGIN_TILES();
            if (!rehearses) /* what is used may follow from the kernels ahead */
#endif
            {
                SKIP_UNUSED();
            }
#if TURNS
            if (number++ % 2 != group) {
                SKIP_STAGES(depth.blocks);
                continue;
            }
            /* Behind the other's products: phases of stages are told apart only where a warpgroup has seen those before. */
            sb_barrier_wait(turns + 8 * group, (uint32_t)((number - 1) / 2 + (group == 0)) & 1);
#endif
            const int m = rehearses ? FAR_BEHIND : ROW_OF(at) + (TURNS ? 0 : group * 64);
            const int n = rehearses ? FAR_BEHIND : COLUMN_OF(at);
            float sums[SUMS];
#if !defined(SB_GEMM_LOGITS)
            sb_gemm16_corner corner;
            if (ONE_WARPGROUP || (p->product.c.accumulate && !IS_WIDE))
                corner = sb_gemm16_corner_of(p, at.batch, m, n);
#if ONE_WARPGROUP
            /* So that nothing but stores is behind the products. */
            sb_gemm16_keep_corner(&corner);
#endif
            if (SB_CUDA_SELDOM(p->product.c.accumulate)) {
                if (IS_WIDE)
                    TAKE_SUMS();
                else
                    sb_gemm16_begin(&corner, SUMS, sums);
            }
#endif
#if ROWS
            uint64_t rows_matrix = sb_plain_descriptor(rows, 16 * (uint32_t)p->columns);
#endif
            BEGIN_GROUPS();
#if defined(SB_GEMM_FUSED) && ONE_WARPGROUP
            if (corner.storing & SB_GEMM16_TURNED)
                BEGIN_NODES();
#endif
#if REHEARSES
            if (rehearses) {
                SB_CUDA_UNROLL
                for (int i = 0; i < SUMS; i++)
                    sums[i] = 0;
            } else
#endif
            {
                /* The first tile of k by itself: the compiler keeps products in flight only where nothing but
             * products writes sums. */
                MULTIPLY_STAGE(p->product.c.accumulate, SB_CUDA_SELDOM(depth.cut == 0));
#if !TURNS && !SENDS_AT_ONCE
                SEND();
#endif
                SB_WGMMA_WAIT(0);
                SB_CUDA_KEEP_LOOP
                for (int left = (depth.whole - 1) / BOXES; left > 0; left--) {
                    const uint32_t before = AT_EMPTY;
                    NEXT_STAGE();
                    NEXT_ROWS();
                    MULTIPLY_STAGE(1, 0);
                    /* The stage before this one is free once its products are done, while this one's go on. */
                    SB_WGMMA_WAIT(1);
                    RELEASE(before);
                }
#if TURNS
                if (leads)
                    sb_barrier_arrive(turns + 8 * (1 - group));
#endif
#if defined(SB_GEMM_FUSED) && !ONE_WARPGROUP
                BEGIN_NODES();
#endif
                SB_WGMMA_WAIT(0);
                RELEASE(AT_EMPTY);
                NEXT_STAGE();
                /* By itself, so that the loop has nothing but products. */
                if (MAY_CUT && SB_CUDA_SELDOM(depth.cut > 0)) {
                    MULTIPLY_STAGE(1, 1);
                    SB_WGMMA_WAIT(0);
                    RELEASE(AT_EMPTY);
                    NEXT_STAGE();
                }
            }
#if defined(SB_GEMM_LOGITS)
            sb_gemm16_reduce_logits(&given.reduce, m, n, TILE_N / SB_LOGP_BLOCK, sums);
#elif TURNS
            /* Here all sums are there, and nothing reads one before. */
            SB_CUDA_UNROLL
            for (int i = 0; i < SUMS; i++)
                SB_HOPPER_KEEP("+f"(sums[i]));
            SEND_TILE();
#else
            const int storing = ONE_WARPGROUP ? corner.storing : p->storing;
#if SWAPS && !defined(SB_GEMM_FUSED)
            if (SB_CUDA_SELDOM(!(storing & SB_GEMM16_PLAIN)) && p->stacked == 1) {
                SB_CUDA_KEEP_LOOP
                for (int q = 0; q < SUMS / RESULTS; q++) {
                    const sb_gemm16_results place = {p, at.batch, m / 2, n + q * (2 * RESULTS)};
                    sb_gemm16_apply_swapped_gates(&place, RESULTS / 2, sums);
                    SB_CUDA_UNROLL
                    for (int i = 0; i + RESULTS < SUMS; i++)
                        sums[i] = sums[i + RESULTS];
                }
                continue;
            }
#endif
#if SUMS % (2 * SB_GEMM16_RESULTS) == 0 && !defined(SB_GEMM_FUSED)
            if (SB_CUDA_SELDOM(!(storing & SB_GEMM16_PLAIN)) && p->product.gate != SB_GATE_NONE) {
                if (GATES_IN_BULK && storing & SB_GEMM16_BULK) {
                    KEEP_GATES();
                    continue;
                }
                SB_CUDA_KEEP_LOOP
                for (int q = 0; q < SUMS / (2 * RESULTS); q++) {
                    const sb_gemm16_results place = {p, at.batch, m, n / 2 + q * (2 * RESULTS)};
                    sb_gemm16_apply_gated_epilogue(&place, sums);
                    SB_CUDA_UNROLL
                    for (int i = 0; i + 2 * RESULTS < SUMS; i++)
                        sums[i] = sums[i + 2 * RESULTS];
                }
                continue;
            }
#endif
#if LIGHT_RESULTS > 0
            if (SB_CUDA_SELDOM(!(storing & SB_GEMM16_PLAIN)) && storing & SB_GEMM16_BULK &&
                sb_gemm16_is_light(&p->product)) {
                FINISH_LIGHTLY();
                /* Here, so that what was sent last needs no registers until now. */
                KEEP_ROUNDED();
                continue;
            }
#endif
            if (FINISHES(storing))
                FINISH_ALL();
#if (defined(SB_GEMM_FUSED) && ONE_WARPGROUP) || (SWAPS && TILE_N >= 64)
            if (storing & SB_GEMM16_TURNED) {
                SEND_TURNED();
                continue;
            }
#endif
#if BULK
            if (storing & SB_GEMM16_BULK) {
                KEEP_ROUNDED();
                if (SENDS_AT_ONCE)
                    SEND();
                continue;
            }
#endif
            if (IS_WIDE) {
                SEND_WIDE();
                continue;
            }
            if (!ONE_WARPGROUP)
                corner = sb_gemm16_corner_of(p, at.batch, m, n);
            NAME(sb_gemm16_store_, SB_GEMM_SUFFIX)(&corner, SUMS, sums);
#endif
        }
#if !TURNS && !SENDS_AT_ONCE
        SEND();
#endif
        if (leads)
            SB_TENSOR_STORES_READ(0);
    }
    /* No block ends while another may still write into it. */
    if (SB_GEMM_CLUSTER > 1) {
        __syncthreads();
        sb_cluster_sync();
    }
}
#else
/* Other generations are never given this. */
SB_CUDA_KERNEL(SB_GEMM_NAME, SB_GEMM_GIVEN, p) {
    __trap();
}
#endif

#undef TILE_M
#undef TILE_N
#undef TILE_K
#undef GROUP_THREADS
#undef GIVES_REGISTERS
#undef THREADS
#undef A_BYTES
#undef B_WIDTH
#undef B_BYTES
#undef STAGE_BYTES
#undef CHUNK_BYTES
#undef BOXES
#undef ONE_WARPGROUP
#undef SWAPS
#undef FIRST_ROW
#undef FIRST_COLUMN
#undef NOT_BEHIND
#undef ROW_OF
#undef COLUMN_OF
#undef A_FETCHED
#undef B_FETCHED
#undef FILLERS
#undef ROWS
#undef B_MATRIX
#undef B_BEHIND
#undef NEXT_ROWS
#undef BEGIN_ROW
#undef END_ROW
#undef ROW_IS_THERE
#undef ROW_BYTES
#undef ROW_ASK
#undef ROW_LOAD
#undef EXPECT_STAGE
#undef CLEAR_BEHIND_ROW
#undef FETCHERS
#undef LOAD
#undef LOAD_FIVE
#undef ASK
#undef ASK_FIVE
#undef FETCH_A
#undef CONV_ASK
#undef CONV_LOAD
#undef CONV_SKIP
#undef FETCH_B
#undef STAGES
#undef A_BOX
#undef B_BOX
#undef FETCH_K_MAJOR
#undef FETCH_MN_MAJOR
#undef FETCH_PART_K_MAJOR
#undef FETCH_STACKED
#undef FETCH_PART_STACKED
#undef FETCH_PART_MN_MAJOR
#undef CHUNK_STEP
#undef A_STEP
#undef B_STEP
#undef FILL_GROUPS
#undef BEGIN_GROUPS
#undef NEXT_GROUPS
#undef BOX_BYTES
#undef ROOM_BYTES
#undef RESULTS
#undef SUMS
#undef REHEARSES
#undef FAR_BEHIND
#undef BEGIN_TILES
#undef AWAIT_ROWS
#undef NAME2
#undef NAME
#undef MULTIPLY
#undef AT_STAGE
#undef AT_FULL
#undef AT_MATRICES
#undef AT_EMPTY
#undef MATRIX
#undef MOVE_IN_RING
#undef BEGIN_RING
#undef NEXT_STAGE
#undef DEPEND
#undef KEEP_PACE
#undef BEGIN_PACE
#undef MULTIPLY_STAGE
#undef TURNS
#undef HALVES
#undef A_HALF
#undef SKIP_STAGES
#undef COMPUTE_NODES
#undef BEGIN_NODES
#undef HAS_PIECES
#undef PIECE
#undef SEND_TILE
#undef SEND_BOXES
#undef RELEASE
#undef SKIP_UNUSED
#undef MAY_CUT
#undef CUT_STAGE
#undef BULK
#undef SB_GEMM_GIVEN
#undef SB_GEMM_PRODUCT
#undef ENTER_ROOM
#undef LEAVE_ROOM
#undef SEND
#undef SEND_TURNED
#undef SENDS_AT_ONCE
#undef FIRST_PAIR
#undef MOVE_PAIRS_UP
#undef KEEP_SUMS
#undef FINISHES
#undef FINISH
#undef FINISH_ALL
#undef KEEP_ROUNDED
#undef KEEP_GATES
#undef KEEP_COLUMNS
#undef GATES_IN_BULK
#undef ROUNDED_COLUMNS
#undef IS_WIDE
#undef WIDE_BOXES
#undef WIDE_PART
#undef WIDE_STAGES
#undef WIDE_PLACE
#undef FETCH_SUMS
#undef TAKE_SUMS
#undef SEND_WIDE
#undef PUT_BEHIND
#undef FINISH_LIGHTLY
#undef LIGHT_RESULTS
#undef LIGHT_STEP
#undef APPLY_EPILOGUE
#undef SB_GEMM_NAME
#undef SB_GEMM_TYPE
#undef SB_GEMM_SUFFIX
#undef SB_GEMM_A_MN_MAJOR
#undef SB_GEMM_B_MN_MAJOR
