/* LayerNormalization and RMSNormalization of rows of f16 and bf16 that lie in registers: row_vectors.cuh. Factors are of the
 * same type, and the same for all rows. Threads meet at every SB_CUDA_BARRIER, and where they fold.
 * A module for each of bf16, f16. */
#include "cuda/rows/normalize_row.cuh"
#include "cuda/rows/row_vectors.cuh"

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
        /* With the row, so that nobody waits for them later. */
        EACH_GROUP factors[g] = load_factors<TEAM>(scales, biases, t, g, length);
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

#define ROW_KERNEL(lanes, count, suffix, HALF)                                                                         \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_row_##lanes##x##count##_##suffix, sb_cuda_normalization, p,         \
                                 SB_CUDA_WAVE / (lanes), (lanes) == 2 ? 6 : 1) {                                       \
        SB_CUDA_SHARED float room[SB_CUDA_WAVE];                                                                       \
        sb_cuda_normalize_row<HALF, count, lanes>(p, room);                                                            \
    }
#define KERNEL(team, groups, suffix, HALF)                                                                             \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_##team##x##groups##_##suffix, sb_cuda_normalization, p,             \
                                 SB_CUDA_ROW_VECTOR_THREADS, 1) {                                                      \
        normalize_rows<HALF, team, groups>(p);                                                                         \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
SB_CUDA_SHORT_ROW_VECTORS(KERNEL, f16, SB_CUDA_F16)
SB_CUDA_BLOCK_ROWS(ROW_KERNEL, f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
SB_CUDA_SHORT_ROW_VECTORS(KERNEL, bf16, SB_CUDA_BF16)
SB_CUDA_BLOCK_ROWS(ROW_KERNEL, bf16, SB_CUDA_BF16)
#endif
