#include "constraint/walk.h"

#include <string.h>

#include "base/allocation.h"

/* Beyond it everything is forgotten and walked again. */
#define MOST_BYTES ((size_t)64 << 20)

/* A node on the way down: its set of stacks, and where those begin that are made below it. */
typedef struct sb_walk_level {
    uint32_t end; /* node */
    size_t begin, tops, frames;
} sb_walk_level;

static size_t words_of(const sb_token_trie *trie) {
    return ((size_t)trie->vocabulary + 63) / 64;
}

/* ---- remembering ---- */

static void free_walked(sb_walked *walked) {
    if (walked == NULL)
        return;
    sb_free(walked->tokens);
    sb_free(walked->bits);
    sb_free(walked->exits);
    sb_free(walked);
}

static void forget(sb_walks *walks) {
    for (size_t i = 0; i < walks->count; i++)
        free_walked(walks->all[i]);
    sb_names_clear(&walks->known);
    walks->count = walks->bytes = 0;
}

void sb_walks_clear(sb_walks *walks) {
    forget(walks);
    sb_free(walks->all);
    sb_stacks_clear(&walks->stacks);
    sb_free(walks->work);
    sb_free(walks->exits);
    sb_free(walks->levels);
    *walks = (sb_walks){.grammar = walks->grammar, .trie = walks->trie};
}

