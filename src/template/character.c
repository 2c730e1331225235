/* Characters as Python's str sees them. utf8proc knows the simple mappings of case; those to several code points, which
 * Unicode's SpecialCasing.txt lists, stand here. */
#include <utf8proc.h>

#include "template/value.h"

int32_t sb_jinja_point(const char *data, size_t *bytes) {
    const unsigned char *at = (const unsigned char *)data;
    int32_t lead = at[0];
    if (lead < 0x80) {
        *bytes = 1;
        return lead;
    }
    if (lead < 0xe0) {
        *bytes = 2;
        return (lead & 0x1f) << 6 | (at[1] & 0x3f);
    }
    if (lead < 0xf0) {
        *bytes = 3;
        return (lead & 0x0f) << 12 | (at[1] & 0x3f) << 6 | (at[2] & 0x3f);
    }
    *bytes = 4;
    return (lead & 0x07) << 18 | (at[1] & 0x3f) << 12 | (at[2] & 0x3f) << 6 | (at[3] & 0x3f);
}

size_t sb_jinja_back(const char *data, size_t at) {
    size_t bytes = 1;
    while (bytes < at && ((unsigned char)data[at - bytes] & 0xc0) == 0x80)
        bytes++;
    return bytes;
}

size_t sb_jinja_count_points(const char *data, size_t bytes) {
    size_t points = 0;
    for (size_t i = 0; i < bytes; i++)
        points += ((unsigned char)data[i] & 0xc0) != 0x80;
    return points;
}

/* ---- classes ---- */

bool sb_jinja_is_space(int32_t point) {
    return (point >= 0x09 && point <= 0x0d) || (point >= 0x1c && point <= 0x20) || point == 0x85 || point == 0xa0 ||
           point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 || point == 0x2029 ||
           point == 0x202f || point == 0x205f || point == 0x3000;
}

bool sb_jinja_ends_line(int32_t point) {
    return (point >= 0x0a && point <= 0x0d) || (point >= 0x1c && point <= 0x1e) || point == 0x85 || point == 0x2028 ||
           point == 0x2029;
}

