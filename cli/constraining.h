/* What `generate` may write: the schema it keeps to, and what is added to and taken from logits. */
#ifndef CLI_CONSTRAINING_H
#define CLI_CONSTRAINING_H

#include <jansson.h>

#include "support.h"

#define CONSTRAINT_OPTIONS                                                                                             \
    {"json-schema", "SCHEMA", false,                                                                                   \
     "Write a JSON value that is right by a JSON schema: a file, - for standard input, or the schema itself"},         \
    {                                                                                                                  \
        "json-object", NULL, false, "Write any JSON object"                                                            \
    }

#define PENALTY_OPTIONS                                                                                                \
    {"repetition-penalty", "P", false,                                                                                 \
     "Divide logits above 0 of tokens that have come, in the prompt too, by P, and multiply others; 1 by default"},    \
        {"presence-penalty", "P", false, "Take P from the logits of new tokens that have come; 0 by default"},         \
        {"frequency-penalty", "P", false, "Take P from them as many times as they have come; 0 by default"}, {         \
        "logit-bias", "TOKEN=B", true, "Add B to the logit of a token, by its id; -inf for one that must not come"     \
    }

/** Reads an option that takes a number; `*number` stays as it is where the option is not given. False after printing what is wrong. */
bool read_real(const arguments *arguments, const char *name, double least, double most, float *number);
/** Reads the penalties. False after printing what is wrong. */
bool read_penalties(const arguments *arguments, sb_llm_sampling *sampling);
/** Reads --logit-bias; `*biases` is the caller's to free. Exit codes as in options.h, after printing what is wrong; so below. */
int read_biases(const arguments *arguments, sb_llm_sampling *sampling, sb_llm_logit_bias **biases);

/** Whether --json-schema or --json-object is given. */
bool is_constrained(const arguments *arguments);
/** The constraint that they ask for; NULL for none. */
int open_constraint(const arguments *arguments, const sb_tokenizer *tokenizer, sb_llm_constraint **constraint);

/** Prints to stderr how tokens are chosen, and which ones end the text; `source`: what of the
 * checkpoint has a say in it; NULL: nothing. */
void print_settings(const sb_llm *llm, const sb_llm_generation *generation, const char *source);
/** The same as JSON, in fresh memory; NULL where memory ran out. */
json_t *settings_json(const sb_llm *llm, const sb_llm_generation *generation);

#endif