static uint32_t *copy_numbers(const uint32_t *numbers, size_t count) {
    uint32_t *copy = sb_allocate((count + 1) * sizeof *copy);
    if (copy != NULL && count > 0)
        memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

/* A list, or where that would take more, bits. */
static bool keep_tokens(const sb_walks *walks, sb_walked *walked) {
    size_t words = words_of(walks->trie);
    walked->token_count = (uint32_t)walks->work_count;
    if (walks->work_count <= 2 * words) {
        walked->tokens = copy_numbers(walks->work, walks->work_count);
        return walked->tokens != NULL;
    }
    walked->bits = sb_allocate_array(words, sizeof *walked->bits);
    for (size_t i = 0; i < walks->work_count && walked->bits != NULL; i++)
        walked->bits[walks->work[i] / 64] |= UINT64_C(1) << walks->work[i] % 64;
    return walked->bits != NULL;
}

static sb_status remember(sb_walks *walks, const sb_walk_key *key, const sb_walked **result, sb_error *error) {
    sb_walked *walked = sb_allocate_array(1, sizeof *walked);
    size_t words = words_of(walks->trie), tokens = walks->work_count <= 2 * words ? walks->work_count : 2 * words;
    size_t bytes = sizeof *walked + 4 * tokens + 4 * walks->exit_count + 64;
    bool room = walked != NULL && keep_tokens(walks, walked);
    if (room) {
        walked->key = *key;
        walked->exits = copy_numbers(walks->exits, walks->exit_count);
        walked->exit_count = (uint32_t)walks->exit_count;
        room = walked->exits != NULL &&
               sb_grow((void **)&walks->all, &walks->capacity, walks->count + 1, sizeof *walks->all) &&
               sb_names_put_span(&walks->known, (const char *)&walked->key, sizeof *key, (int32_t)walks->count);
    }
    if (!room) {
        free_walked(walked);
        return sb_fail_memory(error, bytes);
    }
    walks->all[walks->count++] = walked;
    walks->bytes += bytes;
    *result = walked;
    return SB_OK;
}

/* ---- walking ---- */

static sb_status append(uint32_t **list, size_t *count, size_t *capacity, const uint32_t *numbers, size_t more,
                        sb_error *error) {
    if (*count + more > *capacity && !sb_grow((void **)list, capacity, *count + more, sizeof **list))
        return sb_fail_memory(error, (*count + more) * sizeof **list);
    memcpy(*list + *count, numbers, more * sizeof **list);
    *count += more;
    return SB_OK;
}

/* Takes the byte of a node: its tokens pass where stacks are left, or the rule of the base is over. */
static sb_status take_node(sb_walks *walks, uint32_t node, const sb_walk_level *level, bool *passes, sb_error *error) {
    const sb_token_trie *trie = walks->trie;
    sb_stacks *stacks = &walks->stacks;
    SB_TRY(sb_stacks_step(stacks, level->begin, level->tops, trie->byte[node], error));
    *passes = stacks->top_count > level->tops;
    uint32_t first = trie->first_token[node], own = trie->first_token[node + 1] - first;
    if ((*passes || stacks->ended) && own > 0)
        SB_TRY(append(&walks->work, &walks->work_count, &walks->work_capacity, trie->tokens + first, own, error));
    return stacks->ended ? append(&walks->exits, &walks->exit_count, &walks->exit_capacity, &node, 1, error) : SB_OK;
}

static sb_status walk(sb_walks *walks, const sb_walk_key *key, sb_error *error) {
    const sb_token_trie *trie = walks->trie;
    sb_stacks *stacks = &walks->stacks;
    sb_walk_level *level = walks->levels;
    stacks->frame_count = stacks->top_count = walks->work_count = walks->exit_count = 0;
    stacks->ended = false;
    const sb_frame base = {SB_OUTSIDE, key->state, key->counter, (uint16_t)key->free};
    /* At the root, what the frame calls, and what it goes back to, are stacks of their own. */
    SB_TRY(sb_stacks_add(stacks, 0, base, key->node == 0, error));
    if (stacks->ended)
        SB_TRY(append(&walks->exits, &walks->exit_count, &walks->exit_capacity, &key->node, 1, error));
    *level = (sb_walk_level){trie->end[key->node], 0, stacks->top_count, stacks->frame_count};
    for (uint32_t node = key->node + 1; node < walks->levels[0].end;) {
        bool passes;
        while (node >= level->end)
            level--;
        stacks->top_count = level->tops;
        stacks->frame_count = level->frames;
        SB_TRY(take_node(walks, node, level, &passes, error));
        if (!passes) {
            node = trie->end[node];
            continue;
        }
        sb_walk_level next = {trie->end[node], level->tops, stacks->top_count, stacks->frame_count};
        *++level = next;
        node++;
    }
    return SB_OK;
}

static sb_status find(sb_walks *walks, const sb_walk_key *key, const sb_walked **result, sb_error *error) {
    const int32_t *known = sb_names_find_span(&walks->known, (const char *)key, sizeof *key);
    if (known != NULL) {
        *result = walks->all[*known];
        return SB_OK;
    }
    if (walks->levels == NULL)
        walks->levels = sb_allocate_array((size_t)walks->trie->longest + 2, sizeof *walks->levels);
    if (walks->levels == NULL)
        return sb_fail_memory(error, walks->trie->longest * sizeof *walks->levels);
    walks->stacks.grammar = walks->grammar;
    SB_TRY(walk(walks, key, error));
    return remember(walks, key, result, error);
}

/* ---- masks ---- */

/* A token has at most so many bytes, so it nests, and counts, no further: what is more is all the same to it. */
static sb_walk_key key_of(const sb_walks *walks, const sb_frame *frame, uint32_t node) {
    int32_t most = (int32_t)walks->trie->longest + 1;
    uint32_t free = (uint32_t)most + walks->grammar->most_need;
    return (sb_walk_key){
        .state = frame->state,
        .node = node,
        .counter = {frame->counter.owed < most ? frame->counter.owed : most,
                    frame->counter.room < most ? frame->counter.room : most},
        .free = frame->free < free ? frame->free : free,
    };
}

static void set_bits(const sb_walks *walks, const sb_walked *walked, uint64_t *bits) {
    for (uint32_t i = 0; i < walked->token_count && walked->tokens != NULL; i++)
        bits[walked->tokens[i] / 64] |= UINT64_C(1) << walked->tokens[i] % 64;
    for (size_t i = 0; i < words_of(walks->trie) && walked->bits != NULL; i++)
        bits[i] |= walked->bits[i];
}

/* Tokens from a node on, by a stack from a frame down: where the frame's rule is over, those of the frame below follow. */
static sb_status add_tokens(sb_walks *walks, const sb_stacks *stacks, uint32_t frame, uint32_t node, uint64_t *bits,
                            sb_error *error) {
    const sb_walked *walked;
    sb_walk_key key = key_of(walks, &stacks->frames[frame], node);
    SB_TRY(find(walks, &key, &walked, error));
    set_bits(walks, walked, bits);
    uint32_t below = stacks->frames[frame].below;
    for (uint32_t i = 0; i < walked->exit_count && below != SB_OUTSIDE; i++) {
        uint32_t exit = walked->exits[i];
        if (walks->trie->end[exit] > exit + 1)
            SB_TRY(add_tokens(walks, stacks, below, exit, bits, error));
    }
    return SB_OK;
}

sb_status sb_walks_mask(sb_walks *walks, const sb_stacks *stacks, uint64_t *bits, sb_error *error) {
    if (walks->bytes > MOST_BYTES)
        forget(walks);
    memset(bits, 0, words_of(walks->trie) * sizeof *bits);
    for (size_t i = 0; i < stacks->top_count; i++)
        SB_TRY(add_tokens(walks, stacks, stacks->tops[i], 0, bits, error));
    return SB_OK;
}
