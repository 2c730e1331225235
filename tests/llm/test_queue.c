/* Many requests at once: each comes to what sb_llm_generate makes of it alone, digests of all its logits and receipts included,
 * however many run beside it, in whatever pieces, on few pages, and on the pages of another prompt that begins like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "llm/llm.h"
#include "llm/receipt.h"

#include "support/failing.h"
#include "support/must.h"
#include "tiny_models.h"

enum { VOCABULARY = 97, LONGEST = 120, REQUESTS = 40, CONTEXT = 160 };

static uint64_t state = 7;
static int64_t draw(int64_t below) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int64_t)((state >> 33) % (uint64_t)below);
}

static sb_llm *load(const char *name, sb_dtype dtype, bool receipts) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    char path[256];
    sb_llm *llm;
    options.dtype = dtype;
    options.context = CONTEXT;
    options.receipts = receipts;
    snprintf(path, sizeof path, "%s%s", name[0] == '/' ? "" : "models/", name);
    MUST(sb_llm_load(path, &options, &llm, error));
    return llm;
}

static sb_llm_queue *queue_of(sb_llm *llm, int threads, int64_t pages, const sb_llm_queue_options *how) {
    sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    sb_llm_batch *batch;
    sb_llm_queue *queue;
    session.threads = threads;
    options.session = &session;
    options.pages = pages;
    MUST(sb_llm_batch_create(llm, &options, &batch, error));
    MUST(sb_llm_queue_create(batch, how, &queue, error));
    sb_llm_batch_release(batch); /* the queue keeps it */
    return queue;
}

/* ---- requests, and what they come to alone ---- */

typedef struct asked {
    int64_t tokens[LONGEST];
    sb_llm_request request;
    sb_llm_result alone, found;
    sb_llm_receipt *alone_receipt, *receipt;
    int64_t told, stop_after; /* on_token ends it well behind so many; 0: never */
    int64_t fail_after;       /* … or with a failure */
    int ended;
    sb_status status;
    sb_error error;
} asked;

static sb_status on_token(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    asked *a = context;
    (void)token;
    a->told++;
    *stop = a->told == a->stop_after;
    return a->told == a->fail_after ? sb_fail(error, SB_ERROR_IO, "the caller's own reason") : SB_OK;
}

static void on_end(void *context, sb_status status, const sb_error *error, const sb_llm_result *result) {
    asked *a = context;
    a->ended++;
    a->status = status;
    assert_true((result != NULL) == (status == SB_OK));
    if (result != NULL)
        a->found = *result;
    else
        a->error = *error;
}

static void run_alone(sb_llm *llm, asked *a) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_session *session;
    options.threads = 1;
    a->told = 0;
    a->request.generation.receipt = llm->receipts ? &a->alone_receipt : NULL;
    MUST(sb_llm_session_create(llm, &options, &session, error));
    MUST(sb_llm_generate(session, a->request.count, a->tokens, &a->request.generation, &a->alone, error));
    sb_llm_session_destroy(session);
    a->request.generation.receipt = llm->receipts ? &a->receipt : NULL;
}

/* Random requests of every kind, some of whose prompts begin like another's. */
static void make_requests(sb_llm *llm, int count, asked *all) {
    for (int i = 0; i < count; i++) {
        asked *a = &all[i];
        const asked *like = i > 0 && draw(2) == 0 ? &all[draw(i)] : NULL;
        *a = (asked){.request = SB_LLM_REQUEST_DEFAULT};
        a->request.count = 1 + draw(LONGEST);
        a->request.tokens = a->tokens;
        a->request.on_end = on_end;
        for (int64_t t = 0; t < a->request.count; t++)
            a->tokens[t] = like != NULL && t < like->request.count && t < 90 ? like->tokens[t] : draw(VOCABULARY);
        sb_llm_generation *generation = &a->request.generation;
        generation->on_token = on_token;
        generation->context = a;
        generation->limit = draw(4) == 0 ? draw(3) : draw(60);
        generation->chunk = draw(3) == 0 ? 1 + draw(30) : 0;
        generation->ignore_stops = draw(2) == 0;
        generation->score_prompt = draw(5) == 0;
        generation->sampling.temperature = draw(3) == 0 ? 0 : 1.5f;
        generation->sampling.seed = (uint64_t)draw(1000);
        generation->sampling.request = (uint32_t)draw(5);
        a->stop_after = draw(4) == 0 ? 1 + draw(20) : 0;
        run_alone(llm, a);
    }
}

