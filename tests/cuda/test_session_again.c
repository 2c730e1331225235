/* Runs that do what one before them did: what the driver is asked for, bits with runs in flight and plans in turn, faults that
 * recordings leave by themselves, and what fails on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "session_support.h"
#include "state/decoder.h"

#include "runtime/replay.h"
#include "runtime/runner_internal.h"
#include "runtime/session_internal.h"

#define UNKNOWN 999
#define WARM 12 /* each order of blocks of outputs on the device has been recorded */

/* A decoder with its cache on the device, beside one by hand. */
typedef struct decoding {
    setting s;
    sb_state *state;
    sb_session *session;
    decoder_by_hand hand;
    random_source source;
    int first, count; /* runs in flight: a ring */
    uint64_t runs[QUEUED];
    sb_tensor *expected[QUEUED];
} decoding;

static decoding begin(const char *file, sb_graph_mode mode, bool device_outputs) {
    decoding d = {.s = start_device(), .source = {7}};
    d.s.model = load_decoder(file);
    d.state = decoder_state(d.s.model, d.s.device, DECODER_POSITIONS, 0);
    sb_session_options options = options_on(d.s.device);
    options.state = d.state;
    options.graphs = mode;
    options.device_outputs = device_outputs;
    options.queue_depth = QUEUED;
    d.session = session_with(d.s.model, &options);
    begin_by_hand(&d.hand, d.s.model);
    return d;
}

static void end(decoding *d) {
    end_by_hand(&d->hand);
    sb_session_destroy(d->session);
    sb_state_release(d->state);
    finish(&d->s);
}

static sb_status try_depart(const decoding *d, sb_tensor *ids, uint64_t *run, sb_error *error) {
    sb_value inputs[DECODER_OUTPUTS] = {sb_value_of_tensor(ids)};
    return sb_session_enqueue(d->session, inputs, run, error);
}

static void depart(decoding *d, int64_t tokens) {
    sb_tensor *ids = decoder_ids(&d->source, tokens);
    int place = (d->first + d->count++) % QUEUED;
    MUST(try_depart(d, ids, &d->runs[place], error));
    d->expected[place] = step_by_hand(&d->hand, ids);
    sb_tensor_release(ids);
}

static void check_logits(const decoding *d, uint64_t run, sb_tensor *expected) {
    sb_value outputs[DECODER_OUTPUTS];
    MUST(sb_session_wait(d->session, run, outputs, error));
    check_same(d->s.device, outputs[0].tensor, expected);
    sb_value_release(&outputs[0]);
    sb_tensor_release(expected);
}

static void arrive(decoding *d) {
    check_logits(d, d->runs[d->first], d->expected[d->first]);
    d->first = (d->first + 1) % QUEUED;
    d->count--;
}

static void step(decoding *d, int64_t tokens) {
    depart(d, tokens);
    arrive(d);
}

static void arrive_all(decoding *d) {
    while (d->count != 0)
        arrive(d);
}

/* So many runs in flight as soon as there are enough. */
static void fly(decoding *d, int runs) {
    for (int run = 0; run < runs; run++) {
        if (d->count == QUEUED)
            arrive(d);
        depart(d, 1);
    }
}

/* The state as at the beginning. */
static void reset(decoding *d) {
    MUST(sb_state_reset(d->state, error));
    end_by_hand(&d->hand);
    begin_by_hand(&d->hand, d->s.model);
}

/* ---- what the driver is asked for ---- */

/* The names of calls behind the first `skipped` bytes of the log. */
static void name_calls(const setting *s, size_t skipped, char *names, size_t room) {
    size_t used = 0;
    names[0] = '\0';
    for (const char *line = s->fake->log() + skipped; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
        used += (size_t)snprintf(names + used, room - used, "%.*s ", (int)strcspn(line, " (:\n"), line);
    assert_true(used < room);
}

static void test_calls(void **unused) {
    for (int file = 0; file < 2; file++) {
        for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
            bool device_outputs = mode == SB_GRAPHS_BUILD;
            decoding d = begin(decoder_files[file], mode, device_outputs);
            fly(&d, WARM);
            assert_string_equal(report_of(d.session).reason, "");
            for (int run = 0; run < 10; run++) {
                char names[1024];
                arrive(&d);
                size_t before = strlen(d.s.fake->log());
                depart(&d, 1);
                name_calls(&d.s, before, names, sizeof names);
                assert_string_equal(names, device_outputs
                                               ? "cuCtxPushCurrent cuGraphLaunch cuEventRecord cuCtxPopCurrent "
                                               : "cuCtxPushCurrent cuGraphLaunch cuMemcpyDtoHAsync "
                                                 "cuEventRecord cuCtxPopCurrent ");
            }
            arrive_all(&d);
            check_cache(d.state, &d.hand);
            end(&d);
        }
    }
}

