/* A kernel of 16-bit products of few rows, which reads the weights at the speed of memory. Included by a source that defines
 *
 *     IV_GEMM_NAME         the kernel's name
 *     IV_GEMM_TYPE         "bf16" or "f16", and IV_GEMM_SUFFIX bf16 or f16
 *     IV_GEMM_ROWS         columns of the product, in 16s, that a block computes: rows of the kernel's C, which is turned over
 *     IV_GEMM_N            rows of the product, in a tile: 8, 16, 32 or 64
 *     IV_GEMM_SHARES       how many warps share 16 rows of the kernel's C, its columns among them
 *     IV_GEMM_BOXES        how many tiles of 64 k are in a stage
 *     IV_GEMM_STAGES       how many stages are in shared memory
 *
 * all of which this file undefines again.
 *
 * A chain takes its steps one after the other whatever the kernel, and with mma.sync a step follows the one before it after 25
 * cycles, with wgmma after 75 (measured): where few blocks have long chains, that decides. As many bytes are on their way as
 * shared memory holds. Clusters that share B made it slower, up to half the speed. Both matrices lie along k. */
#define TILE_M (16 * IV_GEMM_ROWS)
#define BOX_K 64
#define WARPS (IV_GEMM_ROWS * IV_GEMM_SHARES)
#define THREADS (WARPS * 32 + 32)
#define TILES (IV_GEMM_N / 8 / IV_GEMM_SHARES)
#define A_BYTES (TILE_M * BOX_K * 2)
#define B_BYTES (IV_GEMM_N * BOX_K * 2)
#define STAGE_BYTES (IV_GEMM_BOXES * (A_BYTES + B_BYTES))

#define NAME2(a, b) a##b
#define NAME(a, b) NAME2(a, b)

