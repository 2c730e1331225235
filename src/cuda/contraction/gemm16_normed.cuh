/* Rows that a product of few rows normalises itself, where a kernel for it would come ahead (gemm16_normed.h): every block does so
 * with all of them, since that takes no longer than waiting for what one has done. They lie in shared memory as the tensor cores read
 * the columns of a tile: boxes of 64 k, of a line for each row. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_NORMED_CUH
#define SB_CUDA_CONTRACTION_GEMM16_NORMED_CUH

#include "cuda/common/halves.cuh"
#include "cuda/common/shuffle.cuh"
#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/contraction/hopper.cuh"
#include "numerics/scalar.h"

#if SB_HOPPER
#define NORMED_THREADS 128
/* Elements of a lane that are underway at once. */
#define NORMED_AHEAD 8
/* Pieces of eight elements that a thread has of a row: up to 4096 elements. */
#define NORMED_PIECES 4
#define NORMED_EACH_PIECE                                                                                              \
    SB_CUDA_UNROLL                                                                                                     \
    for (int j = 0, piece = (int)threadIdx.x; j < NORMED_PIECES; j++, piece += NORMED_THREADS)                         \
        if (piece * 8 < norm->length)

/* The sum of squares of two of the 256 lanes of a row, each in ascending order: numerics/reduce.h. */
template <int HALF>
SB_CUDA_FUNCTION float sb_gemm16_two_lanes(const sb_gemm16_norm *norm, const uint16_t *row) {
    float lanes[2] = {-0.0f, -0.0f};
    SB_CUDA_KEEP_LOOP
    for (int first = (int)threadIdx.x; first < norm->length; first += 2 * NORMED_AHEAD * NORMED_THREADS) {
        uint16_t halves[2 * NORMED_AHEAD];
        SB_CUDA_UNROLL
        for (int i = 0; i < 2 * NORMED_AHEAD; i++) {
            const int at = first + i * NORMED_THREADS;
            halves[i] = at < norm->length ? row[at] : (uint16_t)0;
        }
        SB_CUDA_UNROLL
        for (int i = 0; i < 2 * NORMED_AHEAD; i++) {
            float x, none;
            sb_cuda_widen_pair<HALF>(halves[i], &x, &none);
            lanes[i % 2] = first + i * NORMED_THREADS < norm->length ? sb_fma_f32(x, x, lanes[i % 2]) : lanes[i % 2];
        }
    }
    return lanes[0] + lanes[1];
}

/* The sum of a row's lanes, of which `room` has those 128 apart added, in the order of numerics/reduce.h; each warp comes to it. */
SB_CUDA_FUNCTION float sb_gemm16_fold_lanes(const float *room) {
    const int own = (int)threadIdx.x % 32;
    float sum = (room[own] + room[own + 64]) + (room[own + 32] + room[own + 96]);
    SB_CUDA_UNROLL
    for (int half = 16; half > 0; half /= 2)
        sum = sum + sb_cuda_shuffle_exchange_f32(sum, half);
    return sum;
}

/* By 128 threads: the rows go to shared memory from `to` on, boxes of `box_bytes`, and the first block's to where who reads them
 * elsewhere finds them. `lanes`: shared memory, 128 numbers for each row. Behind it the tensor cores see them. */
template <int HALF>
SB_CUDA_FUNCTION void sb_gemm16_normalize_rows(const sb_gemm16_norm *norm, uint32_t to, int box_bytes, float *lanes) {
    const int t = (int)threadIdx.x;
    sb_cuda_eight scales[NORMED_PIECES];
    NORMED_EACH_PIECE scales[j] = sb_cuda_load_eight((const char *)norm->scales + piece * 16);
    SB_CUDA_KEEP_LOOP
    for (int row = 0; row < norm->rows; row++)
        lanes[row * NORMED_THREADS + t] = sb_gemm16_two_lanes<HALF>(norm, norm->x + row * norm->x_row);
    sb_warpgroup_sync(1);
    SB_CUDA_KEEP_LOOP
    for (int row = 0; row < norm->rows; row++) {
        const float total = sb_gemm16_fold_lanes(lanes + row * NORMED_THREADS);
        const float inverse = sb_rsqrt_f32(sb_div_f32(total, (float)norm->length) + norm->epsilon);
        const char *from = (const char *)(norm->x + row * norm->x_row);
        char *out = (char *)(norm->out + row * norm->out_row);
        NORMED_EACH_PIECE {
            float x[8], scale[8];
            sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(from + piece * 16), x);
            sb_cuda_widen_eight<HALF>(scales[j], scale);
            SB_CUDA_UNROLL
            for (int i = 0; i < 8; i++)
                x[i] = x[i] * inverse * scale[i];
            const sb_cuda_eight y = sb_cuda_round_eight<HALF>(x);
            sb_shared_store_eight(to + (uint32_t)(piece / 8 * box_bytes + row * 128 + (piece % 8 ^ row % 8) * 16), y.pairs);
            if (blockIdx.x == 0)
                sb_cuda_store_eight(out + piece * 16, y);
        }
    }
    sb_shared_written();
    sb_warpgroup_sync(1);
}

SB_CUDA_FUNCTION void sb_gemm16_normalize_rows_bf16(const sb_gemm16_norm *norm, uint32_t to, int box_bytes, float *lanes) {
    sb_gemm16_normalize_rows<SB_CUDA_BF16>(norm, to, box_bytes, lanes);
}

SB_CUDA_FUNCTION void sb_gemm16_normalize_rows_f16(const sb_gemm16_norm *norm, uint32_t to, int box_bytes, float *lanes) {
    sb_gemm16_normalize_rows<SB_CUDA_F16>(norm, to, box_bytes, lanes);
}

/* The second-level cache, which everybody's weights have gone through since, gets the scales before the kernels ahead have ended:
 * whoever writes them, it holds what is written. */
SB_CUDA_FUNCTION void sb_gemm16_ask_for_scales(const sb_gemm16_norm *norm) {
    const int first = (int)threadIdx.x * 64; /* of 128 bytes */
#if defined(__CUDA_ARCH__)
    if (blockIdx.x == 0 && first < norm->length)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(norm->scales + first) : "memory");
#else
    (void)first;
    (void)norm;
#endif
}

#undef NORMED_THREADS
#undef NORMED_AHEAD
#undef NORMED_PIECES
#undef NORMED_EACH_PIECE
#endif

#endif
