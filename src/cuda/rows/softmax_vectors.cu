/* Softmax and LogSoftmax of rows of f16 and bf16 that lie in registers: row_vectors.cuh. Threads meet at every
 * SB_CUDA_BARRIER, and where they fold.
 * A module for each of bf16, f16. */
#include "cuda/rows/row_vectors.cuh"
#include "numerics/elementary.h"

template <int HALF, int TEAM, int GROUPS> SB_CUDA_FUNCTION void softmax_rows(const sb_cuda_softmax *p) {
    const sb_cuda_rows *rows = &p->rows;
    ROW_VECTORS(rows) {
        ROW_VECTOR(rows);
        float values[GROUPS][SB_CUDA_EIGHT], lanes[SB_CUDA_EIGHT];
        sb_cuda_eight loaded[GROUPS];
        EACH_GROUP loaded[g] = row_load(in + GROUP_BYTES(g), GROUP_AT(g), length);
        row_begin<ROW_LARGER>(lanes);
        EACH_GROUP {
            sb_cuda_widen_eight<HALF>(loaded[g], values[g]);
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
            row_store(out + GROUP_BYTES(g), GROUP_AT(g), length, sb_cuda_round_eight<HALF>(values[g]));
        }
    }
}

#define KERNEL(team, groups, suffix, HALF)                                                                             \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_softmax_##team##x##groups##_##suffix, sb_cuda_softmax, p,                     \
                                 SB_CUDA_ROW_VECTOR_THREADS, 1) {                                                      \
        softmax_rows<HALF, team, groups>(p);                                                                           \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
SB_CUDA_ROW_VECTORS(KERNEL, f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
SB_CUDA_ROW_VECTORS(KERNEL, bf16, SB_CUDA_BF16)
#endif
