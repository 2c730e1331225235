/* LayerNormalization and RMSNormalization of rows of f32 that lie in registers: row_vectors_f32.cuh, and normalize_vectors.cu for 16 bits. */
#include "cuda/rows/row_vectors_f32.cuh"

template <int TEAM, int GROUPS> SB_CUDA_FUNCTION void normalize_rows(const sb_cuda_normalization *p) {
    const sb_cuda_rows *rows = &p->rows;
    const bool has_mean = p->kind == SB_CUDA_NORM_MOMENTS;
    const char *const scales = rows->data[SB_CUDA_ROW_SCALE], *const biases = rows->data[SB_CUDA_ROW_BIAS];
    ROW_VECTORS(rows) {
        ROW_VECTOR_F32(rows);
        float values[GROUPS][SB_CUDA_EIGHT], lanes[SB_CUDA_EIGHT];
        EACH_GROUP row_load_f32(in + GROUP_PLACE(g), GROUP_AT(g), length, values[g]);
        if (has_mean) {
            row_begin<ROW_SUM>(lanes);
            EACH_GROUP {
                EACH_LANE lanes[j] = GROUP_AT(g) + j < length ? lanes[j] + values[g][j] : lanes[j];
            }
            const float mean = sb_div_f32(row_fold<ROW_SUM, TEAM>(lanes, t), (float)used_length);
            EACH_GROUP {
                EACH_LANE values[g][j] = values[g][j] - mean;
            }
        }
        row_begin<ROW_SUM>(lanes);
        EACH_GROUP {
            EACH_LANE lanes[j] = GROUP_AT(g) + j < length ? sb_fma_f32(values[g][j], values[g][j], lanes[j]) : lanes[j];
        }
        const float total = row_fold<ROW_SUM, TEAM>(lanes, t);
        const float inverse = sb_rsqrt_f32(sb_div_f32(total, (float)used_length) + (float)p->epsilon);
        EACH_GROUP {
            float factors[SB_CUDA_EIGHT];
            row_load_f32(scales + GROUP_PLACE(g), GROUP_AT(g), length, factors);
            EACH_LANE values[g][j] = values[g][j] * inverse * factors[j];
            if (biases != NULL) {
                row_load_f32(biases + GROUP_PLACE(g), GROUP_AT(g), length, factors);
                EACH_LANE values[g][j] = values[g][j] + factors[j];
            }
            row_store_f32(out + GROUP_PLACE(g), GROUP_AT(g), length, values[g]);
        }
    }
}

#define KERNEL(team, groups, unused)                                                                                   \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_##team##x##groups##_f32, sb_cuda_normalization, p,                  \
                                 SB_CUDA_ROW_VECTOR_THREADS, 1) {                                                      \
        normalize_rows<team, groups>(p);                                                                               \
    }
SB_CUDA_ROW_VECTORS(KERNEL, )
