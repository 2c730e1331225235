/* Where new rows go on the pages of a cache: ops/pages.h. */
#ifndef SB_CUDA_MOVING_PAGED_CUH
#define SB_CUDA_MOVING_PAGED_CUH

#include "cuda/common/index.cuh"
#include "cuda/moving/tensor_scatter_parameters.h"

/* The key that a sequence's row is which stands `before` rows behind its first; -1: there is no room for it. */
SB_CUDA_FUNCTION int64_t sb_cuda_paged_key(const sb_cuda_paged_scatter *p, int64_t sequence, int64_t before) {
    const int64_t start = SB_CUDA_CONST_ELEMENT(int64_t, p->starts, sequence * p->start_step);
    const int64_t room = sb_pages_room(&p->pages);
    return start < 0 || start > room || before >= room - start ? -1 : start + before;
}

/* Whether one of `count` rows of `sequence`, from the one on that `before` stand before, goes to row `at` of page `page`. Of its keys
 * those count that are row `at` of their page, one in as many as a page has. */
SB_CUDA_FUNCTION bool sb_cuda_paged_written(const sb_cuda_paged_scatter *p, int64_t sequence, int64_t before,
                                            int64_t count, int64_t page, int64_t at) {
    const int64_t first = sb_cuda_paged_key(p, sequence, before), rows = p->pages.rows;
    for (int64_t more = ((at - first) % rows + rows) % rows; first >= 0 && more < count; more += rows) {
        int64_t there;
        const int64_t key = sb_cuda_paged_key(p, sequence, before + more);
        if (key >= 0 && sb_pages_find(&p->pages, sequence, key, &there) == page)
            return true;
    }
    return false;
}

/* Of rows for one place the last is written, as by the definition: whether one behind that of place `own` is for it too. A later sequence
 * has the rows from where it begins up to where one behind it begins, so that one pass from the last on knows all of them. */
SB_CUDA_FUNCTION bool sb_cuda_paged_is_covered(const sb_cuda_paged_scatter *p, const sb_pages_place *own, int64_t page,
                                               int64_t at) {
    int64_t end = p->pages.new_rows;
    if (own->left > 1 && sb_cuda_paged_written(p, own->sequence, own->before + 1, own->left - 1, page, at))
        return true;
    for (int64_t next = p->pages.sequences - 1; next > own->sequence; next--) {
        const int64_t begin = sb_pages_begin(&p->pages, next);
        if (begin < end && sb_cuda_paged_written(p, next, 0, end - begin, page, at))
            return true;
        end = begin < end ? begin : end;
    }
    return false;
}

/* Where new row `row` goes; NULL: nowhere, since another one is written there, or, with a fault, there is no room. */
SB_CUDA_FUNCTION char *sb_cuda_paged_row(const sb_cuda_paged_scatter *p, int64_t row) {
    int64_t at;
    const sb_pages_place place = sb_pages_of_row(&p->pages, row);
    const int64_t key = sb_cuda_paged_key(p, place.sequence, place.before);
    if (key < 0) {
        *p->fault = SB_FAULT_INDEX;
        return NULL;
    }
    const int64_t page = sb_pages_find(&p->pages, place.sequence, key, &at);
    return sb_cuda_paged_is_covered(p, &place, page, at) ? NULL : p->out + page * p->to_page + at * p->to_row;
}

#endif
