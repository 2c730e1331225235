/* Tokenizers of tokenizer.json: recorded cases of every kind, refusals, memory that runs out, texts that are meant to
 * take long, threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "base/sanitizer.h"
#include "support/failing.h"
#include "support/random.h"
#include "tokenizer_cases.h"

static const char *const names[] = {"gpt2",   "llama3", "qwen2",   "roberta", "other_expression",
                                    "llama2", "gemma",  "mistral", "unigram", "wordpiece",
                                    "words",  "clip"};
enum { NAMES = sizeof names / sizeof *names };

static sb_tokenizer *open_seed(const char *name) {
    char path[1024];
    sb_tokenizer *tokenizer;
    snprintf(path, sizeof path, TESTS_FOLDER "/../fuzz/seeds/tokenizer/%s.json", name);
    MUST(sb_tokenizer_open(path, &tokenizer, error));
    return tokenizer;
}

/* ---- what was recorded ---- */

static void test_recorded(void **unused) {
    (void)unused;
    json_t *cases = load_json("tokenizer_cases.json");
    size_t checked = 0;
    for (int i = 0; i < NAMES; i++) {
        sb_tokenizer *tokenizer = open_seed(names[i]);
        for (size_t c = 0; c < json_array_size(cases); c++) {
            const json_t *entry = json_array_get(cases, c);
            if (strcmp(json_string_value(json_object_get(entry, "tokenizer")), names[i]) != 0)
                continue;
            check_case(tokenizer, names[i], entry, json_is_true(json_object_get(entry, "bare")));
            checked++;
        }
        sb_tokenizer_release(tokenizer);
    }
    assert_int_equal(checked, json_array_size(cases));
    assert_true(checked > 500);
    json_decref(cases);
}

static void test_questions(void **unused) {
    (void)unused;
    sb_tokenizer *tokenizer = open_seed("roberta");
    size_t bytes;
    int64_t mask = sb_tokenizer_find(tokenizer, "<mask>", 6), sea = sb_tokenizer_find(tokenizer, "sea", 3);
    assert_true(mask >= 0 && sea > mask && sea < sb_tokenizer_vocabulary(tokenizer));
    assert_true(sb_tokenizer_is_special(tokenizer, mask) && !sb_tokenizer_is_special(tokenizer, sea));
    assert_false(sb_tokenizer_is_special(tokenizer, -1));
    assert_string_equal(sb_tokenizer_token(tokenizer, mask, &bytes), "<mask>");
    assert_int_equal(bytes, 6);
    assert_int_equal(sb_tokenizer_find(tokenizer, "no such token", 13), -1);
    assert_null(sb_tokenizer_token(tokenizer, sb_tokenizer_vocabulary(tokenizer), &bytes));
    assert_null(sb_tokenizer_token(tokenizer, INT64_MIN, &bytes));
    /* An id that no token has is left out. */
    const int64_t ids[] = {mask, INT64_MAX, -1, sea};
    char *text;
    MUST(sb_tokenizer_decode(tokenizer, ids, 4, true, &text, &bytes, error));
    assert_string_equal(text, "sea");
    sb_llm_free(text);
    sb_tokenizer_release(tokenizer);
}

/* ---- refusals ---- */

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"

