/* Queues of requests on a device, where steps choose tokens themselves and one is on its way between two calls: tokens, log-probabilities,
 * digests, receipts and ends are what the CPU has for each alone, whatever is chosen by, whoever runs beside, wherever a text ends while a step
 * is on its way, whatever the caller does to the batch between two steps, and whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "llm/llm.h"
#include "llm/receipt.h"
#include "session_support.h"
#include "support/failing.h"
#include "thorough.h"

enum { VOCABULARY = 97, CONTEXT = 64, LONGEST = 40, MOST_TOKENS = 120, REQUESTS = 14 };

static sb_llm *load(const char *name, sb_dtype dtype) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    char path[512];
    sb_llm *llm;
    options.dtype = dtype;
    options.context = CONTEXT;
    options.receipts = true;
    snprintf(path, sizeof path, "%s/%s", LLM_MODELS, name);
    MUST(sb_llm_load(path, &options, &llm, error));
    return llm;
}

/* ---- requests, and what is heard of them ---- */

typedef struct heard {
    int64_t count, tokens[MOST_TOKENS];
    uint32_t logps[MOST_TOKENS];
    int64_t with_logits;
    int ended;
    sb_status status;
    sb_error error;
    sb_llm_result result;
    sb_llm_receipt *receipt;
} heard;

typedef struct asked {
    int64_t count, tokens[LONGEST];
    sb_llm_generation about;
    int64_t stop_after, fail_after; /* 0: never */
    heard alone, now, *to;
} asked;

static sb_status hear(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    asked *a = context;
    heard *h = a->to;
    assert_true(h->count < MOST_TOKENS);
    h->tokens[h->count] = token->token;
    h->with_logits += token->logits != NULL && !token->given;
    memcpy(&h->logps[h->count++], &token->logp, sizeof token->logp);
    *stop = h->count == a->stop_after;
    return h->count == a->fail_after ? sb_fail(error, SB_ERROR_IO, "the caller's own reason") : SB_OK;
}

static void hear_end(void *context, sb_status status, const sb_error *why, const sb_llm_result *result) {
    asked *a = context;
    a->to->ended++;
    a->to->status = status;
    if (result != NULL)
        a->to->result = *result;
    else
        a->to->error = *why;
}

static void listen(asked *a, heard *to) {
    *to = (heard){0};
    a->to = to;
    a->about.context = a;
    a->about.on_token = hear;
    a->about.receipt = &to->receipt;
}

static void run_alone(sb_llm *llm, asked *a) {
    sb_session_options options = options_on(NULL);
    sb_llm_session *session;
    listen(a, &a->alone);
    MUST(sb_llm_session_create(llm, &options, &session, error));
    a->alone.status = sb_llm_generate(session, a->count, a->tokens, &a->about, &a->alone.result, &a->alone.error);
    sb_llm_session_destroy(session);
}

static void settle(random_source *random, asked *a, bool plain) {
    static const float temperatures[] = {0, 0.3f, 1, 4}, top_ps[] = {1, 1, 0.9f, 0.3f}, min_ps[] = {0, 0, 0.1f, 1};
    sb_llm_generation *about = &a->about;
    about->sampling.temperature = temperatures[random_between(random, 0, 3)];
    about->sampling.top_k = random_between(random, 0, 2) > 0 ? 0 : random_between(random, 1, 40);
    about->sampling.top_p = top_ps[random_between(random, 0, 3)];
    about->sampling.min_p = min_ps[random_between(random, 0, 3)];
    about->sampling.seed = random_bits(random);
    about->sampling.request = (uint32_t)random_between(random, 0, 5);
    about->limit = random_between(random, 0, 5) == 0 ? random_between(random, 0, 2) : random_between(random, 1, 12);
    about->limit = random_between(random, 0, 9) == 0 ? CONTEXT : about->limit;
    about->chunk = random_between(random, 0, 2) == 0 ? random_between(random, 1, 20) : 0;
    about->ignore_stops = random_between(random, 0, 1) == 0;
    about->no_digest = about->no_logits = true;
    if (plain)
        return;
    about->no_digest = random_between(random, 0, 3) > 0;
    about->no_logits = random_between(random, 0, 3) > 0;
    about->no_logps = random_between(random, 0, 3) == 0;
    about->score_prompt = random_between(random, 0, 5) == 0;
    about->sampling.repetition_penalty = random_between(random, 0, 5) == 0 ? 1.5f : 1;
    a->stop_after = random_between(random, 0, 3) == 0 ? random_between(random, 1, 9) : 0;
    a->fail_after = random_between(random, 0, 7) == 0 ? random_between(random, 1, 9) : 0;
}

