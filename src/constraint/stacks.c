#include "constraint/stacks.h"

#include <string.h>

#include "base/allocation.h"

/* ---- frames and tops ---- */

static sb_status push_frame(sb_stacks *stacks, sb_frame frame, uint32_t *index, sb_error *error) {
    if (stacks->frame_count == stacks->frame_capacity &&
        !sb_grow((void **)&stacks->frames, &stacks->frame_capacity, stacks->frame_count + 1, sizeof frame))
        return sb_fail_memory(error, stacks->frame_count * sizeof frame);
    *index = (uint32_t)stacks->frame_count;
    stacks->frames[stacks->frame_count++] = frame;
    return SB_OK;
}

/* Whether two stacks are the same, down to where they are one. */
static bool are_same(const sb_stacks *stacks, uint32_t left, uint32_t right) {
    while (left != right) {
        if (left == SB_OUTSIDE || right == SB_OUTSIDE)
            return false;
        const sb_frame *a = &stacks->frames[left], *b = &stacks->frames[right];
        if (a->state != b->state || a->free != b->free || a->counter.owed != b->counter.owed ||
            a->counter.room != b->counter.room)
            return false;
        left = a->below;
        right = b->below;
    }
    return true;
}

static sb_status push_top(sb_stacks *stacks, size_t begin, uint32_t frame, sb_error *error) {
    for (size_t i = begin; i < stacks->top_count; i++) {
        if (are_same(stacks, stacks->tops[i], frame))
            return SB_OK;
    }
    if (stacks->top_count - begin == SB_MOST_STACKS)
        return sb_fail(
            error, SB_ERROR_LIMIT,
            "the text so far can go on in more than %d ways by the schema: tell the schemas of anyOf apart earlier, "
            "by a property that comes first",
            SB_MOST_STACKS);
    if (stacks->top_count == stacks->top_capacity &&
        !sb_grow((void **)&stacks->tops, &stacks->top_capacity, stacks->top_count + 1, sizeof frame))
        return sb_fail_memory(error, stacks->top_count * sizeof frame);
    stacks->tops[stacks->top_count++] = frame;
    return SB_OK;
}

/* ---- sets ---- */

/* What the frame's state calls. A called rule begins with a byte: its first state calls nothing. */
static sb_status add_calls(sb_stacks *stacks, size_t begin, uint32_t index, sb_error *error) {
    const sb_grammar *grammar = stacks->grammar;
    const sb_frame frame = stacks->frames[index];
    for (uint32_t c = sb_grammar_first_call(grammar, frame.state); c < grammar->states[frame.state].calls_end; c++) {
        const sb_grammar_call *call = &grammar->calls[c];
        const sb_grammar_rule *rule = &grammar->rules[call->rule];
        uint32_t after, top;
        /* SB_NEVER is more than any level. */
        if (frame.free == 0 || grammar->states[rule->start].need > frame.free - 1 ||
            grammar->states[call->to].need > frame.free)
            continue;
        SB_TRY(push_frame(stacks, (sb_frame){frame.below, call->to, frame.counter, frame.free}, &after, error));
        SB_TRY(
            push_frame(stacks, (sb_frame){after, rule->start, rule->counter, (uint16_t)(frame.free - 1)}, &top, error));
        SB_TRY(push_top(stacks, begin, top, error));
    }
    return SB_OK;
}

static sb_status add_index(sb_stacks *stacks, size_t begin, uint32_t index, sb_error *error) {
    for (;;) {
        const sb_frame frame = stacks->frames[index];
        const sb_grammar_state *state = &stacks->grammar->states[frame.state];
        if (state->takes)
            SB_TRY(push_top(stacks, begin, index, error));
        SB_TRY(add_calls(stacks, begin, index, error));
        if (!state->accepts)
            return SB_OK;
        if (frame.below == SB_OUTSIDE) {
            stacks->ended = true;
            return SB_OK;
        }
        index = frame.below;
    }
}

