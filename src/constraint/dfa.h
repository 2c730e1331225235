/* Automata in which each byte leads to one state: subsets of the states of an sb_nfa. */
#ifndef SB_CONSTRAINT_DFA_H
#define SB_CONSTRAINT_DFA_H

#include "constraint/nfa.h"

#define SB_DEAD UINT32_MAX
/* An entry of `next` is a state and, in the two highest bits, what is counted. */
#define SB_NEXT_STATE(entry) ((entry)&0x3fffffffu)
#define SB_NEXT_ACTION(entry) ((entry) >> 30)
#define SB_MOST_DFA_STATES ((uint32_t)1 << 16)
/* Of `next`: 32 MiB. */
#define SB_MOST_DFA_ENTRIES ((size_t)8 << 20)

/* Zeroed, it has no memory. State 0 is where it begins. Bytes that no state tells apart are one class; a call of a rule is a symbol
 * behind the classes. */
typedef struct sb_dfa {
    uint32_t state_count;
    uint32_t classes, called_count;
    uint8_t class_of[256];
    uint32_t *called; /* the rules */
    uint32_t *next;   /* [state_count, classes + called_count]; SB_DEAD: nothing */
    bool *accepts;    /* of a state */
} sb_dfa;

/** Determinizes. Where the states of a subset count differently for one byte, the automaton is none: INTERNAL. Errors: LIMIT, where
 * there are more states than SB_MOST_DFA_STATES or entries than SB_MOST_DFA_ENTRIES, or nfa->left comes to its end; OUT_OF_MEMORY; the
 * builder's own. */
sb_status sb_dfa_make(const sb_nfa *nfa, uint32_t start, uint32_t accept, sb_dfa *dfa, sb_error *error);
/** What both take; of automata without calls and counters. */
sb_status sb_dfa_both(const sb_dfa *left, const sb_dfa *right, sb_dfa *dfa, sb_error *error);
/** What the left one takes and the right one does not; likewise. */
sb_status sb_dfa_without(const sb_dfa *left, const sb_dfa *right, sb_dfa *dfa, sb_error *error);
/** Adds the automaton, of bytes alone, to one in the making, without what leads nowhere. False: it takes nothing, and nothing is
 * added. */
bool sb_dfa_embed(const sb_dfa *dfa, sb_nfa *nfa, uint32_t from, uint32_t to);
/** Whether it takes a text; for automata without calls and counters. */
bool sb_dfa_takes(const sb_dfa *dfa, const char *text, size_t bytes);
/** Whether it takes any text at all. */
bool sb_dfa_takes_any(const sb_dfa *dfa);
void sb_dfa_clear(sb_dfa *dfa);

static inline uint32_t sb_dfa_width(const sb_dfa *dfa) {
    return dfa->classes + dfa->called_count;
}

#endif
