/* Tokenizers: text goes through their parts in this order. */
#ifndef SB_TOKENIZER_H
#define SB_TOKENIZER_H

#include <samebit/llm.h>

#include <stdatomic.h>

#include "checkpoint/gguf.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/splitter.h"
#include "tokenizer/token_model.h"
#include "tokenizer/token_trie.h"

struct sb_tokenizer {
    sb_added_tokens added;
    sb_normalizer normalizer;
    sb_splitter splitter;
    sb_token_model model;
    sb_numbers before, after; /* what is put around a text */
    sb_decoder decoder;
    _Atomic(sb_token_trie *) trie; /* NULL until somebody wants it */
};

/** An empty tokenizer, for a source to fill; NULL when memory ran out. */
sb_tokenizer *sb_tokenizer_new(void);

/* Sources. Errors: as sb_tokenizer_open. What they filled has to be finished. */

/** Fills it from a tokenizer.json. */
sb_status sb_tokenizer_read_json(sb_tokenizer *tokenizer, sb_span file, sb_error *error);
/** Fills it from a GGUF file's metadata. */
sb_status sb_tokenizer_read_gguf(sb_tokenizer *tokenizer, const sb_gguf_tokenizer *file, sb_error *error);
/** Fills it from a tokenizer.model. */
sb_status sb_tokenizer_read_sentencepiece(sb_tokenizer *tokenizer, sb_span file, sb_error *error);
/** Adds what a tokenizer_config.json says that a tokenizer.model cannot: tokens that were added, and whether there are marks
 * before and behind texts. */
sb_status sb_tokenizer_read_config(sb_tokenizer *tokenizer, sb_span file, sb_error *error);

/** The trie of its tokens, which is made when it is first asked for and stays the tokenizer's. Any number of threads may ask. Errors: as
 * sb_token_trie_create. */
sb_status sb_tokenizer_trie(const sb_tokenizer *tokenizer, const sb_token_trie **trie, sb_error *error);

/** Makes it ready: searches of added tokens, the model's tables. Errors: INVALID_FILE; UNSUPPORTED; OUT_OF_MEMORY. */
sb_status sb_tokenizer_finish(sb_tokenizer *tokenizer, sb_error *error);

#endif
