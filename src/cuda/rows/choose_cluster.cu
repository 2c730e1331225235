/* ChooseTokens, behind what all blocks have looked at (choose.cu): a cluster of eight blocks chooses from each row. Where tokens are left out it
 * goes through all logits once or twice for each of top_k and top_p, and adds noise to those that are kept alone. All that is put together
 * over threads and blocks are maxima of keys and sums of whole numbers, as everywhere.
 * Compiled for 90a alone. */
#include "cuda/rows/choose_parameters.h"

#define THREADS SB_CUDA_CHOOSE_CLUSTER_THREADS
#include "cuda/rows/choose_resolve.cuh"

/* ---- noise ---- */

/* Draws keys of a list, by all threads of the block. */
SB_CUDA_FUNCTION uint64_t draw_keys(const sb_choosing *c, const uint64_t *keys, uint32_t count, uint64_t least,
                                    uint64_t drawn) {
    SB_CUDA_KEEP_LOOP
    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        const uint64_t key = keys[i];
        const int64_t token = sb_choose_token(key);
        if (key >= least) {
            const uint64_t with = sb_choose_drawn_key(sb_choose_drawn(sb_choose_value(key), &c->by, token), token);
            drawn = LARGER(with, drawn);
        }
    }
    return drawn;
}

/* Draws what waits once it is enough for all threads, or at the `end`. */
SB_CUDA_FUNCTION uint64_t draw_waiting(const sb_choosing *c, sb_cuda_choose_memory *m, bool end, uint64_t drawn) {
    SB_CUDA_BARRIER();
    const uint32_t waiting = m->waiting;
    SB_CUDA_BARRIER();
    if (waiting < THREADS && !end)
        return drawn;
    drawn = draw_keys(c, m->now.lists.waiting, waiting, 0, drawn);
    SB_CUDA_BARRIER();
    if (threadIdx.x == 0)
        m->waiting = 0;
    SB_CUDA_BARRIER();
    return drawn;
}

/* ---- lists ---- */

/* Lists the block's tokens of a scope, if there is one; with `draws`, those in front of it, from `least` on, are drawn. */
SB_CUDA_FUNCTION uint64_t list_scope(const sb_choose_cluster *o, const sb_choose_scope *scope, bool draws,
                                     uint64_t least) {
    const sb_choosing *c = o->c;
    sb_cuda_choose_memory *m = o->memory;
    uint64_t drawn = 0;
    sb_choose_ahead ahead = look_ahead(c, o->rank);
    if (threadIdx.x == 0)
        m->waiting = m->listed = 0;
    SB_CUDA_BARRIER();
    EACH_CLUSTER_TURN(begin, c->vocabulary) {
        uint64_t keys[OWN];
        const int count = next_keys(c, &ahead, keys);
        SB_CUDA_UNROLL
        for (int i = 0; i < OWN; i++) {
            const int place = scope->within ? place_of(o, scope, keys[i]) : 1;
            if (i >= count || keys[i] < o->state.least || place < 0)
                continue;
            if (place == 0)
                m->now.lists.listed[add_to(&m->listed, 1)] = keys[i];
            else if (draws && keys[i] >= least)
                m->now.lists.waiting[add_to(&m->waiting, 1)] = keys[i];
        }
        if (draws)
            drawn = draw_waiting(c, m, begin + TURN >= c->vocabulary, drawn);
    }
    return drawn;
}

/* Gathers all lists in the first block, which has them behind the cluster's next barrier. */
SB_CUDA_FUNCTION void gather(const sb_choose_cluster *o) {
    sb_cuda_choose_memory *m = o->memory;
    SB_CUDA_BARRIER();
    const uint32_t count = m->listed;
    if (count == 0)
        return;
    if (threadIdx.x == 0)
        m->place = sb_cluster_add(sb_shared_address(&m->gathered_count), 0, count);
    SB_CUDA_BARRIER();
    const uint32_t place = m->place;
    for (uint32_t i = threadIdx.x; i < count; i += THREADS)
        sb_cluster_store_long(sb_shared_address(&m->gathered[place + i]), 0, m->now.lists.listed[i]);
}

/* ---- choosing ---- */

/* Goes on to the next goal, for which ranges are clear. */
SB_CUDA_FUNCTION void go_on(sb_choose_cluster *o) {
    sb_cuda_choose_memory *m = o->memory;
    if (o->rank == 0) {
        const uint64_t least = resolve(o);
        if (threadIdx.x == 0) {
            m->gathered_count = 0;
            tell_all(&m->least, LARGER(least, o->state.least));
        }
    }
    sb_cluster_sync();
    o->state.least = m->least;
    clear_slots(&m->now.slots);
    next_search(o->c, &o->state);
}

