/* Rows that a product of few rows normalises itself, where a kernel for it would come ahead (gemm16_normed.h): every block does so with
 * all of them, since that takes no longer than waiting for what one block has done.
 *
 * Eight k of each row lie beside each other, then the next eight, as the tensor cores read columns without a swizzle. In place of the
 * rows that there are not, up to eight, they read what comes next, and nobody keeps what they make of it. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_NORMED_CUH
#define SB_CUDA_CONTRACTION_GEMM16_NORMED_CUH

#include "cuda/common/halves.cuh"
#include "cuda/common/shuffle.cuh"
#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/contraction/hopper.cuh"
#include "cuda/rows/row_vectors.cuh"
#include "numerics/scalar.h"

#if SB_HOPPER
#define NORMED_THREADS 128
/* Loads of a thread that are underway at once, and when elements are loaded for the second time. */
#define NORMED_AHEAD 8
#define NORMED_AGAIN 4
/* Pieces of eight elements that a thread has of a row that is normalised: up to 4096 elements. */
#define NORMED_PIECES 4
#define EACH_PIECE                                                                                                     \
    SB_CUDA_UNROLL                                                                                                     \
    for (int j = 0, piece = (int)threadIdx.x; j < NORMED_PIECES; j++, piece += NORMED_THREADS)                         \
        if (piece * 8 < norm->length)
/* The pieces of a row that a thread of a warp takes at once: one of each 256 elements of `first` and those behind it. */
#define EACH_OF_WARP(count, first)                                                                                     \
    SB_CUDA_UNROLL                                                                                                     \
    for (int g = 0, piece = (first) / 8 + t; g < (count); g++, piece += 32)

SB_CUDA_FUNCTION const char *sb_gemm16_row(const sb_gemm16_norm *norm, int row) {
    return (const char *)(norm->x + row * norm->x_row);
}

/* Where a piece of a row goes, from the rows' first byte on. */
SB_CUDA_FUNCTION uint32_t sb_gemm16_piece_place(const sb_gemm16_norm *norm, int row, int piece) {
    return (uint32_t)((piece * norm->rows + row) * 16);
}

/* The second-level cache, which everybody's weights have gone through since, gets the scales before the kernels ahead have ended:
 * whoever writes them, it holds what is written. */
SB_CUDA_FUNCTION void sb_gemm16_ask_for_scales(const sb_gemm16_norm *norm) {
#if defined(__CUDA_ARCH__)
    const int first = (int)threadIdx.x * 64; /* of 128 bytes */
    if (blockIdx.x == 0 && first < norm->length)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(norm->scales + first) : "memory");
#else
    (void)norm;
#endif
}

/* What a row is multiplied by, of the sum of its elements' squares. */
SB_CUDA_FUNCTION float sb_gemm16_inverse(const sb_gemm16_norm *norm, float total) {
    return sb_rsqrt_f32(sb_div_f32(total, (float)norm->length) + norm->epsilon);
}

/* Eight elements become results, which the first block puts where who reads them elsewhere finds them, too. */
template <int HALF>
SB_CUDA_FUNCTION void sb_gemm16_normalize_piece(const sb_gemm16_norm *norm, uint32_t to, int row, int piece,
                                                float inverse, sb_cuda_eight eight, sb_cuda_eight scales) {
    float x[SB_CUDA_EIGHT], scale[SB_CUDA_EIGHT];
    sb_cuda_widen_eight<HALF>(eight, x);
    sb_cuda_widen_eight<HALF>(scales, scale);
    EACH_LANE x[j] = x[j] * inverse * scale[j];
    const sb_cuda_eight y = sb_cuda_round_eight<HALF>(x);
    sb_shared_store_eight(to + sb_gemm16_piece_place(norm, row, piece), y.pairs);
    if (blockIdx.x == 0)
        sb_cuda_store_eight((char *)(norm->out + row * norm->out_row) + piece * 16, y);
}

