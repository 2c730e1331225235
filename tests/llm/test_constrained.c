/* Generations under a constraint, with penalties and biases: what they come to, their receipts, and verifying those. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "llm/choose.h"
#include "llm/llm.h"
#include "llm/receipt.h"
#include "support/failing.h"
#include "support/must.h"

enum { PROMPT = 4, VOCABULARY = 97, LIMIT_TOKENS = 56 };
static const int64_t prompt[PROMPT] = {1, 50, 7, 23};
static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":99},"
    "\"b\":{\"enum\":[\"x\",\"yz\"]}},\"required\":[\"a\",\"b\"],\"additionalProperties\":false}";

static sb_tokenizer *tokenizer;
static sb_llm_constraint *constraint;
static sb_llm_session *session;

/* Ids 4 on are ASCII's characters from the space, without the tilde and the letter `shift` positions before the end. */
static sb_tokenizer *make_tokenizer(int shift) {
    json_t *vocabulary = json_object();
    sb_tokenizer *made;
    for (int id = 4, character = ' '; id < VOCABULARY; id++, character++) {
        char text[8];
        character += character == 'z' - shift;
        if (character == ' ') /* as byte-level vocabularies write it */
            snprintf(text, sizeof text, "\xc4\xa0");
        else
            snprintf(text, sizeof text, "%c", character);
        json_object_set_new(vocabulary, text, json_integer(id));
    }
    json_t *all = json_pack("{s:{s:s,s:o,s:[]},s:{s:s}}", "model", "type", "BPE", "vocab", vocabulary, "merges",
                            "decoder", "type", "ByteLevel");
    char *text = json_dumps(all, 0);
    assert_non_null(text);
    MUST(sb_tokenizer_open_memory(text, strlen(text), NULL, &made, error));
    free(text);
    json_decref(all);
    return made;
}

static int begin(void **unused) {
    (void)unused;
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_session_options session_options = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm *llm;
    options.dtype = SB_BF16;
    options.receipts = true;
    session_options.threads = 1;
    tokenizer = make_tokenizer(9); /* without q */
    MUST(sb_llm_constraint_create(tokenizer, schema, strlen(schema), &constraint, error));
    MUST(sb_llm_load("models/llama", &options, &llm, error));
    MUST(sb_llm_session_create(llm, &session_options, &session, error));
    sb_llm_release(llm);
    return 0;
}

static int end(void **unused) {
    (void)unused;
    sb_llm_session_destroy(session);
    sb_llm_constraint_release(constraint);
    sb_tokenizer_release(tokenizer);
    return 0;
}

/* ---- generating ---- */

static sb_llm_generation about(uint64_t seed) {
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    generation.limit = LIMIT_TOKENS;
    generation.sampling.temperature = 1;
    generation.sampling.seed = seed;
    generation.constraint = constraint;
    return generation;
}

static sb_llm_receipt *generate(const sb_llm_generation *how) {
    sb_llm_receipt *receipt = NULL;
    sb_llm_generation generation = *how;
    generation.receipt = &receipt;
    MUST(sb_llm_session_trim(session, 0, error));
    MUST(sb_llm_generate(session, PROMPT, prompt, &generation, NULL, error));
    MUST(sb_llm_session_trim(session, 0, error));
    return receipt;
}

static sb_llm_verdict verify(const sb_llm_receipt *receipt, const sb_tokenizer *by, int64_t sample) {
    sb_llm_verification options = SB_LLM_VERIFICATION_DEFAULT;
    sb_llm_verdict verdict;
    options.tokenizer = by;
    options.threads = 1;
    options.chunk = 5;
    options.sample = sample;
    MUST(sb_llm_verify(session, receipt, &options, &verdict, error));
    return verdict;
}

static void expect_same(const sb_llm_receipt *receipt) {
    sb_llm_verdict verdict = verify(receipt, receipt->schema != NULL ? tokenizer : NULL, 0);
    if (verdict.count != 0)
        fail_msg("%s of step %lld: %s", sb_llm_difference_name(verdict.findings[0].what),
                 (long long)verdict.findings[0].step, verdict.findings[0].message);
    assert_int_equal(verdict.checked, verdict.steps);
}

