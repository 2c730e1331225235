/* The ways in which a text can be going on: stacks of states of a grammar. Frames are shared by the stacks that have them below. */
#ifndef SB_CONSTRAINT_STACKS_H
#define SB_CONSTRAINT_STACKS_H

#include <stdbool.h>

#include "constraint/grammar.h"

/** The frame below the first: what called its rule is not known here. */
#define SB_OUTSIDE UINT32_MAX
/** The most stacks at once: ways that begin alike. */
#define SB_MOST_STACKS 256

typedef struct sb_frame {
    uint32_t below; /* where its rule goes back to; SB_OUTSIDE */
    uint32_t state;
    sb_counter counter;
    uint16_t free; /* levels that may nest above it */
} sb_frame;

/* Zeroed but for `grammar`, it has no memory. A set of stacks is a part of `tops`. Frames and tops only grow, so that going back to
 * an earlier set is going back to its counts. */
typedef struct sb_stacks {
    const sb_grammar *grammar;
    sb_frame *frames;
    size_t frame_count, frame_capacity;
    uint32_t *tops; /* frames from which a byte leads on */
    size_t top_count, top_capacity;
    bool ended; /* of what was added last: the first rule can be over */
} sb_stacks;

/** Adds a frame to the set that begins at `begin`, with what its state calls and, where its rule can be over, what it goes back to;
 * with `alone` nothing but the frame. Errors: LIMIT, for more than SB_MOST_STACKS stacks; OUT_OF_MEMORY. */
sb_status sb_stacks_add(sb_stacks *stacks, size_t begin, sb_frame frame, bool alone, sb_error *error);
/** Appends the set that a byte makes of the tops from `begin` to `end`; `ended` is its own. Errors: as above. */
sb_status sb_stacks_step(sb_stacks *stacks, size_t begin, size_t end, unsigned char byte, sb_error *error);
/** Makes the tops from `begin` on the only ones, and forgets frames that none of them has. Errors: OUT_OF_MEMORY. */
sb_status sb_stacks_keep(sb_stacks *stacks, size_t begin, sb_error *error);
/** Copies all of `from` into an empty one of the same grammar. Errors: OUT_OF_MEMORY. */
sb_status sb_stacks_copy(const sb_stacks *from, sb_stacks *to, sb_error *error);
void sb_stacks_clear(sb_stacks *stacks);

#endif
