/* Where new rows go on the pages of a cache: ops/pages.h. */
#ifndef SB_CUDA_MOVING_PAGED_CUH
#define SB_CUDA_MOVING_PAGED_CUH

#include "cuda/common/index.cuh"
#include "cuda/moving/tensor_scatter_parameters.h"

/* Where a sequence's first row goes among its keys, as its caller says. */
SB_CUDA_FUNCTION int64_t sb_cuda_paged_start(const sb_cuda_paged_scatter *p, int64_t sequence) {
    return SB_CUDA_CONST_ELEMENT(int64_t, p->starts, sequence * p->start_step);
}

/* The key that a sequence's row is which stands `before` rows behind its first; -1: there is no room for it. */
SB_CUDA_FUNCTION int64_t sb_cuda_paged_key_behind(const sb_cuda_paged_scatter *p, int64_t start, int64_t before) {
    const int64_t room = sb_pages_room(&p->pages);
    return start < 0 || start > room || before >= room - start ? -1 : start + before;
}

SB_CUDA_FUNCTION int64_t sb_cuda_paged_key(const sb_cuda_paged_scatter *p, int64_t sequence, int64_t before) {
    return sb_cuda_paged_key_behind(p, sb_cuda_paged_start(p, sequence), before);
}

/* The row of a page that a row goes to; page -1: none, since there is no room for it, or it is nobody's. */
typedef struct sb_cuda_paged_target {
    int64_t page, at;
} sb_cuda_paged_target;

/* Threads that share a search out: each looks at one row in `lanes`, from its own on. */
typedef struct sb_cuda_paged_lane {
    int64_t lane, lanes;
} sb_cuda_paged_lane;

/* The page of a sequence's key, which there is room for. */
SB_CUDA_FUNCTION int64_t sb_cuda_paged_page(const sb_cuda_paged_scatter *p, int64_t sequence, int64_t key) {
    sb_cuda_take(&key, p->pages.rows);
    return sb_pages_hold(&p->pages, sb_pages_entry(&p->pages, sequence, key));
}

/* Whether one of `count` rows of `sequence`, from the one on that `before` stand before, goes to the target. Of its keys
 * those count that are row `at` of their page, one in as many as a page has. */
SB_CUDA_FUNCTION bool sb_cuda_paged_written(const sb_cuda_paged_scatter *p, int64_t sequence, int64_t before,
                                            int64_t count, sb_cuda_paged_target target, sb_cuda_paged_lane own) {
    const int64_t first = sb_cuda_paged_key(p, sequence, before), rows = p->pages.rows;
    if (first < 0)
        return false;
    int64_t column = first;
    const int64_t distance = target.at - sb_cuda_take(&column, rows);
    SB_CUDA_KEEP_LOOP
    for (int64_t more = (distance < 0 ? distance + rows : distance) + own.lane * rows; more < count;
         more += own.lanes * rows) {
        const int64_t key = sb_cuda_paged_key(p, sequence, before + more);
        if (key >= 0 && sb_cuda_paged_page(p, sequence, key) == target.page)
            return true;
    }
    return false;
}

/* Whether a sequence has so many rows that one behind its row at `place` may be for the same row of a page. */
SB_CUDA_FUNCTION bool sb_cuda_paged_may_be_again(const sb_cuda_paged_scatter *p, const sb_pages_place *place) {
    return place->left > p->pages.rows;
}

/* Of rows for one place the last is written, as by the definition: whether one behind that of place `place` is for it too. A later
 * sequence has the rows from where it begins up to where one behind it begins, so that one pass from the last on knows all of them. */
SB_CUDA_FUNCTION bool sb_cuda_paged_is_covered(const sb_cuda_paged_scatter *p, const sb_pages_place *place,
                                               sb_cuda_paged_target target) {
    const sb_cuda_paged_lane alone = {0, 1};
    int64_t end = p->pages.new_rows;
    if (sb_cuda_paged_may_be_again(p, place) &&
        sb_cuda_paged_written(p, place->sequence, place->before + 1, place->left - 1, target, alone))
        return true;
    for (int64_t next = p->pages.sequences - 1; next > place->sequence; next--) {
        const int64_t begin = sb_pages_begin(&p->pages, next);
        if (begin < end && sb_cuda_paged_written(p, next, 0, end - begin, target, alone))
            return true;
        end = begin < end ? begin : end;
    }
    return false;
}

/* What is known of a new row before its page is looked up: asked for in one go with what else the row is made of. */
typedef struct sb_cuda_paged_begun {
    sb_pages_place place;
    int64_t start;
} sb_cuda_paged_begun;

SB_CUDA_FUNCTION sb_cuda_paged_begun sb_cuda_paged_begin(const sb_cuda_paged_scatter *p, int64_t row) {
    sb_cuda_paged_begun begun;
    begun.place = sb_pages_of_row(&p->pages, row);
    begun.start = sb_cuda_paged_start(p, begun.place.sequence);
    return begun;
}

/* Where such a row goes. That there is no room for it is a fault, unless it is nobody's. */
SB_CUDA_FUNCTION sb_cuda_paged_target sb_cuda_paged_aim(const sb_cuda_paged_scatter *p,
                                                        const sb_cuda_paged_begun *begun) {
    const int64_t key = sb_cuda_paged_key_behind(p, begun->start, begun->place.before);
    sb_cuda_paged_target target = {-1, 0};
    if (key < 0) {
        if (begun->start != SB_PAGES_NOBODY)
            *p->fault = SB_FAULT_INDEX;
        return target;
    }
    int64_t column = key;
    target.at = sb_cuda_take(&column, p->pages.rows);
    target.page = sb_pages_hold(&p->pages, sb_pages_entry(&p->pages, begun->place.sequence, column));
    return target;
}

SB_CUDA_FUNCTION char *sb_cuda_paged_at(const sb_cuda_paged_scatter *p, sb_cuda_paged_target target) {
    return p->out + target.page * p->to_page + target.at * p->to_row;
}

/* The same by one thread; NULL: nowhere, also where another row is written there. */
SB_CUDA_FUNCTION char *sb_cuda_paged_end(const sb_cuda_paged_scatter *p, const sb_cuda_paged_begun *begun) {
    const sb_cuda_paged_target target = sb_cuda_paged_aim(p, begun);
    return target.page < 0 || sb_cuda_paged_is_covered(p, &begun->place, target) ? NULL : sb_cuda_paged_at(p, target);
}

SB_CUDA_FUNCTION char *sb_cuda_paged_row(const sb_cuda_paged_scatter *p, int64_t row) {
    const sb_cuda_paged_begun begun = sb_cuda_paged_begin(p, row);
    return sb_cuda_paged_end(p, &begun);
}

#endif
