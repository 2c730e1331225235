/* What tests of tokenizers share: recorded cases (record_tokenizers.py), and comparing with them. Include after
 * cmocka.h. */
#ifndef SB_TESTS_TOKENIZER_CASES_H
#define SB_TESTS_TOKENIZER_CASES_H

#include <jansson.h>
#include <string.h>

#include <samebit/llm.h>

#include "support/must.h"

/** A file of the folder tests/llm; the caller has a reference. */
static inline json_t *load_json(const char *name) {
    char path[1024];
    json_error_t problem;
    snprintf(path, sizeof path, TESTS_FOLDER "/%s", name);
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, &problem);
    if (json == NULL)
        fail_msg("%s: %s", path, problem.text);
    return json;
}

/** Whether the bytes are whole characters, by the table of the standard. */
static inline bool is_utf8(const char *text, size_t bytes) {
    const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
    while (at < end) {
        int more = *at < 0x80 ? 0 : *at >= 0xc2 && *at < 0xe0 ? 1 : *at >= 0xe0 && *at < 0xf0 ? 2 : *at < 0xf5 ? 3 : -1;
        if (more < 0 || (*at >= 0x80 && *at < 0xc2) || end - at <= more)
            return false;
        for (int i = 1; i <= more; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return false;
        }
        if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) ||
            (at[0] == 0xf4 && at[1] > 0x8f))
            return false;
        at += more + 1;
    }
    return true;
}

static inline void check_decoded(const char *name, const char *text, size_t bytes, const json_t *wanted) {
    if (bytes != json_string_length(wanted) || memcmp(text, json_string_value(wanted), bytes) != 0)
        fail_msg("%s: '%.*s' instead of '%s'", name, (int)bytes, text, json_string_value(wanted));
}

/** Token by token: parts of whole characters that are the text together. */
static inline void check_stream(const sb_tokenizer *tokenizer, const char *name, const int64_t *tokens, size_t count,
                                bool skip, const json_t *wanted) {
    sb_decode_stream *stream;
    const char *part;
    char whole[4096];
    size_t bytes, all = 0;
    MUST(sb_decode_stream_create(tokenizer, skip, &stream, error));
    for (size_t i = 0; i <= count; i++) {
        if (i < count)
            MUST(sb_decode_stream_push(stream, tokens[i], &part, &bytes, error));
        else
            MUST(sb_decode_stream_finish(stream, &part, &bytes, error));
        assert_true(is_utf8(part, bytes) && all + bytes <= sizeof whole);
        memcpy(whole + all, part, bytes);
        all += bytes;
    }
    sb_decode_stream_destroy(stream);
    check_decoded(name, whole, all, wanted);
}

/** The text of the case has the tokens that were recorded, and they the text, all at once and one by one. */
static inline void check_case(const sb_tokenizer *tokenizer, const char *name, const json_t *entry, bool bare) {
    const json_t *text = json_object_get(entry, "text"), *wanted = json_object_get(entry, "tokens");
    const json_t *decoded = json_object_get(entry, "decoded");
    bool skip = json_is_true(json_object_get(entry, "skip"));
    sb_encode_options options = SB_ENCODE_DEFAULT;
    int64_t *tokens;
    char *back;
    size_t count, bytes;
    options.bare = bare;
    options.plain = json_is_true(json_object_get(entry, "plain"));
    MUST(sb_tokenizer_encode(tokenizer, json_string_value(text), json_string_length(text), &options, &tokens, &count,
                             error));
    bool same = count == json_array_size(wanted);
    for (size_t i = 0; same && i < count; i++)
        same = tokens[i] == json_integer_value(json_array_get(wanted, i));
    if (!same) {
        char *shown = json_dumps(entry, JSON_COMPACT);
        for (size_t i = 0; i < count; i++)
            fprintf(stderr, "%lld ", (long long)tokens[i]);
        fail_msg("%s: other tokens than %s", name, shown);
    }
    MUST(sb_tokenizer_decode(tokenizer, tokens, count, skip, &back, &bytes, error));
    assert_int_equal(back[bytes], '\0');
    check_decoded(name, back, bytes, decoded);
    check_stream(tokenizer, name, tokens, count, skip, decoded);
    sb_llm_free(back);
    sb_llm_free(tokens);
}

#endif
