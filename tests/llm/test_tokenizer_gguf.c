/* Tokenizers of GGUF files: the tokens of the tokenizer.json with the same lists, and those of sentencepiece;
 * refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/failing.h"
#include "tiny_models.h"
#include "tokenizer_cases.h"

#define KEY(name) "tokenizer.ggml." name

/* ---- metadata in a file without tensors ---- */

typedef struct metadata {
    tiny_bytes pairs;
    uint64_t count;
} metadata;

static void begin_pair(metadata *to, const char *key, uint32_t type) {
    tiny_add_text(&to->pairs, key);
    tiny_add_number(&to->pairs, type, 4);
    to->count++;
}

static void add_string(metadata *to, const char *key, const char *text) {
    begin_pair(to, key, SB_GGUF_TEXT);
    tiny_add_text(&to->pairs, text);
}

static void add_number(metadata *to, const char *key, uint32_t type, uint64_t number) {
    begin_pair(to, key, type);
    tiny_add_number(&to->pairs, number, type == SB_GGUF_BOOL ? 1 : 4);
}

static void begin_array(metadata *to, const char *key, uint32_t type, size_t count) {
    begin_pair(to, key, SB_GGUF_ARRAY);
    tiny_add_number(&to->pairs, type, 4);
    tiny_add_number(&to->pairs, count, 8);
}

static void save(metadata *from, const char *path) {
    tiny_bytes whole = {0};
    tiny_add(&whole, "GGUF", 4);
    tiny_add_number(&whole, 3, 4);
    tiny_add_number(&whole, 0, 8);
    tiny_add_number(&whole, from->count, 8);
    tiny_add(&whole, from->pairs.data, from->pairs.size);
    while (whole.size % 32 != 0)
        tiny_add_number(&whole, 0, 1);
    tiny_save(&whole, path);
    free(whole.data);
    free(from->pairs.data);
    *from = (metadata){0};
}

/* ---- byte-level BPE ---- */

/* The file that a tokenizer.json would become. */
static metadata byte_level_metadata(const char *name, const char *pre) {
    char file[256], joined[512];
    const char *key;
    json_t *value;
    metadata to = {0};
    snprintf(file, sizeof file, "../fuzz/seeds/tokenizer/%s.json", name);
    json_t *json = load_json(file), *model = json_object_get(json, "model");
    json_t *vocabulary = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
    size_t count = json_object_size(vocabulary);
    const char **tokens = calloc(count, sizeof *tokens);
    assert_non_null(tokens);
    json_object_foreach(vocabulary, key, value) tokens[json_integer_value(value)] = key;
    add_string(&to, KEY("model"), "gpt2");
    add_string(&to, KEY("pre"), pre);
    begin_array(&to, KEY("tokens"), SB_GGUF_TEXT, count);
    for (size_t i = 0; i < count; i++)
        tiny_add_text(&to.pairs, tokens[i]);
    begin_array(&to, KEY("token_type"), SB_GGUF_S32, count);
    for (size_t i = 0; i < count; i++)
        tiny_add_number(&to.pairs, i < 3 ? 3 : 1, 4); /* the special ones are the first */
    begin_array(&to, KEY("merges"), SB_GGUF_TEXT, json_array_size(merges));
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i);
        snprintf(joined, sizeof joined, "%s %s", json_string_value(json_array_get(merge, 0)),
                 json_string_value(json_array_get(merge, 1)));
        tiny_add_text(&to.pairs, joined);
    }
    add_number(&to, KEY("bos_token_id"), SB_GGUF_U32, 0);
    free(tokens);
    json_decref(json);
    return to;
}

static void check_byte_level(const char *name, const char *pre) {
    sb_tokenizer *tokenizer;
    json_t *cases = load_json("tokenizer_cases.json");
    size_t checked = 0;
    metadata metadata = byte_level_metadata(name, pre);
    save(&metadata, "byte_level.gguf");
    MUST(sb_tokenizer_open("byte_level.gguf", &tokenizer, error));
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *entry = json_array_get(cases, i);
        if (strcmp(json_string_value(json_object_get(entry, "tokenizer")), name) != 0)
            continue;
        check_case(tokenizer, name, entry, json_is_true(json_object_get(entry, "bare")));
        checked++;
    }
    assert_true(checked > 30);
    sb_tokenizer_release(tokenizer);
    json_decref(cases);
}

static void test_byte_level(void **unused) {
    (void)unused;
    check_byte_level("gpt2", "gpt-2");
    check_byte_level("llama3", "llama-bpe");
    check_byte_level("qwen2", "qwen2");
}

static sb_tokenizer *open_as(const char *pre) {
    sb_tokenizer *tokenizer;
    metadata metadata = byte_level_metadata("gpt2", pre);
    save(&metadata, "byte_level.gguf");
    MUST(sb_tokenizer_open("byte_level.gguf", &tokenizer, error));
    return tokenizer;
}

