/* LayerNormalization and RMSNormalization of few rows of f16 or bf16: a block for each row, so that many elements are underway at once.
 * (A row of 2,048 bf16 by itself takes a warp 4.9 us on an H200, of which two are a launch.) A thread has one of 256 lanes. */
#ifndef SB_CUDA_ROWS_NORMALIZE_FEW_CUH
#define SB_CUDA_ROWS_NORMALIZE_FEW_CUH

#include "cuda/common/halves.cuh"
#include "cuda/rows/rows.cuh"

/* The sum of 256 lanes, of which each thread of the block has one, in the same order; every warp comes to it by itself. */
SB_CUDA_FUNCTION float sb_cuda_fold_block(float lane, float *room) {
    const int t = (int)threadIdx.x, own = t % 32;
    SB_CUDA_BARRIER(); /* what was there has been read */
    room[t] = lane;
    SB_CUDA_BARRIER();
    const float even = (room[own] + room[own + 128]) + (room[own + 64] + room[own + 192]);
    const float odd = (room[own + 32] + room[own + 160]) + (room[own + 96] + room[own + 224]);
    float sum = even + odd;
    SB_CUDA_UNROLL
    for (int half = 16; half > 0; half /= 2)
        sum = sum + sb_cuda_shuffle_exchange_f32(sum, half);
    return sum;
}

#define EACH_ELEMENT                                                                                                   \
    SB_CUDA_UNROLL                                                                                                     \
    for (int g = 0, at = (int)threadIdx.x; g < COUNT; g++, at += SB_CUDA_WAVE)

template <int HALF> SB_CUDA_FUNCTION float sb_cuda_widen_one(uint16_t half) {
    float low, high;
    sb_cuda_widen_pair<HALF>(half, &low, &high);
    return low;
}

/* By blocks of SB_CUDA_WAVE threads, rows of up to SB_CUDA_WAVE * COUNT elements; `room` is shared memory for SB_CUDA_WAVE numbers. */
template <int HALF, int COUNT>
SB_CUDA_FUNCTION void sb_cuda_normalize_few(const sb_cuda_normalization *p, float *room) {
    const sb_cuda_rows *rows = &p->rows;
    const bool has_mean = p->kind == SB_CUDA_NORM_MOMENTS;
    const int64_t used_rows = SB_CUDA_ROWS_COUNT(rows);
    const int length = (int)SB_CUDA_ROWS_LENGTH(rows);
    const uint16_t *scales = (const uint16_t *)(const void *)rows->data[SB_CUDA_ROW_SCALE];
    const uint16_t *biases = (const uint16_t *)(const void *)rows->data[SB_CUDA_ROW_BIAS];
    SB_CUDA_KEEP_LOOP
    for (int64_t row = blockIdx.x; row < used_rows; row += gridDim.x) {
        const uint16_t *in = (const uint16_t *)(const void *)SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);
        uint16_t *out = (uint16_t *)(uintptr_t)SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row);
        uint16_t halves[COUNT], scale[COUNT], bias[COUNT];
        float x[COUNT], mean = 0, lane = -0.0f;
        EACH_ELEMENT halves[g] = at < length ? in[at] : (uint16_t)0;
        EACH_ELEMENT scale[g] = at < length ? scales[at] : (uint16_t)0;
        EACH_ELEMENT bias[g] = at < length && biases != NULL ? biases[at] : (uint16_t)0;
        EACH_ELEMENT x[g] = sb_cuda_widen_one<HALF>(halves[g]);
        if (has_mean) {
            EACH_ELEMENT lane = at < length ? lane + x[g] : lane;
            mean = sb_div_f32(sb_cuda_fold_block(lane, room), (float)length);
            EACH_ELEMENT x[g] = x[g] - mean;
            lane = -0.0f;
        }
        EACH_ELEMENT lane = at < length ? sb_fma_f32(x[g], x[g], lane) : lane;
        const float total = sb_cuda_fold_block(lane, room);
        const float inverse = sb_rsqrt_f32(sb_div_f32(total, (float)length) + p->epsilon);
        EACH_ELEMENT {
            float y = x[g] * inverse * sb_cuda_widen_one<HALF>(scale[g]);
            y = biases != NULL ? y + sb_cuda_widen_one<HALF>(bias[g]) : y;
            if (at < length)
                out[at] = (uint16_t)sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(y, y));
        }
    }
}

#undef EACH_ELEMENT

#endif
