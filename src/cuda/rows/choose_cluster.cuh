/* Leaving tokens out by a cluster of blocks, which has the row by itself: the search for the least key that is kept.
 *
 * A pass over all tokens puts them into ranges by how far they are behind the first (range_behind), in the block's shared memory. Each
 * thread of the cluster then adds one range up over the blocks, and so it is found in which one the goal is reached. Mostly that has few
 * tokens: they come together in the first block, which finds the one (choose_resolve.cuh). Where it has many, as where logits are equal,
 * further passes go by twelve bits of their keys each. */
#ifndef SB_CUDA_ROWS_CHOOSE_CLUSTER_CUH
#define SB_CUDA_ROWS_CHOOSE_CLUSTER_CUH

#include "cuda/contraction/cluster.cuh"
#include "cuda/rows/choose_row.cuh"
#include "cuda/rows/choose_search.cuh"

#define BLOCKS SB_CUDA_CHOOSE_BLOCKS
#define SLOTS SB_CUDA_CHOOSE_SLOTS

/* A row's search, as all threads of its cluster know it. */
typedef struct sb_choose_cluster {
    const sb_choosing *c;
    sb_cuda_choose_memory *memory;
    uint32_t rank;
    float heaviest; /* the largest logit, divided by the temperature */
    uint64_t light; /* the largest key that min_p leaves out; 0: none */
    sb_choose_search state;
} sb_choose_cluster;

/* ---- all tokens, once: four neighbours for each thread and turn ---- */

#define TURN (BLOCKS * THREADS * OWN)
#define EACH_CLUSTER_TURN(begin, vocabulary)                                                                           \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int64_t begin = 0; begin < (vocabulary); begin += TURN)

/* The logits of the thread's next tokens have been asked for. */
typedef struct sb_choose_ahead {
    int64_t token;
    float logits[OWN];
} sb_choose_ahead;

SB_CUDA_FUNCTION sb_choose_ahead look_ahead(const sb_choosing *c, uint32_t rank) {
    sb_choose_ahead ahead;
    ahead.token = ((int64_t)rank * THREADS + threadIdx.x) * OWN;
    load_own(c->logits, ahead.token, c->vocabulary, ahead.logits);
    return ahead;
}

/* The thread's next tokens, by their keys; how many there are. */
SB_CUDA_FUNCTION int next_keys(const sb_choosing *c, sb_choose_ahead *ahead, uint64_t *keys) {
    const int64_t left = c->vocabulary - ahead->token;
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN; i++)
        keys[i] = sb_choose_key(ahead->logits[i] * c->factor, ahead->token + i);
    ahead->token += TURN;
    load_own(c->logits, ahead->token, c->vocabulary, ahead->logits);
    return left < 0 ? 0 : left < OWN ? (int)left : OWN;
}

/* ---- ranges ---- */

/* The range of a token by how far its logit, divided by the temperature, is behind the first one's: the last for none. Of 1 and the distance 256
 * ranges for each power of 2, as its bits have it. Rounding keeps the order, so keys of a range are not in front of those of the next. What is
 * farther than 2^16, or where infinities meet, goes to range 0. */
SB_CUDA_FUNCTION uint32_t range_behind(float heaviest, uint64_t key) {
    const uint32_t distance = sb_bits_from_f32(heaviest - sb_choose_value(key) + 1.0f);
    const uint32_t range = (distance - 0x3f800000u) >> (23 - 8);
    return SLOTS - 1 - SMALLER(range, SLOTS - 1u);
}

/* Which tokens a pass is over: those from `least` on, and with `within` those of a range, whose keys begin as the search's prefix does. */
typedef struct sb_choose_scope {
    bool within;
    uint32_t range;
    int32_t bits; /* of the key, by which these are told apart */
} sb_choose_scope;

/* Where a token stands to the scope: below 0 behind, above 0 in front. */
SB_CUDA_FUNCTION int place_of(const sb_choose_cluster *o, const sb_choose_scope *scope, uint64_t key) {
    if (!scope->within)
        return 0;
    const uint32_t range = range_behind(o->heaviest, key);
    if (range != scope->range)
        return range > scope->range ? 1 : -1;
    const uint64_t own = above(key, o->state.end), common = above(o->state.prefix, o->state.end);
    return own > common ? 1 : own < common ? -1 : 0;
}

