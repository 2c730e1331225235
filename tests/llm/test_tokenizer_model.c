/* Tokenizers of tokenizer.model: the tokens of sentencepiece; what tokenizer_config.json adds; refusals, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/failing.h"
#include "tiny_models.h"
#include "tokenizer_cases.h"

/* ---- files ---- */

static tiny_bytes bytes_of_hex(const char *hex) {
    tiny_bytes bytes = {0};
    for (; hex[0] != '\0'; hex += 2) {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        tiny_add_number(&bytes, byte, 1);
    }
    return bytes;
}

static void save_text(const char *path, const char *text) {
    const tiny_bytes bytes = {(char *)(uintptr_t)text, strlen(text), 0};
    tiny_save(&bytes, path);
}

/* Writes what was recorded as FOLDER/tokenizer.model. */
static void save_model(const json_t *recorded, const char *folder) {
    char path[256];
    tiny_bytes bytes = bytes_of_hex(json_string_value(json_object_get(recorded, "model")));
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/tokenizer.model", folder);
    tiny_save(&bytes, path);
    free(bytes.data);
}

static bool is_bpe(const json_t *recorded) {
    return strcmp(json_string_value(json_object_get(recorded, "kind")), "bpe") == 0;
}

/* ---- tokens ---- */

static void test_recorded(void **unused) {
    (void)unused;
    json_t *all = load_json("sentencepiece.json");
    int checked = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *recorded = json_array_get(all, i), *cases = json_object_get(recorded, "cases");
        sb_tokenizer *tokenizer;
        if (!is_bpe(recorded))
            continue;
        save_model(recorded, "sentencepiece");
        MUST(sb_tokenizer_open("sentencepiece", &tokenizer, error));
        for (size_t c = 0; c < json_array_size(cases); c++, checked++)
            check_case(tokenizer, "sentencepiece", json_array_get(cases, c), true);
        sb_tokenizer_release(tokenizer);
    }
    assert_true(checked > 60);
    json_decref(all);
}

/* The tokens of "a<extra>" with what stands around a text; returns how many. */
static size_t encode_letter(const char *folder, int64_t tokens[16]) {
    sb_tokenizer *tokenizer;
    int64_t *found;
    size_t count;
    MUST(sb_tokenizer_open(folder, &tokenizer, error));
    MUST(sb_tokenizer_encode(tokenizer, "a<extra>", 8, NULL, &found, &count, error));
    assert_true(count <= 16);
    memcpy(tokens, found, count * sizeof *tokens);
    sb_llm_free(found);
    sb_tokenizer_release(tokenizer);
    return count;
}

static void test_config(void **unused) {
    (void)unused;
    static const char config[] = "{\"add_bos_token\":false,\"add_eos_token\":true,\"eos_token\":\"</s>\","
                                 "\"added_tokens_decoder\":{\"1\":{\"content\":\"<s>\",\"special\":true},"
                                 "\"9000\":{\"content\":\"<extra>\",\"special\":true}}}";
    int64_t tokens[16];
    json_t *all = load_json("sentencepiece.json");
    save_model(json_array_get(all, 0), "with_config");
    remove("with_config/tokenizer_config.json");
    size_t count = encode_letter("with_config", tokens);
    assert_true(count > 3 && tokens[0] == 1 && tokens[count - 1] != 2);
    save_text("with_config/tokenizer_config.json", config);
    count = encode_letter("with_config", tokens);
    assert_true(count >= 3 && tokens[0] != 1 && tokens[count - 2] == 9000 && tokens[count - 1] == 2);
    json_decref(all);
}

/* ---- refusals and memory ---- */

static void refuse(const char *path, sb_status status, const char *says) {
    sb_error error = {0};
    sb_tokenizer *tokenizer;
    sb_status found = sb_tokenizer_open(path, &tokenizer, &error);
    if (found != status)
        fail_msg("status %d, '%s', where '%s' was expected", (int)found, error.message, says);
    ASSERT_SAYS(error, says);
}

static void test_refusals(void **unused) {
    (void)unused;
    json_t *all = load_json("sentencepiece.json");
    for (size_t i = 0; i < json_array_size(all); i++) {
        if (is_bpe(json_array_get(all, i)))
            continue;
        save_model(json_array_get(all, i), "unigram");
        refuse("unigram", SB_ERROR_UNSUPPORTED,
               "unigram/tokenizer.model: its model is not BPE (trainer_spec.model_type is 1, not 2): take the model's "
               "tokenizer.json");
    }
    save_text("damaged.model", "\x0a\xff\xff\xff");
    refuse("damaged.model", SB_ERROR_INVALID_FILE, "damaged.model: it is no file of sentencepiece, or a damaged one");
    save_text("empty.model", "");
    refuse("empty.model", SB_ERROR_UNSUPPORTED, "its model is not BPE");
    save_model(json_array_get(all, 0), "wrong_config");
    save_text("wrong_config/tokenizer_config.json", "[]");
    refuse("wrong_config", SB_ERROR_INVALID_FILE, "tokenizer_config.json");
    save_text("wrong_config/tokenizer_config.json", "{\"add_eos_token\":true,\"eos_token\":\"<none>\"}");
    refuse("wrong_config", SB_ERROR_INVALID_FILE, "\"add_eos_token\" is true, and \"eos_token\" is no token");
    save_text("wrong_config/tokenizer_config.json", "{\"added_tokens_decoder\":{\"x\":{\"content\":\"y\"}}}");
    refuse("wrong_config", SB_ERROR_INVALID_FILE, "an added token has not both a number");
    json_decref(all);
}

static sb_status attempt(void *context) {
    sb_tokenizer *tokenizer = NULL;
    sb_status status = sb_tokenizer_open(context, &tokenizer, NULL);
    sb_tokenizer_release(tokenizer);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    json_t *all = load_json("sentencepiece.json");
    save_model(json_array_get(all, 0), "with_config");
    json_decref(all);
    check_failing_allocations(attempt, "with_config");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recorded), cmocka_unit_test(test_config),
                                       cmocka_unit_test(test_refusals), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
