/* f32 results of two warpgroups: they leave by TMA, and chains that go on from what there is get it through the ring, ahead of the tile's
 * first k, so that it comes while the tile before ends. Stored and loaded by threads, with 128 sums each, a tile's end took 12,700 cycles,
 * and its beginning 48,000, of 220,000 (4096 x 4096 x 12288). Included by gemm16_hopper.cuh for each kernel, whose macros and variables
 * this uses; it undefines these.
 *
 * A box is 64 rows of 32 sums, 128 bytes each; for the tensor map they are pairs of 16 bits. Not with a row map: there 16-bit results took
 * 2 to 3 % longer beside this code. */
#if BULK && !ONE_WARPGROUP && !TURNS && TILE_N % 64 == 0 && !defined(SB_GEMM_FUSED) && !defined(SB_GEMM_CONV) &&       \
    !defined(SB_GEMM_MAPPED)
#define IS_WIDE (p->storing & SB_GEMM16_WIDE_BULK)
/* Boxes of a warpgroup: of a tile, and in a stage of the ring. */
#define WIDE_BOXES (TILE_N / 32)
#define WIDE_PART ((int)(STAGE_BYTES / (2 * BOX_BYTES)))
#define WIDE_STAGES ((WIDE_BOXES + WIDE_PART - 1) / WIDE_PART)
/* Where sums i and i + 1 of a box lie, i even: a thread has two neighbours of each eight, of a row and of the eighth below. */
#define WIDE_PLACE(i)                                                                                                  \
    ((uint32_t)(warp + lane / 4 + (i) / 2 % 2 * 8) * 128 +                                                             \
     (uint32_t)(((i) / 4 * 2 + lane % 4 / 2) ^ (lane / 4)) * 16 + (uint32_t)(lane % 2) * 8)
#define FETCH_SUMS()                                                                                                   \
    do {                                                                                                               \
        if (!SB_CUDA_SELDOM(p->product.c.accumulate) || !IS_WIDE)                                                      \
            break;                                                                                                     \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int box = 0; box < WIDE_BOXES; box += WIDE_PART) {                                                        \
            const int count = WIDE_BOXES - box < WIDE_PART ? WIDE_BOXES - box : WIDE_PART;                             \
            sb_barrier_wait(AT_EMPTY, phase ^ 1);                                                                      \
            sb_barrier_expect(AT_FULL, (uint32_t)(2 * count) * BOX_BYTES);                                             \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int i = 0; i < 2 * count; i++)                                                                        \
                sb_tensor_load(AT_STAGE + (uint32_t)i * BOX_BYTES, &p->c, AT_FULL, 2 * (n + (box + i / 2) * 32),       \
                               m + i % 2 * 64, 0, at.batch);                                                           \
            NEXT_STAGE();                                                                                              \
        }                                                                                                              \
    } while (0)
#define TAKE_SUMS()                                                                                                         \
    do {                                                                                                                    \
        const int lane = thread % 32, warp = thread % GROUP_THREADS / 32 * 16;                                              \
        SB_CUDA_UNROLL                                                                                                      \
        for (int part = 0; part < WIDE_STAGES; part++) {                                                                    \
            sb_barrier_wait(AT_FULL, phase);                                                                                \
            SB_CUDA_UNROLL                                                                                                  \
            for (int i = 0; i < 16 * WIDE_PART; i += 2) {                                                                   \
                const uint32_t box = AT_STAGE + (uint32_t)(2 * (i / 16) + group) * BOX_BYTES;                               \
                if (part * 16 * WIDE_PART + i < SUMS)                                                                       \
                    sb_shared_load_two(box + WIDE_PLACE(i % 16), &sums[(part * 16 * WIDE_PART + i) % SUMS]);                \
            }                                                                                                               \
            /* Copies may come before reads that wait their turn: without this, sums were others' in tiles of 128 x 128. */ \
            sb_shared_written();                                                                                            \
            sb_warpgroup_sync(1 + group);                                                                                   \
            RELEASE(AT_EMPTY);                                                                                              \
            NEXT_STAGE();                                                                                                   \
        }                                                                                                                   \
    } while (0)
#define SEND_WIDE()                                                                                                    \
    do {                                                                                                               \
        const int lane = thread % 32, warp = thread % GROUP_THREADS / 32 * 16;                                         \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int box = 0; box < WIDE_BOXES; box++) {                                                                   \
            ENTER_ROOM();                                                                                              \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < 16; i += 2)                                                                            \
                sb_shared_store_two(room + WIDE_PLACE(i), sb_gemm_canonical(sums[i]), sb_gemm_canonical(sums[i + 1])); \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i + 16 < SUMS; i++)                                                                        \
                sums[i] = sums[i + 16];                                                                                \
            LEAVE_ROOM(2 * (n + box * 32), m, at.batch);                                                               \
        }                                                                                                              \
    } while (0)
#else
#define IS_WIDE 0
#define FETCH_SUMS() (void)0
#define TAKE_SUMS() (void)0
#define SEND_WIDE() (void)0
#endif
