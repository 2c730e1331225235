/* Softmax and LogSoftmax of rows of f32 that lie in registers: row_vectors_f32.cuh, and softmax_vectors.cu for 16 bits. */
#include "cuda/rows/row_vectors_f32.cuh"
#include "numerics/elementary.h"

template <int TEAM, int GROUPS> SB_CUDA_FUNCTION void softmax_rows(const sb_cuda_softmax *p) {
    const sb_cuda_rows *rows = &p->rows;
    ROW_VECTORS(rows) {
        ROW_VECTOR_F32(rows);
        float values[GROUPS][SB_CUDA_EIGHT], lanes[SB_CUDA_EIGHT];
        EACH_GROUP row_load_f32(in + GROUP_PLACE(g), GROUP_AT(g), length, values[g]);
        row_begin<ROW_LARGER>(lanes);
        EACH_GROUP {
            EACH_LANE lanes[j] = GROUP_AT(g) + j < length ? row_larger(lanes[j], values[g][j]) : lanes[j];
        }
        const float highest = row_fold<ROW_LARGER, TEAM>(lanes, t);
        row_begin<ROW_SUM>(lanes);
        EACH_GROUP {
            EACH_LANE {
                const float shifted = values[g][j] - highest, power = sb_exp_f32(shifted);
                values[g][j] = p->log ? shifted : power;
                lanes[j] = GROUP_AT(g) + j < length ? lanes[j] + power : lanes[j];
            }
        }
        const float sum = row_fold<ROW_SUM, TEAM>(lanes, t), log_sum = p->log ? sb_log_f32(sum) : 0;
        EACH_GROUP {
            EACH_LANE values[g][j] = p->log ? values[g][j] - log_sum : sb_div_f32(values[g][j], sum);
            row_store_f32(out + GROUP_PLACE(g), GROUP_AT(g), length, values[g]);
        }
    }
}

#define KERNEL(team, groups, unused)                                                                                   \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_softmax_##team##x##groups##_f32, sb_cuda_softmax, p,                          \
                                 SB_CUDA_ROW_VECTOR_THREADS, 1) {                                                      \
        softmax_rows<team, groups>(p);                                                                                 \
    }
SB_CUDA_ROW_VECTORS(KERNEL, )
