/* Making a grammar of a schema: what its parts share. */
#ifndef SB_CONSTRAINT_COMPILE_H
#define SB_CONSTRAINT_COMPILE_H

#include "constraint/dfa.h"
#include "constraint/grammar.h"
#include "constraint/schema.h"

/* What a rule is of. */
typedef enum sb_rule_kind {
    SB_RULE_TEXT,   /* the whole text: `ways` are those of the whole schema */
    SB_RULE_SPACES, /* spaces behind a line feed, at least one */
    SB_RULE_STRING, /* a string of the first way */
    SB_RULE_NESTED, /* objects and arrays of `ways`, as `parts` says */
    SB_RULE_COUNTED /* an array of the first way, whose items are counted */
} sb_rule_kind;

enum { SB_PART_OBJECT = 1, SB_PART_ARRAY = 2 };

typedef struct sb_rule {
    sb_rule_kind kind;
    sb_any_of ways;
    unsigned char *parts; /* of a way */
    char *key;            /* that it is found by */
} sb_rule;

/* A grammar in the making: rules are found, wait in a row, and are made one after the other, since schemas nest deeper than calls. */
typedef struct sb_compiler {
    sb_schema schema;
    sb_rule *rules;
    size_t rule_count, rule_capacity;
    sb_names known;
    sb_grammar *grammar;
    size_t state_capacity, map_capacity, next_capacity, call_capacity, made_capacity;
    uint32_t free_string; /* the state that strings of any characters begin with; SB_DEAD: not yet made */
    sb_error *error;
} sb_compiler;

/** The number of a rule, which takes over `ways` and `parts` (NULL: none), and frees them on failure. Errors: LIMIT; OUT_OF_MEMORY. */
sb_status sb_compiler_rule(sb_compiler *compiler, sb_rule_kind kind, sb_any_of ways, unsigned char *parts,
                           uint32_t *rule);

/* Adding to automata. What fails is the builder's status. */

/** A value that is right by all schemas of a set; nothing where there is none. */
void sb_compile_value(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of all);
/** A value of one of the ways. */
void sb_compile_ways(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, const sb_any_of *ways);
/** The object of a way, from its brace to its brace. */
void sb_compile_object(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way);
/** The array of a way; *counter is that of its rule. */
void sb_compile_array(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way,
                      sb_counter *counter);
/** Whether the way's array has a counter. */
bool sb_compile_is_counted(const sb_compiler *compiler, sb_all_of way);
/** The string of a way that has patterns or formats, quotes included. */
void sb_compile_pattern(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way);
/** Whether the way has patterns or formats. */
bool sb_compile_has_pattern(const sb_compiler *compiler, sb_all_of way);
/** This value. */
void sb_compile_literal(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, const json_t *value);
/** White space between brackets, marks and values: nothing, a space, or a line feed with up to SB_MOST_INDENT spaces. */
void sb_compile_space(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to);

/** The same, but not nothing; its first byte has the action. */
void sb_compile_space_before(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_count_action action);

#define SB_MOST_INDENT 64

#endif