/* How many tokens a text has that begins with none of its own. */
static size_t count_tokens(const sb_tokenizer *tokenizer, const char *text) {
    sb_encode_options options = SB_ENCODE_DEFAULT;
    int64_t *tokens;
    size_t count;
    options.bare = true;
    MUST(sb_tokenizer_encode(tokenizer, text, strlen(text), &options, &tokens, &count, error));
    sb_llm_free(tokens);
    return count;
}

/* Names that cut words in other ways: merges of letters and digits are in the file, and go only as far as a word. */
static void test_names_of_cuttings(void **unused) {
    (void)unused;
    static const struct {
        const char *pre, *text;
        bool apart; /* whether the text is cut where GPT-2's expression does not cut it */
    } cuttings[] = {
        {"gpt-2", "00", false},   {"smollm", "00", true},     {"starcoder", "00", true}, {"tekken", "00", true},
        {"gpt-4o", "00", false},  {"llama-bpe", "00", false}, {"gpt-4o", "heTh", true},  {"gpt-2", "heTh", false},
        {"tekken", "heTh", true}, {"qwen2", "00", true},      {"phi-2", "00", false},
    };
    sb_tokenizer *plain = open_as("gpt-2");
    for (size_t i = 0; i < sizeof cuttings / sizeof *cuttings; i++) {
        sb_tokenizer *tokenizer = open_as(cuttings[i].pre);
        char half[16];
        size_t length = strlen(cuttings[i].text) / 2;
        memcpy(half, cuttings[i].text, length);
        half[length] = '\0';
        size_t whole = count_tokens(tokenizer, cuttings[i].text);
        size_t parts = count_tokens(tokenizer, half) + count_tokens(tokenizer, cuttings[i].text + length);
        if (cuttings[i].apart)
            assert_int_equal(whole, parts);
        else
            assert_int_equal(whole, count_tokens(plain, cuttings[i].text));
        sb_tokenizer_release(tokenizer);
    }
    sb_tokenizer_release(plain);
}

/* ---- sentencepiece ---- */

static metadata sentencepiece_metadata(const json_t *recorded) {
    metadata to = {0};
    const json_t *tokens = json_object_get(recorded, "tokens"), *scores = json_object_get(recorded, "scores");
    const json_t *types = json_object_get(recorded, "types");
    size_t count = json_array_size(tokens);
    add_string(&to, KEY("model"), "llama");
    begin_array(&to, KEY("tokens"), SB_GGUF_TEXT, count);
    for (size_t i = 0; i < count; i++)
        tiny_add_text(&to.pairs, json_string_value(json_array_get(tokens, i)));
    begin_array(&to, KEY("scores"), SB_GGUF_F32, count);
    for (size_t i = 0; i < count; i++) {
        float score = (float)json_number_value(json_array_get(scores, i));
        tiny_add(&to.pairs, &score, sizeof score);
    }
    begin_array(&to, KEY("token_type"), SB_GGUF_S32, count);
    for (size_t i = 0; i < count; i++)
        tiny_add_number(&to.pairs, (uint64_t)json_integer_value(json_array_get(types, i)), 4);
    add_number(&to, KEY("unknown_token_id"), SB_GGUF_U32, 0);
    add_number(&to, KEY("bos_token_id"), SB_GGUF_U32, 1);
    if (!json_is_true(json_object_get(recorded, "prefix")))
        add_number(&to, KEY("add_space_prefix"), SB_GGUF_BOOL, 0);
    return to;
}

static void test_sentencepiece(void **unused) {
    (void)unused;
    json_t *all = load_json("sentencepiece.json");
    int checked = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *recorded = json_array_get(all, i), *cases = json_object_get(recorded, "cases");
        sb_tokenizer *tokenizer;
        int64_t *tokens;
        size_t count;
        if (strcmp(json_string_value(json_object_get(recorded, "kind")), "bpe") != 0)
            continue;
        metadata metadata = sentencepiece_metadata(recorded);
        save(&metadata, "sentencepiece.gguf");
        MUST(sb_tokenizer_open("sentencepiece.gguf", &tokenizer, error));
        for (size_t c = 0; c < json_array_size(cases); c++, checked++)
            check_case(tokenizer, "sentencepiece", json_array_get(cases, c), true);
        /* Without being told, such a tokenizer puts its first token before a text. */
        MUST(sb_tokenizer_encode(tokenizer, "a", 1, NULL, &tokens, &count, error));
        assert_true(count >= 2 && tokens[0] == 1);
        sb_llm_free(tokens);
        sb_tokenizer_release(tokenizer);
    }
    assert_true(checked > 60);
    json_decref(all);
}

/* ---- refusals and memory ---- */

static void refuse(metadata *metadata, sb_status status, const char *says) {
    sb_error error = {0};
    sb_tokenizer *tokenizer;
    save(metadata, "refused.gguf");
    sb_status found = sb_tokenizer_open("refused.gguf", &tokenizer, &error);
    if (found != status)
        fail_msg("status %d, '%s', where '%s' was expected", (int)found, error.message, says);
    ASSERT_SAYS(error, says);
    ASSERT_SAYS(error, "refused.gguf");
}