static void redo(sb_llm_receipt *receipt) {
    MUST(sb_receipt_settings(receipt, receipt->settings, error));
    MUST(sb_receipt_digest(receipt, receipt->digest, error));
}

/* The text of a receipt's tokens. */
static char *text_of(const sb_llm_receipt *receipt) {
    int64_t tokens[LIMIT_TOKENS];
    char *text;
    size_t bytes;
    int64_t count = receipt->step_count - (receipt->end == SB_LLM_END_STOP);
    for (int64_t i = 0; i < count; i++)
        tokens[i] = receipt->steps[i].token;
    MUST(sb_tokenizer_decode(tokenizer, tokens, (size_t)count, true, &text, &bytes, error));
    return text;
}

static void check_text(const sb_llm_receipt *receipt) {
    char *text = text_of(receipt);
    json_t *value = json_loads(text, 0, NULL);
    int64_t a = json_integer_value(json_object_get(value, "a"));
    const char *b = json_string_value(json_object_get(value, "b"));
    if (json_object_size(value) != 2 || a < 0 || a > 99 || b == NULL || (strcmp(b, "x") != 0 && strcmp(b, "yz") != 0))
        fail_msg("'%s' is not right by the schema", text);
    json_decref(value);
    sb_llm_free(text);
}

static void test_texts(void **unused) {
    (void)unused;
    int ended = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        sb_llm_generation how = about(seed);
        how.sampling.temperature = seed == 0 ? 0 : 1;
        sb_llm_receipt *receipt = generate(&how), *read;
        if (receipt->end == SB_LLM_END_STOP) {
            check_text(receipt);
            ended++;
        }
        expect_same(receipt);
        MUST(sb_llm_receipt_save(receipt, "constrained.json", error));
        MUST(sb_llm_receipt_load("constrained.json", &read, error));
        assert_memory_equal(read->digest, receipt->digest, SB_DIGEST_BYTES);
        redo(read);
        assert_memory_equal(read->digest, receipt->digest, SB_DIGEST_BYTES);
        assert_string_equal(sb_llm_receipt_describe(read).schema, schema);
        expect_same(read);
        sb_llm_receipt_release(read);
        sb_llm_receipt_release(receipt);
    }
    assert_true(ended > 10);
}

/* A model that names no token that ends texts stops where nothing can follow. */
static void test_complete(void **unused) {
    (void)unused;
    sb_llm_config *config = &session->llm->config;
    int stops = config->stop_count, complete = 0;
    config->stop_count = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        sb_llm_generation how = about(seed);
        sb_llm_receipt *receipt = generate(&how);
        expect_same(receipt);
        if (receipt->end == SB_LLM_END_COMPLETE) {
            check_text(receipt);
            complete++;
            receipt->end = SB_LLM_END_LIMIT;
            redo(receipt);
            sb_llm_verdict verdict = verify(receipt, tokenizer, 0);
            assert_int_equal(verdict.count, 1);
            assert_int_equal(verdict.findings[0].what, SB_LLM_DIFFERENT_END);
        }
        sb_llm_receipt_release(receipt);
    }
    config->stop_count = stops;
    assert_true(complete > 5);
}

/* ---- what was changed ---- */

static void expect_finding(const sb_llm_receipt *receipt, const sb_tokenizer *by, sb_llm_difference what,
                           int64_t step) {
    sb_llm_verdict verdict = verify(receipt, by, 0);
    if (verdict.count == 0 || verdict.findings[0].what != what || verdict.findings[0].step != step)
        fail_msg("%d findings, the first %s of step %lld: %s", verdict.count,
                 verdict.count > 0 ? sb_llm_difference_name(verdict.findings[0].what) : "none",
                 (long long)verdict.findings[0].step, verdict.findings[0].message);
}

