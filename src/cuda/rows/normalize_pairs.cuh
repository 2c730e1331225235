/* LayerNormalization and RMSNormalization of rows of f16 or bf16 by a block for each row, so that many elements are underway at once, and
 * there is little code for a row to go through: a warp that had the row to itself had 1,000 instructions and more, most of which it waited
 * for. A thread has two of the 256 lanes, whose elements are neighbours. */
#ifndef SB_CUDA_ROWS_NORMALIZE_PAIRS_CUH
#define SB_CUDA_ROWS_NORMALIZE_PAIRS_CUH

#include "cuda/common/halves.cuh"
#include "cuda/rows/row_vectors_parameters.h"
#include "cuda/rows/rows.cuh"

/* The sum of 256 lanes, of which each thread of the block has two, in the same order; every warp comes to it by itself. */
SB_CUDA_FUNCTION float sb_cuda_fold_pairs(const float lanes[2], float *room) {
    const int t = (int)threadIdx.x, own = t % 32;
    SB_CUDA_BARRIER(); /* what was there has been read */
    room[2 * t] = lanes[0];
    room[2 * t + 1] = lanes[1];
    SB_CUDA_BARRIER();
    const float even = (room[own] + room[own + 128]) + (room[own + 64] + room[own + 192]);
    const float odd = (room[own + 32] + room[own + 160]) + (room[own + 96] + room[own + 224]);
    float sum = even + odd;
    SB_CUDA_UNROLL
    for (int half = 16; half > 0; half /= 2)
        sum = sum + sb_cuda_shuffle_exchange_f32(sum, half);
    return sum;
}

#define EACH_PAIR                                                                                                      \
    SB_CUDA_UNROLL                                                                                                     \
    for (int g = 0, at = 2 * (int)threadIdx.x; g < COUNT; g++, at += SB_CUDA_WAVE)

SB_CUDA_FUNCTION uint32_t sb_cuda_load_pair(const uint16_t *from, int at, int end) {
    return at < end ? *(const uint32_t *)(const void *)(from + at) : 0;
}

/* Rows of up to SB_CUDA_WAVE * COUNT elements, an even number, of which fewer may be used; `room` is shared memory for SB_CUDA_WAVE numbers. */
template <int HALF, int COUNT>
SB_CUDA_FUNCTION void sb_cuda_normalize_pairs(const sb_cuda_normalization *p, float *room) {
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
        uint32_t pairs[COUNT], scale[COUNT];
        float mean = 0, lanes[2] = {-0.0f, -0.0f}, x[2], y[2];
        EACH_PAIR pairs[g] = sb_cuda_load_pair(in, at, whole);
        EACH_PAIR scale[g] = sb_cuda_load_pair(scales, at, whole);
        if (has_mean) {
            EACH_PAIR {
                sb_cuda_widen_pair<HALF>(pairs[g], &x[0], &x[1]);
                lanes[0] = at < length ? lanes[0] + x[0] : lanes[0];
                lanes[1] = at + 1 < length ? lanes[1] + x[1] : lanes[1];
            }
            mean = sb_div_f32(sb_cuda_fold_pairs(lanes, room), (float)length);
            lanes[0] = lanes[1] = -0.0f;
        }
        EACH_PAIR {
            sb_cuda_widen_pair<HALF>(pairs[g], &x[0], &x[1]);
            lanes[0] = at < length ? sb_fma_f32(x[0] - mean, x[0] - mean, lanes[0]) : lanes[0];
            lanes[1] = at + 1 < length ? sb_fma_f32(x[1] - mean, x[1] - mean, lanes[1]) : lanes[1];
        }
        const float total = sb_cuda_fold_pairs(lanes, room);
        const float inverse = sb_rsqrt_f32(sb_div_f32(total, (float)length) + p->epsilon);
        EACH_PAIR {
            sb_cuda_widen_pair<HALF>(pairs[g], &x[0], &x[1]);
            sb_cuda_widen_pair<HALF>(scale[g], &y[0], &y[1]);
            y[0] = (x[0] - mean) * inverse * y[0];
            y[1] = (x[1] - mean) * inverse * y[1];
            if (biases != NULL) {
                sb_cuda_widen_pair<HALF>(sb_cuda_load_pair(biases, at, whole), &x[0], &x[1]);
                y[0] = y[0] + x[0];
                y[1] = y[1] + x[1];
            }
            const uint32_t result = sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(y[0], y[1]));
            if (at + 1 < length)
                *(uint32_t *)(void *)(out + at) = result;
            else if (at < length)
                out[at] = (uint16_t)result;
        }
    }
}

#undef EACH_PAIR

#endif
