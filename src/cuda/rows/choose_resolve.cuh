/* The search's end, by one block: of up to 1,024 keys, in one of which the goal is reached, that one. Keys are put into as many ranges of equal
 * width as there are threads, between the smallest and the largest, and so on with those of a range until it has one. */
#ifndef SB_CUDA_ROWS_CHOOSE_RESOLVE_CUH
#define SB_CUDA_ROWS_CHOOSE_RESOLVE_CUH

#include "cuda/rows/choose_cluster.cuh"

/* Keys that a thread has, and which of them are in play. */
#define HELD_KEYS (SB_CUDA_CHOOSE_LISTED / THREADS)
typedef struct sb_choose_held {
    uint64_t keys[HELD_KEYS];
    bool plays[HELD_KEYS];
} sb_choose_held;

SB_CUDA_FUNCTION sb_choose_held hold_gathered(const sb_cuda_choose_memory *m) {
    sb_choose_held held;
    SB_CUDA_UNROLL
    for (int i = 0; i < HELD_KEYS; i++) {
        const uint32_t at = threadIdx.x + i * THREADS;
        held.plays[i] = at < m->gathered_count;
        held.keys[i] = held.plays[i] ? m->gathered[at] : 0;
    }
    return held;
}

/* The smallest of the block's keys in play, and how many bits are behind the range in what a key is above it. */
SB_CUDA_FUNCTION uint64_t range_of_held(sb_cuda_choose_memory *m, const sb_choose_held *held, int *bits) {
    uint64_t largest = 0, smallest = 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < HELD_KEYS; i++) {
        largest = held->plays[i] ? LARGER(held->keys[i], largest) : largest;
        smallest = held->plays[i] ? LARGER(~held->keys[i], smallest) : smallest;
    }
    largest = largest_key_by(m->keys, largest);
    smallest = ~largest_key_by(m->keys, smallest);
    /* 2^bits * THREADS is above the difference, and not much: its float's exponent says how much. */
    const int exponent = (int)(sb_bits_from_f32((float)(largest - smallest)) >> 23) - 127;
    *bits = LARGER(exponent + 1 - SB_CUDA_CHOOSE_CLUSTER_THREAD_BITS, 0);
    return smallest;
}

/* The key with which the goal is reached, for all threads of the block. */
SB_CUDA_FUNCTION uint64_t resolve(const sb_choose_cluster *o) {
    sb_cuda_choose_memory *m = o->memory;
    sb_cuda_choose_slots *slots = &m->now.slots;
    const bool weighs = o->state.goal == SB_CHOOSE_BY_WEIGHT;
    sb_choose_held held = hold_gathered(m);
    sb_choose_search state = o->state;
    SB_CUDA_KEEP_LOOP
    for (;;) {
        int bits;
        slots->counts[threadIdx.x] = slots->low[threadIdx.x] = slots->high[threadIdx.x] = 0;
        const uint64_t smallest = range_of_held(m, &held, &bits);
        SB_CUDA_UNROLL
        for (int i = 0; i < HELD_KEYS; i++) {
            const int64_t units = weighs ? sb_choose_units(sb_choose_value(held.keys[i]), o->c->maximum) : 0;
            if (held.plays[i])
                add_to_slot(slots, (uint32_t)((held.keys[i] - smallest) >> bits), weighs, (uint64_t)units);
        }
        SB_CUDA_BARRIER();
        const uint32_t count = slots->counts[threadIdx.x];
        const int64_t own =
            weighs ? (int64_t)((uint64_t)slots->high[threadIdx.x] << 32) + slots->low[threadIdx.x] : count;
        const int64_t front = state.before + sum_behind_by(m->sums, own);
        if (!is_reached(o->c, &state, front) && is_reached(o->c, &state, front + own)) {
            m->before = (uint64_t)front;
            m->range = (uint64_t)threadIdx.x << 32 | count;
        }
        SB_CUDA_BARRIER();
        const uint32_t found = (uint32_t)(m->range >> 32), left = (uint32_t)m->range;
        state.before = (int64_t)m->before;
        SB_CUDA_UNROLL
        for (int i = 0; i < HELD_KEYS; i++) {
            held.plays[i] = held.plays[i] && (held.keys[i] - smallest) >> bits == found;
            if (held.plays[i] && left == 1)
                m->least = held.keys[i];
        }
        SB_CUDA_BARRIER();
        if (left == 1)
            return m->least;
    }
}

#endif
