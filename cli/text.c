#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

/* The bytes of the character at `text` (not its end), or 0 when it is not UTF-8; *code is what it stands for. */
static size_t read_character(const char *text, uint32_t *code) {
    const unsigned char *bytes = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t count = bytes[0] < 0x80   ? 1
                   : bytes[0] < 0xc0 ? 0
                   : bytes[0] < 0xe0 ? 2
                   : bytes[0] < 0xf0 ? 3
                   : bytes[0] < 0xf8 ? 4
                                     : 0;
    *code = count == 1 ? bytes[0] : count == 0 ? 0 : bytes[0] & (0xffu >> (count + 1));
    for (size_t i = 1; i < count; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (bytes[i] & 0x3f);
    }
    bool valid = count > 0 && *code >= least[count] && *code <= 0x10ffff && !(*code >= 0xd800 && *code <= 0xdfff);
    return valid ? count : 0;
}

static bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

const char *printable(const char *text, char room[TEXT_BYTES]) {
    static const char ellipsis[] = "…";
    size_t used = 0;
    while (*text != '\0') {
        uint32_t code;
        size_t count = read_character(text, &code);
        size_t written = count == 0 || is_control(code) ? 1 : count;
        if (used + written + sizeof ellipsis > TEXT_BYTES) {
            memcpy(room + used, ellipsis, sizeof ellipsis);
            return room;
        }
        if (count == 0 || is_control(code))
            room[used] = '?';
        else
            memcpy(room + used, text, count);
        used += written;
        text += count == 0 ? 1 : count;
    }
    room[used] = '\0';
    return room;
}

void print_escaped(FILE *file, const char *text) {
    while (*text != '\0') {
        uint32_t code;
        size_t count = read_character(text, &code);
        if (count == 0 || is_control(code))
            fputc('?', file);
        else
            fwrite(text, 1, count, file);
        text += count == 0 ? 1 : count;
    }
}

void print_markup(FILE *file, const char *text) {
    while (*text != '\0') {
        uint32_t code;
        size_t count = read_character(text, &code);
        if (count == 0 || (is_control(code) && code != '\n') || code == 0xfffe || code == 0xffff)
            fputs("\xef\xbf\xbd", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '>')
            fputs("&gt;", file);
        else if (*text == '"')
            fputs("&quot;", file);
        else
            fwrite(text, 1, count, file);
        text += count == 0 ? 1 : count;
    }
}

json_t *text_json(const char *text) {
    if (text == NULL)
        return json_null();
    json_t *value = json_string(text);
    if (value != NULL)
        return value;
    char *clean = malloc(3 * strlen(text) + 1);
    if (clean == NULL)
        return NULL;
    size_t used = 0;
    while (*text != '\0') {
        uint32_t code;
        size_t count = read_character(text, &code);
        memcpy(clean + used, count == 0 ? "\xef\xbf\xbd" : text, count == 0 ? 3 : count);
        used += count == 0 ? 3 : count;
        text += count == 0 ? 1 : count;
    }
    value = json_stringn(clean, used);
    free(clean);
    return value;
}

bool print_json_value(FILE *file, json_t *value) {
    if (value == NULL) {
        fputs("samebit: out of memory\n", stderr);
        return false;
    }
    bool written = json_dumpf(value, file, JSON_INDENT(2)) == 0 && fputc('\n', file) != EOF;
    json_decref(value);
    if (!written)
        fputs("samebit: the JSON could not be written\n", stderr);
    return written;
}

const char *grouped(int64_t number, char room[TEXT_BYTES]) {
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number), used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            room[used++] = ',';
        room[used++] = digits[i];
    }
    room[used] = '\0';
    return room;
}

/* Three significant digits, whatever the size. */
static void three_digits(double number, const char *unit, char room[TEXT_BYTES]) {
    double size = fabs(number);
    snprintf(room, TEXT_BYTES, "%.*f %s", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, number, unit);
}

const char *scaled(double number, char room[TEXT_BYTES]) {
    static const char *const prefixes[] = {"k", "M", "G", "T", "P", "E"};
    if (fabs(number) < 1000) {
        snprintf(room, TEXT_BYTES, "%.4g", number);
        return room;
    }
    size_t prefix = 0;
    for (number /= 1000; fabs(number) >= 999.5 && prefix < 5; prefix++)
        number /= 1000;
    three_digits(number, prefixes[prefix], room);
    return room;
}

const char *bytes_text(double bytes, char room[TEXT_BYTES]) {
    char number[TEXT_BYTES];
    scaled(bytes, number);
    snprintf(room, TEXT_BYTES, "%.100s%sB", number, strchr(number, ' ') != NULL ? "" : " ");
    return room;
}

const char *duration(double nanoseconds, char room[TEXT_BYTES]) {
    if (nanoseconds < 1e3)
        snprintf(room, TEXT_BYTES, "%.0f ns", nanoseconds);
    else if (nanoseconds < 999.5e3)
        three_digits(nanoseconds / 1e3, "µs", room);
    else if (nanoseconds < 999.5e6)
        three_digits(nanoseconds / 1e6, "ms", room);
    else
        three_digits(nanoseconds / 1e9, "s", room);
    return room;
}
