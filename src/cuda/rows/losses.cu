/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss by the formulas of ops/losses.c, and Det by
 * that of ops/determinant.c. Teams take targets of few classes and blocks those of many. Threads meet
 * at every SB_CUDA_BARRIER. */
#include "cuda/rows/losses_parameters.h"
#include "cuda/rows/rows.cuh"
#include "numerics/elementary.h"
#include "ops/number.h"
#include "ops/type_lists.h"

/* The class that row `row` aims at: -1 for none, with a fault where it should be one. */
SB_CUDA_FUNCTION int64_t target_of(const sb_cuda_losses *p, int64_t row) {
    const char *element = SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_SCALE, row);
    int64_t target = p->wide ? *(const int64_t *)(const void *)element : *(const int32_t *)(const void *)element;
    if (p->ignores && target == p->ignored)
        return -1;
    if (target >= 0 && target < p->rows.length)
        return target;
    *p->fault = SB_FAULT_INDEX;
    return -1;
}

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    SB_CUDA_FUNCTION void store_loss_##suffix(const sb_cuda_losses *p, int64_t row, int64_t target, real score) {      \
        real share = 0, loss = 0;                                                                                      \
        if (target >= 0) {                                                                                             \
            share =                                                                                                    \
                p->weights == NULL ? (real)1 : load(SB_CUDA_CONST_ELEMENT(type, p->weights, target * p->weight_step)); \
            loss = -(share * score);                                                                                   \
        }                                                                                                              \
        if (p->each != NULL)                                                                                           \
            ((type *)(void *)p->each)[row] = store(loss);                                                              \
        if (p->losses != NULL)                                                                                         \
            ((real *)(void *)p->losses)[row] = loss;                                                                   \
        if (p->shares != NULL)                                                                                         \
            ((real *)(void *)p->shares)[row] = share;                                                                  \
    }                                                                                                                  \
    SB_CUDA_FUNCTION real score_##suffix(const sb_cuda_losses *p, const char *scores, int64_t at) {                    \
        return load(SB_CUDA_CONST_ELEMENT(type, scores, at * p->rows.inner_steps[SB_CUDA_ROW_IN][0]));                 \
    }                                                                                                                  \
    SB_CUDA_KERNEL(sb_cuda_losses_likelihood_##suffix, sb_cuda_losses, p) {                                            \
        SB_CUDA_EACH(row, p->rows.count) {                                                                             \
            int64_t target = target_of(p, row);                                                                        \
            const char *scores = SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_IN, row);                                     \
            store_loss_##suffix(p, row, target, target >= 0 ? score_##suffix(p, scores, target) : 0);                  \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_FUNCTION void store_entropy_##suffix(const sb_cuda_losses *p, int64_t row, const char *scores,             \
                                                 real highest, real sum) {                                             \
        int64_t target = target_of(p, row);                                                                            \
        real shifted = target >= 0 ? score_##suffix(p, scores, target) - highest : 0;                                  \
        store_loss_##suffix(p, row, target, shifted - sb_log_##real_suffix(sum));                                      \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL(sb_cuda_losses_entropy_team_##suffix, sb_cuda_losses, p) {                                    \
        SB_CUDA_TEAMS(&p->rows) {                                                                                      \
            bool there = base + threadIdx.x / (unsigned)team < p->rows.count;                                          \
            SB_CUDA_TEAM_ROW(&p->rows);                                                                                \
            const char *scores = SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_IN, row);                                     \
            real values[SB_CUDA_TEAM_VALUES], highest, sum;                                                            \
            SB_CUDA_TEAM_EACH(i, at) {                                                                                 \
                values[i] = score_##suffix(p, scores, at);                                                             \
            }                                                                                                          \
            SB_CUDA_TEAM_REDUCE(highest, MAX, MAX, real, real_suffix, values[i]);                                      \
            SB_CUDA_TEAM_REDUCE(sum, SUM, SUM, real, real_suffix, sb_exp_##real_suffix(values[i] - highest));          \
            if (t == 0 && there)                                                                                       \
                store_entropy_##suffix(p, row, scores, highest, sum);                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_losses_entropy_block_##suffix, sb_cuda_losses, p, 1024, 1) {                  \
        SB_CUDA_SHARED real lanes[SB_CUDA_WAVES * SB_CUDA_WAVE];                                                       \
        SB_CUDA_SHARED real parts[SB_CUDA_WAVES];                                                                      \
        int64_t length = p->rows.length, begin = 0;                                                                    \
        for (int64_t row = blockIdx.x; row < p->rows.count; row += gridDim.x) {                                        \
            const char *scores = SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_IN, row);                                     \
            real highest, sum;                                                                                         \
            SB_CUDA_BLOCK_REDUCE(highest, MAX, MAX, real, real_suffix, begin, length, score_##suffix(p, scores, at));  \
            SB_CUDA_BLOCK_REDUCE(sum, SUM, SUM, real, real_suffix, begin, length,                                      \
                                 sb_exp_##real_suffix(score_##suffix(p, scores, at) - highest));                       \
            if (threadIdx.x == 0)                                                                                      \
                store_entropy_##suffix(p, row, scores, highest, sum);                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_KERNEL(sb_cuda_losses_total_##suffix, sb_cuda_loss_total, p) {                                             \
        SB_CUDA_EACH(index, 1) {                                                                                       \
            real total = *(const real *)(const void *)p->losses;                                                       \
            if (p->shares != NULL)                                                                                     \
                total = sb_div_##real_suffix(total, *(const real *)(const void *)p->shares);                           \
            *(type *)(void *)p->out = store(total);                                                                    \
        }                                                                                                              \
    }
SB_FLOAT_TYPES(KERNELS, )

/* A block for each matrix. Which thread computes an element changes nothing: each is one fma a column. */
SB_CUDA_BLOCK_KERNEL(sb_cuda_determinant_of, sb_cuda_determinant, p) {
    SB_CUDA_SHARED int64_t pivot;
    int64_t n = p->n, size = n * n;
    for (int64_t row = blockIdx.x; row < p->rows.count; row += gridDim.x) {
        const char *in = SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_IN, row);
        double *matrix = p->matrix + row * size, product = 1.0;
        for (int64_t at = threadIdx.x; at < size; at += blockDim.x)
            matrix[at] = sb_number_load((sb_dtype)p->dtype, in + SB_CUDA_ROW_OFFSET(&p->rows, SB_CUDA_ROW_IN, at), 0);
        SB_CUDA_BARRIER();
        for (int64_t k = 0; k < n; k++) {
            if (threadIdx.x == 0) {
                pivot = k;
                for (int64_t below = k + 1; below < n; below++) {
                    if (sb_abs_f64(matrix[below * n + k]) > sb_abs_f64(matrix[pivot * n + k]))
                        pivot = below;
                }
            }
            SB_CUDA_BARRIER();
            for (int64_t column = k + threadIdx.x; pivot != k && column < n; column += blockDim.x) {
                double swapped = matrix[k * n + column];
                matrix[k * n + column] = matrix[pivot * n + column];
                matrix[pivot * n + column] = swapped;
            }
            SB_CUDA_BARRIER();
            double head = matrix[k * n + k];
            product = pivot != k ? -product * head : product * head;
            if (head == 0.0)
                break;
            int64_t width = n - k - 1;
            for (int64_t at = threadIdx.x; at < width * width; at += blockDim.x) {
                int64_t below = k + 1 + at / width, column = k + 1 + at % width;
                double factor = sb_div_f64(matrix[below * n + k], head);
                matrix[below * n + column] = sb_fma_f64(-factor, matrix[k * n + column], matrix[below * n + column]);
            }
            SB_CUDA_BARRIER();
        }
        if (threadIdx.x == 0)
            sb_number_store((sb_dtype)p->dtype, SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_OUT, row), 0, product);
        SB_CUDA_BARRIER();
    }
}