/* Some of whose prompts begin like another's. */
static void ask(sb_llm *llm, random_source *random, int count, asked *all, bool plain) {
    for (int i = 0; i < count; i++) {
        asked *a = &all[i];
        const asked *like = i > 0 && random_between(random, 0, 1) == 0 ? &all[random_between(random, 0, i - 1)] : NULL;
        *a = (asked){.about = SB_LLM_GENERATION_DEFAULT, .count = random_between(random, 1, LONGEST)};
        for (int64_t t = 0; t < a->count; t++)
            a->tokens[t] =
                like != NULL && t < like->count && t < 30 ? like->tokens[t] : random_between(random, 0, VOCABULARY - 1);
        settle(random, a, plain);
        run_alone(llm, a);
    }
}

static void check_receipts(const asked *a, const char *what) {
    char *alone, *now;
    assert_int_equal(a->alone.receipt != NULL, a->now.receipt != NULL);
    if (a->alone.receipt == NULL)
        return;
    MUST(sb_receipt_text(a->alone.receipt, &alone, error));
    MUST(sb_receipt_text(a->now.receipt, &now, error));
    if (strcmp(alone, now) != 0)
        fail_msg("%s: another receipt than alone", what);
    free(alone);
    free(now);
}

static void check(const asked *a, const char *what) {
    const heard *alone = &a->alone, *now = &a->now;
    if (now->ended != 1 || now->status != alone->status)
        fail_msg("%s: ended %d times, with '%s', alone with '%s'", what, now->ended, now->error.message,
                 alone->error.message);
    assert_string_equal(now->error.message, alone->error.message);
    assert_int_equal(now->count, alone->count);
    assert_memory_equal(now->tokens, alone->tokens, sizeof alone->tokens);
    assert_memory_equal(now->logps, alone->logps, sizeof alone->logps);
    check_receipts(a, what);
    if (alone->status != SB_OK)
        return;
    assert_int_equal(now->result.end, alone->result.end);
    assert_int_equal(now->result.new_tokens, alone->result.new_tokens);
    assert_string_equal(now->result.digest, alone->result.digest);
}

static void forget(heard *h) {
    sb_llm_receipt_release(h->receipt);
    h->receipt = NULL;
}

/* ---- queues ---- */

typedef struct way {
    int queue_depth;
    int64_t pages;
    sb_llm_queue_options how;
    bool meddles; /* the caller has a sequence of its own, and runs it between steps */
} way;

static sb_status make_queue(sb_llm *llm, sb_device *device, const way *way, sb_llm_batch **batch, sb_llm_queue **queue,
                            sb_error *error) {
    sb_session_options session = options_on(device);
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    session.require_device = true;
    session.queue_depth = way->queue_depth;
    options.session = &session;
    options.pages = way->pages;
    SB_TRY(sb_llm_batch_create(llm, &options, batch, error));
    sb_status status = sb_llm_queue_create(*batch, &way->how, queue, error);
    if (status != SB_OK)
        sb_llm_batch_release(*batch);
    return status;
}

static sb_status add(sb_llm_queue *queue, asked *a, sb_error *error) {
    sb_llm_request request = SB_LLM_REQUEST_DEFAULT;
    listen(a, &a->now);
    request.count = a->count;
    request.tokens = a->tokens;
    request.generation = a->about;
    request.on_end = hear_end;
    return sb_llm_queue_add(queue, &request, error);
}

/* A step of the caller's sequence. */
static void meddle(sb_llm_sequence *own) {
    const int64_t token = 5, row = 0;
    const sb_llm_step_part part = {own, 1, &token, 1, &row};
    sb_tensor *logits;
    if (sb_llm_sequence_length(own) == 16) /* it keeps its one page */
        MUST(sb_llm_sequence_trim(own, 1, error));
    MUST(sb_llm_batch_step(own->batch, 1, &part, &logits, error));
    sb_tensor_release(logits);
}

static void run_all(sb_llm *llm, sb_device *device, int count, asked *all, bool plain, const way *way) {
    sb_llm_batch *batch;
    sb_llm_queue *queue;
    sb_llm_sequence *own;
    MUST(make_queue(llm, device, way, &batch, &queue, error));
    MUST(sb_llm_sequence_create(batch, &own, error));
    if (way->meddles)
        meddle(own);
    int added = 0, most = 0;
    for (bool more = true; more || added < count;) {
        for (int n = added == 0 ? count / 2 : 1; n > 0 && added < count; n--)
            MUST(add(queue, &all[added++], error));
        MUST(sb_llm_queue_step(queue, &more, error));
        most = batch->flight_count > most ? batch->flight_count : most;
        for (int i = 0; way->meddles && i < 3; i++)
            meddle(own);
    }
    /* One step is on its way between two calls, where there is room for two, and the host chooses for nobody. */
    assert_true(most == (way->queue_depth > 1) || (!plain && most == 0));
    assert_int_equal(batch->flight_count, 0);
    for (int i = 0; i < count; i++) {
        char what[64];
        snprintf(what, sizeof what, "request %d, depth %d, %d pages", i, way->queue_depth, (int)way->pages);
        check(&all[i], what);
        forget(&all[i].now);
    }
    sb_llm_queue_destroy(queue);
    sb_llm_sequence_release(own);
    sb_llm_batch_release(batch);
}