/* ---- bits ---- */

/* Prompts between tokens, each length with a plan of its own, and waits whenever. */
static void test_bits(void **unused) {
    for (int ways = 0; ways < 6; ways++) {
        decoding d = begin(decoder_files[ways % 2], ways / 2 == 0 ? SB_GRAPHS_CAPTURE : SB_GRAPHS_BUILD, ways / 2 == 2);
        random_source source = {(uint64_t)ways};
        for (int run = 0; run < 60; run++) {
            depart(&d, random_between(&source, 0, 3) == 0 ? 3 : 1);
            while (d.count == QUEUED || (d.count > 0 && random_between(&source, 0, 2) == 0))
                arrive(&d);
        }
        arrive_all(&d);
        check_cache(d.state, &d.hand);
        assert_string_equal(report_of(d.session).reason, "");
        assert_non_null(d.session->runner->plan->again.segment);
        assert_non_null(d.session->runner->plan->open->table.mailbox);
        end(&d);
    }
}

/* ---- faults ---- */

static uint64_t depart_outside(const decoding *d) {
    sb_tensor *ids;
    uint64_t run;
    MUST(sb_tensor_create(SB_S64, 2, (int64_t[]){1, 1}, &ids, error));
    *(int64_t *)sb_tensor_mutable_data(ids) = DECODER_VOCABULARY;
    MUST(try_depart(d, ids, &run, error));
    sb_tensor_release(ids);
    return run;
}

static void check_failed(const decoding *d, uint64_t run, const char *by, const char *says) {
    sb_value outputs[DECODER_OUTPUTS];
    sb_error error = {SB_OK, ""};
    char number[64];
    snprintf(number, sizeof number, "run %llu: %s", (unsigned long long)run, by);
    assert_int_equal(sb_session_wait(d->session, run, outputs, &error), SB_ERROR_SHAPE);
    assert_int_equal(outputs[0].kind, SB_KIND_NONE);
    assert_says(error, number);
    assert_says(error, says);
}

/* A run that fails leaves the cache as it was, and no fault to the next one in its place. */
static void test_fault_alone(void **unused) {
    for (int ways = 0; ways < 4; ways++) {
        decoding d = begin(decoder_files[0], ways % 2 == 0 ? SB_GRAPHS_CAPTURE : SB_GRAPHS_BUILD, ways / 2 == 0);
        for (int round = 0; round < 12; round++) {
            step(&d, 1);
            int fetches = d.s.fake->calls("cuMemcpyDtoHAsync");
            uint64_t run = depart_outside(&d);
            if (round > 3 && ways / 2 == 0)
                assert_int_equal(d.s.fake->calls("cuMemcpyDtoHAsync"), fetches);
            check_failed(&d, run, "node ", "outside");
            check_cache(d.state, &d.hand);
        }
        step(&d, 1);
        end(&d);
    }
}

/* The second of four: the first has its results, and those behind it have computed with anything. */
static void test_fault_in_flight(void **unused) {
    for (int ways = 0; ways < 4; ways++) {
        decoding d = begin(decoder_files[0], ways % 2 == 0 ? SB_GRAPHS_CAPTURE : SB_GRAPHS_BUILD, ways / 2 == 0);
        for (int round = 0; round < 4; round++) {
            char torn[64];
            uint64_t behind[2];
            fly(&d, WARM);
            arrive_all(&d);
            depart(&d, 1);
            uint64_t run = depart_outside(&d);
            for (int i = 0; i < 2; i++) {
                sb_tensor *ids = decoder_ids(&d.source, 1);
                MUST(try_depart(&d, ids, &behind[i], error));
                sb_tensor_release(ids);
            }
            arrive(&d);
            check_failed(&d, run, "node ", "outside");
            snprintf(torn, sizeof torn, "the state is torn, since run %llu", (unsigned long long)run);
            check_failed(&d, behind[0], torn, "outside");
            check_failed(&d, behind[1], torn, "outside");
            reset(&d);
        }
        fly(&d, 8);
        arrive_all(&d);
        check_cache(d.state, &d.hand);
        end(&d);
    }
}

/* ---- failures ---- */

/* Two runs in flight in which something fails; whether any has. What is left of the state is the start of what comes behind, which
 * has the right bits: the host and the device go on with the same turn. */
