/* Literals of text: what Python's unicode-escape codec makes of them, which is how jinja2 reads them. */
#include <stdio.h>

#include <utf8proc.h>

#include "template/tree.h"

/* Reads up to `most` digits of a base; returns how many there were. */
static size_t read_digits(const char *data, size_t bytes, size_t most, int base, uint32_t *number) {
    size_t count = 0;
    *number = 0;
    for (; count < bytes && count < most; count++) {
        char byte = data[count], lower = (char)(byte | 0x20);
        int digit = byte >= '0' && byte <= '9' ? byte - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
        if (digit >= base)
            break;
        *number = *number * (uint32_t)base + (uint32_t)digit; /* of 8 digits at most */
    }
    return count;
}

/* An escape of digits: \x, \u, \U and so many. */
static sb_status read_point(sb_jinja *jinja, const char *data, size_t bytes, size_t digits, size_t *used) {
    uint32_t point;
    if (read_digits(data + 1, bytes - 1, digits, 16, &point) != digits)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_FILE, "\\%c in a text needs %zu hexadecimal digits", data[0],
                             digits);
    if (!utf8proc_codepoint_valid((int32_t)point))
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "\\%c in a text is no character that UTF-8 has", data[0]);
    *used = 1 + digits;
    return sb_jinja_write_point(jinja, (int32_t)point);
}

/* jinja2 has characters beyond ASCII escaped before it undoes escapes: a backslash before one stays, and escapes that
 * escape's own. */
static sb_status write_quirk(sb_jinja *jinja, const char *data, size_t *used) {
    int32_t point = sb_jinja_point(data, used);
    char text[16];
    int bytes = snprintf(text, sizeof text,
                         point < 0x100     ? "\\x%02x"
                         : point < 0x10000 ? "\\u%04x"
                                           : "\\U%08x",
                         (unsigned)point);
    return sb_jinja_write(jinja, text, (size_t)bytes);
}

/* What stands behind a backslash, of which `*used` bytes belong to it. */
static sb_status write_escape(sb_jinja *jinja, const char *data, size_t bytes, size_t *used) {
    static const char plain[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    uint32_t point;
    *used = 1;
    for (const char *at = plain; *at != '\0'; at += 2) {
        if (data[0] == *at)
            return sb_jinja_write(jinja, at + 1, 1);
    }
    switch (data[0]) {
    case '\n':
        return SB_OK;
    case 'x':
        return read_point(jinja, data, bytes, 2, used);
    case 'u':
        return read_point(jinja, data, bytes, 4, used);
    case 'U':
        return read_point(jinja, data, bytes, 8, used);
    case 'N':
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED,
                             "\\N in a text is not understood: write \\u or the character");
    default:
        break;
    }
    *used = read_digits(data, bytes, 3, 8, &point);
    if (*used != 0)
        return sb_jinja_write_point(jinja, (int32_t)point);
    if ((unsigned char)data[0] >= 0x80)
        return write_quirk(jinja, data, used);
    SB_TRY(sb_jinja_write(jinja, "\\", 1));
    *used = 1;
    return sb_jinja_write(jinja, data, 1);
}

sb_status sb_jinja_unescape(sb_jinja *jinja, const char *data, size_t bytes, sb_jinja_value *value) {
    if (memchr(data, '\\', bytes) == NULL)
        return sb_jinja_text_over(jinja, data, bytes, value);
    size_t begin = sb_jinja_begin(jinja);
    for (size_t at = 0, used; at < bytes; at += used) {
        used = 1;
        if (data[at] != '\\') {
            SB_TRY(sb_jinja_write(jinja, data + at, 1));
        } else {
            at++; /* (A text does not end with one: the quote would be its escape.) */
            SB_TRY(write_escape(jinja, data + at, bytes - at, &used));
        }
    }
    return sb_jinja_take(jinja, begin, value);
}
