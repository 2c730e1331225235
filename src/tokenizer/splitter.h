/* Pre-tokenizers: how normalised text is cut into pieces, of which each is encoded by itself. */
#ifndef SB_TOKENIZER_SPLITTER_H
#define SB_TOKENIZER_SPLITTER_H

#include "tokenizer/pattern.h"

/** What becomes of a match. */
typedef enum sb_split_behavior {
    SB_SPLIT_REMOVED,
    SB_SPLIT_ISOLATED,
    SB_SPLIT_MERGED_WITH_PREVIOUS,
    SB_SPLIT_MERGED_WITH_NEXT,
    SB_SPLIT_CONTIGUOUS
} sb_split_behavior;

typedef enum sb_split_kind {
    SB_SPLIT_PATTERN,
    SB_SPLIT_WORDS,      /* words, and what is neither word nor white space */
    SB_SPLIT_BYTE_LEVEL, /* a space before, the pattern, and bytes as the characters that stand for them */
    SB_SPLIT_METASPACE   /* a sign for each space, one before, and a cut before each */
} sb_split_kind;

typedef enum sb_prepend { SB_PREPEND_NEVER, SB_PREPEND_FIRST, SB_PREPEND_ALWAYS } sb_prepend;

typedef struct sb_split_step {
    sb_split_kind kind;
    sb_pattern pattern; /* PATTERN, METASPACE; BYTE_LEVEL where `cut` */
    sb_split_behavior behavior;
    bool invert; /* matches are what lies between them */
    bool cut;    /* BYTE_LEVEL, METASPACE: whether the text is cut */
    bool prefix_space;
    sb_prepend prepend;
    char sign[4]; /* METASPACE */
    size_t sign_bytes;
} sb_split_step;

/** Zeroed, it leaves a text in one piece. */
typedef struct sb_splitter {
    sb_split_step *steps;
    size_t count, capacity;
} sb_splitter;

/** Appends a step; NULL when memory ran out. */
sb_split_step *sb_splitter_add(sb_splitter *splitter, sb_split_kind kind);
void sb_splitter_clear(sb_splitter *splitter);

typedef struct sb_piece {
    size_t begin, end;
    bool first; /* it begins where the whole text does */
} sb_piece;

typedef struct sb_pieces {
    sb_piece *items;
    size_t count, capacity;
} sb_pieces;

/** Memory for cutting. Zeroed, it is ready. `text` and `pieces` are the result. */
typedef struct sb_split_work {
    sb_text text, next_text;
    sb_pieces pieces, next_pieces;
    struct sb_split_part *parts;
    size_t part_capacity;
    sb_search_memory search;
} sb_split_work;

void sb_split_work_clear(sb_split_work *work);

/** Cuts checked UTF-8. The pieces are none of them empty. Errors: LIMIT; OUT_OF_MEMORY. */
sb_status sb_split(const sb_splitter *splitter, sb_span text, bool first, sb_split_work *work, sb_error *error);

#endif
