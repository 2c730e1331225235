/* Constraints: schemas bound to the tokens of a tokenizer. See <samebit/llm.h> for the contract. */
#ifndef SB_CONSTRAINT_CONSTRAINT_H
#define SB_CONSTRAINT_CONSTRAINT_H

#include <samebit/llm.h>

#include "base/error.h"
#include "tokenizer/token_trie.h"

/** The schema as it was given; a NUL stands behind its `*bytes` bytes. */
const char *sb_constraint_schema(const sb_llm_constraint *constraint, size_t *bytes);
/** The texts of the tokens that it knows. */
const sb_token_trie *sb_constraint_trie(const sb_llm_constraint *constraint);

/** 64-bit words that have a bit for each of a vocabulary's tokens. */
static inline size_t sb_constraint_words(int64_t vocabulary) {
    return ((size_t)vocabulary + 63) / 64;
}

/** Sets the bits of the tokens that may come next: those of sb_llm_constraint_mask, out of `vocabulary`. Errors: likewise. */
sb_status sb_constraint_bits(sb_llm_constraint_state *state, uint64_t *bits, int64_t vocabulary, int stop_count,
                             const int64_t *stops, int64_t *allowed, sb_error *error);
/** Gives the logits of all other tokens −∞. */
void sb_constraint_apply(const uint64_t *bits, float *logits, int64_t vocabulary);

#endif
