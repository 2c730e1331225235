/* LayerNormalization and RMSNormalization of rows of f16 or bf16 by a block for each row, so that many elements are underway at once. A thread
 * has one of the 256 lanes, or two, whose elements are neighbours: one is quicker for few rows, two are for many. */
#ifndef SB_CUDA_ROWS_NORMALIZE_ROW_CUH
#define SB_CUDA_ROWS_NORMALIZE_ROW_CUH

#include "cuda/common/halves.cuh"
#include "cuda/rows/row_vectors_parameters.h"
#include "cuda/rows/rows.cuh"

#define EACH_OWN_LANE SB_CUDA_UNROLL for (int i = 0; i < LANES; i++)

/* The sum of 256 lanes, of which each thread of the block has LANES neighbours, in the same order; every warp comes to it by itself. */
template <int LANES> SB_CUDA_FUNCTION float sb_cuda_fold_row(const float *lanes, float *room) {
    const int t = (int)threadIdx.x, own = t % 32;
    SB_CUDA_BARRIER(); /* what was there has been read */
    EACH_OWN_LANE room[LANES * t + i] = lanes[i];
    SB_CUDA_BARRIER();
    const float even = (room[own] + room[own + 128]) + (room[own + 64] + room[own + 192]);
    const float odd = (room[own + 32] + room[own + 160]) + (room[own + 96] + room[own + 224]);
    float sum = even + odd;
    SB_CUDA_UNROLL
    for (int half = 16; half > 0; half /= 2)
        sum = sum + sb_cuda_shuffle_exchange_f32(sum, half);
    return sum;
}

/* A thread's LANES neighbours from element `at` on, as they lie, for sb_cuda_widen_own; zeros behind `end`. */
template <int LANES> SB_CUDA_FUNCTION uint32_t sb_cuda_load_own(const uint16_t *from, int at, int end) {
    if (at >= end)
        return 0;
    return LANES == 1 ? from[at] : *(const uint32_t *)(const void *)(from + at);
}

template <int HALF, int LANES> SB_CUDA_FUNCTION void sb_cuda_widen_own(uint32_t halves, float *x) {
    float pair[2];
    sb_cuda_widen_pair<HALF>(halves, &pair[0], &pair[1]);
    EACH_OWN_LANE x[i] = pair[i];
}

#define EACH_OWN                                                                                                       \
    SB_CUDA_UNROLL                                                                                                     \
    for (int g = 0, at = LANES * (int)threadIdx.x; g < COUNT; g++, at += SB_CUDA_WAVE)

/* By blocks of SB_CUDA_WAVE / LANES threads, rows of up to SB_CUDA_WAVE * COUNT elements, an even number, of which fewer may be used; `room`
 * is shared memory for SB_CUDA_WAVE numbers. */
template <int HALF, int COUNT, int LANES>
SB_CUDA_FUNCTION void sb_cuda_normalize_row(const sb_cuda_normalization *p, float *room) {
    const sb_cuda_rows *rows = &p->rows;
    const bool has_mean = p->kind == SB_CUDA_NORM_MOMENTS;
    const int64_t used_rows = SB_CUDA_ROWS_COUNT(rows);
    const int length = (int)SB_CUDA_ROWS_LENGTH(rows), whole = (int)rows->length;
    const uint16_t *scales = (const uint16_t *)(const void *)rows->data[SB_CUDA_ROW_SCALE];
    const uint16_t *biases = (const uint16_t *)(const void *)rows->data[SB_CUDA_ROW_BIAS];
    SB_CUDA_KEEP_LOOP
    for (int64_t row = blockIdx.x; row < used_rows; row += gridDim.x) {
        const uint16_t *in = (const uint16_t *)(const void *)SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);
        uint16_t *out = (uint16_t *)(uintptr_t)SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row);
        uint32_t halves[COUNT], scale[COUNT];
        float mean = 0, lanes[LANES], x[LANES], y[LANES];
        EACH_OWN halves[g] = sb_cuda_load_own<LANES>(in, at, whole);
        EACH_OWN scale[g] = sb_cuda_load_own<LANES>(scales, at, whole);
        EACH_OWN_LANE lanes[i] = -0.0f;
        if (has_mean) {
            EACH_OWN {
                sb_cuda_widen_own<HALF, LANES>(halves[g], x);
                EACH_OWN_LANE lanes[i] = at + i < length ? lanes[i] + x[i] : lanes[i];
            }
            mean = sb_div_f32(sb_cuda_fold_row<LANES>(lanes, room), (float)length);
            EACH_OWN_LANE lanes[i] = -0.0f;
        }
        EACH_OWN {
            sb_cuda_widen_own<HALF, LANES>(halves[g], x);
            EACH_OWN_LANE x[i] = x[i] - mean;
            EACH_OWN_LANE lanes[i] = at + i < length ? sb_fma_f32(x[i], x[i], lanes[i]) : lanes[i];
        }
        const float total = sb_cuda_fold_row<LANES>(lanes, room);
        const float inverse = sb_rsqrt_f32(sb_div_f32(total, (float)length) + p->epsilon);
        EACH_OWN {
            sb_cuda_widen_own<HALF, LANES>(halves[g], x);
            sb_cuda_widen_own<HALF, LANES>(scale[g], y);
            EACH_OWN_LANE y[i] = (x[i] - mean) * inverse * y[i];
            if (biases != NULL) {
                sb_cuda_widen_own<HALF, LANES>(sb_cuda_load_own<LANES>(biases, at, whole), x);
                EACH_OWN_LANE y[i] = y[i] + x[i];
            }
            const uint32_t result = sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(y[0], y[LANES - 1]));
            if (LANES == 2 && at + 1 < length)
                *(uint32_t *)(void *)(out + at) = result;
            else if (at < length)
                out[at] = (uint16_t)result;
        }
    }
}

#undef EACH_OWN
#undef EACH_OWN_LANE

#endif
