/* Patterns that a text is searched for, from its beginning to its end. */
#ifndef SB_TOKENIZER_PATTERN_H
#define SB_TOKENIZER_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tokenizer/text.h"

typedef enum sb_pattern_kind {
    SB_PATTERN_LITERAL,  /* these bytes */
    SB_PATTERN_REGEX,    /* a regular expression, by PCRE2 */
    SB_PATTERN_KNOWN,    /* one of those whose search is written here, in one pass */
    SB_PATTERN_CHARACTER /* any character of a class */
} sb_pattern_kind;

/** How words are cut by one of the known expressions, which differ in little. */
typedef struct sb_known_split {
    bool any_case; /* of 's, 't, 're, 've, 'm, 'll, 'd */
    /* A word may begin with any character but a line's end, a letter or a number; else with a space. */
    bool mark_before;
    bool space_before_number;
    int most_digits;  /* of a number; 0: any */
    bool lines_after; /* line ends behind marks belong to them, and white space up to line ends is one */
} sb_known_split;

typedef struct sb_pattern {
    sb_pattern_kind kind;
    char *literal;
    size_t literal_bytes;
    bool (*is_member)(uint32_t point);
    const sb_known_split *known;
    struct pcre2_real_code_8 *code;
} sb_pattern;

/** A regular expression in the syntax of Oniguruma, as far as it means the same here. Errors: INVALID_FILE where it is
 * none; UNSUPPORTED, which says at which byte; OUT_OF_MEMORY. */
sb_status sb_pattern_regex(sb_pattern *pattern, const char *expression, size_t bytes, sb_error *error);
/** Bytes; the text is copied. Not empty. */
sb_status sb_pattern_literal(sb_pattern *pattern, const char *literal, size_t bytes, sb_error *error);
void sb_pattern_clear(sb_pattern *pattern);

/** What PCRE2 works in: for one search at a time, of any pattern. Zeroed, it is ready, and has no memory before a search wants
 * some. */
typedef struct sb_search_memory {
    struct pcre2_real_match_data_8 *data;
    struct pcre2_real_match_context_8 *context;
    struct pcre2_real_jit_stack_8 *stack;
} sb_search_memory;

void sb_search_memory_clear(sb_search_memory *memory);

/** One pass over a text. */
typedef struct sb_search {
    const sb_pattern *pattern;
    sb_span text;
    size_t at;
    sb_search_memory *memory; /* the caller's */
} sb_search;

/** Begins a search, which nothing has to end. Errors: OUT_OF_MEMORY. */
sb_status sb_search_begin(sb_search *search, const sb_pattern *pattern, sb_span text, sb_search_memory *memory,
                          sb_error *error);
/** The next match behind the last one; matches are not empty, and *begin is the text's end where there are no more.
 * Errors: LIMIT, where a match takes more steps than it may; OUT_OF_MEMORY. */
sb_status sb_search_next(sb_search *search, size_t *begin, size_t *end, sb_error *error);

/** The end of the part that begins at `at`, for a known expression. */
size_t sb_known_split_end(const sb_known_split *known, sb_span text, size_t at);
/** The expressions that are known. */
typedef enum sb_words { SB_WORDS_GPT2, SB_WORDS_LLAMA3, SB_WORDS_QWEN2 } sb_words;

/** The pattern of a known expression. It needs no memory. */
sb_pattern sb_pattern_of_words(sb_words words);
/** The known expression of that text, or NULL. */
const sb_known_split *sb_known_split_find(const char *expression, size_t bytes);

#endif