SB_CUDA_FUNCTION void clear_slots(sb_cuda_choose_slots *slots) {
    SB_CUDA_KEEP_LOOP
    for (int s = (int)threadIdx.x; s < SLOTS; s += THREADS)
        slots->counts[s] = slots->low[s] = slots->high[s] = 0;
}

SB_CUDA_FUNCTION void add_to_slot(sb_cuda_choose_slots *slots, uint32_t slot, bool weighs, uint64_t units) {
    add_to(&slots->counts[slot], 1);
    if (!weighs)
        return;
    const uint32_t low = (uint32_t)units, before = add_to(&slots->low[slot], low);
    const uint32_t high = (uint32_t)(units >> 32) + (before + low < low ? 1 : 0);
    if (high != 0)
        add_to(&slots->high[slot], high);
}

/* Puts the block's tokens of a scope into ranges, which are clear. */
SB_CUDA_FUNCTION void count_scope(const sb_choose_cluster *o, const sb_choose_scope *scope) {
    const sb_choosing *c = o->c;
    const bool weighs = o->state.goal == SB_CHOOSE_BY_WEIGHT;
    sb_choose_ahead ahead = look_ahead(c, o->rank);
    SB_CUDA_BARRIER();
    EACH_CLUSTER_TURN(begin, c->vocabulary) {
        uint64_t keys[OWN];
        const int count = next_keys(c, &ahead, keys);
        SB_CUDA_UNROLL
        for (int i = 0; i < OWN; i++) {
            if (i >= count || keys[i] < o->state.least || place_of(o, scope, keys[i]) != 0)
                continue;
            const uint32_t slot = scope->within
                                      ? (uint32_t)(keys[i] >> (o->state.end - scope->bits)) & ((1u << scope->bits) - 1)
                                      : range_behind(o->heaviest, keys[i]);
            const int64_t units = weighs ? sb_choose_units(sb_choose_value(keys[i]), c->maximum) : 0;
            add_to_slot(&o->memory->now.slots, slot, weighs, (uint64_t)units);
        }
    }
}

/* ---- what the cluster's blocks tell each other ---- */

/* Stores a number in all blocks, by one thread. */
SB_CUDA_FUNCTION void tell_all(const uint64_t *place, uint64_t value) {
    SB_CUDA_UNROLL
    for (uint32_t block = 0; block < BLOCKS; block++)
        sb_cluster_store_long(sb_shared_address(place), block, value);
}

/* The thread's range over all blocks: its tokens, and what is added up. */
SB_CUDA_FUNCTION int64_t sum_slot(const sb_choose_cluster *o, uint32_t slot, uint32_t *count) {
    const sb_cuda_choose_slots *slots = &o->memory->now.slots;
    const bool weighs = o->state.goal == SB_CHOOSE_BY_WEIGHT;
    int64_t units = 0;
    *count = 0;
    SB_CUDA_UNROLL
    for (uint32_t block = 0; block < BLOCKS; block++) {
        *count += sb_cluster_load(sb_shared_address(&slots->counts[slot]), block);
        if (weighs)
            units += (int64_t)((uint64_t)sb_cluster_load(sb_shared_address(&slots->high[slot]), block) << 32) +
                     sb_cluster_load(sb_shared_address(&slots->low[slot]), block);
    }
    return weighs ? units : *count;
}

/* Finds the range in which the goal is reached, for all threads of the cluster; false: it is in none. `within`: ranges are of one in which it
 * is. */
