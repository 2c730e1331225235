/* The bytes that each token puts into a text, in a trie: whoever asks which tokens can come next walks it once, not every token. */
#ifndef SB_TOKENIZER_TOKEN_TRIE_H
#define SB_TOKENIZER_TOKEN_TRIE_H

#include <samebit/llm.h>

#include "base/error.h"
#include "tokenizer/text.h"

/* Nodes lie in the order of the texts that lead to them, a node before its children. So do the tokens: those of a node, and
 * those of all nodes below it, lie side by side. Node 0 is the empty text. It never changes. */
typedef struct sb_token_trie {
    uint32_t node_count, token_count;
    unsigned char *byte;   /* of a node: the last one of its text */
    uint32_t *end;         /* of a node: the first node behind it that is not below it */
    uint32_t *first_token; /* of a node: where its own tokens begin; one more for the end */
    uint32_t *tokens;      /* ids */
    uint32_t longest;      /* bytes of the longest token */
    uint32_t vocabulary;   /* one more than the highest id of a token */
    char *bytes;           /* of all tokens by id, one behind the other */
    uint32_t *begin;       /* of an id: its first byte; vocabulary + 1 of them */
} sb_token_trie;

/** Makes the trie of a tokenizer's tokens: of all but special ones and those without bytes, which `begin` says to have none. Errors:
 * UNSUPPORTED for a decoder by which the bytes of a token depend on its neighbours; LIMIT; OUT_OF_MEMORY. */
sb_status sb_token_trie_create(const sb_tokenizer *tokenizer, sb_token_trie **trie, sb_error *error);
/** NULL is allowed. */
void sb_token_trie_free(sb_token_trie *trie);

/** The bytes of a token; none where it has none or does not exist. */
static inline sb_span sb_token_trie_bytes(const sb_token_trie *trie, int64_t token) {
    if (token < 0 || token >= trie->vocabulary)
        return (sb_span){NULL, 0};
    return (sb_span){trie->bytes + trie->begin[token], trie->begin[token + 1] - trie->begin[token]};
}

#endif
