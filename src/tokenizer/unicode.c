#include "tokenizer/unicode.h"

#include <utf8proc.h>

size_t sb_point_write(uint32_t point, char *text) {
    if (point < 0x80) {
        text[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        text[0] = (char)(0xc0 | point >> 6);
        text[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        text[0] = (char)(0xe0 | point >> 12);
        text[1] = (char)(0x80 | (point >> 6 & 0x3f));
        text[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    text[0] = (char)(0xf0 | point >> 18);
    text[1] = (char)(0x80 | (point >> 12 & 0x3f));
    text[2] = (char)(0x80 | (point >> 6 & 0x3f));
    text[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* How many bytes the character at the front has, or would have; 0 when no character begins so. `*right` is how many
 * of them are there and fit. The second byte is what tells overlong forms, surrogates and numbers that are too large
 * (Unicode, table 3-7). */
static size_t look_at_character(const unsigned char *t, size_t bytes, size_t *right) {
    unsigned char low = 0x80, high = 0xbf;
    size_t length = t[0] < 0x80 ? 1 : t[0] < 0xc2 ? 0 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : t[0] < 0xf5 ? 4 : 0;
    if (t[0] == 0xe0)
        low = 0xa0;
    else if (t[0] == 0xed)
        high = 0x9f;
    else if (t[0] == 0xf0)
        low = 0x90;
    else if (t[0] == 0xf4)
        high = 0x8f;
    *right = 1;
    while (*right < length && *right < bytes && t[*right] >= low && t[*right] <= high) {
        ++*right;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

size_t sb_utf8_valid(const char *text, size_t bytes, size_t *bad, bool *unfinished) {
    size_t at = 0;
    *bad = 0;
    *unfinished = false;
    while (at < bytes) {
        size_t right, length = look_at_character((const unsigned char *)text + at, bytes - at, &right);
        if (length == 0 || right < length) {
            *bad = right;
            *unfinished = length != 0 && at + right == bytes;
            break;
        }
        at += length;
    }
    return at;
}

bool sb_utf8_append_lossy(sb_text *text, const char *bytes, size_t count) {
    for (size_t at = 0; at < count;) {
        size_t bad;
        bool unfinished;
        size_t valid = sb_utf8_valid(bytes + at, count - at, &bad, &unfinished);
        if (!sb_text_append(text, bytes + at, valid) || (bad != 0 && !sb_text_append(text, "\xef\xbf\xbd", 3)))
            return false;
        at += valid + bad;
    }
    return true;
}

static utf8proc_category_t category(uint32_t point) {
    return utf8proc_category((utf8proc_int32_t)point);
}

bool sb_is_letter(uint32_t point) {
    utf8proc_category_t c = category(point);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool sb_is_number(uint32_t point) {
    utf8proc_category_t c = category(point);
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool sb_is_space(uint32_t point) {
    return (point >= 9 && point <= 13) || point == ' ' || point == 0x85 || point == 0xa0 || point == 0x1680 ||
           (point >= 0x2000 && point <= 0x200a) || point == 0x2028 || point == 0x2029 || point == 0x202f ||
           point == 0x205f || point == 0x3000;
}

bool sb_is_mark(uint32_t point) {
    utf8proc_category_t c = category(point);
    return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool sb_is_mark_nonspacing(uint32_t point) {
    return category(point) == UTF8PROC_CATEGORY_MN;
}

bool sb_is_punctuation(uint32_t point) {
    if (point < 0x80)
        return (point >= '!' && point <= '/') || (point >= ':' && point <= '@') || (point >= '[' && point <= '`') ||
               (point >= '{' && point <= '~');
    utf8proc_category_t c = category(point);
    return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool sb_is_word(uint32_t point) {
    utf8proc_category_t c = category(point);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC || point == 0x200c ||
           point == 0x200d || (point >= 0x24b6 && point <= 0x24e9) || (point >= 0x1f130 && point <= 0x1f149) ||
           (point >= 0x1f150 && point <= 0x1f169) || (point >= 0x1f170 && point <= 0x1f189);
}

bool sb_is_other(uint32_t point) {
    utf8proc_category_t c = category(point);
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
}

int sb_lowercase(uint32_t point, uint32_t lower[2]) {
    if (point == 0x130) { /* the only character whose lowercase is always two */
        lower[0] = 'i';
        lower[1] = 0x307;
        return 2;
    }
    lower[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)point);
    return 1;
}
