/* Where a new row goes on the pages of a cache (paged.cuh), found by a whole warp, 32 sequences at a time from the last one on. */
#ifndef SB_CUDA_MOVING_PAGED_ROW_CUH
#define SB_CUDA_MOVING_PAGED_ROW_CUH

#include "cuda/common/shuffle.cuh"
#include "cuda/moving/paged.cuh"

/* sb_pages_of_row. */
SB_CUDA_FUNCTION sb_pages_place sb_cuda_paged_place_by_warp(const sb_pages *pages, int64_t row) {
    const int lane = (int)threadIdx.x % 32;
    sb_pages_place place = {0, row, 0};
    int64_t end = pages->new_rows;
    SB_CUDA_KEEP_LOOP
    for (int64_t top = pages->sequences; top > 1; top -= 32) {
        const int64_t sequence = top - 1 - lane;
        const int64_t begin = sequence > 0 ? sb_pages_begin(pages, sequence) : end;
        const int owner = sb_cuda_first_lane(sequence > 0 && begin <= row);
        const int64_t least = sb_cuda_least_so_far_s64(begin < end ? begin : end, lane);
        if (owner >= 0) {
            place.sequence = top - 1 - owner;
            place.before = row - sb_cuda_tell_s64(begin, owner);
            end = owner > 0 ? sb_cuda_tell_s64(least, owner - 1) : end;
            break;
        }
        end = sb_cuda_tell_s64(least, 31);
    }
    place.left = end - row;
    return place;
}

SB_CUDA_FUNCTION sb_cuda_paged_begun sb_cuda_paged_begin_by_warp(const sb_cuda_paged_scatter *p, int64_t row) {
    sb_cuda_paged_begun begun;
    begun.place = sb_cuda_paged_place_by_warp(&p->pages, row);
    begun.start = sb_cuda_paged_start(p, begun.place.sequence);
    return begun;
}

/* sb_cuda_paged_written by the warp's threads together. */
SB_CUDA_FUNCTION bool sb_cuda_paged_written_by_warp(const sb_cuda_paged_scatter *p, int64_t sequence, int64_t before,
                                                    int64_t count, sb_cuda_paged_target target) {
    const sb_cuda_paged_lane own = {(int64_t)threadIdx.x % 32, 32};
    return sb_cuda_first_lane(sb_cuda_paged_written(p, sequence, before, count, target, own)) >= 0;
}

/* sb_cuda_paged_is_covered. Sequences with no more rows than a page a thread looks at by itself, longer ones all of them. */
SB_CUDA_FUNCTION bool sb_cuda_paged_is_covered_by_warp(const sb_cuda_paged_scatter *p, const sb_pages_place *place,
                                                       sb_cuda_paged_target target) {
    const int lane = (int)threadIdx.x % 32;
    const sb_cuda_paged_lane alone = {0, 1};
    int64_t end = p->pages.new_rows;
    if (sb_cuda_paged_may_be_again(p, place) &&
        sb_cuda_paged_written_by_warp(p, place->sequence, place->before + 1, place->left - 1, target))
        return true;
    SB_CUDA_KEEP_LOOP
    for (int64_t top = p->pages.sequences; top - 1 > place->sequence; top -= 32) {
        const int64_t next = top - 1 - lane;
        const bool is_behind = next > place->sequence;
        const int64_t begin = is_behind ? sb_pages_begin(&p->pages, next) : end;
        const int64_t least = sb_cuda_least_so_far_s64(begin < end ? begin : end, lane);
        const int64_t ahead = sb_cuda_tell_s64(least, lane > 0 ? lane - 1 : 0);
        const int64_t count = is_behind ? (lane > 0 ? ahead : end) - begin : 0;
        bool is_covered =
            count > 0 && count <= p->pages.rows && sb_cuda_paged_written(p, next, 0, count, target, alone);
        if (sb_cuda_first_lane(is_covered) >= 0)
            return true;
        bool is_long = count > p->pages.rows;
        for (int owner = sb_cuda_first_lane(is_long); owner >= 0; owner = sb_cuda_first_lane(is_long)) {
            if (sb_cuda_paged_written_by_warp(p, top - 1 - owner, 0, sb_cuda_tell_s64(count, owner), target))
                return true;
            is_long = is_long && lane != owner;
        }
        end = sb_cuda_tell_s64(least, 31);
    }
    return false;
}

#endif
