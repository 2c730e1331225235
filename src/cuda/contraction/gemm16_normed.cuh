/* Rows that a product of few rows normalises itself, where a kernel for it would come ahead (gemm16_normed.h): every block does so
 * with all of them, since that takes no longer than waiting for what one has done. They lie in shared memory as the tensor cores read
 * the columns of a tile: boxes of 64 k, of a line for each row. */
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
/* Elements of a lane that are underway at once, for its squares' sum and the second time. */
#define NORMED_AHEAD 8
#define NORMED_AGAIN 4
/* Pieces of eight elements that a thread has of a row: up to 4096 elements. */
#define NORMED_PIECES 4
#define NORMED_EACH_PIECE                                                                                              \
    SB_CUDA_UNROLL                                                                                                     \
    for (int j = 0, piece = (int)threadIdx.x; j < NORMED_PIECES; j++, piece += NORMED_THREADS)                         \
        if (piece * 8 < norm->length)

/* Where the rows go: boxes of 64 k, of a line for each of the tile's columns; and shared memory for 128 numbers. */
typedef struct sb_gemm16_normed_place {
    uint32_t shared;
    int box_bytes;
    float *lanes;
} sb_gemm16_normed_place;

/* The sum of squares of two of the 256 lanes of a row, each in ascending order: numerics/reduce.h. */
template <int HALF> SB_CUDA_FUNCTION float sb_gemm16_two_lanes(const sb_gemm16_norm *norm, const uint16_t *row) {
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

/* What rows are multiplied by behind their elements' squares' sum. */
SB_CUDA_FUNCTION float sb_gemm16_inverse(const sb_gemm16_norm *norm, float total) {
    return sb_rsqrt_f32(sb_div_f32(total, (float)norm->length) + norm->epsilon);
}

/* Eight elements become results, in shared memory as the tensor cores read them and, by the first block, where who reads them elsewhere
 * finds them. */
template <int HALF>
SB_CUDA_FUNCTION void sb_gemm16_normalize_piece(const sb_gemm16_norm *norm, const sb_gemm16_normed_place *place,
                                                int row, int piece, float inverse, sb_cuda_eight eight,
                                                sb_cuda_eight scales) {
    float x[SB_CUDA_EIGHT], scale[SB_CUDA_EIGHT];
    const uint32_t box = place->shared + (uint32_t)(piece / 8 * place->box_bytes);
    sb_cuda_widen_eight<HALF>(eight, x);
    sb_cuda_widen_eight<HALF>(scales, scale);
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_CUDA_EIGHT; i++)
        x[i] = x[i] * inverse * scale[i];
    const sb_cuda_eight y = sb_cuda_round_eight<HALF>(x);
    sb_shared_store_eight(box + (uint32_t)(row * 128 + (piece % 8 ^ row % 8) * 16), y.pairs);
    if (blockIdx.x == 0)
        sb_cuda_store_eight((char *)(norm->out + row * norm->out_row) + piece * 16, y);
}

/* One row by all 128 threads. */
template <int HALF>
SB_CUDA_FUNCTION void sb_gemm16_normalize_row(const sb_gemm16_norm *norm, const sb_gemm16_normed_place *place) {
    sb_cuda_eight scales[NORMED_PIECES];
    NORMED_EACH_PIECE scales[j] = sb_cuda_load_eight((const char *)norm->scales + piece * 16);
    place->lanes[threadIdx.x] = sb_gemm16_two_lanes<HALF>(norm, norm->x);
    sb_warpgroup_sync(1);
    const float inverse = sb_gemm16_inverse(norm, sb_gemm16_fold_lanes(place->lanes));
    NORMED_EACH_PIECE {
        const sb_cuda_eight eight = sb_cuda_load_eight((const char *)norm->x + piece * 16);
        sb_gemm16_normalize_piece<HALF>(norm, place, 0, piece, inverse, eight, scales[j]);
    }
}

/* The elements of a row that a thread of a warp takes at once: eight neighbours of each 256 of `first` and those behind it. */
#define NORMED_EACH_GROUP(count, first)                                                                                \
    SB_CUDA_UNROLL                                                                                                     \
    for (int g = 0, piece = (first) / 8 + t; g < (count); g++, piece += 32)

