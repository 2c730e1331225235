/* Generating on a device, where steps choose their tokens themselves and the host is ahead of what it knows: tokens, log-probabilities, digests,
 * receipts, ends and lengths are the CPU's, whatever is chosen by, wherever a text ends while steps are on their way, and whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "llm/llm.h"
#include "session_support.h"
#include "support/failing.h"
#include "thorough.h"

enum { VOCABULARY = 97, CONTEXT = 64, MOST_TOKENS = 80 };

static const int64_t prompt[] = {1, 5, 9, 13, 60, 44};
#define PROMPT (int64_t)(sizeof prompt / sizeof *prompt)

static sb_llm *load(const char *name, sb_dtype dtype, bool receipts) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    char path[512];
    sb_llm *llm;
    options.dtype = dtype;
    options.context = CONTEXT;
    options.receipts = receipts;
    snprintf(path, sizeof path, "%s/%s", LLM_MODELS, name);
    MUST(sb_llm_load(path, &options, &llm, error));
    return llm;
}

static sb_llm_session *open_on(sb_llm *llm, sb_device *device, int queue_depth) {
    sb_session_options options = options_on(device);
    sb_llm_session *session;
    options.require_device = device != NULL;
    options.queue_depth = queue_depth;
    MUST(sb_llm_session_create(llm, &options, &session, error));
    return session;
}

/* ---- a generation, and all that is heard of it ---- */

typedef struct heard {
    sb_llm_session *session;
    int64_t count, stop_after, fail_after; /* 0: never */
    int64_t tokens[MOST_TOKENS], lengths[MOST_TOKENS];
    uint32_t logps[MOST_TOKENS];
    sb_status status;
    sb_error error;
    sb_llm_result result;
    int64_t length; /* of the sequence, in the end */
} heard;

static sb_status hear(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    heard *h = context;
    assert_true(h->count < MOST_TOKENS);
    h->tokens[h->count] = token->token;
    h->lengths[h->count] = sb_llm_session_length(h->session);
    memcpy(&h->logps[h->count++], &token->logp, sizeof token->logp);
    *stop = h->count == h->stop_after;
    return h->count == h->fail_after ? sb_fail(error, SB_ERROR_IO, "the caller's own reason") : SB_OK;
}

static void generate(sb_llm_session *session, const sb_llm_generation *about, int64_t count, const int64_t *tokens,
                     heard *h) {
    sb_llm_generation generation = *about;
    h->session = session;
    generation.on_token = hear;
    generation.context = h;
    h->error = (sb_error){SB_OK, ""};
    h->status = sb_llm_generate(session, count, tokens, &generation, &h->result, &h->error);
    h->length = sb_llm_session_length(session);
}

static void check_equal(const heard *left, const heard *right) {
    assert_string_equal(left->error.message, right->error.message);
    assert_int_equal(left->status, right->status);
    assert_int_equal(left->count, right->count);
    assert_memory_equal(left->tokens, right->tokens, sizeof left->tokens);
    assert_memory_equal(left->lengths, right->lengths, sizeof left->lengths);
    assert_memory_equal(left->logps, right->logps, sizeof left->logps);
    assert_int_equal(left->length, right->length);
    if (left->status != SB_OK)
        return;
    assert_int_equal(left->result.end, right->result.end);
    assert_int_equal(left->result.new_tokens, right->result.new_tokens);
    assert_string_equal(left->result.digest, right->result.digest);
}

/* Two generations one behind the other, so that what is left of the first is seen by the second. */
static void check_pair(sb_llm_session *cpu, sb_llm_session *device, const sb_llm_generation *about, int64_t stop_after,
                       int64_t fail_after) {
    sb_llm_generation more = *about;
    more.receipt = NULL;
    more.limit = 7;
    for (int round = 0; round < 2; round++) {
        heard left = {.stop_after = stop_after, .fail_after = fail_after};
        heard right = left;
        if (round == 1)
            left.stop_after = right.stop_after = left.fail_after = right.fail_after = 0;
        generate(cpu, round == 0 ? about : &more, round == 0 ? PROMPT : 2, prompt, &left);
        generate(device, round == 0 ? about : &more, round == 0 ? PROMPT : 2, prompt, &right);
        check_equal(&left, &right);
    }
    MUST(sb_llm_session_trim(cpu, 0, error));
    MUST(sb_llm_session_trim(device, 0, error));
}

/* ---- settings ---- */

