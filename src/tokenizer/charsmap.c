/* sentencepiece's table of characters: a double array of 32-bit units, which says where in the texts behind it the
 * replacement of a sequence of bytes begins. 4 bytes give the size of the array; replacements end with NUL. A unit
 * has its label in the low byte (and bit 31, where it is a value), bit 8 says that a value is among its children, and
 * the rest is how far away they are. */
#include <string.h>

#include <utf8proc.h>

#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

typedef struct charsmap {
    const unsigned char *units;
    size_t unit_count;
    sb_span texts;
} charsmap;

static uint32_t read_u32(const unsigned char *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static bool open_table(sb_span table, charsmap *map) {
    if (table.bytes < 4)
        return false;
    size_t bytes = read_u32((const unsigned char *)table.data);
    if (bytes > table.bytes - 4 || bytes % 4 != 0 || bytes == 0)
        return false;
    *map = (charsmap){.units = (const unsigned char *)table.data + 4,
                      .unit_count = bytes / 4,
                      .texts = {table.data + 4 + bytes, table.bytes - 4 - bytes}};
    return true;
}

sb_status sb_charsmap_check(sb_span table, sb_error *error) {
    charsmap map;
    size_t bad;
    bool unfinished;
    if (!open_table(table, &map))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the table of characters (precompiled_charsmap) is damaged");
    if (map.texts.bytes == 0 || map.texts.data[map.texts.bytes - 1] != '\0' ||
        sb_utf8_valid(map.texts.data, map.texts.bytes, &bad, &unfinished) != map.texts.bytes)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "the replacements of the table of characters (precompiled_charsmap) are damaged");
    return SB_OK;
}

static uint32_t unit_at(const charsmap *map, size_t index) {
    return index < map->unit_count ? read_u32(map->units + 4 * index) : UINT32_C(0x80000000);
}

static size_t offset_of(uint32_t unit) {
    return (size_t)(unit >> 10) << ((unit & UINT32_C(0x200)) >> 6);
}

/* Looks up the beginning of the text: the replacement of the shortest or the longest sequence that is in the table,
 * and the bytes of the sequence; 0: none is. */
static size_t look_up(const charsmap *map, sb_span text, bool shortest, sb_span *replacement) {
    uint32_t unit = unit_at(map, 0);
    size_t at = offset_of(unit), found = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        at ^= byte;
        unit = unit_at(map, at);
        if (byte == 0 || (unit & UINT32_C(0x800000ff)) != byte)
            break;
        at ^= offset_of(unit);
        if ((unit >> 8 & 1) == 0)
            continue;
        size_t value = unit_at(map, at) & UINT32_C(0x7fffffff);
        if (value >= map->texts.bytes || (value != 0 && ((unsigned char)map->texts.data[value] & 0xc0) == 0x80))
            continue;
        *replacement = sb_span_of(map->texts.data + value);
        found = i + 1;
        if (shortest)
            break;
    }
    return found;
}

/* The `tokenizers` library asks for the characters that belong together, if they are less than 6 bytes, and takes the
 * shortest sequence that begins them for all of them; then for each character. */
static bool map_character(const charsmap *map, sb_span character, bool together, sb_text *result, bool *done) {
    sb_span replacement;
    *done = look_up(map, character, true, &replacement) != 0;
    if (*done)
        return sb_text_append(result, replacement.data, replacement.bytes);
    return together || sb_text_append(result, character.data, character.bytes);
}

static bool map_cluster(const charsmap *map, sb_span cluster, sb_text *result) {
    bool done = false;
    if (cluster.bytes < 6 && !map_character(map, cluster, true, result, &done))
        return false;
    for (size_t at = 0; !done && at < cluster.bytes;) {
        bool ignored;
        size_t bytes = sb_point_bytes(cluster.data[at]);
        if (!map_character(map, (sb_span){cluster.data + at, bytes}, false, result, &ignored))
            return false;
        at += bytes;
    }
    return true;
}

sb_status sb_normal_charsmap(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    charsmap map;
    if (!open_table((sb_span){step->content, step->content_bytes}, &map))
        return sb_fail(error, SB_ERROR_INTERNAL, "an unchecked table of characters");
    for (size_t begin = 0; begin < text.bytes;) {
        uint32_t before, point;
        utf8proc_int32_t state = 0;
        size_t end = begin + sb_point_read(text.data + begin, &before);
        while (end < text.bytes) {
            size_t bytes = sb_point_read(text.data + end, &point);
            if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)point, &state))
                break;
            end += bytes;
            before = point;
        }
        if (!map_cluster(&map, (sb_span){text.data + begin, end - begin}, result))
            return sb_fail_memory(error, text.bytes);
        begin = end;
    }
    return SB_OK;
}

/* ---- sentencepiece itself: the longest sequence at each place ---- */

static const char space_sign[] = "\xe2\x96\x81"; /* U+2581, which stands for a space */

/* Appends with spaces as signs; where more than one is too many, none follows another. */
static bool append_escaped(const sb_normal_step *step, sb_span part, bool *after_space, sb_text *result) {
    for (size_t i = 0; i < part.bytes; i++) {
        bool space = part.data[i] == ' ';
        if (space && step->remove_extra_spaces && *after_space)
            continue;
        if (!sb_text_append(result, space ? space_sign : part.data + i, space ? 3 : 1))
            return false;
        *after_space = space;
    }
    return true;
}

sb_status sb_normal_sentencepiece(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    charsmap map;
    bool has_map = step->content_bytes != 0, after_space = step->remove_extra_spaces, begun = !step->dummy_prefix;
    size_t start = result->bytes;
    if (has_map && !open_table((sb_span){step->content, step->content_bytes}, &map))
        return sb_fail(error, SB_ERROR_INTERNAL, "an unchecked table of characters");
    for (size_t at = 0; at < text.bytes;) {
        sb_span part = {text.data + at, sb_point_bytes(text.data[at])}, replacement;
        size_t found = has_map ? look_up(&map, (sb_span){text.data + at, text.bytes - at}, false, &replacement) : 0;
        at += found != 0 ? found : part.bytes;
        if (found != 0)
            part = replacement;
        /* The space before comes with the first thing that is there. */
        bool only_spaces = step->remove_extra_spaces && !begun;
        for (size_t i = 0; only_spaces && i < part.bytes; i++)
            only_spaces = part.data[i] == ' ';
        if (!begun && !only_spaces && part.bytes != 0) {
            if (!sb_text_append(result, space_sign, 3))
                return sb_fail_memory(error, text.bytes);
            begun = true;
        }
        if (!append_escaped(step, part, &after_space, result))
            return sb_fail_memory(error, text.bytes);
    }
    while (step->remove_extra_spaces && result->bytes - start >= 3 &&
           memcmp(result->data + result->bytes - 3, space_sign, 3) == 0)
        result->bytes -= 3;
    return SB_OK;
}
