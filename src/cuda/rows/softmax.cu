/* Softmax and LogSoftmax by the formulas of ops/softmax_row.h. Short rows stay in registers; long
 * ones are read three times, from caches mostly. Threads meet at every SB_CUDA_BARRIER. */
#include "cuda/rows/rows.cuh"
#include "numerics/elementary.h"
#include "ops/type_lists.h"

#define AT(type, data, operand, at) SB_CUDA_CONST_ELEMENT(type, data, SB_CUDA_ROW_OFFSET(rows, operand, at))

/* The same in rows of one dimension, which are all that teams take. */
#define NEAR(operand, at) ((at)*rows->inner_steps[operand][0])

#define TEAM(suffix, type, real, real_suffix, load, store)                                                             \
    SB_CUDA_BLOCK_KERNEL(sb_cuda_softmax_team_##suffix, sb_cuda_softmax, p) {                                          \
        const sb_cuda_rows *rows = &p->rows;                                                                           \
        SB_CUDA_TEAMS(rows) {                                                                                          \
            SB_CUDA_TEAM_ROW(rows);                                                                                    \
            const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);                                             \
            char *out = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row);                                                 \
            real values[SB_CUDA_TEAM_VALUES], lanes[SB_CUDA_TEAM_LANES], highest, sum;                                 \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < SB_CUDA_TEAM_LANES; i++)                                                               \
                lanes[i] = -sb_infinity_##real_suffix();                                                               \
            SB_CUDA_TEAM_EACH(i, at) {                                                                                 \
                values[i] = load(SB_CUDA_CONST_ELEMENT(type, in, NEAR(SB_CUDA_ROW_IN, at)));                           \
            }                                                                                                          \
            SB_CUDA_TEAM_EACH(i, at) {                                                                                 \
                lanes[i % SB_CUDA_TEAM_LANES] = sb_max_##real_suffix(lanes[i % SB_CUDA_TEAM_LANES], values[i]);        \
            }                                                                                                          \
            highest = sb_cuda_fold_team_MAX_##real_suffix(lanes, t, team, SB_REDUCE_LANES);                            \
            SB_CUDA_TEAM_EACH(i, at) {                                                                                 \
                values[i] = values[i] - highest;                                                                       \
            }                                                                                                          \
            if (!p->log) {                                                                                             \
                SB_CUDA_TEAM_EACH(i, at) {                                                                             \
                    values[i] = sb_exp_##real_suffix(values[i]);                                                       \
                }                                                                                                      \
            }                                                                                                          \
            SB_CUDA_TEAM_REDUCE(sum, SUM, SUM, real, real_suffix,                                                      \
                                p->log ? sb_exp_##real_suffix(values[i]) : values[i]);                                 \
            real log_sum = p->log ? sb_log_##real_suffix(sum) : 0;                                                     \
            SB_CUDA_TEAM_EACH(i, at) {                                                                                 \
                SB_CUDA_ELEMENT(type, out, NEAR(SB_CUDA_ROW_OUT, at)) =                                                \
                    store(p->log ? values[i] - log_sum : sb_div_##real_suffix(values[i], sum));                        \
            }                                                                                                          \
        }                                                                                                              \
    }

#define BLOCK(suffix, type, real, real_suffix, load, store)                                                            \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_softmax_block_##suffix, sb_cuda_softmax, p, 1024, 1) {                        \
        SB_CUDA_SHARED real lanes[SB_CUDA_WAVES * SB_CUDA_WAVE];                                                       \
        SB_CUDA_SHARED real parts[SB_CUDA_WAVES];                                                                      \
        const sb_cuda_rows *rows = &p->rows;                                                                           \
        int64_t length = SB_CUDA_ROWS_LENGTH(rows), count = SB_CUDA_ROWS_COUNT(rows), begin = 0;                       \
        for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {                                                \
            const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);                                             \
            char *out = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row);                                                 \
            real highest, sum;                                                                                         \
            SB_CUDA_BLOCK_REDUCE(highest, MAX, MAX, real, real_suffix, begin, length,                                  \
                                 load(AT(type, in, SB_CUDA_ROW_IN, at)));                                              \
            SB_CUDA_BLOCK_REDUCE(sum, SUM, SUM, real, real_suffix, begin, length,                                      \
                                 sb_exp_##real_suffix(load(AT(type, in, SB_CUDA_ROW_IN, at)) - highest));              \
            real log_sum = p->log ? sb_log_##real_suffix(sum) : 0;                                                     \
            for (int64_t at = threadIdx.x; at < length; at += blockDim.x) {                                            \
                real shifted = load(AT(type, in, SB_CUDA_ROW_IN, at)) - highest;                                       \
                SB_CUDA_ELEMENT(type, out, SB_CUDA_ROW_OFFSET(rows, SB_CUDA_ROW_OUT, at)) =                            \
                    store(p->log ? shifted - log_sum : sb_div_##real_suffix(sb_exp_##real_suffix(shifted), sum));      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    TEAM(suffix, type, real, real_suffix, load, store)                                                                 \
    BLOCK(suffix, type, real, real_suffix, load, store)
SB_FLOAT_TYPES(KERNELS, )
