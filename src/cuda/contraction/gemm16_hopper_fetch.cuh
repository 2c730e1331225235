/* How the threads that fetch for gemm16_hopper.cuh ask the copy engine for a stage's part of A and of B: boxes of maps, or a row as it lies.
 * Included by that file for each kernel, whose macros and variables they use; it undefines them. */
/* Of a single row a stage's first fetch brings as many k as there are, and the later ones nothing. */
#if defined(SB_GEMM_ROW)
#define BEGIN_ROW() bool is_there = false
#define END_ROW() is_there = true
#define ROW_IS_THERE is_there
#define ROW_BYTES (uint32_t)(2 * ((int)p->product.k - k < BOXES * TILE_K ? (int)p->product.k - k : BOXES * TILE_K))
#define EXPECT_STAGE()                                                                                                 \
    do {                                                                                                               \
        const int k = block * TILE_K;                                                                                  \
        if (is_there && fetches_b)                                                                                     \
            sb_barrier_arrive(arrived);                                                                                \
        else                                                                                                           \
            sb_barrier_expect(arrived, fetches_b ? ROW_BYTES : bytes);                                                 \
    } while (0)
/* What the tensor cores multiply weights by that there are not, which are zeros, must be numbers. */
#define CLEAR_BEHIND_ROW()                                                                                             \
    do {                                                                                                               \
        if (p->k_blocks % BOXES == 0)                                                                                  \
            break;                                                                                                     \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (uint32_t at = rows + (uint32_t)(p->product.k * 2) + (uint32_t)thread * 16; at < behind_rows; at += 2048)  \
            sb_shared_clear(at);                                                                                       \
        sb_shared_written();                                                                                           \
        sb_warpgroup_sync(1);                                                                                          \
    } while (0)
#else
#define BEGIN_ROW() (void)0
#define END_ROW() (void)0
#define ROW_IS_THERE false
#define EXPECT_STAGE() sb_barrier_expect(arrived, bytes)
#define CLEAR_BEHIND_ROW() (void)0
#endif
/* Has a stage of a matrix fetched: all boxes at once of a K-major one; of an MN-major one, boxes of 64 lines one by
 * one. `load` is LOAD or ASK, `batch` an sb_gemm16_batch. */
#if SB_GEMM_BOXES > 1
#define FETCH_K_MAJOR(load, to, map, first, batch, five)                                                               \
    do {                                                                                                               \
        if (five)                                                                                                      \
            load##_FIVE(to, map, 0, first, block, (batch).inner, (batch).outer);                                       \
        else                                                                                                           \
            load(to, map, 0, first, block, (batch).inner);                                                             \
    } while (0)
#else
#define FETCH_K_MAJOR(load, to, map, first, batch, five) load(to, map, k, first, (batch).inner, (batch).outer)
#endif
#define FETCH_MN_MAJOR(load, lines, box_bytes, to, map, first, batch)                                                  \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < BOXES * ((lines) / 64); i++)                                                               \
            load((to) + i / ((lines) / 64) * (box_bytes) + i % ((lines) / 64) * CHUNK_BYTES, map,                      \
                 (first) + i % ((lines) / 64) * 64, k + i / ((lines) / 64) * TILE_K, (batch).inner, (batch).outer);    \
    } while (0)
#if ONE_WARPGROUP
/* What no other tile reads goes through the second-level cache without staying there. */
#define LOAD(to, map, x, y, z, w)                                                                                      \
    do {                                                                                                               \
        if (streams)                                                                                                   \
            sb_tensor_stream(to, map, arrived, x, y, z, w, policy);                                                    \
        else                                                                                                           \
            sb_tensor_load(to, map, arrived, x, y, z, w);                                                              \
    } while (0)
#define LOAD_FIVE(to, map, x, y, z, w, v)                                                                              \
    do {                                                                                                               \
        if (streams)                                                                                                   \
            sb_tensor_stream_five(to, map, arrived, x, y, z, w, v, policy);                                            \
        else                                                                                                           \
            sb_tensor_load_five(to, map, arrived, x, y, z, w, v);                                                      \
    } while (0)
#else
#define LOAD(to, map, x, y, z, w) sb_tensor_load(to, map, arrived, x, y, z, w)
#define LOAD_FIVE(to, map, x, y, z, w, v) sb_tensor_load_five(to, map, arrived, x, y, z, w, v)
#endif
#define ASK(to, map, x, y, z, w) sb_tensor_ask(map, x, y, z, w, policy)
#define ASK_FIVE(to, map, x, y, z, w, v) sb_tensor_ask_five(map, x, y, z, w, v, policy)
/* A K-major matrix in whose lines eight gates and eight values take turns. */
#define FETCH_STACKED(load, to, map, first, batch)                                                                     \
    load##_FIVE(to, map, BOXES > 1 ? 0 : k, 0, 0, (first) / 16, BOXES > 1 ? block : (batch).inner)