static void test_refused_files(void **unused) {
    (void)unused;
    static const struct {
        const char *json;
        sb_status status;
        const char *says;
    } files[] = {
        {"{", SB_ERROR_INVALID_FILE, "given: line 1, column 1"},
        {"[]", SB_ERROR_INVALID_FILE, "it is not an object with a model"},
        {"{}", SB_ERROR_INVALID_FILE, "there is no model"},
        {"{\"model\":{\"type\":\"Markov\"}}", SB_ERROR_UNSUPPORTED,
         "the model Markov is none of BPE, Unigram, WordPiece and WordLevel"},
        {"{\"model\":{\"type\":\"BPE\",\"merges\":[]}}", SB_ERROR_INVALID_FILE, "the model has no vocabulary"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":\"x\"},\"merges\":[]}}", SB_ERROR_INVALID_FILE,
         "the token \"a\" has no whole number"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", SB_ERROR_INVALID_FILE,
         "two tokens have the number 0"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":999999999},\"merges\":[]}}", SB_ERROR_INVALID_FILE,
         "token \"a\" has the number 999999999; numbers go from 0 to 16777215"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b\"]}}", SB_ERROR_INVALID_FILE,
         "merge 0 (\"a\", \"b\"): one of its parts, or the whole, is no token"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", SB_ERROR_INVALID_FILE,
         "merge 0 is not a pair of texts"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1}}", SB_ERROR_UNSUPPORTED,
         "set it to null"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",\"b\"]]}}", SB_ERROR_INVALID_FILE,
         "token 0 is not a text with its score"},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":7,\"vocab\":[[\"a\",0]]}}", SB_ERROR_INVALID_FILE,
         "the unknown token (\"unk_id\") is none of the vocabulary"},
        {"{" MODEL ",\"normalizer\":{\"type\":\"Rot13\"}}", SB_ERROR_UNSUPPORTED,
         "the normalizer Rot13 is not supported: those that are, are NFC"},
        {"{" MODEL ",\"normalizer\":{}}", SB_ERROR_INVALID_FILE, "the normalizer has no \"type\""},
        {"{" MODEL ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"!\"}}", SB_ERROR_INVALID_FILE,
         "is not base64"},
        {"{" MODEL ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}}",
         SB_ERROR_INVALID_FILE, "the table of characters (precompiled_charsmap) is damaged"},
        {"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(\"},\"content\":\"\"}}",
         SB_ERROR_INVALID_FILE, "the regular expression (:"},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\\\\bc\"}}}", SB_ERROR_UNSUPPORTED,
         "byte 1 has another meaning here"},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a[b]]\"}}}", SB_ERROR_UNSUPPORTED,
         "byte 2 is a class in a class"},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"\"}}}", SB_ERROR_INVALID_FILE,
         "a pattern is empty"},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}", SB_ERROR_UNSUPPORTED,
         "the pre_tokenizer UnicodeScripts is not supported"},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Sequence\"}}", SB_ERROR_INVALID_FILE, "a sequence has no parts"},
        {"{" MODEL ",\"post_processor\":{\"type\":\"Other\"}}", SB_ERROR_UNSUPPORTED,
         "the post_processor Other is not supported"},
        {"{" MODEL ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}}", SB_ERROR_UNSUPPORTED,
         "the template of single texts has the text 0 times"},
        {"{" MODEL ",\"decoder\":{\"type\":\"CTC\"}}", SB_ERROR_UNSUPPORTED, "the decoder CTC is not supported"},
        {"{" MODEL ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"ByteLevel\"}]}}",
         SB_ERROR_UNSUPPORTED, "follows a Fuse"},
        {"{" MODEL ",\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":0,\"stop\":65}}", SB_ERROR_UNSUPPORTED,
         "a Strip decoder strips 65 characters: at most 64 are supported"},
        {"{" MODEL ",\"added_tokens\":[{\"id\":1,\"content\":\"a\"}]}", SB_ERROR_INVALID_FILE,
         "the added token \"a\" has the number 1, and in the vocabulary 0"},
        {"{" MODEL ",\"added_tokens\":[{\"id\":5,\"content\":\"\"}]}", SB_ERROR_INVALID_FILE,
         "the added token 5 is empty"},
        {"{" MODEL ",\"added_tokens\":[{\"id\":5,\"content\":\"x\"},{\"id\":5,\"content\":\"y\"}]}",
         SB_ERROR_INVALID_FILE, "two added tokens have the number 5"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        sb_error error = {0};
        sb_tokenizer *tokenizer = NULL;
        int64_t before = sb_allocation_count().live_blocks;
        sb_status status = sb_tokenizer_open_memory(files[i].json, strlen(files[i].json), "given", &tokenizer, &error);
        if (status != files[i].status)
            fail_msg("%s: status %d, '%s'", files[i].json, (int)status, error.message);
        ASSERT_SAYS(error, files[i].says);
        ASSERT_SAYS(error, "given: ");
        assert_int_equal(sb_allocation_count().live_blocks, before);
    }
}

static void refuse_path(const char *path, sb_status status, const char *says) {
    sb_error error = {0};
    sb_tokenizer *tokenizer;
    assert_int_equal(sb_tokenizer_open(path, &tokenizer, &error), status);
    ASSERT_SAYS(error, says);
}

