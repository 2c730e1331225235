/* LayerNormalization and RMSNormalization of rows of f16 and bf16 that lie in registers: row_vectors.cuh. Factors are of the
 * same type, and the same for all rows. Threads meet at every SB_CUDA_BARRIER, and where they fold.
 * A module for each of bf16, f16. */
#include "cuda/rows/row_vectors.cuh"

/* Whether factors are loaded with the row, so that nobody waits for them later: as far as registers go. */
#define AHEAD (GROUPS <= 4)

/* Scale and bias of a group. */
typedef struct row_factors {
    sb_cuda_eight scale, bias;
} row_factors;

template <int TEAM>
SB_CUDA_FUNCTION row_factors load_factors(const char *scales, const char *biases, int t, int g, int length) {
    row_factors factors = {row_load(scales + GROUP_BYTES(g), GROUP_AT(g), length), {{0, 0, 0, 0}}};
    if (biases != NULL)
        factors.bias = row_load(biases + GROUP_BYTES(g), GROUP_AT(g), length);
    return factors;
}

/* Adds the squares of what is left of the elements when `mean` is taken away. */
template <int HALF, int TEAM, int GROUPS>
SB_CUDA_FUNCTION float sum_of_squares(const sb_cuda_eight *values, float mean, bool has_mean, int t, int length) {
    float lanes[SB_CUDA_EIGHT];
    row_begin<ROW_SUM>(lanes);
    EACH_GROUP {
        float x[SB_CUDA_EIGHT];
        sb_cuda_widen_eight<HALF>(values[g], x);
        EACH_LANE {
            x[j] = has_mean ? x[j] - mean : x[j];
            lanes[j] = GROUP_AT(g) + j < length ? sb_fma_f32(x[j], x[j], lanes[j]) : lanes[j];
        }
    }
    return row_fold<ROW_SUM, TEAM>(lanes, t);
}

template <int HALF, int TEAM, int GROUPS> SB_CUDA_FUNCTION void normalize_rows(const sb_cuda_normalization *p) {
    const sb_cuda_rows *rows = &p->rows;
    const bool has_mean = p->kind == SB_CUDA_NORM_MOMENTS;
    ROW_VECTORS(rows) {
        ROW_VECTOR(rows);
        const char *scales = rows->data[SB_CUDA_ROW_SCALE] + 16 * t;
        const char *biases = rows->data[SB_CUDA_ROW_BIAS] != NULL ? rows->data[SB_CUDA_ROW_BIAS] + 16 * t : NULL;
        sb_cuda_eight values[GROUPS];
        row_factors factors[GROUPS];
        float mean = 0;
        EACH_GROUP values[g] = row_load(in + GROUP_BYTES(g), GROUP_AT(g), length);
        EACH_GROUP {
            if (AHEAD)
                factors[g] = load_factors<TEAM>(scales, biases, t, g, length);
        }
        if (has_mean) {
            float lanes[SB_CUDA_EIGHT];
            row_begin<ROW_SUM>(lanes);
            EACH_GROUP {
                float x[SB_CUDA_EIGHT];
                sb_cuda_widen_eight<HALF>(values[g], x);
                EACH_LANE lanes[j] = GROUP_AT(g) + j < length ? lanes[j] + x[j] : lanes[j];
            }
            mean = sb_div_f32(row_fold<ROW_SUM, TEAM>(lanes, t), (float)used_length);
        }
        const float total = sum_of_squares<HALF, TEAM, GROUPS>(values, mean, has_mean, t, length);
        const float inverse = sb_rsqrt_f32(sb_div_f32(total, (float)used_length) + p->epsilon);
        EACH_GROUP {
            float x[SB_CUDA_EIGHT], y[SB_CUDA_EIGHT];
            if (!AHEAD)
                factors[g] = load_factors<TEAM>(scales, biases, t, g, length);
            sb_cuda_widen_eight<HALF>(values[g], x);
            sb_cuda_widen_eight<HALF>(factors[g].scale, y);
            EACH_LANE x[j] = (has_mean ? x[j] - mean : x[j]) * inverse * y[j];
            if (biases != NULL) {
                sb_cuda_widen_eight<HALF>(factors[g].bias, y);
                EACH_LANE x[j] = x[j] + y[j];
            }
            row_store(out + GROUP_BYTES(g), GROUP_AT(g), length, sb_cuda_round_eight<HALF>(x));
        }
    }
}

/* ---- few rows ---- */

/* The sum of 256 lanes, one of each thread of the block, in the same order; every warp comes to it by itself. */
SB_CUDA_FUNCTION float fold_block(float lane, float *room) {
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

template <int HALF> SB_CUDA_FUNCTION float widen_one(uint16_t half) {
    float low, high;
    sb_cuda_widen_pair<HALF>(half, &low, &high);
    return low;
}

/* A block for each row, a thread for each lane: where there are so few rows that one thread after the other is waited for. (A row of
 * 2,048 bf16 by itself takes a warp 4.9 us on an H200, of which two are a launch.) */
template <int HALF, int COUNT> SB_CUDA_FUNCTION void normalize_few(const sb_cuda_normalization *p) {
    SB_CUDA_SHARED float room[SB_CUDA_WAVE];
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
        EACH_ELEMENT x[g] = widen_one<HALF>(halves[g]);
        if (has_mean) {
            EACH_ELEMENT lane = at < length ? lane + x[g] : lane;
            mean = sb_div_f32(fold_block(lane, room), (float)length);
            EACH_ELEMENT x[g] = x[g] - mean;
            lane = -0.0f;
        }
        EACH_ELEMENT lane = at < length ? sb_fma_f32(x[g], x[g], lane) : lane;
        const float total = fold_block(lane, room);
        const float inverse = sb_rsqrt_f32(sb_div_f32(total, (float)length) + p->epsilon);
        EACH_ELEMENT {
            float y = x[g] * inverse * widen_one<HALF>(scale[g]);
            y = biases != NULL ? y + widen_one<HALF>(bias[g]) : y;
            if (at < length)
                out[at] = (uint16_t)sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(y, y));
        }
    }
}

#define FEW_KERNEL(count, suffix, HALF)                                                                                \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_few_##count##_##suffix, sb_cuda_normalization, p, SB_CUDA_WAVE,     \
                                 1) {                                                                                  \
        normalize_few<HALF, count>(p);                                                                                 \
    }
#define KERNEL(team, groups, suffix, HALF)                                                                             \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_##team##x##groups##_##suffix, sb_cuda_normalization, p,             \
                                 SB_CUDA_ROW_VECTOR_THREADS, 1) {                                                      \
        normalize_rows<HALF, team, groups>(p);                                                                         \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
SB_CUDA_LONG_ROW_VECTORS(KERNEL, f16, SB_CUDA_F16)
SB_CUDA_FEW_ROWS(FEW_KERNEL, f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
SB_CUDA_LONG_ROW_VECTORS(KERNEL, bf16, SB_CUDA_BF16)
SB_CUDA_FEW_ROWS(FEW_KERNEL, bf16, SB_CUDA_BF16)
#endif