static void test_changed(void **unused) {
    (void)unused;
    static const char wider[] = "{\"type\":[\"object\",\"array\"]}";
    sb_llm_generation how = about(3);
    sb_llm_receipt *receipt = generate(&how);
    assert_true(receipt->step_count > 5);
    int64_t kept = receipt->steps[4].token;
    /* A token that cannot come: at its own step sampling chooses another one; where that is not looked at, it is found all the same. */
    receipt->steps[4].token = 4 + '~' - ' ' - 2;
    redo(receipt);
    expect_finding(receipt, tokenizer, SB_LLM_DIFFERENT_TOKEN, 4);
    int found = 0;
    for (int i = 0; i < 10; i++) {
        sb_llm_verdict verdict = verify(receipt, tokenizer, 1);
        found += verdict.count > 0;
    }
    assert_int_equal(found, 10);
    receipt->steps[4].token = kept;
    /* Another schema, which the text is right by, too: it would have been drawn from other tokens. */
    char *own = receipt->schema;
    receipt->schema = (char *)(uintptr_t)wider;
    expect_finding(receipt, tokenizer, SB_LLM_DIFFERENT_SETTINGS, -1);
    redo(receipt);
    sb_llm_verdict verdict = verify(receipt, tokenizer, 0);
    assert_true(verdict.count > 0 && verdict.findings[0].what == SB_LLM_DIFFERENT_TOKEN);
    /* No schema at all. */
    receipt->schema = NULL;
    redo(receipt);
    verdict = verify(receipt, NULL, 0);
    assert_true(verdict.count > 0 && verdict.findings[0].what == SB_LLM_DIFFERENT_TOKEN);
    receipt->schema = own;
    redo(receipt);
    expect_same(receipt);
    /* Another tokenizer; none. */
    sb_tokenizer *other = make_tokenizer(3);
    expect_finding(receipt, other, SB_LLM_DIFFERENT_TOKENIZER, -1);
    sb_tokenizer_release(other);
    sb_llm_verification options = SB_LLM_VERIFICATION_DEFAULT;
    sb_error error;
    assert_int_equal(sb_llm_verify(session, receipt, &options, &verdict, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "sb_llm_verification.tokenizer"));
    sb_llm_receipt_release(receipt);
}

static void test_refusals(void **unused) {
    (void)unused;
    sb_llm_generation how = about(1);
    sb_error error;
    how.ignore_stops = true;
    assert_int_equal(sb_llm_generate(session, PROMPT, prompt, &how, NULL, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "a constraint with ignore_stops"));
    /* The vocabulary has no q. */
    sb_llm_constraint *wants_q;
    MUST(sb_llm_constraint_create(tokenizer, "{\"const\":\"q\"}", 13, &wants_q, error));
    how = about(1);
    how.constraint = wants_q;
    assert_int_equal(sb_llm_generate(session, PROMPT, prompt, &how, NULL, &error), SB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "no token of the vocabulary begins with"));
    MUST(sb_llm_session_trim(session, 0, error));
    sb_llm_constraint_release(wants_q);
}

/* ---- penalties and biases ---- */

/* By the words of docs/numerics.md, one token after the other. */
static float adjusted(float logit, int64_t token, const sb_llm_sampling *s, const int64_t *tokens, int64_t count,
                      int64_t first) {
    bool seen = false;
    float times = 0;
    for (int64_t i = 0; i < count; i++) {
        seen = seen || tokens[i] == token;
        times += i >= first && tokens[i] == token;
    }
    if (seen && s->repetition_penalty != 1)
        logit = logit > 0 ? logit / s->repetition_penalty : logit * s->repetition_penalty;
    if (times > 0) {
        volatile float taken = s->frequency_penalty * times;
        logit -= taken;
        logit -= s->presence_penalty;
    }
    for (int64_t i = 0; i < s->bias_count; i++)
        logit += s->biases[i].token == token ? s->biases[i].bias : 0;
    return logit;
}