/* One of `count` tokens is `token`. */
static void add_tokens(metadata *to, size_t count, const char *token) {
    begin_array(to, KEY("tokens"), SB_GGUF_TEXT, count);
    for (size_t i = 0; i < count; i++)
        tiny_add_text(&to->pairs, token);
}

static void test_refusals(void **unused) {
    (void)unused;
    metadata m = {0};
    add_string(&m, "general.architecture", "llama");
    refuse(&m, SB_ERROR_UNSUPPORTED,
           "the file has no tokenizer (tokenizer.ggml.model): take the model's tokenizer.json");
    add_string(&m, KEY("model"), "t5");
    refuse(&m, SB_ERROR_UNSUPPORTED, "tokenizer.ggml.model is t5, neither gpt2 nor llama");
    add_string(&m, KEY("model"), "gpt2");
    refuse(&m, SB_ERROR_INVALID_FILE, "the tokenizer has no tokenizer.ggml.tokens");
    add_string(&m, KEY("model"), "gpt2");
    add_tokens(&m, 1, "a");
    refuse(&m, SB_ERROR_UNSUPPORTED, "no tokenizer.ggml.pre says how words are cut");
    add_string(&m, KEY("model"), "gpt2");
    add_string(&m, KEY("pre"), "new-one");
    add_tokens(&m, 1, "a");
    refuse(&m, SB_ERROR_UNSUPPORTED, "tokenizer.ggml.pre is new-one; known are gpt-2, ");
    add_string(&m, KEY("model"), "gpt2");
    add_string(&m, KEY("pre"), "gpt-2");
    add_tokens(&m, 1, "a");
    refuse(&m, SB_ERROR_INVALID_FILE, "the tokenizer has no tokenizer.ggml.merges");
    add_string(&m, KEY("model"), "gpt2");
    add_string(&m, KEY("pre"), "gpt-2");
    add_tokens(&m, 1, "a");
    begin_array(&m, KEY("merges"), SB_GGUF_TEXT, 1);
    tiny_add_text(&m.pairs, "ab");
    refuse(&m, SB_ERROR_INVALID_FILE, "merge 0 has no space between two texts");
    add_string(&m, KEY("model"), "llama");
    add_tokens(&m, 2, "\xff");
    refuse(&m, SB_ERROR_INVALID_FILE, "token 0 is not UTF-8");
    add_string(&m, KEY("model"), "llama");
    add_tokens(&m, 2, "a");
    refuse(&m, SB_ERROR_INVALID_FILE, "the tokenizer has no tokenizer.ggml.scores");
    add_string(&m, KEY("model"), "llama");
    add_tokens(&m, 1, "a");
    begin_array(&m, KEY("scores"), SB_GGUF_F32, 1);
    tiny_add_number(&m.pairs, 0x7fc00000, 4);
    refuse(&m, SB_ERROR_INVALID_FILE, "token 0 has no number as its score");
    add_string(&m, KEY("model"), "llama");
    add_tokens(&m, 1, "a");
    begin_array(&m, KEY("scores"), SB_GGUF_F32, 1);
    tiny_add_number(&m.pairs, 0, 4);
    add_number(&m, KEY("add_bos_token"), SB_GGUF_BOOL, 1);
    add_number(&m, KEY("bos_token_id"), SB_GGUF_U32, 5);
    refuse(&m, SB_ERROR_INVALID_FILE,
           "tokenizer.ggml.add_bos_token is true, and tokenizer.ggml.bos_token_id is none of 1 tokens");
    add_string(&m, KEY("model"), "llama");
    add_number(&m, KEY("tokens"), SB_GGUF_U32, 5);
    refuse(&m, SB_ERROR_INVALID_FILE, "tokenizer.ggml.tokens");
}

static sb_status attempt(void *context) {
    sb_tokenizer *tokenizer = NULL;
    int64_t *tokens = NULL;
    size_t count;
    sb_status status = sb_tokenizer_open(context, &tokenizer, NULL);
    if (status == SB_OK)
        status = sb_tokenizer_encode(tokenizer, "sea \xf0\x9f\x98\x80", 8, NULL, &tokens, &count, NULL);
    sb_llm_free(tokens);
    sb_tokenizer_release(tokenizer);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    json_t *all = load_json("sentencepiece.json");
    metadata byte_level = byte_level_metadata("gpt2", "tekken");
    metadata sentencepiece = sentencepiece_metadata(json_array_get(all, 0));
    save(&byte_level, "byte_level.gguf");
    save(&sentencepiece, "sentencepiece.gguf");
    json_decref(all);
    check_failing_allocations(attempt, "byte_level.gguf");
    check_failing_allocations(attempt, "sentencepiece.gguf");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_byte_level),    cmocka_unit_test(test_names_of_cuttings),
        cmocka_unit_test(test_sentencepiece), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
