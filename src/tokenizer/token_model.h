/* Models: what makes tokens of a piece of text, when the pieces are cut. */
#ifndef SB_TOKENIZER_TOKEN_MODEL_H
#define SB_TOKENIZER_TOKEN_MODEL_H

#include <stdint.h>

#include "tokenizer/pairs.h"
#include "tokenizer/vocabulary.h"

/** Numbers of tokens that grow at their end. */
typedef struct sb_numbers {
    int64_t *items;
    size_t count, capacity;
} sb_numbers;

bool sb_numbers_add(sb_numbers *numbers, int64_t number);

typedef enum sb_token_model_kind {
    SB_MODEL_BPE,
    SB_MODEL_UNIGRAM,
    SB_MODEL_WORDPIECE,
    SB_MODEL_WORD
} sb_token_model_kind;

/** Zeroed, it is empty; sb_token_model_finish makes it ready. Then it is not changed, and threads may share it. */
typedef struct sb_token_model {
    sb_token_model_kind kind;
    sb_vocabulary vocabulary;
    int32_t unknown;        /* what stands for a character without a token; -1: nothing does */
    bool byte_fallback;     /* … but before it, the tokens of the character's bytes */
    bool fuse_unknown;      /* one for several in a row */
    bool ignore_merges;     /* BPE: a piece that is a token is that token */
    char *prefix;           /* BPE, WordPiece: before parts of a word that do not begin it; NULL: nothing */
    char *suffix;           /* BPE: behind the last part of a word; NULL */
    size_t most_characters; /* WordPiece: a longer word is unknown */
    /* BPE: left, right → rank, merged. Symbols are tokens, and characters without a token that are part of one, which
     * are numbered behind the tokens. */
    sb_pairs merges;
    sb_vocabulary characters;
    double *scores; /* Unigram: by token */
    double unknown_score;
    sb_pairs trie;  /* Unigram, WordPiece: node, byte → node, token + 1 */
    size_t longest; /* token, in bytes */
    int32_t byte_tokens[256];
    int32_t short_symbols[0x800]; /* BPE: symbol of each character below, or -1 */
} sb_token_model;

/** The most bytes of a token whose parts are looked at when it is loaded, or which text is held against at each place.
 * */
#define SB_MOST_TOKEN_BYTES 1024

/** Fills what follows from the rest: tables of bytes and of characters, the trie. Errors: INVALID_FILE; OUT_OF_MEMORY.
 * */
sb_status sb_token_model_finish(sb_token_model *model, sb_error *error);
/** Adds the merge of two tokens to one, better than those of greater ranks; `whole` is memory to work in. Errors:
 * INVALID_FILE, where one of the three is no token; OUT_OF_MEMORY. */
sb_status sb_bpe_add_merge(sb_token_model *model, sb_span left, sb_span right, size_t rank, sb_text *whole,
                           sb_error *error);
/** Makes merges of scores, as sentencepiece merges: of all pairs whose texts are together a token that has the best
 * score, the first. `scores` by token; `mergeable`, by token, says which texts take part, as part or as whole. */
sb_status sb_bpe_merges_of_scores(sb_token_model *model, const float *scores, const bool *mergeable, sb_error *error);
void sb_token_model_clear(sb_token_model *model);

/** Memory for encoding one text, and what it remembers of it. Zeroed, it is ready. */
typedef struct sb_token_work {
    struct sb_bpe_symbol *symbols;
    size_t symbol_capacity;
    struct sb_bpe_candidate *heap;
    size_t heap_count, heap_capacity;
    struct sb_word_memory *words; /* words that were met, or NULL */
    size_t word_slots;
    struct sb_unigram_place *places;
    size_t place_capacity;
    sb_text text;
} sb_token_work;

/** Remembers words, for a text of about `bytes` bytes; without it, nothing is remembered. */
void sb_token_work_remember(sb_token_work *work, size_t bytes);
void sb_token_work_clear(sb_token_work *work);

/** Appends the tokens of a piece of checked UTF-8. Errors: INVALID_ARGUMENT, where a character has no token and
 * nothing stands for it that has one; OUT_OF_MEMORY. */
sb_status sb_token_model_encode(const sb_token_model *model, sb_token_work *work, sb_span piece, sb_numbers *numbers,
                                sb_error *error);

/* The models, in their sources. */
void sb_bpe_finish(sb_token_model *model);
sb_status sb_bpe_encode(const sb_token_model *model, sb_token_work *work, sb_span piece, sb_numbers *numbers,
                        sb_error *error);
void sb_unigram_finish(sb_token_model *model);
sb_status sb_unigram_encode(const sb_token_model *model, sb_token_work *work, sb_span piece, sb_numbers *numbers,
                            sb_error *error);
sb_status sb_wordpiece_encode(const sb_token_model *model, sb_span piece, sb_numbers *numbers, sb_error *error);

#endif
