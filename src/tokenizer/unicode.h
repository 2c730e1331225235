/* Characters: UTF-8, and what Unicode says of a character. */
#ifndef SB_TOKENIZER_UNICODE_H
#define SB_TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/text.h"

/** Reads the character at the beginning of checked UTF-8; returns its bytes. */
static inline size_t sb_point_read(const char *text, uint32_t *point) {
    const unsigned char *t = (const unsigned char *)text;
    if (t[0] < 0x80) {
        *point = t[0];
        return 1;
    }
    if (t[0] < 0xe0) {
        *point = (uint32_t)(t[0] & 0x1f) << 6 | (t[1] & 0x3f);
        return 2;
    }
    if (t[0] < 0xf0) {
        *point = (uint32_t)(t[0] & 0x0f) << 12 | (uint32_t)(t[1] & 0x3f) << 6 | (t[2] & 0x3f);
        return 3;
    }
    *point =
        (uint32_t)(t[0] & 0x07) << 18 | (uint32_t)(t[1] & 0x3f) << 12 | (uint32_t)(t[2] & 0x3f) << 6 | (t[3] & 0x3f);
    return 4;
}

/** The bytes of the character that begins with this byte of checked UTF-8. */
static inline size_t sb_point_bytes(char first) {
    unsigned char byte = (unsigned char)first;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/** Where the character that ends before `end` begins; `end` is above 0. */
static inline size_t sb_point_before(const char *text, size_t end) {
    do
        end--;
    while (end != 0 && ((unsigned char)text[end] & 0xc0) == 0x80);
    return end;
}

/** Writes 1 to 4 bytes; returns how many. */
size_t sb_point_write(uint32_t point, char *text);

/** How many of the bytes at the front are UTF-8 in its shortest form, without surrogates. Where they stop short of the
 * end, `*bad` is how many bytes the broken character there has: what is a beginning of a character, and at least one.
 * `*unfinished` says that it is a beginning that the end of the bytes cuts off. */
size_t sb_utf8_valid(const char *text, size_t bytes, size_t *bad, bool *unfinished);
/** Appends the bytes with U+FFFD in place of each broken character. False when memory ran out. */
bool sb_utf8_append_lossy(sb_text *text, const char *bytes, size_t count);

/* Properties. Where general categories do not say it, the lists in the source do. */
bool sb_is_letter(uint32_t point);          /* L */
bool sb_is_number(uint32_t point);          /* N */
bool sb_is_space(uint32_t point);           /* White_Space */
bool sb_is_mark(uint32_t point);            /* M */
bool sb_is_mark_nonspacing(uint32_t point); /* Mn */
bool sb_is_punctuation(uint32_t point);     /* P, and ASCII's marks that Unicode calls symbols */
bool sb_is_word(uint32_t point);            /* \w of UTS 18: Alphabetic, M, Nd, Pc, joiners */
bool sb_is_other(uint32_t point);           /* Cc, Cf, Co */
/** Writes the full lowercase mapping, without regard to its surroundings: 1 or 2 characters; returns how many. */
int sb_lowercase(uint32_t point, uint32_t lower[2]);

#endif