SB_CUDA_FUNCTION bool find_slot(sb_choose_cluster *o, bool within) {
    sb_cuda_choose_memory *m = o->memory;
    const uint32_t slot = o->rank * THREADS + threadIdx.x;
    uint32_t count;
    sb_cluster_sync();
    const int64_t own = sum_slot(o, slot, &count), behind = sum_behind_by(m->sums, own);
    int64_t total = 0, front = o->state.before + behind;
    if (threadIdx.x == 0)
        tell_all(&m->totals[o->rank], (uint64_t)(behind + own));
    sb_cluster_sync();
    SB_CUDA_UNROLL
    for (uint32_t block = 0; block < BLOCKS; block++) {
        total += (int64_t)m->totals[block];
        front += block > o->rank ? (int64_t)m->totals[block] : 0;
    }
    if (!within) {
        o->state.enough = (double)o->c->by.top_p * (double)total;
        if (!is_reached(o->c, &o->state, total))
            return false;
    }
    if (!is_reached(o->c, &o->state, front) && is_reached(o->c, &o->state, front + own)) {
        tell_all(&m->before, (uint64_t)front);
        tell_all(&m->range, (uint64_t)slot << 32 | count);
    }
    sb_cluster_sync();
    o->state.before = (int64_t)m->before;
    return true;
}

/* Narrows the scope, over all tokens at first, to one that a block can have, in which the goal is reached; false: it is not reached. */
SB_CUDA_FUNCTION bool narrow(sb_choose_cluster *o, sb_choose_scope *scope) {
    sb_cuda_choose_memory *m = o->memory;
    scope->within = false;
    scope->range = 0;
    scope->bits = SB_CUDA_CHOOSE_SLOT_BITS;
    count_scope(o, scope);
    if (!find_slot(o, false))
        return false;
    scope->within = true;
    scope->range = (uint32_t)(m->range >> 32);
    SB_CUDA_KEEP_LOOP
    while ((uint32_t)m->range > SB_CUDA_CHOOSE_LISTED) {
        scope->bits = SMALLER(o->state.end, SB_CUDA_CHOOSE_SLOT_BITS);
        clear_slots(&m->now.slots);
        count_scope(o, scope);
        find_slot(o, true);
        o->state.end -= scope->bits;
        o->state.prefix |= (m->range >> 32) << o->state.end;
    }
    return true;
}

/* ---- what is too light ---- */

/* Logits, divided by the temperature, from `heavy` on are heavy enough, and those below `light` too light; those between are weighed. */
typedef struct sb_choose_bounds {
    float light, heavy;
} sb_choose_bounds;

/* Weights are e^x but for a part in 2^16 where they count more units than that, so a hundredth more or less is told beforehand. Of large logits,
 * which have no such digits, all are weighed. */
SB_CUDA_FUNCTION sb_choose_bounds bounds_of(float heaviest, float min_p) {
    sb_choose_bounds bounds;
    const bool are_known = heaviest > -1024.0f && heaviest < 1024.0f && min_p >= SB_CHOOSE_LEAST_MIN_P;
    const float middle = heaviest + sb_log_f32(min_p);
    bounds.light = are_known ? middle - 0.01f : -sb_infinity_f32();
    bounds.heavy = are_known ? middle + 0.01f : sb_infinity_f32();
    return bounds;
}

/* The largest key of the row's tokens that are too light, for all threads of the cluster. */
SB_CUDA_FUNCTION uint64_t find_light(const sb_choose_cluster *o) {
    const sb_choosing *c = o->c;
    const sb_choose_bounds bounds = bounds_of(o->heaviest, c->by.min_p);
    const int64_t most = sb_choose_units(o->heaviest, c->maximum);
    sb_choose_ahead ahead = look_ahead(c, o->rank);
    uint64_t light = 0;
    EACH_CLUSTER_TURN(begin, c->vocabulary) {
        uint64_t keys[OWN];
        const int count = next_keys(c, &ahead, keys);
        SB_CUDA_UNROLL
        for (int i = 0; i < OWN; i++) {
            const float scaled = sb_choose_value(keys[i]);
            if (i < count && keys[i] > light && scaled < bounds.heavy &&
                (scaled < bounds.light || is_light(c, scaled, most)))
                light = keys[i];
        }
    }
    light = largest_key_by(o->memory->keys, light);
    if (threadIdx.x == 0)
        tell_all(&o->memory->lights[o->rank], light);
    sb_cluster_sync();
    SB_CUDA_UNROLL
    for (int block = 0; block < BLOCKS; block++)
        light = LARGER(o->memory->lights[block], light);
    return light;
}

#endif