#if IV_HOPPER
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    IV_GEMM_NAME(const __grid_constant__ iv_gemm16_hopper given) {
    const iv_gemm16_hopper *p = &given;
    extern __shared__ __align__(1024) unsigned char shared_memory[];
    __shared__ __align__(8) uint64_t full_barriers[IV_GEMM_STAGES], empty_barriers[IV_GEMM_STAGES];
    __shared__ float room[TILE_M * (IV_GEMM_N + 1)];
    const uint32_t stages = (iv_shared_address(shared_memory) + 1023) / 1024 * 1024;
    const uint32_t full = iv_shared_address(full_barriers), empty = iv_shared_address(empty_barriers);
    const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    if (thread == 0) {
        for (int s = 0; s < IV_GEMM_STAGES; s++) {
            iv_barrier_init(full + 8 * s, 1);
            iv_barrier_init(empty + 8 * s, WARPS);
        }
        iv_barrier_init_done();
    }
    __syncthreads();
    IV_CUDA_DEPEND();

    const int steps = (p->k_blocks + IV_GEMM_BOXES - 1) / IV_GEMM_BOXES;
    int stage = 0;
    uint32_t phase = 0;
    if (warp == WARPS) {
        IV_CUDA_KEEP_LOOP
        for (int index = (int)blockIdx.x; lane == 0 && index < p->tiles; index += (int)gridDim.x) {
            const iv_gemm16_place at = iv_gemm16_place_of(p, index);
            const int m = at.m * TILE_M, n = at.n * IV_GEMM_N;
            const int a_z = at.batch * p->a_batched, b_z = at.batch * p->b_batched;
            IV_CUDA_KEEP_LOOP
            for (int step = 0; step < steps; step++) {
                const uint32_t a = stages + stage * STAGE_BYTES, b = a + IV_GEMM_BOXES * A_BYTES, arrived = full + 8 * stage;
                iv_barrier_wait(empty + 8 * stage, phase ^ 1);
                iv_barrier_expect(arrived, STAGE_BYTES);
                IV_CUDA_UNROLL
                for (int box = 0; box < IV_GEMM_BOXES; box++) {
                    const int k = (step * IV_GEMM_BOXES + box) * BOX_K;
                    iv_tensor_load(a + box * A_BYTES, &p->a, arrived, k, m, a_z);
                    iv_tensor_load(b + box * B_BYTES, &p->b, arrived, k, n, b_z);
                }
                if (++stage == IV_GEMM_STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
    } else {
        const int rows = warp / IV_GEMM_SHARES * 16, columns = warp % IV_GEMM_SHARES * TILES * 8;
        /* Where the lane's rows of the matrices begin that it loads, and its piece of 16 bytes of the first, turned by the
         * swizzle as the rows are. */
        const uint32_t a_row = (uint32_t)(rows + lane % 16) * 128, b_row = (uint32_t)(columns + lane % 8) * 128;
        const uint32_t turn = (uint32_t)(lane % 8);
        IV_CUDA_KEEP_LOOP
        for (int index = (int)blockIdx.x; index < p->tiles; index += (int)gridDim.x) {
            const iv_gemm16_place at = iv_gemm16_place_of(p, index);
            const int m = at.m * TILE_M, n = at.n * IV_GEMM_N;
            float sums[TILES][4];
            IV_CUDA_UNROLL
            for (int i = 0; i < TILES * 4; i++) {
                const int64_t row = m + rows + lane / 4 + i / 2 % 2 * 8, column = n + columns + i / 4 * 8 + lane % 4 * 2 + i % 2;
                sums[i / 4][i % 4] = p->product.c.accumulate && row < p->rows && column < p->columns
                                         ? ((const float *)p->product.c.data)[iv_gemm16_index(p, at.batch, row, column)]
                                         : 0.0f;
            }
            IV_CUDA_KEEP_LOOP
            for (int step = 0; step < steps; step++) {
                const uint32_t a = stages + stage * STAGE_BYTES + a_row;
                const uint32_t b = stages + stage * STAGE_BYTES + IV_GEMM_BOXES * A_BYTES + b_row;
                iv_barrier_wait(full + 8 * stage, phase);
                IV_CUDA_UNROLL
                for (int pair = 0; pair < IV_GEMM_BOXES * 2; pair++) {
                    uint32_t left[2][4], right[TILES][4];
                    const uint32_t a_box = a + pair / 2 * A_BYTES, b_box = b + pair / 2 * B_BYTES;
                    iv_load_matrices(a_box + ((uint32_t)(pair % 2 * 4 + lane / 16) ^ turn) * 16, left[0]);
                    iv_load_matrices(a_box + ((uint32_t)(pair % 2 * 4 + 2 + lane / 16) ^ turn) * 16, left[1]);
                    IV_CUDA_UNROLL
                    for (int t = 0; t < TILES; t++)
                        iv_load_matrices(b_box + t * 1024 + ((uint32_t)(pair % 2 * 4 + lane / 8) ^ turn) * 16, right[t]);
                    IV_CUDA_UNROLL
                    for (int half = 0; half < 2; half++) {
                        IV_CUDA_UNROLL
                        for (int t = 0; t < TILES; t++)
                            IV_MMA(IV_GEMM_TYPE, sums[t], left[half], right[t][2 * half], right[t][2 * half + 1]);
                    }
                }
                /* Every lane has its operands in registers. */
                __syncwarp();
                if (lane == 0)
                    iv_barrier_arrive(empty + 8 * stage);
                if (++stage == IV_GEMM_STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
            IV_CUDA_UNROLL
            for (int i = 0; i < TILES * 4; i++)
                room[(rows + lane / 4 + i / 2 % 2 * 8) * (IV_GEMM_N + 1) + columns + i / 4 * 8 + lane % 4 * 2 + i % 2] =
                    sums[i / 4][i % 4];
            asm volatile("bar.sync 1, %0;" ::"n"(WARPS * 32) : "memory");
            /* Neighbouring threads take neighbours of C. */
            IV_CUDA_KEEP_LOOP
            for (int e = thread; e < TILE_M * IV_GEMM_N; e += WARPS * 32) {
                const int row = e % TILE_M, column = e / TILE_M;
                if (m + row >= p->rows || n + column >= p->columns)
                    continue;
                const float y = room[row * (IV_GEMM_N + 1) + column];
                iv_gemm_store(&p->product.epilogue, p->product.c.data, iv_gemm16_index(p, at.batch, m + row, n + column),
                              p->product.has_epilogue
                                  ? iv_gemm_finish(&p->product.epilogue, at.batch, n + column, m + row, y, 0.0f)
                                  : y);
            }
            asm volatile("bar.sync 1, %0;" ::"n"(WARPS * 32) : "memory");
        }
    }
}
#else
/* Other generations never run this; the host computes by the definition. */
IV_GEMM16_DEFINED_KERNEL(IV_GEMM_NAME) {
    NAME(iv_gemm16_define_, IV_GEMM_SUFFIX)(&p->product);
}
#endif

#undef TILE_M
#undef BOX_K
#undef WARPS
#undef THREADS
#undef TILES
#undef A_BYTES
#undef B_BYTES
#undef STAGE_BYTES
#undef NAME2
#undef NAME
#undef IV_GEMM_NAME
#undef IV_GEMM_TYPE
#undef IV_GEMM_SUFFIX
#undef IV_GEMM_ROWS
#undef IV_GEMM_N
#undef IV_GEMM_SHARES
#undef IV_GEMM_BOXES
#undef IV_GEMM_STAGES
