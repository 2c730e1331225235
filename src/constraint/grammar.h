/* The texts that a schema allows, as automata that call one another: what a text's next byte can be follows from a stack of states.
 * Rules begin with a byte of their own, so that no call leads back to itself without one. */
#ifndef SB_CONSTRAINT_GRAMMAR_H
#define SB_CONSTRAINT_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/** How deep rules may call one another: arrays, objects, and texts in them. */
#define SB_MOST_NESTING 256
/** Of `need`: nothing can end from there. */
#define SB_NEVER UINT16_MAX
/** Of a rule's counter: any number. */
#define SB_ANY_COUNT INT32_MAX

/* A counter: how many more there have to be, and how many there may be. */
typedef struct sb_counter {
    int32_t owed, room;
} sb_counter;

typedef struct sb_grammar_call {
    uint32_t rule, to;
} sb_grammar_call;

typedef struct sb_grammar_rule {
    uint32_t start;
    sb_counter counter;
} sb_grammar_rule;

typedef struct sb_grammar_state {
    uint32_t row;       /* of `next`: where its classes begin */
    uint32_t map;       /* of `maps` */
    uint32_t calls_end; /* of `calls`; they begin where those of the state before end */
    uint16_t need;      /* levels that have to be free below its rule for a text to end */
    bool accepts;       /* the rule can end here */
    bool takes;         /* a byte leads on */
} sb_grammar_state;

/* It never changes. Entries of `next` are those of an sb_dfa. */
typedef struct sb_grammar {
    sb_grammar_state *states;
    uint32_t state_count;
    uint8_t (*maps)[256];
    uint32_t map_count;
    uint32_t *next;
    size_t next_count;
    sb_grammar_call *calls;
    uint32_t call_count;
    sb_grammar_rule *rules; /* the first is the text's */
    uint32_t rule_count;
    uint16_t most_need;
} sb_grammar;

/** Makes the grammar of a JSON schema. Errors: INVALID_FILE for what is no schema, and one that no value is right by; UNSUPPORTED,
 * with the place as a JSON pointer and the keyword, for what is not known here; LIMIT; OUT_OF_MEMORY. */
sb_status sb_grammar_of_schema(const char *schema, size_t bytes, sb_grammar *grammar, sb_error *error);
void sb_grammar_clear(sb_grammar *grammar);

static inline uint32_t sb_grammar_first_call(const sb_grammar *grammar, uint32_t state) {
    return state == 0 ? 0 : grammar->states[state - 1].calls_end;
}

#endif
