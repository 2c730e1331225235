/* What a row comes to: all that its blocks have found, which those of the one that ends it put together. */
#ifndef SB_CUDA_ROWS_CHOOSE_SUM_CUH
#define SB_CUDA_ROWS_CHOOSE_SUM_CUH

#include "cuda/rows/choose_look.cuh"

/* ---- pairs of the log-probability ---- */

/* Pairs that a thread has at a time: two in each of so many accesses. */
#define PAIR_LOADS 4
#define PAIRS (2 * PAIR_LOADS)
#define EACH_PAIRS(first, begin, count)                                                                                \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int64_t first = (begin) + 2 * (int64_t)threadIdx.x; first < (count); first += PAIRS * THREADS)

/* Those behind the last are such that add nothing. */
SB_CUDA_FUNCTION void load_pairs(const sb_logp_pair *pairs, int64_t first, int64_t count, sb_logp_pair *held) {
    SB_CUDA_UNROLL
    for (int i = 0; i < PAIR_LOADS; i++) {
        const int64_t at = first + 2 * i * THREADS;
        held[2 * i].maximum = held[2 * i + 1].maximum = -SB_LOGP_EXPONENT_LIMIT;
        held[2 * i].sum = held[2 * i + 1].sum = 0.0f;
        if (at < count)
            sb_cuda_load_four((const char *)&pairs[at], sizeof(float), &held[2 * i]);
    }
}

SB_CUDA_FUNCTION int32_t largest_of_pairs(const sb_logp_pair *held, int32_t maximum) {
    SB_CUDA_UNROLL
    for (int i = 0; i < PAIRS; i++)
        maximum = LARGER(held[i].maximum, maximum);
    return maximum;
}

SB_CUDA_FUNCTION int64_t units_of_pairs(const sb_logp_pair *held, int32_t maximum) {
    int64_t units = 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < PAIRS; i++)
        units += sb_logp_units(held[i], maximum);
    return units;
}

/* ---- all of a row ---- */

/* The thread's parts, without their pairs, and choices behind. */
SB_CUDA_FUNCTION void find_in_parts(const sb_cuda_choose *p, const sb_choosing *c, int64_t choice, sb_choose_sum *sum) {
    const sb_cuda_choose_part *parts = p->part + choice * p->parts;
    sb_choose_found *found = &sum->found;
    found->first = found->drawn = 0;
    found->logit = 0.0f;
    found->odd = (int32_t)c->vocabulary;
    sum->is_lost = 0;
    SB_CUDA_KEEP_LOOP
    for (int64_t i = threadIdx.x; i < p->parts; i += THREADS) {
        const sb_cuda_choose_part part = parts[i];
        found->first = LARGER(part.first, found->first);
        found->logit = part.drawn > found->drawn ? part.logit : found->logit;
        found->drawn = LARGER(part.drawn, found->drawn);
        found->odd = SMALLER(part.odd, found->odd);
    }
    SB_CUDA_KEEP_LOOP
    for (int64_t later = choice + 1 + threadIdx.x; later < p->choices; later += THREADS)
        sum->is_lost |= p->integers[later * SB_CHOOSE_INTEGER_COLUMNS + SB_CHOOSE_SLOT] == c->slot;
}

/* Of the warp's threads, but for units. */
SB_CUDA_FUNCTION void sum_of_warp(const sb_choosing *c, sb_choose_sum *sum) {
    const sb_choose_found own = sum->found;
    sum->found = over_warp(c, &own);
    sum->maximum = sb_cuda_largest_s32(sum->maximum);
    sum->is_lost = sb_cuda_largest_s32(sum->is_lost);
}

/* Of the block's. */
SB_CUDA_FUNCTION void sum_of_block(const sb_choosing *c, sb_choose_sum *of_warps, sb_choose_sum *sum) {
    sum_of_warp(c, sum);
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 32] = *sum;
    SB_CUDA_BARRIER();
    *sum = of_warps[threadIdx.x % WARPS];
    sum_of_warp(c, sum);
}

/* Everything of a row, for all threads of a block. Exponents and sums take two steps, since units are relative to the largest; pairs that a
 * thread has room for are asked for once. `of_warps` and `units` are the block's. */
SB_CUDA_FUNCTION sb_choose_sum sum_parts(const sb_cuda_choose *p, const sb_choosing *c, int64_t choice,
                                         sb_choose_sum *of_warps, int64_t *units) {
    const int64_t count = p->parts * SB_CUDA_CHOOSE_PAIRS;
    const sb_logp_pair *pairs = p->pairs + choice * count;
    sb_logp_pair held[PAIRS], more[PAIRS];
    sb_choose_sum sum;
    load_pairs(pairs, 2 * (int64_t)threadIdx.x, count, held);
    find_in_parts(p, c, choice, &sum);
    sum.maximum = largest_of_pairs(held, INT32_MIN);
    sum.units = 0;
    EACH_PAIRS(first, PAIRS * THREADS, count) {
        load_pairs(pairs, first, count, more);
        sum.maximum = largest_of_pairs(more, sum.maximum);
    }
    sum_of_block(c, of_warps, &sum);
    if (sum.found.odd < c->vocabulary) /* a pair with a NaN has no sum */
        return sum;
    sum.units = units_of_pairs(held, sum.maximum);
    EACH_PAIRS(first, PAIRS * THREADS, count) {
        load_pairs(pairs, first, count, more);
        sum.units += units_of_pairs(more, sum.maximum);
    }
    sum.units = sum_of_numbers_by(units, sum.units);
    return sum;
}

#endif
