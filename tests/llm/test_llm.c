/* Loading and generating: what is refused and how, memory that runs out, choosing tokens, log-probabilities. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <samebit/inspect.h>
#include <samebit/llm.h>

#include "llm/sample.h"
#include "runtime/model_digest.h"
#include "support/failing.h"
#include "support/must.h"
#include "support/random.h"
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

/* A prompt of more tokens than a run usually has comes to the same in pieces of any length, some longer than that. */
static void test_pieces(void **unused) {
    (void)unused;
    enum { TOKENS = 1500 };
    static const int64_t chunks[] = {0, 37, 512, 700, TOKENS - 1, TOKENS, 1 << 20};
    sb_llm *llm;
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    int64_t *ids = malloc(TOKENS * sizeof *ids);
    char first[SB_DIGEST_TEXT_BYTES];
    options.context = TOKENS + 8;
    for (int i = 0; i < TOKENS; i++)
        ids[i] = 4 + i * 31 % 90;
    MUST(sb_llm_load("models/llama", &options, &llm, error));
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        sb_llm_session *session;
        sb_llm_result result;
        sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
        generation.limit = 3;
        generation.ignore_stops = true;
        generation.chunk = chunks[i];
        MUST(sb_llm_session_create(llm, NULL, &session, error));
        MUST(sb_llm_generate(session, TOKENS, ids, &generation, &result, error));
        if (i == 0)
            memcpy(first, result.digest, sizeof first);
        assert_string_equal(result.digest, first);
        sb_llm_session_destroy(session);
    }
    sb_llm_release(llm);
    free(ids);
}

/* A GGUF file of these pairs and no tensors. */
typedef struct pair {
    const char *key;
    sb_gguf_type type;
    double number; /* of an array: its only item, an f32; of a text: nothing */
} pair;

static void add_pair(tiny_bytes *to, const pair *added) {
    static const unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    float single = (float)added->number;
    int64_t whole = added->type == SB_GGUF_F32 || added->type == SB_GGUF_F64 ? 0 : (int64_t)added->number;
    tiny_add_text(to, added->key);
    tiny_add_number(to, added->type, 4);
    if (added->type == SB_GGUF_TEXT) {
        tiny_add_text(to, "0.5");
    } else if (added->type == SB_GGUF_ARRAY) {
        tiny_add_number(to, SB_GGUF_F32, 4);
        tiny_add_number(to, 1, 8);
        tiny_add(to, &single, sizeof single);
    } else if (added->type == SB_GGUF_F32) {
        tiny_add(to, &single, sizeof single);
    } else if (added->type == SB_GGUF_F64) {
        tiny_add(to, &added->number, sizeof added->number);
    } else {
        tiny_add_number(to, (uint64_t)whole, sizes[added->type]);
    }
}

static sb_status suggest_pairs(int count, const pair *pairs, sb_llm_sampling *sampling, sb_error *error) {
    tiny_bytes file = {0};
    tiny_add(&file, "GGUF", 4);
    tiny_add_number(&file, 3, 4);
    tiny_add_number(&file, 0, 8);
    tiny_add_number(&file, (uint64_t)count, 8);
    for (int i = 0; i < count; i++)
        add_pair(&file, &pairs[i]);
    tiny_save(&file, "pairs.gguf");
    free(file.data);
    return sb_llm_suggest_sampling("pairs.gguf", sampling, error);
}

#define KEY "general.sampling."

