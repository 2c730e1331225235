/* What must hold of a tokenizer and a text, whatever both are. */
#ifndef SB_TESTS_TOKENIZER_CHECKS_H
#define SB_TESTS_TOKENIZER_CHECKS_H

#include <string.h>

#include <samebit/llm.h>

#include "fuzz/fuzz.h"
#include "tokenizer/unicode.h"

/* Token by token comes the same text, in whole characters. */
static inline void check_stream_of(const sb_tokenizer *tokenizer, const int64_t *tokens, size_t count, const char *text,
                                   size_t bytes) {
    sb_decode_stream *stream;
    const char *part;
    size_t at = 0, part_bytes, bad;
    bool unfinished;
    FUZZ_CHECK(sb_decode_stream_create(tokenizer, false, &stream, NULL) == SB_OK);
    for (size_t i = 0; i <= count; i++) {
        sb_status status = i < count ? sb_decode_stream_push(stream, tokens[i], &part, &part_bytes, NULL)
                                     : sb_decode_stream_finish(stream, &part, &part_bytes, NULL);
        FUZZ_CHECK(status == SB_OK && part_bytes <= bytes - at);
        FUZZ_CHECK(sb_utf8_valid(part, part_bytes, &bad, &unfinished) == part_bytes);
        FUZZ_CHECK(part_bytes == 0 || memcmp(text + at, part, part_bytes) == 0);
        at += part_bytes;
    }
    FUZZ_CHECK(at == bytes);
    sb_decode_stream_destroy(stream);
}

static inline void check_tokenizer(const sb_tokenizer *tokenizer, const char *text, size_t bytes) {
    sb_error error = {0};
    int64_t *tokens;
    char *back;
    size_t count, back_bytes, bad;
    bool unfinished;
    int64_t vocabulary = sb_tokenizer_vocabulary(tokenizer);
    sb_status status = sb_tokenizer_encode(tokenizer, text, bytes, NULL, &tokens, &count, &error);
    FUZZ_CHECK(status == SB_OK || error.message[0] != '\0');
    FUZZ_CHECK(status != SB_ERROR_INTERNAL && status != SB_ERROR_OUT_OF_MEMORY);
    if (status != SB_OK)
        return;
    status = sb_tokenizer_decode(tokenizer, tokens, count, false, &back, &back_bytes, &error);
    FUZZ_CHECK(status == SB_OK || status == SB_ERROR_LIMIT);
    if (status == SB_OK) {
        FUZZ_CHECK(back[back_bytes] == '\0');
        FUZZ_CHECK(sb_utf8_valid(back, back_bytes, &bad, &unfinished) == back_bytes);
        check_stream_of(tokenizer, tokens, count, back, back_bytes);
        sb_llm_free(back);
    }
    /* A post-processor may name tokens that the vocabulary has not. */
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(tokens[i] >= 0 &&
                   (tokens[i] < vocabulary || sb_tokenizer_token(tokenizer, tokens[i], &bad) == NULL));
    sb_llm_free(tokens);
}

#endif