static void settle(random_source *random, sb_llm_sampling *sampling) {
    static const float temperatures[] = {0, 0.3f, 1, 4}, top_ps[] = {1, 1, 0.9f, 0.3f}, min_ps[] = {0, 0, 0.1f, 1};
    sampling->temperature = temperatures[random_between(random, 0, 3)];
    sampling->top_k = random_between(random, 0, 1) == 0 ? 0 : random_between(random, 1, 40);
    sampling->top_p = top_ps[random_between(random, 0, 3)];
    sampling->min_p = min_ps[random_between(random, 0, 3)];
    sampling->seed = random_bits(random);
    sampling->request = (uint32_t)random_between(random, 0, 5);
}

static void check_model(const char *name, sb_dtype dtype, int rounds) {
    random_source random = {99};
    setting s = start_device();
    sb_llm *llm = load(name, dtype, false);
    sb_llm_session *cpu = open_on(llm, NULL, 4);
    for (int round = 0; round < rounds; round++) {
        sb_llm_session *device = open_on(llm, s.device, 1 + round % 3);
        sb_llm_generation about = SB_LLM_GENERATION_DEFAULT;
        settle(&random, &about.sampling);
        about.limit = random_between(&random, 1, 12);
        about.ignore_stops = round % 2 == 0;
        about.no_logits = about.no_digest = round % 4 < 3;
        about.no_logits = about.no_logits || round % 8 == 7;
        about.chunk = round % 5 == 0 ? 2 : 0;
        about.score_prompt = round % 7 == 6;
        int64_t stop_after = round % 3 == 1 ? random_between(&random, 1, 6) : 0;
        check_pair(cpu, device, &about, stop_after, round % 6 == 5 ? random_between(&random, 1, 6) : 0);
        sb_llm_session_destroy(device);
    }
    sb_llm_session_destroy(cpu);
    sb_llm_release(llm);
    finish(&s);
}

static void test_settings(void **unused) {
    check_model("llama", SB_F32, 36);
    check_model("gpt2", SB_F32, 6);
    check_model("gemma2", SB_BF16, 6);
}

/* Up to the context, and where it ends. */
static void test_context(void **unused) {
    setting s = start_device();
    sb_llm *llm = load("llama", SB_BF16, false);
    sb_llm_session *cpu = open_on(llm, NULL, 4), *device = open_on(llm, s.device, 4);
    sb_llm_generation about = SB_LLM_GENERATION_DEFAULT;
    about.ignore_stops = about.no_digest = about.no_logits = true;
    for (int64_t limit = CONTEXT - PROMPT - 1; limit <= CONTEXT - PROMPT + 2; limit++) {
        heard left = {0}, right = {0};
        about.limit = limit;
        generate(cpu, &about, PROMPT, prompt, &left);
        generate(device, &about, PROMPT, prompt, &right);
        check_equal(&left, &right);
        assert_int_equal(left.result.end, limit > CONTEXT - PROMPT + 1 ? SB_LLM_END_CONTEXT : SB_LLM_END_LIMIT);
        MUST(sb_llm_session_trim(cpu, 0, error));
        MUST(sb_llm_session_trim(device, 0, error));
    }
    sb_llm_session_destroy(cpu);
    sb_llm_session_destroy(device);
    sb_llm_release(llm);
    finish(&s);
}

/* Penalties and biases are the host's: it chooses. */
static void test_penalties(void **unused) {
    setting s = start_device();
    sb_llm *llm = load("llama", SB_F32, false);
    sb_llm_session *cpu = open_on(llm, NULL, 4), *device = open_on(llm, s.device, 4);
    sb_llm_generation about = SB_LLM_GENERATION_DEFAULT;
    about.limit = 9;
    about.no_digest = about.no_logits = true;
    about.sampling.repetition_penalty = 1.5f;
    check_pair(cpu, device, &about, 0, 0);
    sb_llm_session_destroy(cpu);
    sb_llm_session_destroy(device);
    sb_llm_release(llm);
    finish(&s);
}

static void make_receipt(sb_llm *llm, sb_device *device, const sb_llm_sampling *sampling,
                         char digest[SB_DIGEST_TEXT_BYTES]) {
    sb_llm_session *session = open_on(llm, device, 4);
    sb_llm_generation about = SB_LLM_GENERATION_DEFAULT;
    sb_llm_receipt *receipt = NULL;
    heard h = {0};
    about.limit = 11;
    about.sampling = *sampling;
    about.no_digest = about.no_logits = true;
    about.receipt = &receipt;
    generate(session, &about, PROMPT, prompt, &h);
    assert_int_equal(h.status, SB_OK);
    snprintf(digest, SB_DIGEST_TEXT_BYTES, "%s", sb_llm_receipt_describe(receipt).digest);
    sb_llm_receipt_release(receipt);
    sb_llm_session_destroy(session);
}