/* Searches for all goals but the last, whose scope is found; false: there is none, and all tokens from the least on are kept. */
SB_CUDA_FUNCTION bool search_cluster(sb_choose_cluster *o, sb_choose_scope *scope) {
    scope->within = false;
    SB_CUDA_KEEP_LOOP
    while (o->state.goal < SB_CHOOSE_FOUND) {
        sb_choose_search next = o->state;
        const bool is_reached = narrow(o, scope);
        next_search(o->c, &next);
        if (is_reached && next.goal == SB_CHOOSE_FOUND)
            return true;
        if (is_reached) {
            list_scope(o, scope, false, 0);
            gather(o);
            sb_cluster_sync();
            go_on(o);
        } else {
            clear_slots(&o->memory->now.slots);
            next_search(o->c, &o->state);
        }
        scope->within = false;
    }
    return false;
}

/* The first by noise of the tokens that are kept, for the first block. */
SB_CUDA_FUNCTION uint64_t draw_row(sb_choose_cluster *o) {
    const sb_choosing *c = o->c;
    sb_cuda_choose_memory *m = o->memory;
    sb_choose_scope scope;
    if (c->by.min_p != 0.0f)
        o->light = find_light(o);
    const bool has_scope = search_cluster(o, &scope);
    uint64_t least = LARGER(o->light + 1, o->state.least);
    uint64_t drawn = list_scope(o, &scope, true, least);
    gather(o);
    drawn = largest_key_by(m->keys, drawn);
    if (threadIdx.x == 0)
        sb_cluster_store_long(sb_shared_address(&m->drawn[o->rank]), 0, drawn);
    sb_cluster_sync();
    if (o->rank != 0)
        return 0;
    SB_CUDA_UNROLL
    for (int block = 0; block < BLOCKS; block++)
        drawn = LARGER(m->drawn[block], drawn);
    if (!has_scope)
        return drawn;
    const uint64_t reached = resolve(o);
    least = LARGER(reached, least);
    return largest_key_by(m->keys, draw_keys(c, m->gathered, m->gathered_count, least, drawn));
}

/* The row's token, for the first block. */
SB_CUDA_FUNCTION int64_t leave_out(sb_choosing *c, const sb_choose_sum *all, uint32_t rank,
                                   sb_cuda_choose_memory *memory) {
    sb_choose_cluster o;
    o.c = c;
    o.memory = memory;
    o.rank = rank;
    o.heaviest = sb_choose_value(all->found.first) * c->factor;
    o.light = 0;
    o.state.least = 0;
    c->maximum = sb_choose_maximum(o.heaviest);
    begin_search(c, SB_CHOOSE_BY_NUMBER, &o.state);
    return token_of(draw_row(&o));
}

SB_CUDA_FUNCTION void choose_row(const sb_cuda_choose *p, uint32_t rank, sb_cuda_choose_memory *memory) {
    const int64_t choice = blockIdx.x / BLOCKS;
    sb_choosing c;
    sb_choose_result result;
    if (!begin(p, choice, &c)) {
        result.token = sb_choose_failed(SB_CHOOSE_UNFIT, 0);
        const bool is_lost = is_overwritten(p, choice, c.slot, memory->numbers);
        if (rank == 0 && threadIdx.x == 0)
            put(p, &c, choice, is_lost, &result);
        return;
    }
    const sb_choose_sum all = sum_parts(p, &c, choice, memory->of_warps, memory->sums);
    result.maximum = all.maximum;
    result.units = all.units;
    if (does_leave_out(&c, &all)) {
        result.token = leave_out(&c, &all, rank, memory);
        result.logit = rank == 0 && result.token >= 0 ? c.logits[result.token] : 0.0f;
    } else {
        result.token = choose(&c, &all, &result.logit);
    }
    if (rank == 0 && threadIdx.x == 0)
        put(p, &c, choice, all.is_lost != 0, &result);
}

SB_HOPPER_KERNEL_BOUNDED(sb_cuda_choose_cluster, sb_cuda_choose, given, BLOCKS, THREADS, 2) {
    SB_HOPPER_DYNAMIC_SHARED(bytes);
    sb_cuda_choose_memory *memory = (sb_cuda_choose_memory *)(void *)bytes;
    clear_slots(&memory->now.slots);
    if (threadIdx.x == 0)
        memory->gathered_count = 0;
    sb_cluster_sync();
    SB_CUDA_DEPEND();
    choose_row(&given, sb_cluster_rank(), memory);
}
