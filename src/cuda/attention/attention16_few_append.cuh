/* The new row of one sequence that attention of few rows appends itself (attention16_few.cuh): what PagedAppend would have done right ahead
 * of it. A block that scores the new key, or sums its value, puts it among those that it has copied, where it overwrites whatever the
 * cache had; queries are turned in registers. The blocks of the first split that rows see also write the row to the cache, and the turned
 * queries, all of which are for those who come later.
 *
 * Where the kernels ahead write nothing of the cache, all but the new row is asked for before they have ended. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_FEW_APPEND_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_FEW_APPEND_CUH

#include "cuda/attention/attention16_few_parameters.h"
#include "cuda/common/halves.cuh"
#include "cuda/rows/rotary.cuh"

/* What is no place: one out of range, and that of a row that is nobody's. */
#define SB_ATTENTION16_ASTRAY (-1)
#define SB_ATTENTION16_NOWHERE (-2)

/* Where the row goes among the keys, which without a row of the tables is astray, and which row of the tables turns it; -1: none. */
typedef struct sb_attention16_new_row {
    int32_t at, table;
} sb_attention16_new_row;

SB_CUDA_FUNCTION sb_attention16_new_row sb_attention16_find_new(const sb_cuda_attention16_append *append) {
    const int64_t start = *append->start, position = *append->position;
    const bool has_room = start >= 0 && start < append->room, has_row = position >= 0 && position < append->table_rows;
    const int32_t no_place = has_row && start == SB_PAGES_NOBODY ? SB_ATTENTION16_NOWHERE : SB_ATTENTION16_ASTRAY;
    const sb_attention16_new_row row = {has_row && has_room ? (int32_t)start : no_place,
                                        has_row ? (int32_t)position : -1};
    return row;
}

/* A thread's pairs of queries as sb_attention16_few_load_queries has them, turned: of a head the element with that half of D further on. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_turn_queries(const sb_cuda_attention16_append *append, sb_attention16_new_row row,
                                                  uint32_t queries[D / 16][2]) {
    const int64_t table = row.table < 0 ? 0 : row.table;
    const char *cosines = append->cosines + table * append->cosine_step + (int)threadIdx.x % 4 * 4;
    const char *sines = append->sines + table * append->sine_step + (int)threadIdx.x % 4 * 4;
    uint32_t cosine_pairs[D / 16], sine_pairs[D / 16];
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 16; i++) {
        cosine_pairs[i] = *(const uint32_t *)(const void *)(cosines + 16 * i);
        sine_pairs[i] = *(const uint32_t *)(const void *)(sines + 16 * i);
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 16; i++) {
        uint32_t *first = &queries[i / 2][i % 2], *second = &queries[(i + D / 16) / 2][i % 2];
        float x1[2], x2[2], c[2], s[2];
        sb_cuda_widen_pair<HALF>(*first, &x1[0], &x1[1]);
        sb_cuda_widen_pair<HALF>(*second, &x2[0], &x2[1]);
        sb_cuda_widen_pair<HALF>(cosine_pairs[i], &c[0], &c[1]);
        sb_cuda_widen_pair<HALF>(sine_pairs[i], &s[0], &s[1]);
        *first = sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(sb_cuda_turned_first(x1[0], x2[0], c[0], s[0]),
                                                                       sb_cuda_turned_first(x1[1], x2[1], c[1], s[1])));
        *second = sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(
            sb_cuda_turned_second(x1[0], x2[0], c[0], s[0]), sb_cuda_turned_second(x1[1], x2[1], c[1], s[1])));
    }
}

/* Eight columns of the new key of a head from `column` on, turned. */
template <int HALF, int D>
SB_CUDA_FUNCTION sb_cuda_eight sb_attention16_new_key(const sb_cuda_attention16_append *append,
                                                      sb_attention16_new_row row, int32_t key_head, int column) {
    const int pair = column % (D / 2);
    const char *from = append->keys + key_head * append->key_step + 2 * pair;
    float first[8], second[8], cosines[8], sines[8];
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(from), first);
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(from + D), second);
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(append->cosines + row.table * append->cosine_step + 2 * pair),
                              cosines);
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(append->sines + row.table * append->sine_step + 2 * pair), sines);
    return sb_cuda_turned_eight<HALF>(first, second, cosines, sines, column >= D / 2);
}

SB_CUDA_FUNCTION sb_cuda_eight sb_attention16_new_value(const sb_cuda_attention16_append *append, int32_t key_head,
                                                        int column) {
    return sb_cuda_load_eight(append->values + key_head * append->value_step + 2 * column);
}

/* ---- to memory ---- */

template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_give_key(const sb_cuda_attention16_append *append,
                                              const sb_cuda_attention_array *k, sb_attention16_new_row row,
                                              int32_t key_head) {
    const int column = 8 * (int)threadIdx.x;
    if (column < D)
        sb_cuda_store_eight(k->data + (key_head * k->head + row.at * k->row + column) * 2,
                            sb_attention16_new_key<HALF, D>(append, row, key_head, column));
}

template <int D>
SB_CUDA_FUNCTION void sb_attention16_give_value(const sb_cuda_attention16_append *append,
                                                const sb_cuda_attention_array *v, sb_attention16_new_row row,
                                                int32_t key_head) {
    const int column = 8 * (int)threadIdx.x;
    if (column < D)
        sb_cuda_store_eight(v->data + (key_head * v->head + row.at * v->row + column) * 2,
                            sb_attention16_new_value(append, key_head, column));
}

/* By the first warp: turned queries of `group` heads, of which a thread has pairs of head lane / 4. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_give_queries(const sb_cuda_attention_array *q, int32_t key_head, int32_t group,
                                                  const uint32_t queries[D / 16][2]) {
    const int head = (int)threadIdx.x / 4, pair = (int)threadIdx.x % 4 * 2;
    if (head >= group)
        return;
    char *to = q->data + (key_head * group + head) * q->head * 2;
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 8; i++)
        *(uint32_t *)(void *)(to + (8 * i + pair) * 2) = queries[i / 2][i % 2];
}

#endif