static const way ways[] = {
    {2, 60, {sizeof(sb_llm_queue_options), 16, 512, false}, false},
    {4, 9, {sizeof(sb_llm_queue_options), 64, 20, false}, true},
    {1, 20, {sizeof(sb_llm_queue_options), 3, 5, false}, true},
    {2, 60, {sizeof(sb_llm_queue_options), 5, 11, true}, true},
};

/* In all ways, or from the one of this number on in some. */
static void check_model(const char *name, sb_dtype dtype, int first, bool plain) {
    const int count = sizeof ways / sizeof *ways, apart = ways_apart(count);
    static asked all[REQUESTS];
    setting s = start_device();
    random_source random = {3 + (uint64_t)first};
    sb_llm *llm = load(name, dtype);
    ask(llm, &random, REQUESTS, all, plain);
    for (int i = first % apart; i < count; i += apart)
        run_all(llm, s.device, REQUESTS, all, plain, &ways[i]);
    for (int i = 0; i < REQUESTS; i++)
        forget(&all[i].alone);
    sb_llm_release(llm);
    finish(&s);
}

static void test_requests(void **unused) {
    check_model("llama", SB_BF16, 0, false);
    check_model("gemma2", SB_F32, 1, false);
    check_model("llama", SB_F16, 2, true);
}

/* Where nobody asks for logits or digests, none come to the host, with receipts and log-probabilities. */
static void test_logits(void **unused) {
    for (int kind = 0; kind < 4; kind++) { /* plain, a digest, logits, a penalty: the host has them but for the first */
        static asked all[3];
        setting s = start_device();
        random_source random = {8};
        sb_device_counters before, after;
        sb_llm_batch *batch;
        sb_llm_queue *queue;
        sb_llm *llm = load("llama", SB_BF16);
        ask(llm, &random, 3, all, true);
        MUST(make_queue(llm, s.device, &ways[0], &batch, &queue, error));
        for (int i = 0; i < 3; i++) {
            all[i].about.limit = 8;
            all[i].about.ignore_stops = true;
            all[i].about.no_digest = kind != 1;
            all[i].about.no_logits = kind != 2;
            all[i].about.sampling.repetition_penalty = kind == 3 ? 1.5f : 1;
            forget(&all[i].alone);
            MUST(add(queue, &all[i], error));
        }
        sb_device_count(s.device, &before);
        MUST(sb_llm_queue_run(queue, error));
        sb_device_count(s.device, &after);
        int64_t rows = 3 * 8, bytes = after.bytes_to_host - before.bytes_to_host;
        for (int i = 0; i < 3; i++) {
            assert_int_equal(all[i].now.count, 8);
            assert_int_equal(all[i].now.with_logits, kind == 0 ? 0 : 8);
            forget(&all[i].now);
        }
        assert_int_equal(bytes >= rows * VOCABULARY * 4, kind != 0);
        sb_llm_queue_destroy(queue);
        sb_llm_batch_release(batch);
        sb_llm_release(llm);
        finish(&s);
    }
}

/* ---- weights that are replaced while a step is on its way ---- */

