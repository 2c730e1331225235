/* The tokens of a model by number and by text. */
#ifndef SB_TOKENIZER_VOCABULARY_H
#define SB_TOKENIZER_VOCABULARY_H

#include "base/error.h"
#include "base/names.h"
#include "tokenizer/text.h"

/** The most tokens that a vocabulary can have, and the highest number is one less. */
#define SB_MOST_TOKENS (1 << 24)

/** Zeroed, it is empty. */
typedef struct sb_vocabulary {
    sb_span *tokens; /* by number; data is NULL where there is no token */
    size_t count, capacity;
    sb_names numbers;
} sb_vocabulary;

/** Adds a token; the text is copied. A text that is there already keeps its number, and the new number is a second
 * name of it. Errors: INVALID_FILE where the number is taken or out of range; OUT_OF_MEMORY. */
sb_status sb_vocabulary_add(sb_vocabulary *vocabulary, int64_t number, sb_span text, sb_error *error);
/** The number of a text, or -1. */
int32_t sb_vocabulary_find(const sb_vocabulary *vocabulary, const char *text, size_t bytes);
/** Whether there is a token of that number. */
bool sb_vocabulary_has(const sb_vocabulary *vocabulary, int64_t number);
/** The numbers of the tokens "<0x00>" to "<0xFF>"; -1 where there is none. */
void sb_vocabulary_bytes(const sb_vocabulary *vocabulary, int32_t bytes[256]);
void sb_vocabulary_clear(sb_vocabulary *vocabulary);

#endif