static void test_refused_paths(void **unused) {
    (void)unused;
    mkdir("no_tokenizer", 0777);
    refuse_path("nowhere", SB_ERROR_IO, "nowhere: No such file");
    refuse_path("no_tokenizer", SB_ERROR_IO, "no_tokenizer has neither tokenizer.json nor tokenizer.model");
    refuse_path("no_tokenizer", SB_ERROR_IO, "AutoTokenizer.from_pretrained(…).save_pretrained(…)");
    refuse_path(TESTS_FOLDER "/CMakeLists.txt", SB_ERROR_INVALID_FILE, "CMakeLists.txt: line 1");
}

static void test_refused_texts(void **unused) {
    (void)unused;
    sb_error error = {0};
    sb_tokenizer *tokenizer;
    sb_encode_options options = SB_ENCODE_DEFAULT;
    int64_t *tokens;
    size_t count;
    static const char *const broken[] = {"\x80", "ab\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf"};
    tokenizer = open_seed("gpt2");
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_int_equal(sb_tokenizer_encode(tokenizer, broken[i], strlen(broken[i]), NULL, &tokens, &count, &error),
                         SB_ERROR_INVALID_ARGUMENT);
        ASSERT_SAYS(error, i == 1 ? "the text is not UTF-8 at byte 2" : "the text is not UTF-8 at byte 0");
    }
    options.struct_bytes = 1;
    assert_int_equal(sb_tokenizer_encode(tokenizer, "a", 1, &options, &tokens, &count, &error),
                     SB_ERROR_INVALID_ARGUMENT);
    sb_tokenizer_release(tokenizer);
    static const char words[] = "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}";
    MUST(sb_tokenizer_open_memory(words, strlen(words), NULL, &tokenizer, error));
    assert_int_equal(sb_tokenizer_encode(tokenizer, "b", 1, NULL, &tokens, &count, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "\"b\" is no token, and the tokenizer has none for unknown words");
    sb_tokenizer_release(tokenizer);
}

/* An expression that goes back over the text again and again ends, and says so. */
static void test_expression_that_takes_long(void **unused) {
    (void)unused;
    static const char json[] = "{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\","
                               "\"pattern\":{\"Regex\":\"(a|aa)+(?!a|$)\"}}}";
    sb_error error = {0};
    sb_tokenizer *tokenizer;
    int64_t *tokens;
    size_t count;
    char text[400];
    memset(text, 'a', sizeof text);
    MUST(sb_tokenizer_open_memory(json, strlen(json), NULL, &tokenizer, error));
    assert_int_equal(sb_tokenizer_encode(tokenizer, text, sizeof text, NULL, &tokens, &count, &error), SB_ERROR_LIMIT);
    ASSERT_SAYS(error, "cutting the text at byte 0 takes more than the tokenizer's regular expression may");
    sb_tokenizer_release(tokenizer);
}

/* ---- memory ---- */

static sb_status work_through(const sb_tokenizer *tokenizer) {
    static const char text[] = "She sells 12  e\xcc\x81 \xf0\x9f\x98\x80 <s> <mask> sea";
    int64_t *tokens = NULL;
    char *back = NULL;
    size_t count, bytes;
    const char *part;
    sb_decode_stream *stream = NULL;
    sb_status status = sb_tokenizer_encode(tokenizer, text, strlen(text), NULL, &tokens, &count, NULL);
    if (status == SB_OK)
        status = sb_tokenizer_decode(tokenizer, tokens, count, false, &back, &bytes, NULL);
    if (status == SB_OK)
        status = sb_decode_stream_create(tokenizer, false, &stream, NULL);
    for (size_t i = 0; status == SB_OK && i < count; i++)
        status = sb_decode_stream_push(stream, tokens[i], &part, &bytes, NULL);
    if (status == SB_OK)
        status = sb_decode_stream_finish(stream, &part, &bytes, NULL);
    sb_decode_stream_destroy(stream);
    sb_llm_free(back);
    sb_llm_free(tokens);
    return status;
}

static sb_status attempt(void *context) {
    char path[1024];
    sb_tokenizer *tokenizer = NULL;
    snprintf(path, sizeof path, TESTS_FOLDER "/../fuzz/seeds/tokenizer/%s.json", (const char *)context);
    sb_status status = sb_tokenizer_open(path, &tokenizer, NULL);
    if (status == SB_OK)
        status = work_through(tokenizer);
    sb_tokenizer_release(tokenizer);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    for (int i = 0; i < NAMES; i++)
        check_failing_allocations(attempt, (void *)(uintptr_t)names[i]);
}