static void test_receipts(void **unused) {
    setting s = start_device();
    sb_llm *llm = load("llama", SB_BF16, true);
    random_source random = {5};
    for (int i = 0; i < 6; i++) {
        sb_llm_sampling sampling = SB_LLM_SAMPLING_DEFAULT;
        char left[SB_DIGEST_TEXT_BYTES], right[SB_DIGEST_TEXT_BYTES];
        settle(&random, &sampling);
        make_receipt(llm, NULL, &sampling, left);
        make_receipt(llm, s.device, &sampling, right);
        assert_string_equal(left, right);
    }
    sb_llm_release(llm);
    finish(&s);
}

/* ---- logits that nothing can be chosen from ---- */

/* Makes the embedding of a token NaN. */
static void spoil(sb_llm *llm, int64_t token) {
    const int64_t dims[] = {VOCABULARY, 32};
    sb_tensor *table;
    MUST(sb_tensor_create(SB_BF16, 2, dims, &table, error));
    uint16_t *numbers = sb_tensor_mutable_data(table);
    for (int64_t i = 0; i < VOCABULARY * dims[1]; i++)
        numbers[i] = sb_bf16_from_f32(i / dims[1] == token ? sb_nan_f32() : (float)((i * 37) % 64 - 32) / 64);
    const sb_llm_weight weight = {"model.embed_tokens.weight", table};
    MUST(sb_llm_replace_weights(llm, 1, &weight, error));
    sb_tensor_release(table);
}

static void test_faults(void **unused) {
    for (int temperature = 0; temperature < 2; temperature++) {
        setting s = start_device();
        sb_llm *llm = load("llama", SB_F32, false);
        sb_llm_generation about = SB_LLM_GENERATION_DEFAULT;
        about.limit = 20;
        about.ignore_stops = about.no_digest = about.no_logits = true;
        about.sampling.temperature = (float)temperature * 3;
        spoil(llm, -1);
        heard clean = {0};
        sb_llm_session *cpu = open_on(llm, NULL, 4);
        generate(cpu, &about, PROMPT, prompt, &clean);
        assert_int_equal(clean.status, SB_OK);
        sb_llm_session_destroy(cpu);
        spoil(llm, clean.tokens[6]);
        cpu = open_on(llm, NULL, 4);
        sb_llm_session *device = open_on(llm, s.device, 4);
        heard left = {0}, right = {0};
        generate(cpu, &about, PROMPT, prompt, &left);
        generate(device, &about, PROMPT, prompt, &right);
        assert_int_not_equal(left.status, SB_OK);
        assert_true(left.count >= 1 && left.count <= 7);
        check_equal(&left, &right);
        assert_says(right.error, "is NaN: none can be chosen");
        sb_llm_session_destroy(cpu);
        sb_llm_session_destroy(device);
        sb_llm_release(llm);
        finish(&s);
    }
}

/* ---- the planted mistake: a token that waits and is not the one that was chosen ---- */

/* Two steps given at once; in between, `stale`, something else waits in the slot. Returns what the second one chose. */
static int64_t step_twice(sb_llm_session *session, bool stale) {
    const int64_t first = 7, row = 0;
    const sb_llm_choice choice = {.by = {.top_p = 1}};
    const sb_llm_ahead ahead = {.count = 1, .choices = &choice};
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    sb_llm_flight flights[2];
    int64_t chosen[2];
    for (int i = 0; i < 2; i++) {
        const sb_llm_step_part part = {session->sequence, 1, i == 0 ? &first : NULL, 1, &row};
        MUST(sb_llm_batch_enqueue(session->batch, 1, &part, &ahead, &flights[i], error));
        if (i == 0 && stale) {
            sb_tensor *wrong;
            int64_t one = 1;
            MUST(sb_tensor_create(SB_S64, 1, &one, &wrong, error));
            *(int64_t *)sb_tensor_mutable_data(wrong) = 50;
            MUST(sb_state_set(session->batch->state, sb_state_variable_index(session->batch->state, "next"), wrong,
                              error));
            sb_tensor_release(wrong);
        }
    }
    for (int i = 0; i < 2; i++) {
        MUST(sb_llm_batch_collect(session->batch, &flights[i], outputs, error));
        assert_null(outputs[SB_LLM_LOGITS]);
        chosen[i] = (int64_t)((const double *)sb_tensor_data(outputs[SB_LLM_CHOSEN]))[SB_CHOOSE_TOKEN];
        for (int o = 0; o < SB_LLM_OUTPUTS; o++)
            sb_tensor_release(outputs[o]);
    }
    MUST(sb_llm_session_trim(session, 0, error));
    return chosen[1] * VOCABULARY + chosen[0];
}