/* The sum of squares of two of the 256 lanes of a row (numerics/reduce.h), each in ascending order. */
template <int HALF> SB_CUDA_FUNCTION float sb_gemm16_two_lanes(const sb_gemm16_norm *norm) {
    float lanes[2] = {-0.0f, -0.0f};
    SB_CUDA_KEEP_LOOP
    for (int first = (int)threadIdx.x; first < norm->length; first += 2 * NORMED_AHEAD * NORMED_THREADS) {
        uint16_t halves[2 * NORMED_AHEAD];
        SB_CUDA_UNROLL
        for (int i = 0; i < 2 * NORMED_AHEAD; i++) {
            const int at = first + i * NORMED_THREADS;
            halves[i] = at < norm->length ? norm->x[at] : (uint16_t)0;
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

/* The sum of a row's lanes, of which `lanes` has those 128 apart added; each warp comes to it. */
SB_CUDA_FUNCTION float sb_gemm16_fold_lanes(const float *lanes) {
    const int own = (int)threadIdx.x % 32;
    float sum = (lanes[own] + lanes[own + 64]) + (lanes[own + 32] + lanes[own + 96]);
    SB_CUDA_UNROLL
    for (int half = 16; half > 0; half /= 2)
        sum = sum + sb_cuda_shuffle_exchange_f32(sum, half);
    return sum;
}

/* A row by itself, by all 128 threads. */
template <int HALF>
SB_CUDA_FUNCTION void sb_gemm16_normalize_row(const sb_gemm16_norm *norm, uint32_t to, float *lanes) {
    sb_cuda_eight scales[NORMED_PIECES];
    EACH_PIECE scales[j] = sb_cuda_load_eight((const char *)norm->scales + piece * 16);
    lanes[threadIdx.x] = sb_gemm16_two_lanes<HALF>(norm);
    sb_warpgroup_sync(1);
    const float inverse = sb_gemm16_inverse(norm, sb_gemm16_fold_lanes(lanes));
    EACH_PIECE {
        const sb_cuda_eight eight = sb_cuda_load_eight(sb_gemm16_row(norm, 0) + piece * 16);
        sb_gemm16_normalize_piece<HALF>(norm, to, 0, piece, inverse, eight, scales[j]);
    }
}

/* Several rows, of which each of the four warps has COUNT at most, four apart. A thread has the lanes 8 t to 8 t + 7 of their squares.
 * What it loads of all its rows is underway together; what is loaded twice lies in the first-level cache by then, and the registers
 * that keeping it would take are wanted by the kernels beside this one. */
template <int HALF, int COUNT>
SB_CUDA_FUNCTION void sb_gemm16_normalize_by_warps(const sb_gemm16_norm *norm, uint32_t to) {
    const int t = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const char *rows[COUNT];
    float lanes[COUNT][SB_CUDA_EIGHT], inverses[COUNT];
    SB_CUDA_UNROLL
    for (int r = 0; r < COUNT; r++) {
        /* (A row that there is not is the first.) */
        rows[r] = sb_gemm16_row(norm, warp + 4 * r < norm->rows ? warp + 4 * r : 0);
        row_begin<ROW_SUM>(lanes[r]);
    }
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < norm->length; first += NORMED_AHEAD * 256) {
        sb_cuda_eight eights[COUNT][NORMED_AHEAD];
        SB_CUDA_UNROLL
        for (int r = 0; r < COUNT; r++)
            EACH_OF_WARP(NORMED_AHEAD, first) eights[r][g] = row_load(rows[r] + piece * 16, piece * 8, norm->length);
        SB_CUDA_UNROLL
        for (int r = 0; r < COUNT; r++) {
            EACH_OF_WARP(NORMED_AHEAD, first) {
                float x[SB_CUDA_EIGHT];
                sb_cuda_widen_eight<HALF>(eights[r][g], x);
                EACH_LANE lanes[r][j] = piece * 8 < norm->length ? sb_fma_f32(x[j], x[j], lanes[r][j]) : lanes[r][j];
            }
        }
    }
    SB_CUDA_UNROLL
    for (int r = 0; r < COUNT; r++)
        inverses[r] = sb_gemm16_inverse(norm, row_fold<ROW_SUM, 32>(lanes[r], t));
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < norm->length; first += NORMED_AGAIN * 256) {
        sb_cuda_eight eights[COUNT][NORMED_AGAIN], scales[NORMED_AGAIN];
        EACH_OF_WARP(NORMED_AGAIN, first) {
            scales[g] = row_load((const char *)norm->scales + piece * 16, piece * 8, norm->length);
            SB_CUDA_UNROLL
            for (int r = 0; r < COUNT; r++)
                eights[r][g] = row_load(rows[r] + piece * 16, piece * 8, norm->length);
        }
        EACH_OF_WARP(NORMED_AGAIN, first) {
            SB_CUDA_UNROLL
            for (int r = 0; r < COUNT; r++) {
                if (warp + 4 * r < norm->rows && piece * 8 < norm->length)
                    sb_gemm16_normalize_piece<HALF>(norm, to, warp + 4 * r, piece, inverses[r], eights[r][g],
                                                    scales[g]);
            }
        }
    }
}

/* By 128 threads: the rows go from `to` on, and up to `end` there are zeros, since weights that there are not are zeros and what they are
 * multiplied by must be numbers. `lanes`: shared memory, a number for each thread. Behind it the tensor cores see them. */
template <int HALF>
SB_CUDA_FUNCTION void sb_gemm16_normalize_rows(const sb_gemm16_norm *norm, uint32_t to, uint32_t end, float *lanes) {
    SB_CUDA_KEEP_LOOP
    for (uint32_t at = to + (uint32_t)(norm->length * norm->rows * 2) + threadIdx.x * 16; at < end;
         at += NORMED_THREADS * 16)
        sb_shared_clear(at);
    if (norm->rows == 1)
        sb_gemm16_normalize_row<HALF>(norm, to, lanes);
    else if (norm->rows <= 4)
        sb_gemm16_normalize_by_warps<HALF, 1>(norm, to);
    else
        sb_gemm16_normalize_by_warps<HALF, 2>(norm, to);
    sb_shared_written();
    sb_warpgroup_sync(1);
}

SB_CUDA_FUNCTION void sb_gemm16_normalize_rows_bf16(const sb_gemm16_norm *norm, uint32_t to, uint32_t end,
                                                    float *lanes) {
    sb_gemm16_normalize_rows<SB_CUDA_BF16>(norm, to, end, lanes);
}

SB_CUDA_FUNCTION void sb_gemm16_normalize_rows_f16(const sb_gemm16_norm *norm, uint32_t to, uint32_t end,
                                                   float *lanes) {
    sb_gemm16_normalize_rows<SB_CUDA_F16>(norm, to, end, lanes);
}

#undef NORMED_THREADS
#undef NORMED_AHEAD
#undef NORMED_AGAIN
#undef NORMED_PIECES
#undef EACH_PIECE
#undef EACH_OF_WARP
#endif

#endif