/* ---- texts that are meant to take long ---- */

typedef size_t filler(char *text, size_t bytes);

static size_t fill_with(char *text, size_t bytes, const char *what) {
    size_t length = strlen(what), at = 0;
    for (; at + length <= bytes; at += length)
        memcpy(text + at, what, length);
    return at;
}

static size_t fill_letter(char *text, size_t bytes) {
    return fill_with(text, bytes, "a");
}
static size_t fill_spaces(char *text, size_t bytes) {
    return fill_with(text, bytes, " ");
}
static size_t fill_lines(char *text, size_t bytes) {
    return fill_with(text, bytes, " \n");
}
static size_t fill_spaces_and_end(char *text, size_t bytes) {
    size_t filled = fill_with(text, bytes, " ");
    text[filled - 1] = 'x';
    return filled;
}
/* Marks of two classes in turns behind a letter: a normal form has to sort all of them. */
static size_t fill_marks(char *text, size_t bytes) {
    size_t filled = fill_with(text, bytes, "\xcc\x81\xcc\xa3");
    text[0] = text[1] = 'a';
    return filled;
}
static size_t fill_symbols(char *text, size_t bytes) {
    return fill_with(text, bytes, "\xf0\x9f\x98\x80");
}
static size_t fill_marker(char *text, size_t bytes) {
    return fill_with(text, bytes, "<|en");
}
/* Random bytes, with a question mark for each that makes no character. */
static size_t fill_random(char *text, size_t bytes) {
    random_source source = {16};
    for (size_t i = 0; i < bytes; i++)
        text[i] = (char)random_between(&source, 0, 255);
    for (size_t i = 0; i < bytes;) {
        size_t length = 1;
        while (length < 4 && i + length < bytes && !is_utf8(text + i, length))
            length++;
        if (is_utf8(text + i, length))
            i += length;
        else
            text[i++] = '?';
    }
    return bytes;
}

/* Seconds of the processor to encode the text. */
static double encode_seconds(const sb_tokenizer *tokenizer, const char *text, size_t bytes) {
    int64_t *tokens;
    size_t count;
    clock_t start = clock();
    MUST(sb_tokenizer_encode(tokenizer, text, bytes, NULL, &tokens, &count, error));
    sb_llm_free(tokens);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* What may come on top: AddressSanitizer's memory takes seconds now and then. */
#if SB_ADDRESS_SANITIZER
#define SLACK 20.0
#else
#define SLACK 1.0
#endif

/* A text of 16 times the length takes about 16 times as long, where one that is gone over again would take 256 times. */
static void test_long_texts(void **unused) {
    (void)unused;
    static filler *const fillers[] = {fill_letter, fill_spaces,  fill_lines,  fill_spaces_and_end,
                                      fill_marks,  fill_symbols, fill_marker, fill_random};
    size_t bytes = 1 << 20;
    char *text = malloc(bytes);
    assert_non_null(text);
    for (int i = 0; i < NAMES; i++) {
        sb_tokenizer *tokenizer = open_seed(names[i]);
        for (size_t f = 0; f < sizeof fillers / sizeof *fillers; f++) {
            double shorter = encode_seconds(tokenizer, text, fillers[f](text, bytes / 16));
            double longer = encode_seconds(tokenizer, text, fillers[f](text, bytes));
            if (longer > 64 * shorter + SLACK)
                fail_msg("%s, text %zu: %.3f s for 64 KiB, %.3f s for 1 MiB", names[i], f, shorter, longer);
        }
        sb_tokenizer_release(tokenizer);
    }
    free(text);
}

/* ---- threads ---- */

static void *encode_often(void *context) {
    for (int i = 0; i < 50; i++) {
        if (work_through(context) != SB_OK)
            return context;
    }
    return NULL;
}

static void test_threads(void **unused) {
    (void)unused;
    pthread_t threads[4];
    void *failed;
    sb_tokenizer *tokenizer = open_seed("other_expression");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, encode_often, tokenizer), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    sb_tokenizer_release(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),      cmocka_unit_test(test_questions),
        cmocka_unit_test(test_refused_files), cmocka_unit_test(test_refused_paths),
        cmocka_unit_test(test_refused_texts), cmocka_unit_test(test_expression_that_takes_long),
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
