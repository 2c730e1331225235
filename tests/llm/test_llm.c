/* Loading and generating: what is refused and how, memory that runs out, choosing tokens, log-probabilities. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <samebit/llm.h>

#include "support/failing.h"
#include "support/must.h"
#include "tiny_models.h"

/* ---- refusals ---- */

static void refuse(const char *config, const char *file, size_t bytes, sb_status status, const char *says) {
    sb_error error = {0};
    sb_llm *llm;
    const tiny_bytes text = {(char *)(uintptr_t)config, strlen(config), 0};
    const tiny_bytes weights = {(char *)(uintptr_t)file, bytes, 0};
    mkdir("refused", 0777);
    tiny_save(&text, "refused/config.json");
    tiny_save(&weights, "refused/model.safetensors");
    assert_int_equal(sb_llm_load("refused", NULL, &llm, &error), status);
    ASSERT_SAYS(error, says);
}

/* A safetensors file with that description, and `bytes` bytes behind it. */
static void refuse_header(const char *config, const char *header, size_t bytes, const char *says) {
    tiny_bytes file = {0};
    tiny_add_number(&file, strlen(header), 8);
    tiny_add(&file, header, strlen(header));
    for (size_t i = 0; i < bytes; i++)
        tiny_add(&file, "x", 1);
    refuse(config, file.data, file.size, SB_ERROR_INVALID_FILE, says);
    free(file.data);
}

