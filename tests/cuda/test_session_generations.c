/* Language models on a device whose driver fails, at every call in turn: the generation, or the request, ends with an error that says
 * why; where a recording fails the steps are given one by one; what goes on has the bits that it has on the CPU; and nothing is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <samebit/llm.h>

#include "session_support.h"
#include "thorough.h"

#define ILLEGAL_ADDRESS 700 /* sticky */
#define OUT_OF_MEMORY 2
#define UNKNOWN 999

enum { REQUESTS = 3, PROMPT = 21, NEW = 5 };

typedef struct asked {
    int64_t count, tokens[PROMPT];
    sb_llm_result expected, found;
    int ended;
    sb_status status;
    sb_error error;
} asked;

typedef struct plan {
    const fake_cuda_control *fake;
    sb_graph_mode mode;
    bool sticky;
    asked asked[REQUESTS];
    int reported, recovered,
        alone; /* failures of a whole run, generations that went well behind one, requests that ended by themselves */
} plan;

static void check_says_why(const char *message) {
    if (strstr(message, "failed with CUDA_ERROR") == NULL && strstr(message, "no room for") == NULL &&
        strstr(message, "lost earlier") == NULL)
        fail_msg("this does not say what happened: %s", message);
}

static sb_llm *load(void) {
    sb_llm_options options = SB_LLM_OPTIONS_DEFAULT;
    sb_model_options model = SB_MODEL_OPTIONS_DEFAULT;
    sb_llm *llm;
    model.isa = SB_ISA_SCALAR;
    options.dtype = SB_BF16;
    options.model = &model;
    MUST(sb_llm_load(LLM_MODELS "/llama3", &options, &llm, error));
    return llm;
}

static sb_llm_generation generation_of(const asked *a) {
    sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
    generation.limit = NEW;
    generation.ignore_stops = true;
    generation.sampling.temperature = a->count % 2 == 0 ? 0 : 0.8f;
    generation.sampling.seed = 5;
    generation.context = (void *)(uintptr_t)a;
    return generation;
}

/* What they come to on the CPU. The last one's prompt begins like the first one's, so that it is forked from there. */
static void ask(plan *plan) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm *llm = load();
    options.threads = 1;
    for (int i = 0; i < REQUESTS; i++) {
        asked *a = &plan->asked[i];
        sb_llm_session *session;
        a->count = PROMPT - i;
        for (int t = 0; t < PROMPT; t++)
            a->tokens[t] = (t * 31 + (i == 1 ? 7 : 3)) % 97;
        MUST(sb_llm_session_create(llm, &options, &session, error));
        const sb_llm_generation generation = generation_of(a);
        MUST(sb_llm_generate(session, a->count, a->tokens, &generation, &a->expected, error));
        sb_llm_session_destroy(session);
    }
    sb_llm_release(llm);
}

static void check_result(const asked *a, const sb_llm_result *found) {
    assert_string_equal(found->digest, a->expected.digest);
    assert_int_equal(found->new_tokens, a->expected.new_tokens);
}

/* ---- one sequence ---- */

/* Generates, and after a failure once more from an empty sequence. */
static sb_status generate(plan *plan, sb_llm_session *session, sb_error *error) {
    const asked *a = &plan->asked[0];
    const sb_llm_generation generation = generation_of(a);
    sb_llm_result found;
    sb_status first = sb_llm_generate(session, a->count, a->tokens, &generation, &found, error);
    if (first == SB_OK) {
        check_result(a, &found);
        return SB_OK;
    }
    assert_true(plan->fake->failure_happened());
    check_says_why(error->message);
    plan->reported++;
    sb_error why = {SB_OK, ""};
    MUST(sb_llm_session_trim(session, 0, error));
    sb_status again = sb_llm_generate(session, a->count, a->tokens, &generation, &found, &why);
    if (plan->sticky) {
        assert_int_not_equal(again, SB_OK);
        assert_says(why, "lost earlier");
    } else {
        if (again != SB_OK)
            fail_msg("after \"%s\": %s", error->message, why.message);
        check_result(a, &found);
        plan->recovered++;
    }
    return first;
}

