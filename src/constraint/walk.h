/* Which tokens a state lets pass: a trie of tokens is walked with the automaton, once for each state that is met. */
#ifndef SB_CONSTRAINT_WALK_H
#define SB_CONSTRAINT_WALK_H

#include "base/names.h"
#include "constraint/stacks.h"
#include "tokenizer/token_trie.h"

/* From one frame, whatever lies below it, and one node of the trie: what can be seen without the frames below. */
typedef struct sb_walk_key {
    uint32_t state, node;
    sb_counter counter;
    uint32_t free;
} sb_walk_key;

typedef struct sb_walked {
    sb_walk_key key;
    uint32_t *tokens; /* that pass, as ids; NULL: they are in `bits` */
    uint32_t token_count;
    uint64_t *bits; /* one for each id */
    uint32_t
        *exits; /* nodes at which the frame's rule can be over: tokens below them are a matter of the frame below */
    uint32_t exit_count;
} sb_walked;

/* What has been walked. For one thread at a time. Zeroed but for the first two, it is empty. */
typedef struct sb_walks {
    const sb_grammar *grammar;
    const sb_token_trie *trie;
    sb_walked **all;
    size_t count, capacity;
    sb_names known;
    size_t bytes;     /* that they take */
    sb_stacks stacks; /* to work in */
    uint32_t *work, *exits;
    size_t work_count, work_capacity, exit_count, exit_capacity;
    struct sb_walk_level *levels;
} sb_walks;

/** Sets the bits of the tokens that can come next by a set of stacks, and clears all others; `bits` has one for each id of the trie.
 * Errors: as sb_stacks_step. */
sb_status sb_walks_mask(sb_walks *walks, const sb_stacks *stacks, uint64_t *bits, sb_error *error);
void sb_walks_clear(sb_walks *walks);

#endif