static void check_receipt(asked *a, const char *what, int i) {
    char *alone, *found;
    if (a->alone_receipt == NULL)
        return;
    MUST(sb_receipt_text(a->alone_receipt, &alone, error));
    MUST(sb_receipt_text(a->receipt, &found, error));
    if (strcmp(alone, found) != 0)
        fail_msg("%s: request %d has another receipt than alone", what, i);
    free(alone);
    free(found);
    sb_llm_receipt_release(a->receipt);
    a->receipt = NULL;
}

static void check(const asked *a, const char *what, int i) {
    if (a->ended != 1 || a->status != SB_OK)
        fail_msg("%s: request %d ended %d times, with '%s'", what, i, a->ended, a->error.message);
    if (strcmp(a->alone.digest, a->found.digest) != 0)
        fail_msg("%s: request %d, of %lld tokens and %lld new ones, has other logits or tokens than alone", what, i,
                 (long long)a->request.count, (long long)a->alone.new_tokens);
    assert_int_equal(a->found.new_tokens, a->alone.new_tokens);
    assert_int_equal(a->found.prompt_tokens, a->alone.prompt_tokens);
    assert_int_equal(a->found.end, a->alone.end);
}

/* All in one queue; some join only when it has begun. */
static void run_all(sb_llm *llm, int count, asked *all, int threads, int64_t pages, const sb_llm_queue_options *how) {
    sb_llm_queue *queue = queue_of(llm, threads, pages, how);
    char what[128];
    snprintf(what, sizeof what, "%lld in parallel, %lld rows, %lld pages, %d threads, sharing %d",
             (long long)how->parallel, (long long)how->rows, (long long)pages, threads, !how->no_sharing);
    int added = 0;
    for (bool more = true; more || added < count;) {
        for (int n = added == 0 ? count / 2 : (int)draw(3); n > 0 && added < count; n--) {
            all[added].told = all[added].ended = 0;
            MUST(sb_llm_queue_add(queue, &all[added++].request, error));
        }
        MUST(sb_llm_queue_step(queue, &more, error));
    }
    for (int i = 0; i < count; i++) {
        check(&all[i], what, i);
        check_receipt(&all[i], what, i);
    }
    sb_llm_queue_counters counters = sb_llm_queue_count(queue);
    assert_int_equal(counters.waiting + counters.running, 0);
    assert_true(counters.steps > 0 && counters.rows >= counters.steps);
    assert_true(how->no_sharing ? counters.shared == 0 : counters.shared > 0);
    sb_llm_queue_destroy(queue);
}

static void check_model(const char *name, sb_dtype dtype, bool receipts) {
    static asked all[REQUESTS];
    static const struct {
        int threads;
        int64_t pages;
        sb_llm_queue_options how;
    } ways[] = {
        {1, 200, {sizeof(sb_llm_queue_options), 16, 512, false}},
        {2, 11, {sizeof(sb_llm_queue_options), 64, 70, false}},
        {1, 30, {sizeof(sb_llm_queue_options), 3, 5, false}},
        {1, 400, {sizeof(sb_llm_queue_options), 64, 1, true}},
        {1, 60, {sizeof(sb_llm_queue_options), 1, 0, false}},
    };
    sb_llm *llm = load(name, dtype, receipts);
    make_requests(llm, REQUESTS, all);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        run_all(llm, REQUESTS, all, ways[i].threads, ways[i].pages, &ways[i].how);
    for (int i = 0; i < REQUESTS; i++)
        sb_llm_receipt_release(all[i].alone_receipt);
    sb_llm_release(llm);
}

static void test_requests(void **unused) {
    (void)unused;
    check_model("llama", SB_BF16, true);
    check_model("gemma3", SB_F32, false);
    check_model("phi3", SB_F16, false);
}

/* So many logits in a step that threads share their digests out, and scored prompts. */
static void test_threads(void **unused) {
    (void)unused;
    enum { COUNT = 20 };
    static asked all[COUNT];
    const sb_llm_queue_options how[] = {{sizeof *how, 16, 0, false}, {sizeof *how, COUNT, 40, true}};
    sb_llm *llm = load(LARGE_MODEL, SB_F32, true);
    assert_true(16 * sb_llm_describe(llm)->vocabulary > 1 << 14);
    make_requests(llm, COUNT, all);
    for (int i = 0; i < 2; i++)
        run_all(llm, COUNT, all, 3, 300, &how[i]);
    for (int i = 0; i < COUNT; i++)
        sb_llm_receipt_release(all[i].alone_receipt);
    sb_llm_release(llm);
}

