/* Normalisers: text to text, before anything is cut. */
#ifndef SB_TOKENIZER_NORMALIZER_H
#define SB_TOKENIZER_NORMALIZER_H

#include "tokenizer/pattern.h"

typedef enum sb_normal_kind {
    SB_NORMAL_FORM, /* NFC, NFD, NFKC, NFKD */
    SB_NORMAL_LOWERCASE,
    SB_NORMAL_STRIP_ACCENTS, /* without the characters of M */
    SB_NORMAL_REPLACE,
    SB_NORMAL_PREPEND, /* before a text that is not empty */
    SB_NORMAL_STRIP,   /* white space at the ends */
    SB_NORMAL_BERT,
    SB_NORMAL_NMT,
    SB_NORMAL_BYTES,        /* each byte as the character that stands for it */
    SB_NORMAL_CHARSMAP,     /* sentencepiece's table, by characters that belong together */
    SB_NORMAL_SENTENCEPIECE /* what sentencepiece does itself: its table, spaces, and the one before */
} sb_normal_kind;

typedef struct sb_normal_step {
    sb_normal_kind kind;
    bool compose, compatible;                           /* FORM */
    bool left, right;                                   /* STRIP */
    bool clean_text, chinese, strip_accents, lowercase; /* BERT */
    bool dummy_prefix, remove_extra_spaces;             /* SENTENCEPIECE */
    sb_pattern pattern;                                 /* REPLACE */
    char *content;                                      /* REPLACE, PREPEND; CHARSMAP: the table */
    size_t content_bytes;
} sb_normal_step;

/** Zeroed, it changes nothing. */
typedef struct sb_normalizer {
    sb_normal_step *steps;
    size_t count, capacity;
} sb_normalizer;

/** Appends a step without contents. NULL when memory ran out. */
sb_normal_step *sb_normalizer_add(sb_normalizer *normalizer, sb_normal_kind kind);
void sb_normalizer_clear(sb_normalizer *normalizer);

/** Normalises checked UTF-8 into `result`, whose former contents are lost; `spare` is memory to work in. Errors:
 * LIMIT; OUT_OF_MEMORY. */
sb_status sb_normalize(const sb_normalizer *normalizer, sb_span text, sb_text *result, sb_text *spare, sb_error *error);

/* Steps with sources of their own; each appends to `result`. */
sb_status sb_normal_form(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error);
sb_status sb_normal_charsmap(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error);
sb_status sb_normal_sentencepiece(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error);
/** Whether the bytes are a table of sentencepiece's that can be followed anywhere. */
sb_status sb_charsmap_check(sb_span table, sb_error *error);

/** The character that stands for a byte in byte-level tokens, and the byte that a character stands for, or -1. */
uint32_t sb_byte_to_point(unsigned char byte);
int sb_point_to_byte(uint32_t point);

#endif