static void test_suggested_by_gguf(void **unused) {
    (void)unused;
    const sb_llm_sampling standard = SB_LLM_SAMPLING_DEFAULT;
    sb_llm_sampling sampling;
    sb_error error;
    const pair all[] = {{KEY "temp", SB_GGUF_F32, 0.75},   {KEY "top_k", SB_GGUF_S32, 20},
                        {KEY "top_p", SB_GGUF_F32, 0.875}, {KEY "min_p", SB_GGUF_F64, 0.0625},
                        {KEY "mirostat", SB_GGUF_TEXT, 0}, {KEY "penalty_repeat", SB_GGUF_F32, 1.25}};
    assert_int_equal(suggest_pairs(6, all, &sampling, &error), SB_OK);
    assert_true(sampling.temperature == 0.75f && sampling.top_k == 20 && sampling.top_p == 0.875f &&
                sampling.min_p == 0.0625f && sampling.repetition_penalty == 1.25f && sampling.seed == 0);
    assert_int_equal(suggest_pairs(0, all, &sampling, &error), SB_OK);
    assert_memory_equal(&sampling, &standard, sizeof sampling);
    /* Each by itself: without a temperature greedily, and a top_k below 0 is none. */
    const pair some[] = {{KEY "top_k", SB_GGUF_S32, -1}, {KEY "top_p", SB_GGUF_F32, 0.5}};
    assert_int_equal(suggest_pairs(2, some, &sampling, &error), SB_OK);
    assert_true(sampling.temperature == 0 && sampling.top_k == 0 && sampling.top_p == 0.5f);
    const pair whole = {KEY "temp", SB_GGUF_U8, 1};
    assert_int_equal(suggest_pairs(1, &whole, &sampling, &error), SB_OK);
    assert_true(sampling.temperature == 1);
    const pair wrong[] = {
        {KEY "temp", SB_GGUF_TEXT, 0},          {KEY "temp", SB_GGUF_ARRAY, 0.5},
        {KEY "temp", SB_GGUF_BOOL, 1},          {KEY "temp", SB_GGUF_F32, -1},
        {KEY "temp", SB_GGUF_F64, NAN},         {KEY "top_k", SB_GGUF_F32, 1.5},
        {KEY "top_k", SB_GGUF_U64, 0x1p50},     {KEY "top_k", SB_GGUF_S64, -0x1p40},
        {KEY "top_p", SB_GGUF_F32, 0},          {KEY "top_p", SB_GGUF_F32, 1.5},
        {KEY "min_p", SB_GGUF_F32, -0.5},       {KEY "min_p", SB_GGUF_U32, 2},
        {KEY "penalty_repeat", SB_GGUF_F32, 0}, {KEY "penalty_repeat", SB_GGUF_TEXT, 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(suggest_pairs(1, &wrong[i], &sampling, &error), SB_ERROR_INVALID_FILE);
        assert_non_null(strstr(error.message, "pairs.gguf: "));
        assert_non_null(strstr(error.message, strrchr(wrong[i].key, '.') + 1));
    }
    /* No file is for the one who loads it; one that is none of these is said to be so. */
    assert_int_equal(sb_llm_suggest_sampling("nowhere.gguf", &sampling, &error), SB_OK);
    const tiny_bytes text = {(char *)(uintptr_t) "GGUX", 4, 0};
    tiny_save(&text, "pairs.gguf");
    assert_int_equal(sb_llm_suggest_sampling("pairs.gguf", &sampling, &error), SB_ERROR_INVALID_FILE);
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
    check_failing_allocations(suggest, "models/gpt2.gguf");
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

/* ---- choosing by plain loops: keys in the order of section 11, sorted by comparing them ---- */

static int larger_first(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a > b ? -1 : a < b;
}

static int64_t units(float scaled, int32_t maximum) {
    sb_logp_scale scale = sb_logp_scale_of(1.0f);
    float held = sb_logp_hold(scaled, scale), shifted = sb_logp_shifted(held, scale);
    return sb_logp_units((sb_logp_pair){sb_logp_exponent(shifted), sb_logp_mantissa(held, shifted, scale)}, maximum);
}

static int64_t count_left(const float *scaled, const uint64_t *order, int64_t count, const sb_llm_sampling *sampling) {
    sb_logp_scale scale = sb_logp_scale_of(1.0f);
    int32_t maximum = sb_logp_exponent(sb_logp_shifted(sb_logp_hold(scaled[sb_choose_token(order[0])], scale), scale));
    int64_t total = 0, sum = 0, largest = units(scaled[sb_choose_token(order[0])], maximum);
    if (sampling->top_k > 0 && sampling->top_k < count)
        count = sampling->top_k;
    for (int64_t i = 0; i < count; i++)
        total += units(scaled[sb_choose_token(order[i])], maximum);
    for (int64_t i = 0; i < count && (sampling->top_p != 1 || sampling->min_p != 0); i++) {
        int64_t each = units(scaled[sb_choose_token(order[i])], maximum);
        if (i > 0 && ((double)sum >= (double)sampling->top_p * (double)total ||
                      (double)each < (double)sampling->min_p * (double)largest))
            return i;
        sum += each;
    }
    return count;
}

static int64_t choose_plainly(const float *logits, int64_t count, const sb_llm_sampling *sampling, int64_t position) {
    uint64_t order[1000], best = 0;
    float scaled[1000], inverse = sampling->temperature == 0 ? 1 : 1.0f / sampling->temperature;
    for (int64_t i = 0; i < count; i++) {
        scaled[i] = logits[i] * inverse;
        order[i] = sb_choose_key(scaled[i], i);
    }
    qsort(order, (size_t)count, sizeof *order, larger_first);
    if (sampling->temperature == 0)
        return sb_choose_token(order[0]);
    int64_t left = count_left(scaled, order, count, sampling);
    for (int64_t i = 0; i < left; i++) {
        int64_t token = sb_choose_token(order[i]);
        float noise = -sb_log_f32(sb_choose_exponent(
            sb_choose_uniform(sb_choose_word(sampling->seed, sampling->request, position, (uint32_t)token))));
        uint64_t key = sb_choose_key(scaled[token] + noise, token);
        best = scaled[token] > -INFINITY && key > best ? key : best;
    }
    return sb_choose_token(best);
}

/* Logits of few different values, both zeros and minus infinity among them. */
static void test_choosing(void **unused) {
    (void)unused;
    random_source random = {42};
    float logits[1000];
    for (int round = 0; round < 4000; round++) {
        int64_t count = 1 + (int64_t)(random_bits(&random) % (round % 8 == 0 ? 1000 : 40));
        int64_t step = 1 + (int64_t)(random_bits(&random) % 300), position = (int64_t)(random_bits(&random) % 100000);
        for (int64_t i = 0; i < count; i++) {
            uint64_t kind = random_bits(&random) % 10;
            float number = (float)((int64_t)(random_bits(&random) % 4000) / step * step - 2000) / 200;
            logits[i] = kind == 0 ? -INFINITY : kind == 1 ? -0.0f : number;
        }
        logits[random_bits(&random) % (uint64_t)count] = 0.5f;
        sb_llm_sampling sampling = SB_LLM_SAMPLING_DEFAULT;
        sampling.seed = random_bits(&random);
        sampling.request = (uint32_t)random_bits(&random);
        sampling.temperature = (float)(random_bits(&random) % 30) / 10;
        sampling.top_k = (int64_t)(random_bits(&random) % 3 * (random_bits(&random) % 20));
        if (random_bits(&random) % 2 == 0)
            sampling.top_p = (float)(1 + random_bits(&random) % 1000) / 1000;
        if (random_bits(&random) % 3 == 0)
            sampling.min_p = (float)(random_bits(&random) % 1000) / 1000;
        assert_int_equal(sample(logits, count, sampling, position), choose_plainly(logits, count, &sampling, position));
    }
    const float low[] = {-1e38f, -2e38f};
    sb_llm_sampling cold = SB_LLM_SAMPLING_DEFAULT;
    cold.temperature = 0x1p-20f;
    int64_t token;
    sb_error error;
    for (cold.top_k = 0; cold.top_k < 2; cold.top_k++) {
        assert_int_equal(sb_llm_sample(low, 2, &cold, 0, &token, &error), SB_ERROR_INVALID_ARGUMENT);
        ASSERT_SAYS(error, "choose a higher one");
    }
}

/* ---- joined weights ---- */

static int count_products(const sb_llm *llm) {
    sb_inspection *graph;
    int count = 0;
    MUST(sb_model_inspect(sb_llm_model(llm), NULL, &graph, error));
    for (int i = 0; i < sb_inspection_node_count(graph); i++)
        count += strstr(sb_inspection_node(graph, i)->name, "joined MatMul") != NULL;
    sb_inspection_release(graph);
    return count;
}

/* In the file's type weights stay in the file or are copied; in another one they are seen where they have been joined. Whoever
 * asks for the model's digest finds what the file has. */
static void test_joined(void **unused) {
    (void)unused;
    static const struct {
        const char *path;
        int joined;
    } models[] = {
        {"models/llama", 4}, {"models/qwen2", 4}, {"models/phi3", 4}, {"models/llama.gguf", 4}, {"models/gemma2", 2}};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        for (int narrow = 0; narrow < 2; narrow++) {
            unsigned char digests[2][SB_DIGEST_BYTES];
            for (int passes = 0; passes < 2; passes++) {
                sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
                sb_model_options model = SB_MODEL_OPTIONS_DEFAULT;
                sb_llm *llm;
                model.passes = passes != 0;
                options.model = &model;
                options.dtype = narrow != 0 ? SB_F16 : SB_BF16;
                MUST(sb_llm_load(models[m].path, &options, &llm, error));
                assert_int_equal(count_products(llm), passes * models[m].joined);
                MUST(sb_model_digest(sb_llm_model(llm), digests[passes], error));
                sb_llm_release(llm);
            }
            assert_memory_equal(digests[0], digests[1], SB_DIGEST_BYTES);
        }
    }
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
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_wrong_extents),
        cmocka_unit_test(test_steps),    cmocka_unit_test(test_present),
        cmocka_unit_test(test_pieces),   cmocka_unit_test(test_unrounded),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_suggested_by_gguf),
        cmocka_unit_test(test_greedy),   cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_choosing), cmocka_unit_test(test_joined),
        cmocka_unit_test(test_logp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