static sb_status live_alone(plan *plan, sb_llm *llm, const sb_session_options *options, sb_error *error) {
    sb_llm_session *session;
    SB_TRY(sb_llm_session_create(llm, options, &session, error));
    sb_status status = generate(plan, session, error);
    sb_llm_session_destroy(session);
    return status;
}

/* ---- a queue ---- */

static void on_end(void *context, sb_status status, const sb_error *error, const sb_llm_result *result) {
    asked *a = context;
    a->ended++;
    a->status = status;
    if (result != NULL)
        a->found = *result;
    else
        a->error = *error;
}

static sb_status run_queue(plan *plan, sb_llm_queue *queue, sb_error *error) {
    for (int i = 0; i < REQUESTS; i++) {
        asked *a = &plan->asked[i];
        sb_llm_request request = SB_LLM_REQUEST_DEFAULT;
        a->ended = 0;
        request.count = a->count;
        request.tokens = a->tokens;
        request.generation = generation_of(a);
        request.on_end = on_end;
        SB_TRY(sb_llm_queue_add(queue, &request, error));
    }
    sb_status first = sb_llm_queue_run(queue, error), last = first;
    if (first != SB_OK) {
        check_says_why(error->message);
        plan->reported++;
    }
    /* A step that failed changed nothing, and can be tried again. */
    for (int tries = 0; last != SB_OK && tries < 2; tries++) {
        sb_error why = {SB_OK, ""};
        last = sb_llm_queue_run(queue, &why);
        if (last != SB_OK)
            check_says_why(why.message);
    }
    assert_true(plan->sticky ? first == SB_OK || last != SB_OK : last == SB_OK);
    for (int i = 0; i < REQUESTS; i++) {
        const asked *a = &plan->asked[i];
        assert_true(a->ended == (a->ended > 0 || last == SB_OK));
        if (a->ended > 0 && a->status == SB_OK) {
            check_result(a, &a->found);
            plan->recovered += first != SB_OK;
        } else if (a->ended > 0) {
            check_says_why(a->error.message);
            plan->alone++;
            first = first == SB_OK ? a->status : first;
        }
    }
    return first;
}

static sb_status live_together(plan *plan, sb_llm *llm, const sb_session_options *options, sb_error *error) {
    sb_llm_batch_options how = SB_LLM_BATCH_OPTIONS_DEFAULT;
    sb_llm_queue_options queueing = SB_LLM_QUEUE_OPTIONS_DEFAULT;
    sb_llm_batch *batch;
    sb_llm_queue *queue;
    how.session = options;
    how.pages = 8;
    queueing.rows = 16;
    SB_TRY(sb_llm_batch_create(llm, &how, &batch, error));
    sb_status status = sb_llm_queue_create(batch, &queueing, &queue, error);
    sb_llm_batch_release(batch); /* the queue keeps it */
    SB_TRY(status);
    status = run_queue(plan, queue, error);
    sb_llm_queue_destroy(queue);
    return status;
}

/* ---- every call of the driver, in turn ---- */

typedef sb_status life(plan *plan, sb_llm *llm, const sb_session_options *options, sb_error *error);

static sb_status live(plan *plan, life *how) {
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device = NULL;
    sb_error error = {SB_OK, ""};
    sb_llm *llm = load();
    where.cuda_driver = FAKE_CUDA;
    sb_status status = sb_device_open(&where, 0, &device, &error);
    if (status == SB_OK) {
        sb_session_options options = options_on(device);
        options.graphs = plan->mode;
        options.require_device = true;
        status = how(plan, llm, &options, &error);
    }
    if (status != SB_OK)
        check_says_why(error.status != SB_OK ? error.message : "lost earlier");
    sb_llm_release(llm);
    sb_device_release(device);
    return status;
}

static void fresh(plan *plan) {
    plan->fake->reset();
    define_host_kernels(plan->fake);
}