bool sb_jinja_is_printable(int32_t point) {
    if (point < 0x7f)
        return point >= 0x20;
    switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

bool sb_jinja_is_cased(int32_t point) {
    if (point < 0x80)
        return (point >= 'a' && point <= 'z') || (point >= 'A' && point <= 'Z');
    /* Other_Uppercase and Other_Lowercase */
    static const int32_t others[][2] = {{0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
                                        {0x2e0, 0x2e4},     {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},
                                        {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
                                        {0x2090, 0x209c},   {0x2160, 0x217f},   {0x24b6, 0x24e9},   {0x2c7c, 0x2c7d},
                                        {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},
                                        {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
                                        {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (point >= others[i][0] && point <= others[i][1])
            return true;
    }
    utf8proc_category_t category = utf8proc_category(point);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

size_t sb_jinja_leading_space(const char *data, size_t bytes) {
    size_t at = 0, step;
    while (at < bytes && sb_jinja_is_space(sb_jinja_point(data + at, &step)))
        at += step;
    return at;
}

size_t sb_jinja_trailing_space(const char *data, size_t bytes) {
    size_t at = bytes, ignored;
    while (at > 0) {
        size_t step = sb_jinja_back(data, at);
        if (!sb_jinja_is_space(sb_jinja_point(data + at - step, &ignored)))
            break;
        at -= step;
    }
    return bytes - at;
}

/* ---- case ---- */

/* What becomes several code points: in upper case, and in title case where that is another. */
static const struct special {
    int32_t point, upper[3], title[3];
} specials[] = {
    {0xdf, {0x53, 0x53}, {0x53, 0x73}},
    {0x149, {0x2bc, 0x4e}, {0}},
    {0x1f0, {0x4a, 0x30c}, {0}},
    {0x390, {0x399, 0x308, 0x301}, {0}},
    {0x3b0, {0x3a5, 0x308, 0x301}, {0}},
    {0x587, {0x535, 0x552}, {0x535, 0x582}},
    {0x1e96, {0x48, 0x331}, {0}},
    {0x1e97, {0x54, 0x308}, {0}},
    {0x1e98, {0x57, 0x30a}, {0}},
    {0x1e99, {0x59, 0x30a}, {0}},
    {0x1e9a, {0x41, 0x2be}, {0}},
    {0x1f50, {0x3a5, 0x313}, {0}},
    {0x1f52, {0x3a5, 0x313, 0x300}, {0}},
    {0x1f54, {0x3a5, 0x313, 0x301}, {0}},
    {0x1f56, {0x3a5, 0x313, 0x342}, {0}},
    {0x1fb2, {0x1fba, 0x399}, {0x1fba, 0x345}},
    {0x1fb4, {0x386, 0x399}, {0x386, 0x345}},
    {0x1fb6, {0x391, 0x342}, {0}},
    {0x1fb7, {0x391, 0x342, 0x399}, {0x391, 0x342, 0x345}},
    {0x1fc2, {0x1fca, 0x399}, {0x1fca, 0x345}},
    {0x1fc4, {0x389, 0x399}, {0x389, 0x345}},
    {0x1fc6, {0x397, 0x342}, {0}},
    {0x1fc7, {0x397, 0x342, 0x399}, {0x397, 0x342, 0x345}},
    {0x1fd2, {0x399, 0x308, 0x300}, {0}},
    {0x1fd3, {0x399, 0x308, 0x301}, {0}},
    {0x1fd6, {0x399, 0x342}, {0}},
    {0x1fd7, {0x399, 0x308, 0x342}, {0}},
    {0x1fe2, {0x3a5, 0x308, 0x300}, {0}},
    {0x1fe3, {0x3a5, 0x308, 0x301}, {0}},
    {0x1fe4, {0x3a1, 0x313}, {0}},
    {0x1fe6, {0x3a5, 0x342}, {0}},
    {0x1fe7, {0x3a5, 0x308, 0x342}, {0}},
    {0x1ff2, {0x1ffa, 0x399}, {0x1ffa, 0x345}},
    {0x1ff4, {0x38f, 0x399}, {0x38f, 0x345}},
    {0x1ff6, {0x3a9, 0x342}, {0}},
    {0x1ff7, {0x3a9, 0x342, 0x399}, {0x3a9, 0x342, 0x345}},
    {0xfb00, {0x46, 0x46}, {0x46, 0x66}},
    {0xfb01, {0x46, 0x49}, {0x46, 0x69}},
    {0xfb02, {0x46, 0x4c}, {0x46, 0x6c}},
    {0xfb03, {0x46, 0x46, 0x49}, {0x46, 0x66, 0x69}},
    {0xfb04, {0x46, 0x46, 0x4c}, {0x46, 0x66, 0x6c}},
    {0xfb05, {0x53, 0x54}, {0x53, 0x74}},
    {0xfb06, {0x53, 0x54}, {0x53, 0x74}},
    {0xfb13, {0x544, 0x546}, {0x544, 0x576}},
    {0xfb14, {0x544, 0x535}, {0x544, 0x565}},
    {0xfb15, {0x544, 0x53b}, {0x544, 0x56b}},
    {0xfb16, {0x54e, 0x546}, {0x54e, 0x576}},
    {0xfb17, {0x544, 0x53d}, {0x544, 0x56d}},
};

/* Greek letters with a iota below, 1f80 to 1faf and four more, become the letter with a capital iota behind it. */
static int32_t iota_base(int32_t point) {
    if (point >= 0x1f80 && point <= 0x1faf)
        return (point < 0x1f90 ? 0x1f08 : point < 0x1fa0 ? 0x1f28 : 0x1f68) + (point & 7);
    switch (point) {
    case 0x1fb3:
    case 0x1fbc:
        return 0x391;
    case 0x1fc3:
    case 0x1fcc:
        return 0x397;
    case 0x1ff3:
    case 0x1ffc:
        return 0x3a9;
    default:
        return 0;
    }
}

static sb_status write_three(sb_jinja *jinja, const int32_t points[3]) {
    for (int i = 0; i < 3 && points[i] != 0; i++)
        SB_TRY(sb_jinja_write_point(jinja, points[i]));
    return SB_OK;
}

static sb_status write_capital(sb_jinja *jinja, int32_t point, bool title) {
    for (size_t i = 0; i < sizeof specials / sizeof *specials && point >= 0xdf; i++) {
        if (specials[i].point == point)
            return write_three(jinja, title && specials[i].title[0] != 0 ? specials[i].title : specials[i].upper);
    }
    int32_t base = title ? 0 : iota_base(point);
    if (base != 0)
        return write_three(jinja, (const int32_t[3]){base, 0x399, 0});
    return sb_jinja_write_point(jinja, title ? utf8proc_totitle(point) : utf8proc_toupper(point));
}

/* What stands in words without being a letter: Case_Ignorable. */
static bool is_ignorable(int32_t point) {
    static const int32_t others[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,  0x5f4,  0x2018, 0x2019,
                                     0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (point == others[i])
            return true;
    }
    utf8proc_category_t category = utf8proc_category(point);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_LM || category == UTF8PROC_CATEGORY_SK;
}

/* Whether the sigma of bytes [at, at + 2) ends a word: a letter before it, none behind, marks and the like looked through. */
static bool ends_word(const sb_jinja_text *text, size_t at) {
    size_t step, before = at, behind = at + 2;
    int32_t point = ' ';
    while (before > 0) {
        before -= sb_jinja_back(text->data, before);
        point = sb_jinja_point(text->data + before, &step);
        if (!is_ignorable(point))
            break;
    }
    if (is_ignorable(point) || !sb_jinja_is_cased(point))
        return false;
    for (; behind < text->bytes; behind += step) {
        point = sb_jinja_point(text->data + behind, &step);
        if (!is_ignorable(point))
            return !sb_jinja_is_cased(point);
    }
    return true;
}

/* ASCII, of which there is most, in pieces: up to the first character beyond it. */
static sb_status write_ascii(sb_jinja *jinja, const char *data, size_t bytes, sb_jinja_case change, size_t *used) {
    char piece[256];
    *used = 0;
    while (*used < bytes && *used < sizeof piece && (unsigned char)data[*used] < 0x80) {
        char byte = data[*used];
        bool changes = change == SB_JINJA_LOWER ? byte >= 'A' && byte <= 'Z' : byte >= 'a' && byte <= 'z';
        piece[(*used)++] = changes ? (char)(byte ^ 0x20) : byte;
    }
    return *used != 0 ? sb_jinja_write(jinja, piece, *used) : SB_OK;
}

sb_status sb_jinja_write_case(sb_jinja *jinja, const sb_jinja_text *text, size_t from, size_t to,
                              sb_jinja_case change) {
    for (size_t step; from < to; from += step) {
        SB_TRY(write_ascii(jinja, text->data + from, to - from, change, &step));
        if (step != 0)
            continue;
        int32_t point = sb_jinja_point(text->data + from, &step);
        if (change != SB_JINJA_LOWER)
            SB_TRY(write_capital(jinja, point, change == SB_JINJA_TITLE));
        else if (point == 0x130)
            SB_TRY(write_three(jinja, (const int32_t[3]){'i', 0x307, 0}));
        else if (point == 0x3a3)
            SB_TRY(sb_jinja_write_point(jinja, ends_word(text, from) ? 0x3c2 : 0x3c3));
        else
            SB_TRY(sb_jinja_write_point(jinja, utf8proc_tolower(point)));
    }
    return SB_OK;
}
