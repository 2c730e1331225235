#include "tokenizer/normalizer.h"

#include <string.h>

#include "base/allocation.h"
#include "tokenizer/unicode.h"

sb_normal_step *sb_normalizer_add(sb_normalizer *normalizer, sb_normal_kind kind) {
    if (normalizer->count == normalizer->capacity &&
        !sb_grow((void **)&normalizer->steps, &normalizer->capacity, normalizer->count + 1, sizeof *normalizer->steps))
        return NULL;
    sb_normal_step *step = &normalizer->steps[normalizer->count++];
    *step = (sb_normal_step){.kind = kind};
    return step;
}

void sb_normalizer_clear(sb_normalizer *normalizer) {
    for (size_t i = 0; i < normalizer->count; i++) {
        sb_pattern_clear(&normalizer->steps[i].pattern);
        sb_free(normalizer->steps[i].content);
    }
    sb_free(normalizer->steps);
    *normalizer = (sb_normalizer){0};
}

/* ---- bytes as characters ---- */

/* The printable characters of Latin-1 stand for themselves; the other 68 bytes, in their order, for those from U+0100
 * on. */
static bool is_printable(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

uint32_t sb_byte_to_point(unsigned char byte) {
    if (is_printable(byte))
        return byte;
    return 0x100 + (byte <= 0x20 ? byte : byte <= 0xa0 ? 0x21 + (byte - 0x7fu) : 0x43u);
}

int sb_point_to_byte(uint32_t point) {
    if (point < 0x100)
        return is_printable(point) ? (int)point : -1;
    if (point > 0x143)
        return -1;
    uint32_t index = point - 0x100;
    return (int)(index <= 0x20 ? index : index <= 0x42 ? 0x7f + (index - 0x21) : 0xad);
}

/* ---- steps that look at characters alone ---- */

static bool is_bert_control(uint32_t point) {
    return point != '\t' && point != '\n' && point != '\r' && sb_is_other(point);
}

static bool is_chinese(uint32_t point) {
    return (point >= 0x4e00 && point <= 0x9fff) || (point >= 0x3400 && point <= 0x4dbf) ||
           (point >= 0x20000 && point <= 0x2a6df) || (point >= 0x2a700 && point <= 0x2b73f) ||
           (point >= 0x2b740 && point <= 0x2b81f) || (point >= 0x2b920 && point <= 0x2ceaf) ||
           (point >= 0xf900 && point <= 0xfaff) || (point >= 0x2f800 && point <= 0x2fa1f);
}

static bool lowercase_point(sb_text *result, uint32_t point) {
    uint32_t lower[2];
    int count = sb_lowercase(point, lower);
    return sb_text_append_point(result, lower[0]) && (count == 1 || sb_text_append_point(result, lower[1]));
}

/* What a step appends for a character. */
static bool map_point(const sb_normal_step *step, uint32_t point, sb_text *result) {
    switch (step->kind) {
    case SB_NORMAL_LOWERCASE:
        return lowercase_point(result, point);
    case SB_NORMAL_STRIP_ACCENTS:
        return sb_is_mark(point) || sb_text_append_point(result, point);
    case SB_NORMAL_NMT:
        if ((point >= 1 && point <= 8) || point == 0xb || (point >= 0xe && point <= 0x1f) || point == 0x7f ||
            point == 0x8f || point == 0x9f)
            return true;
        if (point == 9 || point == 0xa || point == 0xc || point == 0xd || point == 0x1680 ||
            (point >= 0x200b && point <= 0x200f) || point == 0x2028 || point == 0x2029 || point == 0x2581 ||
            point == 0xfeff || point == 0xfffd)
            point = ' ';
        return sb_text_append_point(result, point);
    default:
        return sb_text_append_point(result, point);
    }
}

static sb_status map_points(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    for (size_t at = 0; at < text.bytes;) {
        uint32_t point;
        at += sb_point_read(text.data + at, &point);
        if (!map_point(step, point, result))
            return sb_fail_memory(error, text.bytes);
    }
    return SB_OK;
}

/* ---- BERT: four steps in one ---- */

static sb_status clean_for_bert(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    for (size_t at = 0; at < text.bytes;) {
        uint32_t point;
        at += sb_point_read(text.data + at, &point);
        if (step->clean_text && (point == 0 || point == 0xfffd || is_bert_control(point)))
            continue;
        if (step->clean_text && sb_is_space(point))
            point = ' ';
        bool apart = step->chinese && is_chinese(point);
        if ((apart && !sb_text_append_point(result, ' ')) || !sb_text_append_point(result, point) ||
            (apart && !sb_text_append_point(result, ' ')))
            return sb_fail_memory(error, text.bytes);
    }
    return SB_OK;
}

static sb_status finish_for_bert(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    for (size_t at = 0; at < text.bytes;) {
        uint32_t point;
        at += sb_point_read(text.data + at, &point);
        if (step->strip_accents && sb_is_mark_nonspacing(point))
            continue;
        if (!(step->lowercase ? lowercase_point(result, point) : sb_text_append_point(result, point)))
            return sb_fail_memory(error, text.bytes);
    }
    return SB_OK;
}

static sb_status normalize_for_bert(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    static const sb_normal_step decomposed = {.kind = SB_NORMAL_FORM};
    sb_text clean = {0}, apart = {0};
    sb_status status = clean_for_bert(step, text, &clean, error);
    if (status == SB_OK && step->strip_accents)
        status = sb_normal_form(&decomposed, (sb_span){clean.data, clean.bytes}, &apart, error);
    const sb_text *last = step->strip_accents ? &apart : &clean;
    if (status == SB_OK)
        status = finish_for_bert(step, (sb_span){last->data, last->bytes}, result, error);
    sb_text_clear(&clean);
    sb_text_clear(&apart);
    return status;
}

/* ---- other steps ---- */

static sb_status replace(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    sb_search search;
    sb_search_memory memory = {0};
    size_t done = 0, begin = 0, end = 0;
    sb_status status = sb_search_begin(&search, &step->pattern, text, &memory, error);
    while (status == SB_OK && done < text.bytes) {
        status = sb_search_next(&search, &begin, &end, error);
        if (status != SB_OK)
            break;
        if (!sb_text_append(result, text.data + done, begin - done) ||
            (begin < end && !sb_text_append(result, step->content, step->content_bytes)))
            status = sb_fail_memory(error, text.bytes);
        done = end;
    }
    sb_search_memory_clear(&memory);
    return status;
}

static sb_status strip(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    size_t begin = 0, end = text.bytes;
    uint32_t point;
    while (step->left && begin < end) {
        size_t bytes = sb_point_read(text.data + begin, &point);
        if (!sb_is_space(point))
            break;
        begin += bytes;
    }
    while (step->right && end > begin) {
        size_t last = sb_point_before(text.data, end);
        sb_point_read(text.data + last, &point);
        if (!sb_is_space(point))
            break;
        end = last;
    }
    return sb_text_append(result, text.data + begin, end - begin) ? SB_OK : sb_fail_memory(error, end - begin);
}

static sb_status bytes_as_points(sb_span text, sb_text *result, sb_error *error) {
    if (text.bytes > SIZE_MAX / 4 || !sb_text_reserve(result, 2 * text.bytes))
        return sb_fail_memory(error, text.bytes);
    for (size_t i = 0; i < text.bytes; i++)
        result->bytes += sb_point_write(sb_byte_to_point((unsigned char)text.data[i]), result->data + result->bytes);
    return SB_OK;
}

static sb_status run_step(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    switch (step->kind) {
    case SB_NORMAL_FORM:
        return sb_normal_form(step, text, result, error);
    case SB_NORMAL_REPLACE:
        return replace(step, text, result, error);
    case SB_NORMAL_STRIP:
        return strip(step, text, result, error);
    case SB_NORMAL_BERT:
        return normalize_for_bert(step, text, result, error);
    case SB_NORMAL_BYTES:
        return bytes_as_points(text, result, error);
    case SB_NORMAL_CHARSMAP:
        return sb_normal_charsmap(step, text, result, error);
    case SB_NORMAL_SENTENCEPIECE:
        return sb_normal_sentencepiece(step, text, result, error);
    case SB_NORMAL_PREPEND:
        if ((text.bytes != 0 && !sb_text_append(result, step->content, step->content_bytes)) ||
            !sb_text_append(result, text.data, text.bytes))
            return sb_fail_memory(error, text.bytes);
        return SB_OK;
    default:
        return map_points(step, text, result, error);
    }
}

sb_status sb_normalize(const sb_normalizer *normalizer, sb_span text, sb_text *result, sb_text *spare,
                       sb_error *error) {
    result->bytes = 0;
    if (normalizer->count == 0)
        return sb_text_append(result, text.data, text.bytes) ? SB_OK : sb_fail_memory(error, text.bytes);
    for (size_t i = 0; i < normalizer->count; i++) {
        if (i != 0) {
            sb_text swapped = *result;
            *result = *spare;
            *spare = swapped;
            text = (sb_span){spare->data, spare->bytes};
        }
        result->bytes = 0;
        SB_TRY(run_step(&normalizer->steps[i], text, result, error));
    }
    return SB_OK;
}
