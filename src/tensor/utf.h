/* Unicode text between UTF-32, as numpy stores it, and UTF-8. Characters are the numbers up to
 * 0x10ffff without the surrogates. */
#ifndef SB_TENSOR_UTF_H
#define SB_TENSOR_UTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** `count` without the NULs at the end. */
size_t sb_utf32_length(const uint32_t *points, size_t count);
/** The bytes of the same text as UTF-8; false, and in *bad the index, when something is not a character. */
bool sb_utf32_measure(const uint32_t *points, size_t count, size_t *bytes, size_t *bad);
/** Writes checked characters as UTF-8 and returns the end. */
char *sb_utf32_to_utf8(const uint32_t *points, size_t count, char *text);

/** The number of characters; false when the text is not UTF-8 in its shortest form. */
bool sb_utf8_measure(const char *text, size_t bytes, size_t *characters);
/** Writes the characters of checked text. */
void sb_utf8_to_utf32(const char *text, size_t bytes, uint32_t *points);

#endif