sb_status sb_stacks_add(sb_stacks *stacks, size_t begin, sb_frame frame, bool alone, sb_error *error) {
    uint32_t index;
    SB_TRY(push_frame(stacks, frame, &index, error));
    return alone ? push_top(stacks, begin, index, error) : add_index(stacks, begin, index, error);
}

/* What taking a byte does with a counter; false where it may not be taken. */
static inline bool count(sb_counter *counter, uint32_t action) {
    if (action == 0)
        return true;
    if (action == 2)
        return counter->owed == 0;
    if (counter->room == 0)
        return false;
    counter->room -= counter->room != SB_ANY_COUNT;
    counter->owed -= counter->owed > 0;
    return true;
}

sb_status sb_stacks_step(sb_stacks *stacks, size_t begin, size_t end, unsigned char byte, sb_error *error) {
    const sb_grammar *grammar = stacks->grammar;
    size_t first = stacks->top_count;
    stacks->ended = false;
    for (size_t i = begin; i < end; i++) {
        sb_frame frame = stacks->frames[stacks->tops[i]];
        const sb_grammar_state *state = &grammar->states[frame.state];
        uint32_t entry = grammar->next[state->row + grammar->maps[state->map][byte]], index;
        if (entry == UINT32_MAX)
            continue;
        frame.state = entry & 0x3fffffff;
        if (grammar->states[frame.state].need > frame.free || !count(&frame.counter, entry >> 30))
            continue;
        SB_TRY(push_frame(stacks, frame, &index, error));
        SB_TRY(add_index(stacks, first, index, error));
    }
    return SB_OK;
}

/* ---- forgetting ---- */

/* A frame is made before those above it, so one pass upwards gives each its new place. */
sb_status sb_stacks_keep(sb_stacks *stacks, size_t begin, sb_error *error) {
    size_t count = stacks->top_count - begin, kept = 0;
    memmove(stacks->tops, stacks->tops + begin, count * sizeof *stacks->tops);
    stacks->top_count = count;
    uint32_t *place = sb_allocate_array(stacks->frame_count + 1, sizeof *place);
    if (place == NULL)
        return sb_fail_memory(error, stacks->frame_count * sizeof *place);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t f = stacks->tops[i]; f != SB_OUTSIDE && place[f] == 0; f = stacks->frames[f].below)
            place[f] = 1;
    }
    for (size_t f = 0; f < stacks->frame_count; f++) {
        if (place[f] == 0)
            continue;
        sb_frame frame = stacks->frames[f];
        frame.below = frame.below == SB_OUTSIDE ? SB_OUTSIDE : place[frame.below];
        stacks->frames[kept] = frame;
        place[f] = (uint32_t)kept++;
    }
    for (size_t i = 0; i < count; i++)
        stacks->tops[i] = place[stacks->tops[i]];
    stacks->frame_count = kept;
    sb_free(place);
    return SB_OK;
}

sb_status sb_stacks_copy(const sb_stacks *from, sb_stacks *to, sb_error *error) {
    if (!sb_grow((void **)&to->frames, &to->frame_capacity, from->frame_count + 1, sizeof *to->frames) ||
        !sb_grow((void **)&to->tops, &to->top_capacity, from->top_count + 1, sizeof *to->tops))
        return sb_fail_memory(error, from->frame_count * sizeof *to->frames);
    if (from->frame_count > 0)
        memcpy(to->frames, from->frames, from->frame_count * sizeof *to->frames);
    if (from->top_count > 0)
        memcpy(to->tops, from->tops, from->top_count * sizeof *to->tops);
    to->frame_count = from->frame_count;
    to->top_count = from->top_count;
    return SB_OK;
}

void sb_stacks_clear(sb_stacks *stacks) {
    sb_free(stacks->frames);
    sb_free(stacks->tops);
    *stacks = (sb_stacks){.grammar = stacks->grammar};
}