/* ---- samples of a prompt ---- */

static void test_samples(void **unused) {
    (void)unused;
    enum { SAMPLES = 5, PROMPT = 45 };
    static asked all[SAMPLES];
    const sb_llm_queue_options how = {sizeof how, 8, 20, false};
    sb_llm *llm = load("llama", SB_BF16, false);
    sb_llm_queue *queue = queue_of(llm, 1, 60, &how);
    for (int i = 0; i < SAMPLES; i++) {
        all[i] = (asked){.request = SB_LLM_REQUEST_DEFAULT};
        all[i].request.count = PROMPT;
        all[i].request.tokens = all[i].tokens;
        all[i].request.on_end = on_end;
        all[i].request.generation.context = &all[i];
        all[i].request.generation.limit = 20;
        all[i].request.generation.ignore_stops = true;
        all[i].request.generation.sampling.temperature = 2;
        all[i].request.generation.sampling.request = (uint32_t)i;
        for (int t = 0; t < PROMPT; t++)
            all[i].tokens[t] = (t * 31 + 5) % VOCABULARY;
        run_alone(llm, &all[i]);
        MUST(sb_llm_queue_add(queue, &all[i].request, error));
    }
    MUST(sb_llm_queue_run(queue, error));
    for (int i = 0; i < SAMPLES; i++) {
        check(&all[i], "samples", i);
        for (int other = 0; other < i; other++)
            assert_string_not_equal(all[i].found.digest, all[other].found.digest);
    }
    /* The prompt was run once, and its last token by each. */
    sb_llm_queue_counters counters = sb_llm_queue_count(queue);
    assert_int_equal(counters.shared, (SAMPLES - 1) * (PROMPT - 1));
    assert_int_equal(counters.rows, PROMPT + (SAMPLES - 1) + SAMPLES * 19);
    sb_llm_queue_destroy(queue);
    sb_llm_release(llm);
}

/* ---- what ends one alone ---- */

static void ask(asked *a, int64_t count, int64_t limit, int64_t salt) {
    *a = (asked){.request = SB_LLM_REQUEST_DEFAULT};
    a->request.count = count;
    a->request.tokens = a->tokens;
    a->request.on_end = on_end;
    a->request.generation.context = a;
    a->request.generation.on_token = on_token;
    a->request.generation.limit = limit;
    a->request.generation.ignore_stops = true;
    for (int64_t t = 0; t < count; t++)
        a->tokens[t] = (t * t + salt) % VOCABULARY;
}

static void test_failures(void **unused) {
    (void)unused;
    static asked good, bad, follower, large;
    sb_llm *llm = load("llama", SB_F32, false);
    sb_llm_queue *queue = queue_of(llm, 1, 9, NULL);
    sb_llm_sequence *outside;
    sb_error error = {0};
    ask(&good, 20, 20, 3);
    ask(&bad, 30, 20, 4);
    ask(&follower, 33, 5, 4); /* begins like the bad one */
    ask(&large, 100, 60, 5);
    run_alone(llm, &good);
    run_alone(llm, &follower);
    bad.fail_after = 4;
    MUST(sb_llm_queue_add(queue, &good.request, error));
    MUST(sb_llm_queue_add(queue, &bad.request, error));
    MUST(sb_llm_queue_add(queue, &follower.request, error));
    good.told = follower.told = 0;
    assert_int_equal(sb_llm_queue_add(queue, &large.request, &error), SB_ERROR_LIMIT);
    ASSERT_SAYS(error, "a prompt of 100 tokens and 60 new ones need 10 pages of 16 positions, and there are 9");
    large.request.generation.limit = 40;
    MUST(sb_llm_queue_run(queue, error));
    check(&good, "beside a failure", 0);
    check(&follower, "behind a failure", 2);
    assert_int_equal(bad.ended, 1);
    assert_int_equal(bad.status, SB_ERROR_IO);
    ASSERT_SAYS(bad.error, "the caller's own reason");
    assert_true(sb_llm_queue_count(queue).shared > 0);
    queue = (sb_llm_queue_destroy(queue), queue_of(llm, 1, 9, NULL));
    /* Pages that the caller has. */
    sb_llm_batch *batch;
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    options.pages = 9;
    MUST(sb_llm_batch_create(llm, &options, &batch, error));
    sb_llm_queue_destroy(queue);
    MUST(sb_llm_queue_create(batch, NULL, &queue, error));
    MUST(sb_llm_sequence_create(batch, &outside, error));
    MUST(sb_llm_sequence_reserve(outside, 16, error));
    run_alone(llm, &large);
    large.told = good.told = good.ended = 0;
    MUST(sb_llm_queue_add(queue, &large.request, error));
    MUST(sb_llm_queue_add(queue, &good.request, error));
    MUST(sb_llm_queue_run(queue, error));
    assert_int_equal(large.ended, 1);
    assert_int_equal(large.status, SB_ERROR_LIMIT);
    ASSERT_SAYS(large.error, "9 pages are needed, and sequences outside of the queue leave 8 of 9");
    check(&good, "behind one that was too large", 0);
    sb_llm_sequence_release(outside);
    large.ended = 0;
    MUST(sb_llm_queue_add(queue, &large.request, error));
    MUST(sb_llm_queue_run(queue, error));
    check(&large, "with all pages", 0);
    sb_llm_queue_destroy(queue);
    sb_llm_batch_release(batch);
    sb_llm_release(llm);
}