static void test_refusals(void **unused) {
    (void)unused;
    const char *llama = tiny_models[0].config;
    static const char nothing[] = "\x02\0\0\0\0\0\0\0{}", cut[] = "\x40\0\0\0\0\0\0\0{";
    refuse("{\"model_type\":\"bert\"}", nothing, 10, SB_ERROR_UNSUPPORTED,
           "'bert' is no family that is known here; those are llama, mistral, qwen2, qwen3, gemma2, gemma3_text, phi3, "
           "gpt2");
    refuse("{\"model_type\":\"llama\"}", nothing, 10, SB_ERROR_INVALID_FILE, "num_hidden_layers");
    refuse("{\"model_type\":\"llama\",\"num_hidden_layers\":-1}", nothing, 10, SB_ERROR_INVALID_FILE,
           "\"num_hidden_layers\" is no number from 1 to 10000");
    refuse("[", nothing, 10, SB_ERROR_INVALID_FILE, "config.json, byte");
    refuse(llama, nothing, 10, SB_ERROR_INVALID_FILE, "no tensor 'model.embed_tokens.weight'");
    refuse(llama, cut, 9, SB_ERROR_INVALID_FILE, "byte 0: a header of 64 bytes in a file of 9");
    refuse_header(llama, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 1,
                  "tensor 'a' ends 8 bytes behind, where the file has 1");
    refuse_header(llama, "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
                  "tensor 'a' takes 8 bytes where its extents and F32 want 12");
    refuse_header(llama, "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,8]}}", 8,
                  "the extents of tensor 'a' overflow");
    refuse_header(llama, "{\"a\":{\"dtype\":\"X9\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "has the dtype X9");
}

static void test_wrong_extents(void **unused) {
    (void)unused;
    sb_error error;
    sb_llm *llm;
    tiny_model narrow = tiny_models[0];
    tiny_write_folder(&narrow, "narrow");
    char config[1024];
    snprintf(config, sizeof config, "%s", narrow.config);
    memcpy(strstr(config, "\"vocab_size\":97"), "\"vocab_size\":96", strlen("\"vocab_size\":96"));
    const tiny_bytes text = {config, strlen(config), 0};
    tiny_save(&text, "narrow/config.json");
    assert_int_equal(sb_llm_load("narrow", NULL, &llm, &error), SB_ERROR_INVALID_FILE);
    ASSERT_SAYS(error, "narrow/model.safetensors: tensor 'model.embed_tokens.weight' (byte ");
    snprintf(config, sizeof config, "%s", narrow.config);
    memcpy(strstr(config, "\"num_hidden_layers\":2"), "\"num_hidden_layers\":1", strlen("\"num_hidden_layers\":1"));
    tiny_save(&text, "narrow/config.json");
    assert_int_equal(sb_llm_load("narrow", NULL, &llm, &error), SB_ERROR_UNSUPPORTED);
    ASSERT_SAYS(error, "is not run as if it did not");
}

/* ---- a step ---- */

static void test_steps(void **unused) {
    (void)unused;
    sb_error error;
    sb_llm *llm;
    sb_llm_session *session;
    sb_tensor *logits;
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    options.context = 4;
    MUST(sb_llm_load("models/llama", &options, &llm, error));
    MUST(sb_llm_session_create(llm, NULL, &session, error));
    const int64_t ids[] = {1, 2, 3, 97, 5}, row = 3;
    assert_int_equal(sb_llm_step(session, 5, ids, 0, NULL, &logits, &error), SB_ERROR_LIMIT);
    assert_int_equal(sb_llm_step(session, 4, ids, 0, NULL, &logits, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "token 3 of 4 is 97; the model has 97");
    assert_int_equal(sb_llm_step(session, 3, ids, 1, &row, &logits, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_llm_session_length(session), 0);
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_llm_result result;
    generation.ignore_stops = true;
    MUST(sb_llm_generate(session, 2, ids, &generation, &result, error));
    assert_int_equal(result.end, SB_LLM_END_CONTEXT);
    assert_int_equal(result.new_tokens, 3);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
}

/* Logits of 16-bit models have the bits that rounding to 16 bits would take: of the 97 nearly all, and behind a cap too. */
static void test_unrounded(void **unused) {
    (void)unused;
    static const char *const names[] = {"models/llama", "models/qwen3", "models/gemma2"};
    static const sb_dtype narrow[] = {SB_F16, SB_BF16};
    const int64_t ids[] = {1, 2, 3}, row = 2;
    for (int i = 0; i < 6; i++) {
        sb_llm *llm;
        sb_llm_session *session;
        sb_tensor *logits;
        sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
        options.dtype = narrow[i % 2];
        MUST(sb_llm_load(names[i / 2], &options, &llm, error));
        MUST(sb_llm_session_create(llm, NULL, &session, error));
        MUST(sb_llm_step(session, 3, ids, 1, &row, &logits, error));
        const float *z = sb_tensor_data(logits);
        int kept = 0;
        for (int t = 0; t < 97; t++)
            kept +=
                z[t] != (i % 2 == 0 ? sb_f16_to_f32(sb_f16_from_f32(z[t])) : sb_bf16_to_f32(sb_bf16_from_f32(z[t])));
        assert_true(kept > 60);
        sb_tensor_release(logits);
        sb_llm_session_destroy(session);
        sb_llm_release(llm);
    }
}

/* What the sequence has of a prompt is not run again, and what comes of it is what comes of the whole: tokens, digest, receipt. */
static void test_present(void **unused) {
    (void)unused;
    sb_error error;
    sb_llm *llm;
    sb_llm_session *session;
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    int64_t ids[20];
    options.receipts = true;
    for (int i = 0; i < 20; i++)
        ids[i] = 5 + i * 7 % 60;
    MUST(sb_llm_load("models/qwen3", &options, &llm, error));
    MUST(sb_llm_session_create(llm, NULL, &session, error));
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_llm_receipt *receipt;
    char whole[SB_DIGEST_TEXT_BYTES];
    sb_llm_result result;
    generation.limit = 5;
    generation.ignore_stops = true;
    generation.sampling.temperature = 1;
    generation.sampling.repetition_penalty = 2;
    generation.receipt = &receipt;
    for (int64_t present = 0; present < 20; present++) {
        MUST(sb_llm_session_trim(session, present, error));
        generation.present = present;
        MUST(sb_llm_generate(session, 20, ids, &generation, &result, error));
        assert_int_equal(result.prompt_tokens, 20);
        const sb_llm_receipt_description about = sb_llm_receipt_describe(receipt);
        if (present == 0)
            memcpy(whole, about.digest, sizeof whole);
        assert_string_equal(about.digest, whole);
        sb_llm_receipt_release(receipt);
    }
    MUST(sb_llm_session_trim(session, 7, error));
    static const int64_t wrong[] = {6, 8, -1};
    for (int i = 0; i < 3; i++) {
        generation.present = wrong[i];
        assert_int_equal(sb_llm_generate(session, 20, ids, &generation, &result, &error), SB_ERROR_INVALID_ARGUMENT);
        ASSERT_SAYS(error, "are said to be in the sequence, which has 7 positions");
    }
    generation.present = 7;
    assert_int_equal(sb_llm_generate(session, 7, ids, &generation, &result, &error), SB_ERROR_INVALID_ARGUMENT);
    generation.score_prompt = true;
    assert_int_equal(sb_llm_generate(session, 20, ids, &generation, &result, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_llm_session_length(session), 7);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
}

static sb_status suggest(void *context) {
    sb_llm_sampling sampling;
    return sb_llm_suggest_sampling(context, &sampling, NULL);
}

static sb_status attempt(void *context) {
    sb_llm *llm = NULL;
    sb_llm_session *session = NULL;
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    const int64_t ids[] = {5, 6, 7};
    generation.limit = 2;
    generation.sampling.temperature = 1;
    options.threads = 1;
    sb_status status = sb_llm_load(context, NULL, &llm, NULL);
    if (status == SB_OK)
        status = sb_llm_session_create(llm, &options, &session, NULL);
    if (status == SB_OK)
        status = sb_llm_generate(session, 3, ids, &generation, NULL, NULL);
    sb_llm_session_destroy(session);
    sb_llm_release(llm);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    static const char suggestion[] = "{\"do_sample\": true, \"top_k\": 20}";
    const tiny_bytes text = {(char *)(uintptr_t)suggestion, sizeof suggestion - 1, 0};
    mkdir("suggests", 0777);
    tiny_save(&text, "suggests/generation_config.json");
    check_failing_allocations(suggest, "suggests");
    check_failing_allocations(attempt, "models/llama3");
    check_failing_allocations(attempt, "models/gpt2.gguf");
}

/* ---- choosing ---- */

static int64_t sample(const float *logits, int64_t count, sb_llm_sampling sampling, int64_t position) {
    int64_t token = -1;
    MUST(sb_llm_sample(logits, count, &sampling, position, &token, error));
    return token;
}

static void test_greedy(void **unused) {
    (void)unused;
    const float logits[] = {-INFINITY, 1, -0.0f, 3, 3, 2}, zeros[] = {-0.0f, 0.0f};
    sb_llm_sampling sampling = SB_LLM_SAMPLING_DEFAULT;
    assert_int_equal(sample(logits, 6, sampling, 0), 3);
    assert_int_equal(sample(zeros, 2, sampling, 0), 0);
    const float bad[] = {1, NAN}, none[] = {-INFINITY, -INFINITY};
    int64_t token;
    sb_error error;
    assert_int_equal(sb_llm_sample(bad, 2, &sampling, 0, &token, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "token 1 is NaN");
    assert_int_equal(sb_llm_sample(none, 2, &sampling, 0, &token, &error), SB_ERROR_INVALID_ARGUMENT);
}

/* Frequencies over many positions are those of the softmax, and only tokens that were kept are drawn. */
static void test_sampling(void **unused) {
    (void)unused;
    const float logits[] = {0, logf(2), logf(4), logf(1.0f / 3), -INFINITY};
    enum { DRAWS = 20000 };
    sb_llm_sampling sampling = SB_LLM_SAMPLING_DEFAULT;
    int counts[5] = {0}, kept[5] = {0}, fewer[5] = {0}, least[5] = {0};
    sampling.temperature = 1;
    sampling.seed = UINT64_C(0x123456789abcdef0);
    for (int i = 0; i < DRAWS; i++) {
        sb_llm_sampling two = sampling, most = sampling, high = sampling;
        two.top_k = 2;
        most.top_p = 0.8f; /* 4/7.33 and 2/7.33 */
        high.min_p = 0.3f;
        counts[sample(logits, 5, sampling, i)]++;
        kept[sample(logits, 5, two, i)]++;
        fewer[sample(logits, 5, most, i)]++;
        least[sample(logits, 5, high, i)]++;
    }
    const double total = 1 + 2 + 4 + 1.0 / 3, wanted[] = {1 / total, 2 / total, 4 / total, 1 / (3 * total), 0};
    for (int i = 0; i < 5; i++)
        assert_true(fabs(counts[i] - wanted[i] * DRAWS) <= 4 * sqrt(wanted[i] * DRAWS));
    assert_true(kept[1] + kept[2] == DRAWS && kept[1] > DRAWS / 4 && fewer[1] + fewer[2] == DRAWS);
    assert_true(least[1] + least[2] == DRAWS);
    /* Bits that must stay as they are. */
    const int64_t first = sample(logits, 5, sampling, 0), again = sample(logits, 5, sampling, 0);
    assert_int_equal(first, again);
}

static void test_logp(void **unused) {
    (void)unused;
    float logits[1000];
    double sum = 0;
    for (int i = 0; i < 1000; i++) {
        logits[i] = (float)((i * 7919) % 1000) / 50 - 10;
        sum += exp((double)logits[i]);
    }
    for (int i = 0; i < 1000; i += 37)
        assert_true(fabs((double)sb_llm_logp(logits, 1000, i) - ((double)logits[i] - log(sum))) < 2e-6);
    assert_true(isnan(sb_llm_logp(logits, 1000, 1000)));
    logits[5] = -INFINITY;
    assert_true(sb_llm_logp(logits, 1000, 5) == -INFINITY);
    logits[6] = NAN;
    assert_true(isnan(sb_llm_logp(logits, 1000, 7)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_wrong_extents), cmocka_unit_test(test_steps),
        cmocka_unit_test(test_present),  cmocka_unit_test(test_unrounded),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_greedy),   cmocka_unit_test(test_sampling),      cmocka_unit_test(test_logp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
