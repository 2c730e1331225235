/* TensorScatter: each element of the update goes to its row of the cache. PagedScatter: to its row of its page. */
#include "cuda/common/index.cuh"
#include "cuda/moving/paged.cuh"
#include "cuda/moving/tensor_scatter_parameters.h"

/* The row of the cache for row `row` of the update; -1, with a fault, where the update does not fit. */
SB_CUDA_FUNCTION int64_t sb_cuda_tensor_scatter_row(const sb_cuda_tensor_scatter *p, int64_t sample, int64_t row,
                                                    int64_t rows, int64_t count) {
    int64_t start = p->starts == NULL ? 0 : SB_CUDA_CONST_ELEMENT(int64_t, p->starts, sample * p->start_step);
    if (p->circular && rows > 0) {
        start %= rows;
        start += start < 0 ? rows : 0;
    }
    if (count > rows || (!p->circular && (start < 0 || start > rows - count))) {
        *p->fault = SB_FAULT_INDEX;
        return -1;
    }
    return start + row < rows ? start + row : start + row - rows;
}

#define TENSOR_SCATTER(size, type)                                                                                     \
    SB_CUDA_KERNEL(sb_cuda_tensor_scatter_##size, sb_cuda_tensor_scatter, p) {                                         \
        const int64_t batch = sb_cuda_used(p->used_batch, p->dims[0]), rows = sb_cuda_used(p->used_rows, p->rows);     \
        const int64_t count = sb_cuda_used(p->used_count, p->dims[p->axis]);                                           \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t rest = index, from = 0, to = 0, row = 0;                                                           \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int d = p->rank - 1; d > 0; d--) {                                                                    \
                int64_t at = sb_cuda_take(&rest, p->dims[d]);                                                          \
                from += at * p->from_steps[d];                                                                         \
                to += d == p->axis ? 0 : at * p->to_steps[d];                                                          \
                row = d == p->axis ? at : row;                                                                         \
            }                                                                                                          \
            if (rest >= batch || row >= count)                                                                         \
                continue;                                                                                              \
            int64_t target = sb_cuda_tensor_scatter_row(p, rest, row, rows, count);                                    \
            if (target >= 0)                                                                                           \
                SB_CUDA_ELEMENT(type, p->out, to + rest * p->to_steps[0] + target * p->to_steps[p->axis]) =            \
                    SB_CUDA_CONST_ELEMENT(type, p->from, from + rest * p->from_steps[0]);                              \
        }                                                                                                              \
    }
SB_CUDA_SIZES(TENSOR_SCATTER)

/* ---- pages ---- */

#define PAGED_SCATTER(size, type)                                                                                      \
    SB_CUDA_KERNEL(sb_cuda_paged_scatter_##size, sb_cuda_paged_scatter, p) {                                           \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t row = index;                                                                                       \
            const int64_t column = sb_cuda_take(&row, p->width);                                                       \
            char *to = sb_cuda_paged_row(p, row);                                                                      \
            if (to != NULL)                                                                                            \
                SB_CUDA_ELEMENT(type, to, column * p->to_column) =                                                     \
                    SB_CUDA_CONST_ELEMENT(type, p->from, row * p->from_row + column * p->from_column);                 \
        }                                                                                                              \
    }
SB_CUDA_SIZES(PAGED_SCATTER)