/* What that step has chosen is heard of, those that run end with an error that says why at each step, and the queue can go. */
static void test_replaced(void **unused) {
    static asked a;
    setting s = start_device();
    random_source random = {8};
    sb_llm_batch *batch;
    sb_llm_queue *queue;
    bool more;
    sb_error error = {SB_OK, ""};
    sb_llm *llm = load("llama", SB_BF16);
    ask(llm, &random, 1, &a, true);
    a.about.limit = 9;
    a.about.ignore_stops = true;
    forget(&a.alone);
    run_alone(llm, &a);
    MUST(make_queue(llm, s.device, &ways[0], &batch, &queue, error));
    MUST(add(queue, &a, error));
    while (a.now.count < 2)
        MUST(sb_llm_queue_step(queue, &more, error));
    assert_int_equal(batch->flight_count, 1);
    MUST(sb_llm_replace_weights(llm, 0, NULL, error));
    sb_llm_sequence *own;
    MUST(sb_llm_sequence_create(batch, &own, error));
    meddle(own); /* with the new session: the step has landed */
    assert_int_equal(batch->flight_count, 0);
    assert_int_equal(sb_llm_queue_step(queue, &more, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "of weights that were replaced");
    assert_int_equal(a.now.count, 3);
    assert_memory_equal(a.now.tokens, a.alone.tokens, 3 * sizeof *a.now.tokens);
    assert_memory_equal(a.now.logps, a.alone.logps, 3 * sizeof *a.now.logps);
    sb_llm_sequence_release(own);
    sb_llm_queue_destroy(queue);
    sb_llm_batch_release(batch);
    forget(&a.alone);
    sb_llm_release(llm);
    finish(&s);
}

/* ---- what fails ---- */

enum { TRIED = 2 };

typedef struct attempt {
    sb_llm *llm;
    sb_device *device;
    asked all[TRIED];
} attempt;

/* What has been told is right, whatever fails; a step that failed can be tried again, and then all come to what they come to. */
static sb_status try_queue(void *context, bool again) {
    attempt *a = context;
    sb_llm_batch *batch;
    sb_llm_queue *queue;
    sb_error error;
    SB_TRY(make_queue(a->llm, a->device, &ways[0], &batch, &queue, &error));
    sb_status status = SB_OK;
    for (int i = 0; i < TRIED; i++)
        a->all[i].now = (heard){0};
    for (int i = 0; i < TRIED && status == SB_OK; i++)
        status = add(queue, &a->all[i], &error);
    bool is_added = status == SB_OK;
    if (is_added)
        status = sb_llm_queue_run(queue, &error);
    for (int tries = 0; again && is_added && status != SB_OK && tries < 2; tries++) {
        sb_status next = sb_llm_queue_run(queue, &error);
        is_added = next != SB_OK;
    }
    assert_true(!again || status == SB_OK || !is_added);
    for (int i = 0; i < TRIED; i++) {
        asked *each = &a->all[i];
        assert_true(each->now.count <= each->alone.count);
        assert_memory_equal(each->now.tokens, each->alone.tokens, (size_t)each->now.count * sizeof *each->now.tokens);
        assert_memory_equal(each->now.logps, each->alone.logps, (size_t)each->now.count * sizeof *each->now.logps);
        if (each->now.ended > 0 && each->now.status == SB_OK)
            check(each, "behind a failure");
        status = status == SB_OK && each->now.ended > 0 ? each->now.status : status;
        forget(&each->now);
    }
    sb_llm_queue_destroy(queue);
    sb_llm_batch_release(batch);
    return status;
}

static sb_status try_once(void *context) {
    return try_queue(context, false);
}

static void prepare(attempt *a, setting *s) {
    random_source random = {11};
    *s = start_device();
    a->llm = load("llama", SB_BF16);
    a->device = s->device;
    ask(a->llm, &random, TRIED, a->all, true);
    for (int i = 0; i < TRIED; i++) {
        a->all[i].about.limit = 2 + i;
        a->all[i].count = a->all[i].count < 4 ? a->all[i].count : 4;
        a->all[i].about.ignore_stops = true;
        forget(&a->all[i].alone);
        run_alone(a->llm, &a->all[i]);
    }
    assert_int_equal(try_once(a), SB_OK); /* what the model keeps for the device is there */
}

static void end_attempts(attempt *a, setting *s) {
    for (int i = 0; i < TRIED; i++)
        forget(&a->all[i].alone);
    sb_llm_release(a->llm);
    finish(s);
}

static void test_allocations(void **unused) {
    static attempt a;
    setting s;
    prepare(&a, &s);
    check_some_failing_allocations(try_once, &a, tests_are_thorough() ? 1 : 25);
    end_attempts(&a, &s);
}

/* Calls of the driver, in steps, since each attempt makes thousands. */
static void test_calls(void **unused) {
    static attempt a;
    setting s;
    prepare(&a, &s);
    int failed = 0;
    bool happened = true;
    for (int skip = 0; happened; skip += 1 + skip / (tests_are_thorough() ? 12 : 3)) {
        s.fake->plan_failure(NULL, skip, 999);
        sb_status status = try_queue(&a, true);
        happened = s.fake->failure_happened();
        s.fake->plan_failure(NULL, -1, 0);
        failed += status != SB_OK;
        assert_true(happened || status == SB_OK);
    }
    assert_true(failed > 10);
    end_attempts(&a, &s);
}

int main(void) {
    setenv("FAKE_CUDA_GUARD", "", 1); /* none, for thousands of sessions */
    fresh_fake();
    open_fake(); /* which is kept from now on */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests), cmocka_unit_test(test_logits),      cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_calls),    cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