/* Some hundred of the calls, from the first to the last, and all of the last ones; a third of these unless tests are thorough. */
static void check_failures(plan *plan, life *how, int result) {
    fresh(plan);
    assert_int_equal(live(plan, how), SB_OK);
    const int parts = tests_are_thorough() ? 60 : 20, last = tests_are_thorough() ? 40 : 13;
    int calls = plan->fake->calls(NULL), stride = calls / parts + 1, failed = 0;
    for (int skip = 0; skip<calls; skip += skip> calls - last ? 1 : stride) {
        fresh(plan);
        int64_t blocks = sb_allocation_count().live_blocks;
        plan->fake->plan_failure(NULL, skip, result);
        failed += live(plan, how) != SB_OK;
        plan->fake->plan_failure(NULL, -1, 0);
        check_nothing_lives(plan->fake);
        assert_int_equal(sb_allocation_count().live_blocks, blocks);
    }
    assert_true(failed > 0);
}

static const struct {
    int result;
    sb_graph_mode mode;
} kinds[] = {{OUT_OF_MEMORY, SB_GRAPHS_BUILD}, {UNKNOWN, SB_GRAPHS_CAPTURE}, {ILLEGAL_ADDRESS, SB_GRAPHS_BUILD}};

static void check_all(life *how) {
    plan plan = {.fake = fake_with_kernels()};
    open_fake(); /* which is kept from now on */
    ask(&plan);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        plan.mode = kinds[k].mode;
        plan.sticky = kinds[k].result == ILLEGAL_ADDRESS;
        plan.reported = plan.recovered = 0;
        check_failures(&plan, how, kinds[k].result);
        assert_true(plan.reported > 0);
        assert_true(plan.sticky || plan.recovered > 0);
    }
}

static void test_generations(void **unused) {
    (void)unused;
    check_all(live_alone);
}

static void test_requests(void **unused) {
    (void)unused;
    check_all(live_together);
}

/* ---- a recording that fails ---- */

/* Steps whose recording the driver refuses are given to it one by one: the same digest, and no error. */
static void test_recording(void **unused) {
    (void)unused;
    static const char *const calls[] = {"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags",
                                        "cuGraphCreate"};
    plan plan = {.fake = fake_with_kernels()};
    int happened = 0;
    open_fake();
    ask(&plan);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        for (int mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
            fresh(&plan);
            plan.mode = (sb_graph_mode)mode;
            plan.fake->plan_failure(calls[c], 0, UNKNOWN);
            assert_int_equal(live(&plan, live_alone), SB_OK);
            happened += plan.fake->failure_happened();
            plan.fake->plan_failure(NULL, -1, 0);
            check_nothing_lives(plan.fake);
        }
    }
    assert_true(happened >= 3);
}

/* ---- a kernel that fails in the middle ---- */

typedef struct breaking {
    const fake_cuda_control *fake;
    int told, at;
} breaking;

static sb_status break_device(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    breaking *b = context;
    (void)token;
    (void)stop;
    (void)error;
    if (b->told++ == b->at)
        b->fake->break_kernel(ILLEGAL_ADDRESS);
    return SB_OK;
}

static void test_fault(void **unused) {
    (void)unused;
    const fake_cuda_control *fake = fake_with_kernels();
    for (int at = 0; at < 3; at++) {
        breaking breaking = {fake, 0, at};
        sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
        const int64_t tokens[] = {1, 50, 7};
        sb_llm_session *session;
        sb_error error = {SB_OK, ""};
        fake->reset();
        define_host_kernels(fake);
        sb_llm *llm = load();
        sb_device *device = open_device();
        const sb_session_options options = options_on(device);
        generation.limit = 10;
        generation.ignore_stops = true;
        generation.on_token = break_device;
        generation.context = &breaking;
        MUST(sb_llm_session_create(llm, &options, &session, error));
        assert_int_equal(sb_llm_generate(session, 3, tokens, &generation, NULL, &error), SB_ERROR_DEVICE);
        assert_says(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
        /* A step that was on its way when it broke may have gone well. */
        assert_in_range(breaking.told, at + 1, at + 2);
        MUST(sb_llm_session_trim(session, 0, error));
        assert_int_equal(sb_llm_generate(session, 3, tokens, &generation, NULL, &error), SB_ERROR_DEVICE);
        assert_says(error, "lost earlier");
        sb_llm_session_destroy(session);
        sb_llm_release(llm);
        sb_device_release(device);
        check_nothing_lives(fake);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_generations), cmocka_unit_test(test_requests),
                                       cmocka_unit_test(test_recording), cmocka_unit_test(test_fault)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
