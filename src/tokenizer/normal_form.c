/* Unicode's normal forms. utf8proc knows the characters; their order is made here, because it puts marks into theirs
 * by exchanging neighbours, and a text may have a million marks behind one letter. */
#include <string.h>

#include <utf8proc.h>

#include "base/allocation.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

typedef struct points {
    utf8proc_int32_t *items;
    size_t count, capacity;
} points;

static bool is_ascii(sb_span text) {
    unsigned char any = 0;
    for (size_t i = 0; i < text.bytes; i++)
        any |= (unsigned char)text.data[i];
    return any < 0x80;
}

static sb_status decompose(sb_span text, utf8proc_option_t options, points *points, sb_error *error) {
    int boundary = 0;
    for (size_t at = 0; at < text.bytes;) {
        uint32_t point;
        at += sb_point_read(text.data + at, &point);
        /* The longest decomposition of a character has 18. */
        if (points->count + 32 > points->capacity &&
            !sb_grow((void **)&points->items, &points->capacity, points->count + 32, sizeof *points->items))
            return sb_fail_memory(error, points->count * sizeof *points->items);
        utf8proc_ssize_t count =
            utf8proc_decompose_char((utf8proc_int32_t)point, points->items + points->count, 32, options, &boundary);
        if (count < 0 || count > 32)
            return sb_fail(error, SB_ERROR_INTERNAL, "utf8proc does not decompose U+%04X", (unsigned)point);
        points->count += (size_t)count;
    }
    return SB_OK;
}

static int class_of(utf8proc_int32_t point) {
    return point < 0x300 ? 0 : utf8proc_get_property(point)->combining_class;
}

/* Sorts marks by class; those of one class stay in their order. */
static void order_run(utf8proc_int32_t *items, size_t count, utf8proc_int32_t *spare) {
    size_t starts[257] = {0};
    for (size_t i = 0; i < count; i++)
        starts[class_of(items[i]) + 1]++;
    for (int c = 0; c < 256; c++)
        starts[c + 1] += starts[c];
    for (size_t i = 0; i < count; i++)
        spare[starts[class_of(items[i])]++] = items[i];
    memcpy(items, spare, count * sizeof *items);
}

static sb_status order(points *points, sb_error *error) {
    utf8proc_int32_t *spare = NULL;
    for (size_t i = 0; i < points->count; i++) {
        size_t end = i;
        bool ordered = true;
        while (end < points->count && class_of(points->items[end]) != 0) {
            ordered = ordered && (end == i || class_of(points->items[end - 1]) <= class_of(points->items[end]));
            end++;
        }
        if (!ordered) {
            if (spare == NULL)
                spare = sb_allocate(points->count * sizeof *spare);
            if (spare == NULL)
                return sb_fail_memory(error, points->count * sizeof *spare);
            order_run(points->items + i, end - i, spare);
        }
        i = end;
    }
    sb_free(spare);
    return SB_OK;
}

sb_status sb_normal_form(const sb_normal_step *step, sb_span text, sb_text *result, sb_error *error) {
    if (is_ascii(text))
        return sb_text_append(result, text.data, text.bytes) ? SB_OK : sb_fail_memory(error, text.bytes);
    unsigned options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (step->compatible ? (unsigned)UTF8PROC_COMPAT : 0u);
    points points = {0};
    sb_status status = decompose(text, (utf8proc_option_t)options, &points, error);
    if (status == SB_OK)
        status = order(&points, error);
    if (status == SB_OK && step->compose) {
        utf8proc_ssize_t count = utf8proc_normalize_utf32(points.items, (utf8proc_ssize_t)points.count,
                                                          (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        points.count = count > 0 ? (size_t)count : 0;
    }
    for (size_t i = 0; status == SB_OK && i < points.count; i++) {
        if (!sb_text_append_point(result, (unsigned)points.items[i]))
            status = sb_fail_memory(error, points.count);
    }
    sb_free(points.items);
    return status;
}
