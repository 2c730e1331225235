#include "tokenizer/text.h"

#include <stdint.h>
#include <string.h>

#include "base/allocation.h"
#include "tokenizer/unicode.h"

bool sb_text_reserve(sb_text *text, size_t more) {
    if (more > SIZE_MAX / 2 - text->bytes)
        return false;
    return text->bytes + more <= text->capacity ||
           sb_grow((void **)&text->data, &text->capacity, text->bytes + more, 1);
}

bool sb_text_append(sb_text *text, const char *data, size_t bytes) {
    if (!sb_text_reserve(text, bytes))
        return false;
    if (bytes != 0)
        memcpy(text->data + text->bytes, data, bytes);
    text->bytes += bytes;
    return true;
}

bool sb_text_append_point(sb_text *text, unsigned point) {
    if (!sb_text_reserve(text, 4))
        return false;
    text->bytes += sb_point_write(point, text->data + text->bytes);
    return true;
}

void sb_text_clear(sb_text *text) {
    sb_free(text->data);
    *text = (sb_text){0};
}

bool sb_span_equal(sb_span left, sb_span right) {
    return left.bytes == right.bytes && (left.bytes == 0 || memcmp(left.data, right.data, left.bytes) == 0);
}

sb_span sb_span_of(const char *text) {
    return (sb_span){text, strlen(text)};
}
