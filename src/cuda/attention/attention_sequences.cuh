/* Whose rows are which, of several sequences whose new rows lie one behind the other (ops/pages.h): found by a warp together, 32
 * sequences at a time from the last one on, since where one ends is known by those behind it. */
#ifndef SB_CUDA_ATTENTION_ATTENTION_SEQUENCES_CUH
#define SB_CUDA_ATTENTION_ATTENTION_SEQUENCES_CUH

#include "cuda/attention/attention_parameters.h"
#include "cuda/common/index.cuh"
#include "cuda/common/shuffle.cuh"
#include "ops/attention_values.h"

/* A sequence, and what was looked for in it. */
typedef struct sb_attention_sequence {
    int64_t number;      /* -1: there is none */
    int64_t begin, rows; /* its new rows */
    int64_t length;      /* its keys */
    int64_t index;       /* what is left of the index that was looked for */
    int64_t behind;      /* rows of parts of the sequences behind it */
} sb_attention_sequence;

/* The splits that rows of a sequence may see; one where there is none, for whoever says what comes of rows without keys. */
typedef struct sb_attention_span {
    int64_t first, count;
} sb_attention_span;

SB_CUDA_FUNCTION sb_attention_span sb_attention_splits_of(const sb_cuda_attention *p, int64_t rows, int64_t length) {
    const int64_t first = sb_attention_reach_of(length - rows, length, p->left, p->right).first / SB_ATTENTION_SPLIT;
    const int64_t end = (length + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT;
    const sb_attention_span span = {first, end > first ? end - first : 1};
    return span;
}

/* What there is to find in a sequence: with `tile_rows` tiles of so many rows that share keys, each once or once for each split;
 * else, where that is 0, rows that have parts. */
SB_CUDA_FUNCTION int64_t sb_attention_count(const sb_cuda_attention *p, int64_t rows, int64_t length, int tile_rows,
                                            int64_t part_rows) {
    const int64_t sharing = rows * p->group;
    if (tile_rows == 0)
        return part_rows;
    if (sharing <= p->more_than || sharing > p->up_to)
        return 0;
    const int64_t tiles = (sharing + tile_rows - 1) / tile_rows;
    return p->splits != 0 ? tiles * sb_attention_splits_of(p, rows, length).count : tiles;
}

/* The sequence that has number `index` of all that there is to find, by a whole warp. */
SB_CUDA_FUNCTION sb_attention_sequence sb_attention_find_sequence(const sb_cuda_attention *p, int64_t index,
                                                                  int tile_rows) {
    const int lane = (int)threadIdx.x % 32;
    const int64_t room = p->past + p->fresh;
    int64_t next_begin = p->pages.new_rows, behind = 0;
    sb_attention_sequence found = {-1, 0, 0, 0, 0, 0};
    SB_CUDA_KEEP_LOOP
    for (int64_t top = p->pages.sequences; top > 0; top -= 32) {
        const int64_t sequence = top - 1 - lane;
        const int64_t given = sequence >= 0 ? p->lengths[sequence * p->lengths_stride] : 0;
        int64_t begin = sequence > 0 ? sb_pages_begin(&p->pages, sequence) : 0;
        begin = sb_cuda_least_so_far_s64(begin < next_begin ? begin : next_begin, lane);
        const int64_t after = sb_cuda_tell_s64(begin, lane > 0 ? lane - 1 : 0);
        const int64_t rows = (lane > 0 ? after : next_begin) - begin, length = sb_attention_length(given, room);
        const int64_t part_rows = rows * p->group <= p->parts_up_to ? rows : 0;
        const int64_t count = sb_attention_count(p, rows, length, tile_rows, part_rows);
        const int64_t counts = sb_cuda_sum_so_far_s64(count, lane);
        const int64_t parts = tile_rows == 0 ? counts : sb_cuda_sum_so_far_s64(part_rows, lane);
        const int owner = sb_cuda_first_lane(index < counts);
        if (owner >= 0) {
            found.number = top - 1 - owner;
            found.begin = sb_cuda_tell_s64(begin, owner);
            found.rows = sb_cuda_tell_s64(rows, owner);
            found.length = sb_cuda_tell_s64(length, owner);
            found.index = index - sb_cuda_tell_s64(counts - count, owner);
            found.behind = behind + sb_cuda_tell_s64(parts - part_rows, owner);
            return found;
        }
        index -= sb_cuda_tell_s64(counts, 31);
        behind += sb_cuda_tell_s64(parts, 31);
        next_begin = sb_cuda_tell_s64(begin, 31);
    }
    return found;
}

#endif