static void test_refused(void **unused) {
    (void)unused;
    static asked a;
    sb_llm *llm = load("llama", SB_F32, false);
    sb_llm_queue *queue = queue_of(llm, 1, 9, NULL);
    sb_llm_receipt *receipt;
    sb_error error = {0};
    ask(&a, 0, 1, 0);
    assert_int_equal(sb_llm_queue_add(queue, &a.request, &error), SB_ERROR_INVALID_ARGUMENT);
    ask(&a, 3, 1, 0);
    a.tokens[1] = VOCABULARY;
    assert_int_equal(sb_llm_queue_add(queue, &a.request, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "token 1 of 3 is 97; the model has 97");
    ask(&a, 3, -1, 0);
    assert_int_equal(sb_llm_queue_add(queue, &a.request, &error), SB_ERROR_INVALID_ARGUMENT);
    ask(&a, 3, 1, 0);
    a.request.generation.receipt = &receipt;
    assert_int_equal(sb_llm_queue_add(queue, &a.request, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "sb_llm_options.receipts");
    ask(&a, LONGEST, 1, 0);
    a.request.count = CONTEXT + 1;
    static int64_t many[CONTEXT + 1];
    a.request.tokens = many;
    assert_int_equal(sb_llm_queue_add(queue, &a.request, &error), SB_ERROR_LIMIT);
    ASSERT_SAYS(error, "a prompt of 161 tokens is more than the context of 160");
    assert_int_equal(sb_llm_queue_count(queue).waiting, 0);
    MUST(sb_llm_queue_run(queue, error)); /* of nothing */
    sb_llm_queue_destroy(queue);
    sb_llm_release(llm);
}

/* ---- memory ---- */

static sb_status run_three(sb_llm_queue *queue, asked *all) {
    for (int i = 0; i < 3; i++) {
        all[i].ended = 0;
        SB_TRY(sb_llm_queue_add(queue, &all[i].request, NULL));
    }
    return sb_llm_queue_run(queue, NULL);
}

/* A request that memory runs out for ends by itself; a run that it runs out for can be tried again. */
static sb_status attempt(void *context) {
    static asked all[3];
    sb_session_options session = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_batch_options options = SB_LLM_BATCH_OPTIONS_DEFAULT;
    sb_llm_batch *batch;
    sb_llm_queue *queue;
    session.threads = 1;
    options.session = &session;
    options.pages = 9;
    for (int i = 0; i < 3; i++)
        ask(&all[i], 20 + i, 2, 1);
    SB_TRY(sb_llm_batch_create(context, &options, &batch, NULL));
    sb_status status = sb_llm_queue_create(batch, NULL, &queue, NULL);
    sb_llm_batch_release(batch);
    SB_TRY(status);
    status = run_three(queue, all);
    for (int i = 0; i < 3 && status == SB_OK; i++) {
        assert_int_equal(all[i].ended, 1);
        status = all[i].status;
    }
    sb_llm_queue_destroy(queue);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    sb_llm *llm = load("llama3", SB_F32, false);
    assert_int_equal(attempt(llm), SB_OK); /* what the model keeps for all is there */
    check_failing_allocations(attempt, llm);
    sb_llm_release(llm);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests), cmocka_unit_test(test_threads), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_refused), cmocka_unit_test(test_memory),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
