/* PagedAppend of many rows of 16 bits whose elements lie in eights of 16 bytes, and are all turned, an element with that half a head further
 * on: a block for each row. What a row needs to know, where it goes and which row of the tables turns it, each thread asks for once, and
 * whether a later row is for the same place all of them find out together; then each takes eight pairs, or eight values, at a time. (By a
 * thread for each pair, which asks all of that for itself, 512 rows of 32 and 8 heads of 128 took 37 us on an H200.) */
#include "cuda/common/halves.cuh"
#include "cuda/moving/paged.cuh"
#include "cuda/moving/paged_append_parameters.h"
#include "cuda/rows/rotary.cuh"

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

/* Whether the block finds that a later row is for the target; each thread looks at its part. Barriers are the caller's. */
SB_CUDA_FUNCTION void look_behind(const sb_cuda_paged_scatter *p, const sb_cuda_paged_begun *begun,
                                  sb_cuda_paged_target target, int *covered) {
    const sb_cuda_paged_lane own = {(int64_t)threadIdx.x, SB_CUDA_APPEND_THREADS};
    if (target.page >= 0 && sb_cuda_paged_is_covered(p, &begun->place, target, own))
        *covered = 1;
}

/* Eight pairs from unit `unit` on of head `head`, which begins at x and goes to y. */
template <int HALF>
SB_CUDA_FUNCTION void turn_eight(const sb_cuda_rotary *p, int64_t table, int unit, const char *x, char *y) {
    const int64_t behind = 2 * p->half;
    float first[8], second[8], cosines[8], sines[8], turned[8];
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(x + 2 * unit), first);
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(x + 2 * unit + behind), second);
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(p->cosines + table * p->cosine_steps[1] + 2 * unit), cosines);
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(p->sines + table * p->sine_steps[1] + 2 * unit), sines);
    SB_CUDA_UNROLL
    for (int j = 0; j < 8; j++)
        turned[j] = sb_cuda_turned_first(first[j], second[j], cosines[j], sines[j]);
    sb_cuda_store_eight(y + 2 * unit, sb_cuda_round_eight<HALF>(turned));
    SB_CUDA_UNROLL
    for (int j = 0; j < 8; j++)
        turned[j] = sb_cuda_turned_second(first[j], second[j], cosines[j], sines[j]);
    sb_cuda_store_eight(y + 2 * unit + behind, sb_cuda_round_eight<HALF>(turned));
}

/* The row's heads of queries or keys, to y. */
template <int HALF> SB_CUDA_FUNCTION void turn_row(const sb_cuda_rotary *p, int64_t row, int64_t table, char *y) {
    const int eights = (int)p->half / 8, count = (int)p->heads * eights;
    const char *x = p->x + row * p->x_steps[1];
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < count; i += SB_CUDA_APPEND_THREADS) {
        const int head = i / eights, unit = (i - head * eights) * 8;
        turn_eight<HALF>(p, table, unit, x + head * p->x_steps[2], y + head * p->y_steps[2]);
    }
}

SB_CUDA_FUNCTION void move_row(const char *from, int64_t values, char *to) {
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < (int)values / 8; i += SB_CUDA_APPEND_THREADS)
        sb_cuda_store_eight(to + 16 * i, sb_cuda_load_eight(from + 16 * i));
}

template <int HALF> SB_CUDA_FUNCTION void append_rows(const sb_cuda_paged_append *p) {
    SB_CUDA_SHARED int covered[2]; /* of the key, and of the value */
    SB_CUDA_KEEP_LOOP
    for (int64_t row = blockIdx.x; row < p->rows; row += gridDim.x) {
        const int64_t query_table = table_row(&p->queries, row), key_table = table_row(&p->keys, row);
        const sb_cuda_paged_begun key = sb_cuda_paged_begin(&p->key_cache, row);
        const sb_cuda_paged_begun value = sb_cuda_paged_begin(&p->value_cache, row);
        if (threadIdx.x < 2)
            covered[threadIdx.x] = 0;
        if (query_table >= 0)
            turn_row<HALF>(&p->queries, row, query_table, p->queries.y + row * p->queries.y_steps[1]);
        const sb_cuda_paged_target key_target = sb_cuda_paged_aim(&p->key_cache, &key);
        const sb_cuda_paged_target value_target = sb_cuda_paged_aim(&p->value_cache, &value);
        SB_CUDA_BARRIER();
        look_behind(&p->key_cache, &key, key_target, &covered[0]);
        look_behind(&p->value_cache, &value, value_target, &covered[1]);
        SB_CUDA_BARRIER();
        if (key_table >= 0 && key_target.page >= 0 && !covered[0])
            turn_row<HALF>(&p->keys, row, key_table, sb_cuda_paged_at(&p->key_cache, key_target));
        if (value_target.page >= 0 && !covered[1])
            move_row(p->value_cache.from + row * p->value_cache.from_row, p->values,
                     sb_cuda_paged_at(&p->value_cache, value_target));
        SB_CUDA_BARRIER();
    }
}

SB_CUDA_BLOCK_KERNEL(sb_cuda_paged_append_rows_f16, sb_cuda_paged_append, p) {
    append_rows<SB_CUDA_F16>(p);
}
SB_CUDA_BLOCK_KERNEL(sb_cuda_paged_append_rows_bf16, sb_cuda_paged_append, p) {
    append_rows<SB_CUDA_BF16>(p);
}