static void test_adjusting(void **unused) {
    (void)unused;
    static const sb_llm_logit_bias biases[] = {{2, 0.1f}, {9, -3}, {11, -INFINITY}};
    static const int64_t tokens[] = {3, 9, 9, 5, 9, 7, 7, 7, 2};
    sb_llm_sampling sampling = SB_LLM_SAMPLING_DEFAULT;
    sampling.repetition_penalty = 1.3f;
    sampling.presence_penalty = 0.7f;
    sampling.frequency_penalty = 0.3f;
    sampling.bias_count = 3;
    sampling.biases = biases;
    float logits[13], given[13];
    for (int i = 0; i < 13; i++)
        given[i] = logits[i] = (float)(i * 37 % 11) - 5.3f;
    MUST(sb_llm_adjust(logits, 13, &sampling, 3, 9, tokens, error));
    int changed = 0;
    for (int64_t i = 0; i < 13; i++) {
        float wanted = adjusted(given[i], i, &sampling, tokens, 9, 3);
        assert_memory_equal(&logits[i], &wanted, sizeof wanted);
        changed += logits[i] != given[i];
    }
    assert_int_equal(changed, 6);
    /* Nothing is done where nothing is asked for. */
    sampling = (sb_llm_sampling)SB_LLM_SAMPLING_DEFAULT;
    memcpy(logits, given, sizeof logits);
    MUST(sb_llm_adjust(logits, 13, &sampling, 3, 9, tokens, error));
    assert_memory_equal(logits, given, sizeof logits);
    sb_error error;
    assert_int_equal(sb_llm_adjust(logits, 9, &sampling, 3, 9, tokens, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_llm_adjust(logits, 13, &sampling, 10, 9, tokens, &error), SB_ERROR_INVALID_ARGUMENT);
    sampling.bias_count = 2;
    sampling.biases = (sb_llm_logit_bias[]){{9, 1}, {9, 1}};
    int64_t token;
    assert_int_equal(sb_llm_sample(logits, 13, &sampling, 0, &token, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "biases in the order of their tokens"));
}

static void test_adjusted_receipts(void **unused) {
    (void)unused;
    static const sb_llm_logit_bias biases[] = {{20, -1.5f}, {30, 2}, {40, -INFINITY}};
    for (int kind = 0; kind < 5; kind++) {
        sb_llm_generation how = about(5);
        how.constraint = kind == 4 ? constraint : NULL;
        how.sampling.repetition_penalty = kind == 0 || kind == 4 ? 5 : 1;
        how.sampling.presence_penalty = kind == 1 || kind == 4 ? 20 : 0;
        how.sampling.frequency_penalty = kind == 2 || kind == 4 ? -5 : 0;
        how.sampling.bias_count = kind >= 3 ? 3 : 0;
        how.sampling.biases = biases;
        sb_llm_receipt *receipt = generate(&how), *read;
        expect_same(receipt);
        MUST(sb_llm_receipt_save(receipt, "adjusted.json", error));
        MUST(sb_llm_receipt_load("adjusted.json", &read, error));
        expect_same(read);
        assert_memory_equal(read->digest, receipt->digest, SB_DIGEST_BYTES);
        /* As if nothing had been done to the logits. */
        read->sampling.repetition_penalty = 1;
        read->sampling.presence_penalty = read->sampling.frequency_penalty = 0;
        read->sampling.bias_count = 0;
        redo(read);
        sb_llm_verdict verdict = verify(read, tokenizer, 0);
        assert_true(verdict.count > 0 && verdict.findings[0].what == SB_LLM_DIFFERENT_TOKEN);
        /* A token that the model has not got, which counts for nothing. */
        read->sampling = receipt->sampling;
        read->steps[read->step_count - 1].token = 1 << 20;
        redo(read);
        verdict = verify(read, tokenizer, 0);
        assert_true(verdict.count > 0 && verdict.findings[0].what == SB_LLM_DIFFERENT_TOKEN);
        read->sampling.bias_count = 0;
        for (int64_t i = 0; i < receipt->step_count; i++)
            assert_true(kind < 3 || receipt->steps[i].token != 40);
        sb_llm_receipt_release(read);
        sb_llm_receipt_release(receipt);
    }
}

/* ---- the likeliest ---- */

static void test_top(void **unused) {
    (void)unused;
    static const float logits[] = {1, 3, -INFINITY, 3, NAN, -0.0f, 0.0f, 7, NAN, 3};
    static const int64_t order[] = {7, 1, 3, 9, 0, 5, 6, 2, 4, 8};
    for (int64_t count = 0; count <= 12; count++) {
        int64_t tokens[12], wanted = count < 10 ? count : 10;
        assert_int_equal(sb_llm_top(logits, 10, count, tokens, NULL), wanted);
        assert_memory_equal(tokens, order, (size_t)wanted * sizeof *order);
    }
    float many[VOCABULARY], logps[5];
    int64_t tokens[5];
    for (int i = 0; i < VOCABULARY; i++)
        many[i] = (float)(i * 61 % 97) / 8;
    assert_int_equal(sb_llm_top(many, VOCABULARY, 5, tokens, logps), 5);
    for (int i = 0; i < 5; i++) {
        float logp = sb_llm_logp(many, VOCABULARY, tokens[i]);
        assert_memory_equal(&logp, &logps[i], sizeof logp);
        assert_true(many[tokens[i]] == (float)(96 - i) / 8);
    }
}

/* ---- memory ---- */

static sb_status attempt(void *context) {
    static const sb_llm_logit_bias bias = {30, 1};
    sb_llm_receipt *receipt = NULL;
    sb_llm_sampling sampling = SB_LLM_SAMPLING_DEFAULT;
    sb_chooser chooser = {0};
    float logits[VOCABULARY] = {0};
    const float *adjusted;
    bool complete;
    (void)context;
    sampling.repetition_penalty = 1.1f;
    sampling.bias_count = 1;
    sampling.biases = &bias;
    sb_status status = sb_receipt_create(PROMPT, &receipt, NULL);
    if (status == SB_OK)
        status = sb_receipt_set_sampling(receipt, &sampling, NULL);
    if (status == SB_OK)
        status = sb_receipt_set_constraint(receipt, constraint, NULL);
    if (status == SB_OK)
        status =
            sb_chooser_begin(&chooser, &session->llm->config, &receipt->sampling, constraint, PROMPT, prompt, NULL);
    if (status == SB_OK)
        status = sb_chooser_adjust(&chooser, logits, &adjusted, &complete, NULL);
    if (status == SB_OK)
        status = sb_chooser_take(&chooser, 4 + '{' - ' ' - 1, NULL);
    sb_chooser_end(&chooser);
    sb_llm_receipt_release(receipt);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    check_failing_allocations(attempt, NULL);
}

/* A receipt from before there were constraints: its digests are those that are made now, and its text is. */
static void test_earlier_receipt(void **unused) {
    (void)unused;
    static char text[1 << 16];
    sb_llm_receipt *receipt;
    unsigned char bytes[SB_DIGEST_BYTES];
    char *written;
    FILE *file = fopen(EARLIER_RECEIPT, "rb");
    assert_non_null(file);
    size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    MUST(sb_receipt_parse("earlier", text, count, &receipt, error));
    MUST(sb_receipt_settings(receipt, bytes, error));
    assert_memory_equal(bytes, receipt->settings, sizeof bytes);
    MUST(sb_receipt_digest(receipt, bytes, error));
    assert_memory_equal(bytes, receipt->digest, sizeof bytes);
    MUST(sb_receipt_text(receipt, &written, error));
    /* The same but for white space. */
    json_t *values[2] = {json_loads(text, 0, NULL), json_loads(written, 0, NULL)};
    char *texts[2] = {json_dumps(values[0], JSON_COMPACT), json_dumps(values[1], JSON_COMPACT)};
    assert_string_equal(texts[0], texts[1]);
    for (int i = 0; i < 2; i++) {
        json_decref(values[i]);
        free(texts[i]);
    }
    free(written);
    sb_llm_receipt_release(receipt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),    cmocka_unit_test(test_complete),  cmocka_unit_test(test_changed),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_adjusting), cmocka_unit_test(test_adjusted_receipts),
        cmocka_unit_test(test_top),      cmocka_unit_test(test_memory),    cmocka_unit_test(test_earlier_receipt),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
