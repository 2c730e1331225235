/* The expressions that byte-level tokenizers cut words with. They are alternatives that are tried in their order:
 *
 *   's, 't, 're, 've, 'm, 'll, 'd
 *   a word: letters, with a space or another mark before it
 *   a number
 *   marks: neither space nor letter nor number, with a space before them, and line ends behind
 *   white space up to its last line end
 *   white space that is not followed by anything else: all of it at the end of the text, all but one character before something
 *   white space
 *
 * One pass does what they do, because the first character of each says which it is. */
#include <string.h>

#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

/* Classes of characters, in a table for the first ones. */
enum { LETTER = 1, NUMBER = 2, SPACE = 4, LINE = 8 };

static int classify(uint32_t point) {
    if (point < 0x80) {
        static const unsigned char spaces[33] = {
            [9] = SPACE, [10] = SPACE | LINE, [11] = SPACE, [12] = SPACE, [13] = SPACE | LINE, [32] = SPACE};
        if (point <= 32)
            return spaces[point];
        uint32_t small = point | 32;
        return small >= 'a' && small <= 'z' ? LETTER : point >= '0' && point <= '9' ? NUMBER : 0;
    }
    return sb_is_letter(point) ? LETTER : sb_is_number(point) ? NUMBER : sb_is_space(point) ? SPACE : 0;
}

static int class_at(sb_span text, size_t at, size_t *next) {
    uint32_t point;
    *next = at + sb_point_read(text.data + at, &point);
    return classify(point);
}

/* The end of the characters from `at` on that have the class (0: none of the three). */
static size_t run(sb_span text, size_t at, int class, int most) {
    for (size_t next; at < text.bytes; at = next) {
        int found = class_at(text, at, &next);
        if ((class != 0 ? (found & class) == 0 : found != 0) || most == 0)
            break;
        most -= most > 0;
    }
    return at;
}

/* A letter without regard to case; U+017F is a small s too. 0 at the end, or for others. */
static char small_letter(sb_span text, size_t at, bool any_case, size_t *next) {
    if (at >= text.bytes)
        return 0;
    unsigned char byte = (unsigned char)text.data[at];
    *next = at + 1;
    if (byte == 0xc5 && any_case && (unsigned char)text.data[at + 1] == 0xbf) {
        *next = at + 2;
        return 's';
    }
    return byte >= 0x80 ? 0 : any_case && byte >= 'A' && byte <= 'Z' ? (char)(byte | 32) : (char)byte;
}

/* The end of 's and the like behind an apostrophe at `at`, or `at`. */
static size_t contraction(sb_span text, size_t at, bool any_case) {
    size_t next, after;
    char first = small_letter(text, at + 1, any_case, &next);
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return next;
    char second = first != 0 ? small_letter(text, next, any_case, &after) : 0;
    return ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ? after : at;
}

static size_t white_space(const sb_known_split *known, sb_span text, size_t at) {
    size_t end = run(text, at, SPACE, -1);
    if (known->lines_after) {
        for (size_t last = end; last > at; last--) {
            if (text.data[last - 1] == '\n' || text.data[last - 1] == '\r')
                return last;
        }
    }
    size_t last = sb_point_before(text.data, end);
    return end == text.bytes || last == at ? end : last;
}

size_t sb_known_split_end(const sb_known_split *known, sb_span text, size_t at) {
    size_t next, end;
    if (text.data[at] == '\'' && (end = contraction(text, at, known->any_case)) != at)
        return end;
    int class = class_at(text, at, &next), following = 0;
    size_t behind = next;
    if (next < text.bytes)
        following = class_at(text, next, &behind);
    bool space = text.data[at] == ' ';
    if (class == LETTER)
        return run(text, next, LETTER, -1);
    if (following == LETTER && next < text.bytes &&
        (known->mark_before ? class != NUMBER && (class & LINE) == 0 : space))
        return run(text, behind, LETTER, -1);
    if (class == NUMBER)
        return run(text, next, NUMBER, known->most_digits != 0 ? known->most_digits - 1 : -1);
    if (space && known->space_before_number && following == NUMBER)
        return run(text, behind, NUMBER, known->most_digits != 0 ? known->most_digits - 1 : -1);
    if (class == 0 || (space && next < text.bytes && following == 0)) {
        end = run(text, class == 0 ? next : behind, 0, -1);
        return known->lines_after ? run(text, end, LINE, -1) : end;
    }
    return white_space(known, text, at);
}

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define WORD_WITH_MARK "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define MARKS_WITH_LINES "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    const char *expression;
    sb_known_split split;
} known_splits[] = {
    [SB_WORDS_GPT2] = {CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
                       {.space_before_number = true}},
    [SB_WORDS_LLAMA3] = {"(?i:" CONTRACTIONS ")" WORD_WITH_MARK "|\\p{N}{1,3}" MARKS_WITH_LINES,
                         {.any_case = true, .mark_before = true, .most_digits = 3, .lines_after = true}},
    [SB_WORDS_QWEN2] = {"(?i:" CONTRACTIONS ")" WORD_WITH_MARK "|\\p{N}" MARKS_WITH_LINES,
                        {.any_case = true, .mark_before = true, .most_digits = 1, .lines_after = true}},
};

sb_pattern sb_pattern_of_words(sb_words words) {
    return (sb_pattern){.kind = SB_PATTERN_KNOWN, .known = &known_splits[words].split};
}

const sb_known_split *sb_known_split_find(const char *expression, size_t bytes) {
    for (size_t i = 0; i < sizeof known_splits / sizeof known_splits[0]; i++) {
        if (strlen(known_splits[i].expression) == bytes && memcmp(known_splits[i].expression, expression, bytes) == 0)
            return &known_splits[i].split;
    }
    return NULL;
}
