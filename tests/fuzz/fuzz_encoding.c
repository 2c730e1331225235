#define _GNU_SOURCE /* memmem */
/* Any bytes as a text, for the tokenizers that are seeds of fuzz_tokenizer: refused where they are not UTF-8, else
 * encoded, and back; the byte-level ones of them give the very text. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "base/file.h"
#include "fuzz/tokenizer_checks.h"

static const struct {
    const char *name;
    bool exact; /* decoding gives what was encoded */
} kinds[] = {{"gpt2", true},     {"llama3", true},     {"gemma", true},    {"qwen2", false},
             {"roberta", false}, {"llama2", false},    {"mistral", false}, {"other_expression", false},
             {"unigram", false}, {"wordpiece", false}, {"words", false},   {"clip", false}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static sb_tokenizer *tokenizers[KINDS];

static void open_all(void) {
    for (int i = 0; i < KINDS; i++) {
        char path[1024];
        sb_error error = {0};
        snprintf(path, sizeof path, SEEDS_FOLDER "/tokenizer/%s.json", kinds[i].name);
        if (sb_tokenizer_open(path, &tokenizers[i], &error) != SB_OK) {
            fprintf(stderr, "%s\n", error.message);
            abort();
        }
    }
}

static void check_exact(const sb_tokenizer *tokenizer, const char *text, size_t bytes) {
    sb_encode_options options = SB_ENCODE_DEFAULT;
    int64_t *tokens;
    char *back;
    size_t count, back_bytes;
    options.bare = true;
    options.plain = true;
    FUZZ_CHECK(sb_tokenizer_encode(tokenizer, text, bytes, &options, &tokens, &count, NULL) == SB_OK);
    FUZZ_CHECK(sb_tokenizer_decode(tokenizer, tokens, count, false, &back, &back_bytes, NULL) == SB_OK);
    FUZZ_CHECK(back_bytes == bytes && memcmp(back, text, bytes) == 0);
    sb_llm_free(tokens);
    sb_llm_free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    size_t bad;
    bool unfinished;
    if (tokenizers[0] == NULL)
        open_all();
    int64_t before = sb_allocation_count().live_blocks;
    bool valid = sb_utf8_valid(text, size, &bad, &unfinished) == size;
    for (int i = 0; i < KINDS; i++) {
        check_tokenizer(tokenizers[i], text, size);
        /* The sign that stands for a space in gemma's tokens is a space when it comes back. */
        bool sign = kinds[i].exact && i == 2 && memmem(text, size, "\xe2\x96\x81", 3) != NULL;
        if (valid && kinds[i].exact && !sign)
            check_exact(tokenizers[i], text, size);
    }
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
