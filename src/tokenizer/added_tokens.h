/* Tokens that are found in a text before anything else is done with it: markers such as <|end|>, and what was added
 * to a vocabulary. */
#ifndef SB_TOKENIZER_ADDED_TOKENS_H
#define SB_TOKENIZER_ADDED_TOKENS_H

#include "base/error.h"
#include "tokenizer/pairs.h"
#include "tokenizer/text.h"

typedef struct sb_added_token {
    int32_t number;
    char *text;
    size_t bytes;
    bool special;     /* says something about the text, and is no part of it */
    bool single_word; /* not beside letters */
    bool left, right; /* takes the white space on that side with it */
    bool normalized;  /* looked for in the normalised text */
} sb_added_token;

/** What is looked for in one kind of text. Zeroed, it is empty. */
typedef struct sb_added_search {
    sb_pairs trie; /* node, byte → node, index of the token + 1 */
    uint32_t nodes;
    bool begins[256];
} sb_added_search;

/** Zeroed, it is empty. */
typedef struct sb_added_tokens {
    sb_added_token *items;
    size_t count, capacity;
    sb_added_search in_raw, in_normalized;
    sb_pairs by_number; /* number, 0 → index */
} sb_added_tokens;

/** Appends a token; the text is copied. Errors: INVALID_FILE, where it has no text; UNSUPPORTED, where it is too long;
 * OUT_OF_MEMORY. */
sb_status sb_added_tokens_add(sb_added_tokens *added, sb_added_token token, sb_error *error);
/** Makes the search find the token by this text, which is its own or that normalised. Of equal texts the first stays.
 * */
sb_status sb_added_search_put(sb_added_search *search, size_t index, sb_span text, sb_error *error);
/** The token of that number, or NULL. */
const sb_added_token *sb_added_tokens_find(const sb_added_tokens *added, int64_t number);
void sb_added_tokens_clear(sb_added_tokens *added);

/** The next token at or behind `*at`, of those that begin first the longest; special ones only where `special`. False:
 * there is none. `*begin` and `*end` are its place, with the white space that it takes, but none before `done`; `*at`
 * is moved on. */
bool sb_added_search_next(const sb_added_tokens *added, const sb_added_search *search, sb_span text, bool special,
                          size_t done, size_t *at, size_t *begin, size_t *end, const sb_added_token **token);

#endif
