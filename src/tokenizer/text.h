/* Bytes that grow at their end. */
#ifndef SB_TOKENIZER_TEXT_H
#define SB_TOKENIZER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/** Bytes of somebody else's memory, without a NUL behind them. */
typedef struct sb_span {
    const char *data;
    size_t bytes;
} sb_span;

/** Zeroed, it is empty. `data` is the owner's; a NUL does not follow by itself. */
typedef struct sb_text {
    char *data;
    size_t bytes, capacity;
} sb_text;

/** Makes room for `more` bytes behind what is there. False when memory ran out. */
bool sb_text_reserve(sb_text *text, size_t more);
/** Appends bytes, which may not be the text's own. False when memory ran out. */
bool sb_text_append(sb_text *text, const char *data, size_t bytes);
/** Appends a character as UTF-8. */
bool sb_text_append_point(sb_text *text, unsigned point);
/** Frees the bytes; the text is empty. */
void sb_text_clear(sb_text *text);

/** Whether both are the same bytes. */
bool sb_span_equal(sb_span left, sb_span right);
/** The span of a text that ends with a NUL. */
sb_span sb_span_of(const char *text);

#endif