#if defined(SB_GEMM_CONV)
/* What is asked for ahead is never A. */
#define FETCH_A(load, to, first, batch) CONV_##load(to)
#define CONV_ASK(to) (void)0
#define CONV_LOAD(to)                                                                                                  \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < BOXES; i++) {                                                                              \
            sb_gemm16_load_pixels(&given, &pixels, (to) + i * A_BOX, arrived);                                         \
            sb_gemm16_next_pixels(&given, &pixels);                                                                    \
        }                                                                                                              \
    } while (0)
/* Of the thread that does not fetch this stage. */
#define CONV_SKIP()                                                                                                    \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < BOXES; i++)                                                                                \
            sb_gemm16_next_pixels(&given, &pixels);                                                                    \
    } while (0)
#elif SB_GEMM_A_MN_MAJOR
#define FETCH_A(load, to, first, batch) FETCH_MN_MAJOR(load, TILE_M, A_BYTES, to, &p->a, first, batch)
#elif SWAPS && !defined(SB_GEMM_FUSED)
#define FETCH_A(load, to, first, batch)                                                                                \
    do {                                                                                                               \
        if (p->stacked == 1)                                                                                           \
            FETCH_STACKED(load, to, &p->a, first, batch);                                                              \
        else                                                                                                           \
            FETCH_K_MAJOR(load, to, &p->a, first, batch, p->a_steps.five);                                             \
    } while (0)
#else
#define FETCH_A(load, to, first, batch) FETCH_K_MAJOR(load, to, &p->a, first, batch, p->a_steps.five)
#endif
#define FETCH_PART_STACKED(to, map, first, batch)                                                                      \
    sb_tensor_load_five_all((to) + (int)rank * (TILE_N / SB_GEMM_CLUSTER) * 128, map, arrived, k, 0, 0,                \
                            (first) / 16 + (int)rank * (TILE_N / 16 / SB_GEMM_CLUSTER), (batch).inner,                 \
                            (1 << SB_GEMM_CLUSTER) - 1)
/* The block's part of B, for all of the cluster: some columns, or some k of all. */
#define FETCH_PART_K_MAJOR(to, map, first, batch)                                                                      \
    sb_tensor_load_all((to) + (int)rank * (TILE_N / SB_GEMM_CLUSTER) * 128, map, arrived, k,                           \
                       (first) + (int)rank * (TILE_N / SB_GEMM_CLUSTER), (batch).inner, (batch).outer,                 \
                       (1 << SB_GEMM_CLUSTER) - 1)
#define FETCH_PART_MN_MAJOR(to, map, first, batch)                                                                     \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < B_WIDTH / 64; i++)                                                                         \
            sb_tensor_load_all((to) + i * CHUNK_BYTES + (int)rank * (TILE_K / SB_GEMM_CLUSTER) * 128, map, arrived,    \
                               (first) + 64 * i, k + (int)rank * (TILE_K / SB_GEMM_CLUSTER), (batch).inner,            \
                               (batch).outer, (1 << SB_GEMM_CLUSTER) - 1);                                             \
    } while (0)
#if SB_GEMM_CLUSTER > 1 && SB_GEMM_B_MN_MAJOR
#define FETCH_B(load, to, first, batch) FETCH_PART_MN_MAJOR(to, &p->b, first, batch)
#elif SB_GEMM_CLUSTER > 1
#define FETCH_B(load, to, first, batch)                                                                                \
    do {                                                                                                               \
        if (p->stacked == 2)                                                                                           \
            FETCH_PART_STACKED(to, &p->b, first, batch);                                                               \
        else                                                                                                           \
            FETCH_PART_K_MAJOR(to, &p->b, first, batch);                                                               \
    } while (0)
#elif defined(SB_GEMM_ROW)
#define FETCH_B(load, to, first, batch) ROW_##load()
#define ROW_ASK() (void)0 /* what is asked for ahead is weights */
#define ROW_LOAD() sb_bulk_load(rows + (uint32_t)(2 * k), p->product.a.data + k, ROW_BYTES, arrived)
#elif SB_GEMM_B_MN_MAJOR
#define FETCH_B(load, to, first, batch) FETCH_MN_MAJOR(load, B_WIDTH, B_BYTES, to, &p->b, first, batch)
#else
#define FETCH_B(load, to, first, batch)                                                                                \
    do {                                                                                                               \
        if (p->stacked == 2)                                                                                           \
            FETCH_STACKED(load, to, &p->b, first, batch);                                                              \
        else                                                                                                           \
            FETCH_K_MAJOR(load, to, &p->b, first, batch, p->b_steps.five);                                             \
    } while (0)
#endif
