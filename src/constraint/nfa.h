/* Automata in the making: states, and edges between them that take no byte, one byte of a range, or a whole text of another rule. */
#ifndef SB_CONSTRAINT_NFA_H
#define SB_CONSTRAINT_NFA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* What taking a byte does with the counter of its rule: of characters of a text, or items of an array. */
typedef enum sb_count_action {
    SB_COUNT_NONE,
    SB_COUNT_MORE, /* one more, where there may be more */
    SB_COUNT_DONE  /* where there are enough */
} sb_count_action;

typedef enum sb_edge_kind { SB_EDGE_EMPTY, SB_EDGE_BYTES, SB_EDGE_CALL } sb_edge_kind;

#define SB_NO_EDGE UINT32_MAX

typedef struct sb_nfa_edge {
    uint8_t kind, low, high, action;
    uint32_t rule;
    uint32_t to;
    uint32_t next; /* of the same state; SB_NO_EDGE: none */
} sb_nfa_edge;

/* Zeroed but for `error` and `left`, it is empty. What fails sets `status`; from then on adding does nothing, so that whoever builds looks at
 * it once, at the end. Errors: LIMIT, with more than SB_MOST_NFA_STATES states; OUT_OF_MEMORY. */
typedef struct sb_nfa {
    uint32_t *first; /* edge of a state */
    size_t state_count, state_capacity;
    sb_nfa_edge *edges;
    size_t edge_count, edge_capacity;
    sb_status status;
    sb_error *error;
    sb_error first_error; /* what `status` was reported with */
    int64_t *left; /* edges that may still be followed when automata are made of this one and others of its schema */
} sb_nfa;

#define SB_MOST_NFA_STATES ((size_t)1 << 20)
/* What `left` begins with: 0.1 s, and twelve times what the largest schema of the tests takes. A pattern such as a*.{100} has 2^100
 * subsets, of hundreds of states each, so that a bound of their number alone lets minutes pass. */
#define SB_MOST_FOLLOWED_EDGES ((int64_t)1 << 25)

/** A new state; 0 after a failure. */
uint32_t sb_nfa_state(sb_nfa *nfa);
/* Edges. */
void sb_nfa_empty(sb_nfa *nfa, uint32_t from, uint32_t to);
void sb_nfa_bytes(sb_nfa *nfa, uint32_t from, unsigned low, unsigned high, sb_count_action action, uint32_t to);
void sb_nfa_call(sb_nfa *nfa, uint32_t from, uint32_t rule, uint32_t to);
/** States for these bytes, one behind the other; returns the last. */
uint32_t sb_nfa_text(sb_nfa *nfa, uint32_t from, const char *text, size_t bytes);
/** The most bytes of a row: digits of a whole number. */
#define SB_MOST_ROW 20

/** Edges for all rows of `count` bytes from `low` to `high`, in the order of memcmp, each of whose bytes but the first is `least` to
 * `most`. The first byte has the action. */
void sb_nfa_rows(sb_nfa *nfa, uint32_t from, uint32_t to, const unsigned char *low, const unsigned char *high,
                 int count, unsigned least, unsigned most, sb_count_action action);
/** Fails with a status whose report is in `error`, unless it has failed before, whose report it then becomes again. Returns the status
 * that counts. */
sb_status sb_nfa_fail(sb_nfa *nfa, sb_status status);
void sb_nfa_clear(sb_nfa *nfa);

#endif
