#include "tokenizer/vocabulary.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"

sb_status sb_vocabulary_add(sb_vocabulary *vocabulary, int64_t number, sb_span text, sb_error *error) {
    if (number < 0 || number >= SB_MOST_TOKENS)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "token \"%.*s\" has the number %lld; numbers go from 0 to %d",
                       (int)(text.bytes < 80 ? text.bytes : 80), text.data, (long long)number, SB_MOST_TOKENS - 1);
    if (sb_vocabulary_has(vocabulary, number))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "two tokens have the number %lld", (long long)number);
    size_t before = vocabulary->count, needed = (size_t)number + 1;
    if (needed > vocabulary->capacity &&
        !sb_grow((void **)&vocabulary->tokens, &vocabulary->capacity, needed, sizeof *vocabulary->tokens))
        return sb_fail_memory(error, needed * sizeof *vocabulary->tokens);
    if (needed > before) {
        memset(vocabulary->tokens + before, 0, (needed - before) * sizeof *vocabulary->tokens);
        vocabulary->count = needed;
    }
    char *copy = sb_allocate(text.bytes + 1);
    if (copy == NULL)
        return sb_fail_memory(error, text.bytes + 1);
    if (text.bytes != 0)
        memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = '\0';
    vocabulary->tokens[number] = (sb_span){copy, text.bytes};
    if (sb_names_find_span(&vocabulary->numbers, copy, text.bytes) == NULL &&
        !sb_names_put_span(&vocabulary->numbers, copy, text.bytes, (int32_t)number))
        return sb_fail_memory(error, sizeof(sb_name_entry));
    return SB_OK;
}

int32_t sb_vocabulary_find(const sb_vocabulary *vocabulary, const char *text, size_t bytes) {
    const int32_t *number = sb_names_find_span(&vocabulary->numbers, text, bytes);
    return number != NULL ? *number : -1;
}

bool sb_vocabulary_has(const sb_vocabulary *vocabulary, int64_t number) {
    return number >= 0 && (uint64_t)number < vocabulary->count && vocabulary->tokens[number].data != NULL;
}

void sb_vocabulary_bytes(const sb_vocabulary *vocabulary, int32_t bytes[256]) {
    for (int i = 0; i < 256; i++) {
        char text[8];
        int length = snprintf(text, sizeof text, "<0x%02X>", (unsigned)i);
        bytes[i] = sb_vocabulary_find(vocabulary, text, (size_t)length);
    }
}

void sb_vocabulary_clear(sb_vocabulary *vocabulary) {
    for (size_t i = 0; i < vocabulary->count; i++)
        sb_free((char *)vocabulary->tokens[i].data);
    sb_free(vocabulary->tokens);
    sb_names_clear(&vocabulary->numbers);
    *vocabulary = (sb_vocabulary){0};
}
