/* Softmax and LogSoftmax by the formulas of ops/softmax_row.h. Short rows stay in registers; long
 * ones are read three times, from caches mostly. Threads meet at every IV_CUDA_BARRIER. */
#include "cuda/kernels/rows.cuh"
#include "numerics/elementary.h"
#include "ops/type_lists.h"

#define AT(type, data, operand, at)                                                                \
    IV_CUDA_CONST_ELEMENT(type, data, IV_CUDA_ROW_OFFSET(rows, operand, at))

/* The same in rows of one dimension, which are all that teams take. */
#define NEAR(operand, at) ((at)*rows->inner_steps[operand][0])

#define TEAM(suffix, type, real, real_suffix, load, store)                                         \
    IV_CUDA_KERNEL(iv_cuda_softmax_team_##suffix, iv_cuda_softmax, p) {                            \
        const iv_cuda_rows *rows = &p->rows;                                                       \
        IV_CUDA_TEAMS(rows) {                                                                      \
            IV_CUDA_TEAM_ROW(rows);                                                                \
            const char *in = IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_IN, row);                         \
            char *out = IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_OUT, row);                             \
            real values[IV_CUDA_TEAM_VALUES], lanes[IV_CUDA_TEAM_LANES], highest, sum;             \
            IV_CUDA_UNROLL                                                                         \
            for (int i = 0; i < IV_CUDA_TEAM_LANES; i++)                                           \
                lanes[i] = -iv_infinity_##real_suffix();                                           \
            IV_CUDA_TEAM_EACH(i, at) {                                                             \
                values[i] = load(IV_CUDA_CONST_ELEMENT(type, in, NEAR(IV_CUDA_ROW_IN, at)));       \
            }                                                                                      \
            IV_CUDA_TEAM_EACH(i, at) {                                                             \
                lanes[i % IV_CUDA_TEAM_LANES] =                                                    \
                    iv_max_##real_suffix(lanes[i % IV_CUDA_TEAM_LANES], values[i]);                \
            }                                                                                      \
            highest = iv_cuda_fold_team_MAX_##real_suffix(lanes, t, team, IV_REDUCE_LANES);        \
            IV_CUDA_TEAM_EACH(i, at) {                                                             \
                values[i] = values[i] - highest;                                                   \
            }                                                                                      \
            if (!p->log) {                                                                         \
                IV_CUDA_TEAM_EACH(i, at) {                                                         \
                    values[i] = iv_exp_##real_suffix(values[i]);                                   \
                }                                                                                  \
            }                                                                                      \
            IV_CUDA_TEAM_REDUCE(sum, SUM, SUM, real, real_suffix,                                  \
                                p->log ? iv_exp_##real_suffix(values[i]) : values[i]);             \
            real log_sum = p->log ? iv_log_##real_suffix(sum) : 0;                                 \
            IV_CUDA_TEAM_EACH(i, at) {                                                             \
                IV_CUDA_ELEMENT(type, out, NEAR(IV_CUDA_ROW_OUT, at)) =                            \
                    store(p->log ? values[i] - log_sum : iv_div_##real_suffix(values[i], sum));    \
            }                                                                                      \
        }                                                                                          \
    }

#define BLOCK(suffix, type, real, real_suffix, load, store)                                        \
    IV_CUDA_KERNEL_BOUNDED(iv_cuda_softmax_block_##suffix, iv_cuda_softmax, p, 1024, 1) {          \
        IV_CUDA_SHARED real lanes[IV_CUDA_WAVES * IV_CUDA_WAVE];                                   \
        IV_CUDA_SHARED real parts[IV_CUDA_WAVES];                                                  \
        const iv_cuda_rows *rows = &p->rows;                                                       \
        int64_t length = rows->length, begin = 0;                                                  \
        for (int64_t row = blockIdx.x; row < rows->count; row += gridDim.x) {                      \
            const char *in = IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_IN, row);                         \
            char *out = IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_OUT, row);                             \
            real highest, sum;                                                                     \
            IV_CUDA_BLOCK_REDUCE(highest, MAX, MAX, real, real_suffix, begin, length,              \
                                 load(AT(type, in, IV_CUDA_ROW_IN, at)));                          \
            IV_CUDA_BLOCK_REDUCE(                                                                  \
                sum, SUM, SUM, real, real_suffix, begin, length,                                   \
                iv_exp_##real_suffix(load(AT(type, in, IV_CUDA_ROW_IN, at)) - highest));           \
            real log_sum = p->log ? iv_log_##real_suffix(sum) : 0;                                 \
            for (int64_t at = threadIdx.x; at < length; at += blockDim.x) {                        \
                real shifted = load(AT(type, in, IV_CUDA_ROW_IN, at)) - highest;                   \
                IV_CUDA_ELEMENT(type, out, IV_CUDA_ROW_OFFSET(rows, IV_CUDA_ROW_OUT, at)) =        \
                    store(p->log ? shifted - log_sum                                               \
                                 : iv_div_##real_suffix(iv_exp_##real_suffix(shifted), sum));      \
            }                                                                                      \
        }                                                                                          \
    }

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                       \
    TEAM(suffix, type, real, real_suffix, load, store)                                             \
    BLOCK(suffix, type, real, real_suffix, load, store)
IV_FLOAT_TYPES(KERNELS, )
