#include "tensor/utf.h"

static bool is_character(uint32_t point) {
    return point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
}

static size_t utf8_bytes(uint32_t point) {
    return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

size_t sb_utf32_length(const uint32_t *points, size_t count) {
    while (count > 0 && points[count - 1] == 0)
        count--;
    return count;
}

bool sb_utf32_measure(const uint32_t *points, size_t count, size_t *bytes, size_t *bad) {
    *bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_character(points[i])) {
            *bad = i;
            return false;
        }
        *bytes += utf8_bytes(points[i]);
    }
    return true;
}

char *sb_utf32_to_utf8(const uint32_t *points, size_t count, char *text) {
    static const unsigned char lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = 0; i < count; i++) {
        uint32_t point = points[i];
        size_t bytes = utf8_bytes(point);
        for (size_t j = bytes - 1; j > 0; j--, point >>= 6)
            text[j] = (char)(0x80 | (point & 0x3f));
        text[0] = (char)(lead[bytes] | point);
        text += bytes;
    }
    return text;
}

/* Decodes one character; returns its bytes, or 0 when there is none. */
static size_t decode(const unsigned char *text, size_t left, uint32_t *point) {
    unsigned char first = text[0];
    size_t bytes = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (bytes == 0 || bytes > left || first > 0xf4)
        return 0;
    uint32_t value = bytes == 1 ? first : first & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (text[i] & 0x3f);
    }
    *point = value;
    return is_character(value) && utf8_bytes(value) == bytes ? bytes : 0;
}

bool sb_utf8_measure(const char *text, size_t bytes, size_t *characters) {
    *characters = 0;
    for (size_t at = 0; at < bytes; ++*characters) {
        uint32_t point;
        size_t step = decode((const unsigned char *)text + at, bytes - at, &point);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

void sb_utf8_to_utf32(const char *text, size_t bytes, uint32_t *points) {
    for (size_t at = 0; at < bytes;)
        at += decode((const unsigned char *)text + at, bytes - at, points++);
}