static void test_stale(void **unused) {
    setting s = start_device();
    sb_llm *llm = load("llama", SB_F32, false);
    sb_llm_session *cpu = open_on(llm, NULL, 4), *device = open_on(llm, s.device, 4);
    int64_t right = step_twice(cpu, false);
    assert_int_equal(step_twice(device, false), right);
    assert_int_not_equal(step_twice(device, true), right);
    assert_int_equal(step_twice(device, true), step_twice(cpu, true));
    sb_llm_session_destroy(cpu);
    sb_llm_session_destroy(device);
    sb_llm_release(llm);
    finish(&s);
}

/* ---- what fails ---- */

typedef struct attempt {
    sb_llm *llm;
    sb_device *device; /* NULL: one is opened */
    heard expected;
} attempt;

static sb_llm_generation sampled(void) {
    sb_llm_generation about = SB_LLM_GENERATION_DEFAULT;
    about.limit = 4;
    about.sampling.temperature = 1;
    about.ignore_stops = about.no_digest = about.no_logits = true;
    return about;
}

/* What has been told is right, and so is what the sequence goes on with. */
static sb_status try_generating(void *context) {
    attempt *a = context;
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device = a->device;
    sb_llm_session *session;
    sb_error error;
    heard h = {0};
    where.cuda_driver = FAKE_CUDA;
    sb_status status = device == NULL ? sb_device_open(&where, 0, &device, &error) : SB_OK;
    if (status != SB_OK)
        return status;
    sb_session_options options = options_on(device);
    status = sb_llm_session_create(a->llm, &options, &session, &error);
    if (status == SB_OK) {
        sb_llm_generation about = sampled();
        generate(session, &about, PROMPT, prompt, &h);
        status = h.status;
        assert_true(h.count <= a->expected.count);
        assert_memory_equal(h.tokens, a->expected.tokens, (size_t)h.count * sizeof *h.tokens);
        assert_memory_equal(h.logps, a->expected.logps, (size_t)h.count * sizeof *h.logps);
        assert_true(h.length <= a->expected.length && (h.count == 0 || h.length == PROMPT + h.count - 1));
        sb_llm_session_destroy(session);
    }
    if (a->device == NULL)
        sb_device_release(device);
    return status;
}

static attempt expect_generation(sb_llm *llm, sb_device *device) {
    attempt a = {.llm = llm, .device = device};
    sb_llm_generation about = sampled();
    sb_llm_session *cpu = open_on(llm, NULL, 4);
    generate(cpu, &about, PROMPT, prompt, &a.expected);
    assert_int_equal(a.expected.status, SB_OK);
    sb_llm_session_destroy(cpu);
    return a;
}

static void test_allocations(void **unused) {
    setting s = start_device();
    sb_llm *llm = load("llama", SB_F32, false);
    attempt a = expect_generation(llm, s.device);
    assert_int_equal(try_generating(&a), SB_OK); /* what the model keeps for the device is there */
    check_some_failing_allocations(try_generating, &a, tests_are_thorough() ? 1 : 5);
    sb_llm_release(llm);
    finish(&s);
}

/* Calls of the driver: one at a time, in steps, since each attempt makes thousands. */
static void test_calls(void **unused) {
    setting s = start_device();
    sb_llm *llm = load("llama", SB_F32, false);
    attempt a = expect_generation(llm, s.device);
    assert_int_equal(try_generating(&a), SB_OK);
    int failed = 0;
    bool happened = true;
    for (int skip = 0; happened; skip += 1 + skip / (tests_are_thorough() ? 20 : 6)) {
        s.fake->plan_failure(NULL, skip, 999);
        sb_status status = try_generating(&a);
        happened = s.fake->failure_happened();
        s.fake->plan_failure(NULL, -1, 0);
        failed += status != SB_OK;
        assert_true(happened || status == SB_OK);
    }
    assert_true(failed > 20);
    sb_llm_release(llm);
    finish(&s);
}

int main(void) {
    setenv("FAKE_CUDA_GUARD", "", 1); /* none, for thousands of sessions */
    fresh_fake();
    open_fake(); /* which is kept from now on */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings), cmocka_unit_test(test_context),     cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_receipts), cmocka_unit_test(test_faults),      cmocka_unit_test(test_stale),
        cmocka_unit_test(test_calls),    cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