static bool fail_in_flight(decoding *d, bool calls, int skip) {
    sb_error error = {SB_OK, ""};
    sb_status status[2] = {SB_ERROR_DEVICE, SB_ERROR_DEVICE};
    uint64_t runs[2] = {0};
    sb_tensor *ids[2] = {decoder_ids(&d->source, 1), decoder_ids(&d->source, 1)};
    sb_value outputs[2][DECODER_OUTPUTS];
    if (calls)
        d->s.fake->plan_failure(NULL, skip, UNKNOWN);
    else
        sb_allocation_fail_after(skip, false);
    for (int i = 0; i < 2; i++)
        status[i] = try_depart(d, ids[i], &runs[i], &error);
    for (int i = 0; i < 2; i++)
        status[i] = status[i] == SB_OK ? sb_session_wait(d->session, runs[i], outputs[i], &error) : status[i];
    bool happened = calls ? d->s.fake->failure_happened() : status[0] != SB_OK || status[1] != SB_OK;
    d->s.fake->plan_failure(NULL, -1, 0);
    sb_allocation_fail_after(-1, false);
    for (int i = 0; i < 2; i++) {
        assert_true(status[i] == SB_OK || (happened && (calls || status[i] == SB_ERROR_OUT_OF_MEMORY)));
        if (status[i] == SB_OK) {
            sb_tensor *expected = step_by_hand(&d->hand, ids[i]);
            check_same(d->s.device, outputs[i][0].tensor, expected);
            sb_tensor_release(expected);
            sb_value_release(&outputs[i][0]);
        }
        sb_tensor_release(ids[i]);
    }
    return happened;
}

static int torn, whole;

static void check_afterwards(decoding *d) {
    sb_tensor *held;
    sb_error reason;
    if (sb_state_get(d->state, 0, &held, &reason) == SB_OK) {
        sb_tensor_release(held);
        check_cache(d->state, &d->hand);
        whole++;
    } else {
        assert_says(reason, "the state is torn, since ");
        reset(d);
        torn++;
    }
    fly(d, 6);
    arrive_all(d);
    check_cache(d->state, &d->hand);
}

static void test_failing(void **unused) {
    torn = whole = 0;
    for (int ways = 0; ways < 8; ways++) {
        bool happened = true, calls = ways % 2 == 0;
        decoding d = begin(decoder_files[0], ways / 2 % 2 == 0 ? SB_GRAPHS_CAPTURE : SB_GRAPHS_BUILD, ways / 4 == 0);
        for (int skip = 0; happened; skip++) {
            fly(&d, WARM);
            arrive_all(&d);
            happened = fail_in_flight(&d, calls, skip);
            check_afterwards(&d);
            reset(&d);
        }
        end(&d);
    }
    assert_true(torn > 0 && whole > 8);
}

/* The first runs, in which what such runs take is made. */
static void test_failing_first_runs(void **unused) {
    for (int ways = 0; ways < 8; ways++) {
        bool happened = true, calls = ways % 2 == 0;
        for (int skip = 0; happened; skip += calls ? 5 : 17) {
            decoding d = begin(decoder_files[0], ways / 2 % 2 == 0 ? SB_GRAPHS_CAPTURE : SB_GRAPHS_BUILD, true);
            for (int run = 0; run < ways / 4; run++)
                step(&d, 1);
            happened = fail_in_flight(&d, calls, skip);
            check_afterwards(&d);
            end(&d);
        }
    }
}

/* ---- threads ---- */

typedef struct onlooker {
    sb_state *state;
    atomic_bool done;
    int looked;
} onlooker;

/* Waits for runs in flight, and so finds out what has become of them, in the place of the thread that has given them. */
static void *look_on(void *context) {
    onlooker *onlooker = context;
    for (int64_t before = 0; !atomic_load(&onlooker->done); onlooker->looked++) {
        sb_state_counters counters;
        int64_t used;
        sb_state_count(onlooker->state, &counters);
        MUST(sb_state_extent(onlooker->state, "past", &used, error));
        assert_true(counters.runs >= before && used >= counters.runs);
        before = counters.runs;
    }
    return NULL;
}

static void test_threads(void **unused) {
    decoding d = begin(decoder_files[0], SB_GRAPHS_BUILD, true);
    onlooker onlooker = {.state = d.state};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look_on, &onlooker), 0);
    fly(&d, 50);
    arrive_all(&d);
    atomic_store(&onlooker.done, true);
    pthread_join(thread, NULL);
    assert_true(onlooker.looked > 0);
    check_cache(d.state, &d.hand);
    end(&d);
}

int main(int count, char **arguments) {
    setenv("FAKE_CUDA_GUARD", "", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),       cmocka_unit_test(test_bits),
        cmocka_unit_test(test_fault_alone), cmocka_unit_test(test_fault_in_flight),
        cmocka_unit_test(test_failing),     cmocka_unit_test(test_failing_first_runs),
        cmocka_unit_test(test_threads),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
