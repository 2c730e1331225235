/* PagedAppend of many rows of 16 bits whose elements lie in eights of 16 bytes, and are all turned, an element with that half a head further
 * on: a warp for each row, or several that share it, so that no row waits for another one. Where the row goes a warp's threads find out
 * together, and a thread has the same eight pairs of several heads, for which it asks at once. */
#include "cuda/common/halves.cuh"
#include "cuda/moving/paged_append_parameters.h"
#include "cuda/moving/paged_row.cuh"
#include "cuda/rows/rotary.cuh"

/* Heads, or eights of values, that a thread has asked for at once. */
#define BATCH 2

/* The row of the tables that turns a token; -1: none, since it is behind the used ones or, with a fault, its position is none. */
SB_CUDA_FUNCTION int64_t table_row(const sb_cuda_rotary *p, int64_t token) {
    if (p->positions == NULL)
        return token;
    if (sb_cuda_used(p->used_batch, p->batch) < 1 || token >= sb_cuda_used(p->used_tokens, p->tokens))
        return -1;
    const int64_t row = SB_CUDA_CONST_ELEMENT(int64_t, p->positions, token * p->position_steps[1]);
    if (row >= 0 && row < sb_cuda_used(p->used_rows, p->rows))
        return row;
    *p->fault = SB_FAULT_INDEX;
    return -1;
}

/* Eight pairs of a head to y, of which the second elements are `behind` bytes behind the first. */
template <int HALF>
SB_CUDA_FUNCTION void turn_eight(sb_cuda_eight firsts, sb_cuda_eight seconds, const float *cosines, const float *sines,
                                 char *y, int64_t behind) {
    float first[8], second[8];
    sb_cuda_widen_eight<HALF>(firsts, first);
    sb_cuda_widen_eight<HALF>(seconds, second);
    sb_cuda_store_eight(y, sb_cuda_turned_eight<HALF>(first, second, cosines, sines, false));
    sb_cuda_store_eight(y + behind, sb_cuda_turned_eight<HALF>(first, second, cosines, sines, true));
}

/* A warp's part of a row: number `share` of `shares`. */
typedef struct part_of_row {
    int share, shares;
} part_of_row;

/* A row's heads of queries or keys, the row of the tables that turns them, and where they go. */
typedef struct heads_of_row {
    const char *from, *cosines, *sines;
    char *to; /* NULL: nowhere */
    int64_t from_step, to_step;
    int count, half;
} heads_of_row;

SB_CUDA_FUNCTION heads_of_row find_heads(const sb_cuda_rotary *p, int64_t row, int64_t table, char *to) {
    const heads_of_row heads = {p->x + row * p->x_steps[1],
                                p->cosines + table * p->cosine_steps[1],
                                p->sines + table * p->sine_steps[1],
                                table >= 0 ? to : NULL,
                                p->x_steps[2],
                                p->y_steps[2],
                                (int)p->heads,
                                (int)p->half};
    return heads;
}

template <int HALF> SB_CUDA_FUNCTION void turn_heads(const heads_of_row *heads, part_of_row part) {
    const int lane = (int)threadIdx.x % 32, eights = heads->half / 8, at_once = 32 / eights, line = lane / eights;
    const int unit = 16 * (lane - line * eights), count = line < at_once ? heads->count : 0;
    const int own = part.share * at_once + line, together = part.shares * at_once;
    const int64_t behind = 2 * heads->half, from_step = together * heads->from_step,
                  to_step = together * heads->to_step;
    const char *from = heads->from + own * heads->from_step + unit;
    char *to = heads->to + own * heads->to_step + unit;
    float cosines[8], sines[8];
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(heads->cosines + unit), cosines);
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(heads->sines + unit), sines);
    SB_CUDA_KEEP_LOOP
    for (int head = own; head < count; head += BATCH * together) {
        sb_cuda_eight firsts[BATCH], seconds[BATCH];
        SB_CUDA_UNROLL
        for (int i = 0; i < BATCH; i++) {
            const char *own_from = head + i * together < count ? from + i * from_step : from;
            firsts[i] = sb_cuda_load_eight(own_from);
            seconds[i] = sb_cuda_load_eight(own_from + behind);
        }
        SB_CUDA_UNROLL
        for (int i = 0; i < BATCH; i++) {
            if (head + i * together < count)
                turn_eight<HALF>(firsts[i], seconds[i], cosines, sines, to + i * to_step, behind);
        }
        from += BATCH * from_step;
        to += BATCH * to_step;
    }
}

SB_CUDA_FUNCTION void move_row(const char *from, int eights, char *to, part_of_row part) {
    const int step = 32 * part.shares;
    SB_CUDA_KEEP_LOOP
    for (int at = 32 * part.share + (int)threadIdx.x % 32; at < eights; at += BATCH * step) {
        sb_cuda_eight moved[BATCH];
        SB_CUDA_UNROLL
        for (int i = 0; i < BATCH; i++)
            moved[i] = sb_cuda_load_eight(from + 16 * (at + i * step < eights ? at + i * step : at));
        SB_CUDA_UNROLL
        for (int i = 0; i < BATCH; i++) {
            if (at + i * step < eights)
                sb_cuda_store_eight(to + 16 * (at + i * step), moved[i]);
        }
    }
}

template <int HALF> SB_CUDA_FUNCTION void append_rows(const sb_cuda_paged_append *p) {
    const int warps = SB_CUDA_APPEND_THREADS / 32;
    SB_CUDA_KEEP_LOOP
    for (int64_t item = (int64_t)blockIdx.x * warps + threadIdx.x / 32;; item += (int64_t)gridDim.x * warps) {
        int64_t row = item;
        const part_of_row part = {(int)sb_cuda_take(&row, p->shares), p->shares};
        if (row >= p->rows)
            break;
        const sb_cuda_paged_begun begun = sb_cuda_paged_begin_by_warp(&p->key_cache, row);
        const int64_t query_table = table_row(&p->queries, row), key_table = table_row(&p->keys, row);
        const sb_cuda_paged_target target = sb_cuda_paged_aim(&p->key_cache, &begun);
        const bool has_place =
            target.page >= 0 && !sb_cuda_paged_is_covered_by_warp(&p->key_cache, &begun.place, target);
        heads_of_row heads = find_heads(&p->queries, row, query_table, p->queries.y + row * p->queries.y_steps[1]);
        SB_CUDA_KEEP_LOOP
        for (int turned = 0; turned < 2; turned++) {
            if (heads.to != NULL)
                turn_heads<HALF>(&heads, part);
            heads = find_heads(&p->keys, row, key_table, has_place ? sb_cuda_paged_at(&p->key_cache, target) : NULL);
        }
        if (has_place)
            move_row(p->value_cache.from + row * p->value_cache.from_row, (int)p->values / 8,
                     sb_cuda_paged_at(&p->value_cache, target), part);
    }
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_paged_append_rows_f16, sb_cuda_paged_append, p, SB_CUDA_APPEND_THREADS,
                             SB_CUDA_APPEND_BLOCKS) {
    append_rows<SB_CUDA_F16>(p);
}
SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_paged_append_rows_bf16, sb_cuda_paged_append, p, SB_CUDA_APPEND_THREADS,
                             SB_CUDA_APPEND_BLOCKS) {
    append_rows<SB_CUDA_BF16>(p);
}