/* Several rows, of which each of the four warps has ROWS at most, four apart. A thread has the lanes 8 t to 8 t + 7 of their squares. What
 * it loads of all its rows is underway together; what is loaded twice lies in the first-level cache by then, and the registers that
 * keeping it would take are wanted by the kernels beside this one. */
template <int HALF, int ROWS>
SB_CUDA_FUNCTION void sb_gemm16_normalize_by_warps(const sb_gemm16_norm *norm, const sb_gemm16_normed_place *place) {
    const int t = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const char *rows[ROWS];
    float lanes[ROWS][SB_CUDA_EIGHT], inverses[ROWS];
    SB_CUDA_UNROLL
    for (int r = 0; r < ROWS; r++) {
        /* (A row that there is not is the first.) */
        rows[r] = (const char *)(norm->x + (warp + 4 * r < norm->rows ? warp + 4 * r : 0) * norm->x_row);
        row_begin<ROW_SUM>(lanes[r]);
    }
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < norm->length; first += NORMED_AHEAD * 256) {
        sb_cuda_eight eights[ROWS][NORMED_AHEAD];
        SB_CUDA_UNROLL
        for (int r = 0; r < ROWS; r++)
            NORMED_EACH_GROUP(NORMED_AHEAD, first)
            eights[r][g] = row_load(rows[r] + piece * 16, piece * 8, norm->length);
        SB_CUDA_UNROLL
        for (int r = 0; r < ROWS; r++) {
            NORMED_EACH_GROUP(NORMED_AHEAD, first) {
                float x[SB_CUDA_EIGHT];
                sb_cuda_widen_eight<HALF>(eights[r][g], x);
                EACH_LANE lanes[r][j] = piece * 8 < norm->length ? sb_fma_f32(x[j], x[j], lanes[r][j]) : lanes[r][j];
            }
        }
    }
    SB_CUDA_UNROLL
    for (int r = 0; r < ROWS; r++)
        inverses[r] = sb_gemm16_inverse(norm, row_fold<ROW_SUM, 32>(lanes[r], t));
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < norm->length; first += NORMED_AGAIN * 256) {
        sb_cuda_eight eights[ROWS][NORMED_AGAIN], scales[NORMED_AGAIN];
        NORMED_EACH_GROUP(NORMED_AGAIN, first) {
            scales[g] = row_load((const char *)norm->scales + piece * 16, piece * 8, norm->length);
            SB_CUDA_UNROLL
            for (int r = 0; r < ROWS; r++)
                eights[r][g] = row_load(rows[r] + piece * 16, piece * 8, norm->length);
        }
        NORMED_EACH_GROUP(NORMED_AGAIN, first) {
            SB_CUDA_UNROLL
            for (int r = 0; r < ROWS; r++) {
                if (warp + 4 * r < norm->rows && piece * 8 < norm->length)
                    sb_gemm16_normalize_piece<HALF>(norm, place, warp + 4 * r, piece, inverses[r], eights[r][g],
                                                    scales[g]);
            }
        }
    }
}

/* By 128 threads, behind which the tensor cores see the rows. */
template <int HALF>
SB_CUDA_FUNCTION void sb_gemm16_normalize_rows(const sb_gemm16_norm *norm, const sb_gemm16_normed_place *place) {
    if (norm->rows == 1)
        sb_gemm16_normalize_row<HALF>(norm, place);
    else if (norm->rows <= 4)
        sb_gemm16_normalize_by_warps<HALF, 1>(norm, place);
    else
        sb_gemm16_normalize_by_warps<HALF, 2>(norm, place);
    sb_shared_written();
    sb_warpgroup_sync(1);
}

SB_CUDA_FUNCTION void sb_gemm16_normalize_rows_bf16(const sb_gemm16_norm *norm, const sb_gemm16_normed_place *place) {
    sb_gemm16_normalize_rows<SB_CUDA_BF16>(norm, place);
}

SB_CUDA_FUNCTION void sb_gemm16_normalize_rows_f16(const sb_gemm16_norm *norm, const sb_gemm16_normed_place *place) {
    sb_gemm16_normalize_rows<SB_CUDA_F16>(norm, place);
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
#undef NORMED_AGAIN
#undef NORMED_PIECES
#undef NORMED_EACH_PIECE
#undef NORMED_EACH_GROUP
#endif

#endif
