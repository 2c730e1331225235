/* Metadata of GGUF files: keys with typed values. Everything shows the mapped file, and lives as long as the checkpoint.
 */
#ifndef SB_CHECKPOINT_GGUF_H
#define SB_CHECKPOINT_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum sb_gguf_type {
    SB_GGUF_U8 = 0,
    SB_GGUF_S8 = 1,
    SB_GGUF_U16 = 2,
    SB_GGUF_S16 = 3,
    SB_GGUF_U32 = 4,
    SB_GGUF_S32 = 5,
    SB_GGUF_F32 = 6,
    SB_GGUF_BOOL = 7,
    SB_GGUF_TEXT = 8,
    SB_GGUF_ARRAY = 9,
    SB_GGUF_U64 = 10,
    SB_GGUF_S64 = 11,
    SB_GGUF_F64 = 12
} sb_gguf_type;

/** Bytes of text in the file: no NUL behind it, and not checked to be UTF-8. */
typedef struct sb_gguf_text {
    const char *data;
    size_t bytes;
} sb_gguf_text;

typedef struct sb_gguf_value {
    sb_gguf_text key;
    sb_gguf_type type; /* of the value; of an array: of its items */
    bool is_array;
    uint64_t count;            /* of an array, else 1 */
    const unsigned char *data; /* the items, one behind the other; a text is 8 bytes of length and its bytes */
    size_t offset;             /* of `data` in the file */
} sb_gguf_value;

typedef struct sb_gguf_metadata {
    size_t count, capacity;
    sb_gguf_value *values;
} sb_gguf_metadata;

/** The value of a key, or NULL. */
const sb_gguf_value *sb_gguf_find(const sb_gguf_metadata *metadata, const char *key);
/** Item `index` of a value of integers or bools; false for other types, items that do not exist, and above 2^63 - 1. */
bool sb_gguf_integer(const sb_gguf_value *value, uint64_t index, int64_t *number);
/** The same for floats and integers. */
bool sb_gguf_real(const sb_gguf_value *value, uint64_t index, double *number);
/** A text that is no array; false for others. */
bool sb_gguf_string(const sb_gguf_value *value, sb_gguf_text *text);
/** The next text of an array: `*at` begins with value->data and goes on by itself. The caller counts. */
sb_gguf_text sb_gguf_next_text(const unsigned char **at);

/** What a GGUF file says of its tokenizer. Arrays are the caller's to free by sb_gguf_tokenizer_clear; texts show the
 * file. */
typedef struct sb_gguf_tokenizer {
    sb_gguf_text model;         /* "llama", "gpt2", "t5", …; no data: the file has no tokenizer */
    sb_gguf_text pre;           /* which splitter, "llama-bpe", …; no data: none is named */
    sb_gguf_text chat_template; /* no data: none */
    sb_gguf_text charsmap;      /* sentencepiece's table of characters; no bytes: none */
    size_t token_count;
    sb_gguf_text *tokens; /* by id */
    float *scores;        /* token_count; NULL: none */
    int32_t *types;       /* token_count: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte; NULL */
    size_t merge_count;
    sb_gguf_text *merges;                                             /* "left right", best first */
    int64_t bos, eos, eot, unknown, padding;                          /* ids; -1: not said */
    int add_bos, add_eos, add_space_prefix, remove_extra_whitespaces; /* 0, 1; -1: not said */
} sb_gguf_tokenizer;

/** Collects it. Errors: INVALID_FILE where types or numbers of items do not fit; OUT_OF_MEMORY. */
sb_status sb_gguf_tokenizer_read(const sb_gguf_metadata *metadata, sb_gguf_tokenizer *tokenizer, sb_error *error);
void sb_gguf_tokenizer_clear(sb_gguf_tokenizer *tokenizer);

#endif
