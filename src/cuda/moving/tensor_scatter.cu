/* TensorScatter: each element of the update goes to its row of the cache. PagedScatter: to its row of its page. */
#include "cuda/common/index.cuh"
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

/* The key that a sequence's row is which stands `before` rows behind its first; -1: there is no room for it. */
SB_CUDA_FUNCTION int64_t sb_cuda_paged_key(const sb_cuda_paged_scatter *p, int64_t sequence, int64_t before) {
    const int64_t start = SB_CUDA_CONST_ELEMENT(int64_t, p->starts, sequence * p->start_step);
    const int64_t room = sb_pages_room(&p->pages);
    return start < 0 || start > room || before >= room - start ? -1 : start + before;
}

/* Whether a row of `sequence` at or behind row `row` goes to row `at` of page `page`. Of its keys those count that are row `at` of
 * their page, one in as many as a page has. */
SB_CUDA_FUNCTION bool sb_cuda_paged_written(const sb_cuda_paged_scatter *p, int64_t sequence, int64_t row, int64_t page,
                                            int64_t at) {
    const sb_pages_place place = sb_pages_of_row(&p->pages, row);
    if (place.sequence != sequence)
        return false;
    const int64_t first = sb_cuda_paged_key(p, sequence, place.before), rows = p->pages.rows;
    for (int64_t more = ((at - first) % rows + rows) % rows; first >= 0 && more < place.left; more += rows) {
        int64_t there;
        const int64_t key = sb_cuda_paged_key(p, sequence, place.before + more);
        if (key >= 0 && sb_pages_find(&p->pages, sequence, key, &there) == page)
            return true;
    }
    return false;
}

/* Of rows for one place the last is written, as by the definition: whether one behind row `row` of `sequence` is for it too. */
SB_CUDA_FUNCTION bool sb_cuda_paged_is_covered(const sb_cuda_paged_scatter *p, const sb_pages_place *own, int64_t row,
                                               int64_t page, int64_t at) {
    if (own->left > 1 && sb_cuda_paged_written(p, own->sequence, row + 1, page, at))
        return true;
    for (int64_t next = own->sequence + 1; next < p->pages.sequences; next++) {
        const int64_t begin = sb_pages_begin(&p->pages, next);
        if (begin < p->pages.new_rows && sb_cuda_paged_written(p, next, begin, page, at))
            return true;
    }
    return false;
}

#define PAGED_SCATTER(size, type)                                                                                      \
    SB_CUDA_KERNEL(sb_cuda_paged_scatter_##size, sb_cuda_paged_scatter, p) {                                           \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t row = index, at;                                                                                   \
            const int64_t column = sb_cuda_take(&row, p->width);                                                       \
            const sb_pages_place place = sb_pages_of_row(&p->pages, row);                                              \
            const int64_t key = sb_cuda_paged_key(p, place.sequence, place.before);                                    \
            if (key < 0) {                                                                                             \
                *p->fault = SB_FAULT_INDEX;                                                                            \
                continue;                                                                                              \
            }                                                                                                          \
            const int64_t page = sb_pages_find(&p->pages, place.sequence, key, &at);                                   \
            if (!sb_cuda_paged_is_covered(p, &place, row, page, at))                                                   \
                SB_CUDA_ELEMENT(type, p->out, page * p->to_page + at * p->to_row + column * p->to_column) =            \
                    SB_CUDA_CONST_ELEMENT(type, p->from, row * p->from_row + column * p->from_column);                 \
        }                                                                                                              \
    }
SB_CUDA_SIZES(PAGED_SCATTER)
