/* Capacities on a device with memory running out, or calls of the driver failing, at every place: the cache is as it was,
 * or torn with the reason; a reset heals it, and the next run has the bits that it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session_support.h"
#include "state/cache_changes.h"
#include "support/failing.h"
#include "thorough.h"

#define UNKNOWN 999
#define OUT_OF_MEMORY 2
#define IN_FLIGHT 2

typedef struct kind {
    sb_graph_mode mode;
    bool device_outputs, on_device; /* where outputs and the input are */
    bool bound;                     /* the cache is a state; else inputs and outputs of the caller's */
    int64_t least;
    int warm; /* runs before those that something fails in */
} kind;

/* A session that has run as often as its kind says. */
typedef struct life {
    const kind *kind;
    const cache_script *script;
    setting s;
    sb_state *state;
    sb_session *session;
    sb_tensor *inputs[CACHE_RUNS][CACHE_INPUTS];
} life;

/* ---- what is made ---- */

static sb_status try_session(const kind *kind, sb_model *model, sb_device *device, sb_state *state,
                             sb_session **session, sb_error *error) {
    sb_session_options options = options_on(device);
    sb_capacity items[] = {{"tokens", 6, kind->least / 2}, {"past", CACHE_CAPACITY, kind->least}};
    options.graphs = kind->mode;
    options.device_outputs = kind->device_outputs;
    options.state = state;
    options.capacities = items;
    options.capacity_count = state == NULL ? 2 : kind->least > 0;
    return sb_session_create(model, &options, session, error);
}

static sb_tensor *placed(const life *l, sb_tensor *tensor) {
    return l->kind->on_device ? to_device(l->s.device, tensor) : sb_tensor_retain(tensor);
}

static void check_run(const life *l, int run);

static life begin(const kind *kind, const cache_script *script, const setting *s) {
    life l = {.kind = kind, .script = script, .s = *s};
    if (kind->bound)
        MUST(try_cache_state(s->model, s->device, CACHE_CAPACITY, kind->least, &l.state, error));
    MUST(try_session(kind, s->model, s->device, l.state, &l.session, error));
    for (int run = 0; run < CACHE_RUNS; run++) {
        l.inputs[run][0] = placed(&l, script->x[run]);
        for (int i = 0; i < CACHE_PAIRS && !kind->bound; i++)
            l.inputs[run][1 + i] = placed(&l, script->held[run][i]);
    }
    for (int run = 0; run < kind->warm; run++)
        check_run(&l, run);
    return l;
}

static void end(life *l) {
    for (int run = 0; run < CACHE_RUNS; run++)
        release_all(l->inputs[run], CACHE_INPUTS);
    sb_session_destroy(l->session);
    sb_state_release(l->state);
}

static setting start_model(void) {
    setting s = start_device();
    s.model = cache_model();
    return s;
}

/* ---- runs ---- */

static void fill_inputs(const life *l, int run, sb_value *inputs) {
    for (int i = 0; i < CACHE_INPUTS; i++)
        inputs[i] = sb_value_of_tensor(l->inputs[run][i]);
}

/* The outputs are those of the script; releases them. */
static void check_outputs(const life *l, int run, sb_value *outputs) {
    const cache_script *script = l->script;
    check_same(l->s.device, outputs[0].tensor, script->mixed[run]);
    check_same(l->s.device, outputs[1].tensor, script->length[run]);
    for (int i = 0; i < CACHE_PAIRS; i++) {
        if (l->kind->bound)
            assert_int_equal(outputs[2 + i].kind, SB_KIND_NONE);
        else
            check_same(l->s.device, outputs[2 + i].tensor, script->held[run + 1][i]);
    }
    release_outputs(outputs);
}

static void check_run(const life *l, int run) {
    sb_error error;
    sb_value inputs[CACHE_INPUTS], outputs[CACHE_OUTPUTS];
    fill_inputs(l, run, inputs);
    if (sb_session_run(l->session, inputs, outputs, &error) != SB_OK)
        fail_msg("%s", error.message);
    check_outputs(l, run, outputs);
    if (l->kind->bound)
        assert_int_equal(check_place(l->state, l->script), run + 1);
}

static bool happened; /* what was to fail in the driver */

/* The runs in which something fails, in flight together; the first failure. */
static sb_status fly(const life *l, sb_error *error) {
    sb_value inputs[CACHE_INPUTS], outputs[IN_FLIGHT][CACHE_OUTPUTS];
    uint64_t runs[IN_FLIGHT] = {0};
    sb_status first = SB_OK, each[IN_FLIGHT];
    for (int i = 0; i < IN_FLIGHT && first == SB_OK; i++) {
        fill_inputs(l, l->kind->warm + i, inputs);
        first = sb_session_enqueue(l->session, inputs, &runs[i], error);
    }
    for (int i = 0; i < IN_FLIGHT; i++) {
        sb_error unread;
        each[i] = SB_ERROR_DEVICE;
        if (runs[i] == 0)
            continue;
        each[i] = sb_session_wait(l->session, runs[i], outputs[i], first == SB_OK ? error : &unread);
        first = first == SB_OK ? each[i] : first;
    }
    happened = l->s.fake->failure_happened();
    sb_allocation_fail_after(-1, false);
    l->s.fake->plan_failure(NULL, -1, 0);
    for (int i = 0; i < IN_FLIGHT; i++) {
        if (each[i] == SB_OK)
            check_outputs(l, l->kind->warm + i, outputs[i]);
    }
    return first;
}

/* The session goes on where the cache is, and from an empty one. */
static void check_afterwards(const life *l, int place) {
    check_run(l, place);
    if (l->kind->bound) {
        MUST(sb_state_reset(l->state, error));
        check_run(l, 0);
        check_run(l, 1);
    }
    assert_string_equal(sb_session_exact_plans(l->session), "");
}

/* Not every combination, to save time, but every pair. */
typedef void visit_kind(const kind *kind, const cache_script *script);
static void for_each_kind(const cache_script *script, visit_kind *visit) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int warm = 0; warm <= MOST_WARM; warm++) {
            for (int bound = 0; bound < 2; bound++)
                visit(&(kind){.mode = mode,
                              .device_outputs = (warm + bound) % 2 == 0,
                              .on_device = (warm + (int)mode) % 2 == 0,
                              .bound = bound != 0,
                              .least = (warm / 2 + (int)mode) % 2 * 4,
                              .warm = warm},
                      script);
        }
    }
}

/* ---- memory ---- */

static int whole, torn;

static int place_of(const life *l) {
    int place = l->kind->bound ? check_place(l->state, l->script) : l->kind->warm;
    assert_true(place >= l->kind->warm && place <= l->kind->warm + IN_FLIGHT);
    return place;
}

/* The library's allocations in turn, one alone or all from there on. */
static void check_allocations(const kind *kind, const cache_script *script) {
    setting s = start_model();
    for (int forever = 0; forever < 2; forever++) {
        bool failed = true;
        for (int64_t successes = 0; failed; successes += failing_step(kind->warm < 2 ? 7 : 3)) {
            sb_error error = {SB_OK, ""};
            life l = begin(kind, script, &s);
            sb_allocation_fail_after(successes, forever != 0);
            sb_status status = fly(&l, &error);
            assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
            failed =
                status != SB_OK || report_of(l.session).failed > 0; /* recording failed, which is no run's failure */
            whole += failed;
            check_afterwards(&l, place_of(&l)); /* which is not torn */
            end(&l);
        }
    }
    finish(&s);
}

static void test_allocations(void **context) {
    whole = 0;
    for_each_kind(*context, check_allocations);
    assert_true(whole > 500 / failing_step(1));
}

/* The driver's allocations in turn. */
static void check_driver_memory(const kind *kind, const cache_script *script) {
    setting s = start_model();
    static const char *const calls[] = {"cuMemAlloc", "cuMemHostAlloc"};
    for (int i = 0; i < 2; i++) {
        for (int skip = 0; happened; skip++) {
            sb_error error = {SB_OK, ""};
            life l = begin(kind, script, &s);
            l.s.fake->plan_failure(calls[i], skip, OUT_OF_MEMORY);
            sb_status status = fly(&l, &error);
            assert_true(status == SB_OK || (happened && status == SB_ERROR_OUT_OF_MEMORY));
            check_afterwards(&l, place_of(&l));
            end(&l);
        }
    }
    finish(&s);
}

static void test_driver_memory(void **context) {
    for_each_kind(*context, check_driver_memory);
}

/* ---- calls ---- */

/* Every call of the driver in turn. */
static void check_calls(const kind *kind, const cache_script *script) {
    setting s = start_model();
    happened = true;
    for (int skip = 0; happened; skip++) {
        sb_error error = {SB_OK, ""}, reason;
        life l = begin(kind, script, &s);
        l.s.fake->plan_failure(NULL, skip, UNKNOWN);
        sb_status status = fly(&l, &error);
        assert_true(status == SB_OK || happened);
        if (!kind->bound || !is_torn(l.state, &reason)) {
            whole += status != SB_OK;
            check_afterwards(&l, place_of(&l));
        } else {
            torn++;
            assert_int_not_equal(status, SB_OK);
            assert_says(reason, "the state is torn, since ");
            assert_says(reason, "CUDA_ERROR_UNKNOWN");
            MUST(sb_state_reset(l.state, error));
            assert_int_equal(check_place(l.state, script), 0);
            check_afterwards(&l, 0);
        }
        end(&l);
    }
    finish(&s);
}

static void test_calls(void **context) {
    whole = torn = 0;
    for_each_kind(*context, check_calls);
    assert_true(torn > 0 && whole > 100);
}

/* ---- what is made, and whole states ---- */

typedef struct making {
    sb_model *model;
    bool bound;
} making;

static sb_status make(void *context) {
    const making *given = context;
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    sb_error error;
    sb_device *device;
    sb_state *state = NULL;
    sb_session *session = NULL;
    options.cuda_driver = FAKE_CUDA;
    SB_TRY(sb_device_open(&options, 0, &device, &error));
    sb_status status = given->bound ? try_cache_state(given->model, device, CACHE_CAPACITY, 4, &state, &error) : SB_OK;
    if (status == SB_OK)
        status = try_session(&(kind){.least = 4}, given->model, device, state, &session, &error);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_device_release(device);
    return status;
}

static void test_creating(void **context) {
    const fake_cuda_control *fake = fake_with_kernels();
    sb_model *model = cache_model();
    for (int bound = 0; bound < 2; bound++) {
        making given = {model, bound != 0};
        check_failing_allocations(make, &given);
        check_failing_calls(fake, make, &given, UNKNOWN);
    }
    sb_model_release(model);
}

/* A state of three runs becomes the other, of five, or what is left of it, or stays as it was, or is torn. With calls or
 * with allocations failing; whether one has. */
static bool check_change(const setting *s, const cache_script *script, change change, const char *path, int skip,
                         bool calls) {
    sb_error error = {SB_OK, ""}, reason;
    sb_state *other;
    life l = begin(&(kind){.mode = SB_GRAPHS_BUILD, .bound = true, .least = 4, .warm = RUNS_BEFORE}, script, s);
    kind second = {.mode = SB_GRAPHS_OFF, .bound = true, .least = 0};
    MUST(try_cache_state(s->model, s->device, CACHE_CAPACITY, 0, &other, error));
    life o = {.kind = &second, .script = script, .s = *s, .state = other};
    memcpy(o.inputs, l.inputs, sizeof o.inputs);
    MUST(try_session(&second, s->model, s->device, other, &o.session, error));
    for (int run = 0; run < RUNS_OF_OTHER; run++)
        check_run(&o, run);
    MUST(sb_state_save(other, path, error));
    if (calls)
        s->fake->plan_failure(NULL, skip, UNKNOWN);
    else
        sb_allocation_fail_after(skip, false);
    sb_status status = try_change(change, l.state, other, path, &error);
    happened = calls ? s->fake->failure_happened() : status != SB_OK;
    s->fake->plan_failure(NULL, -1, 0);
    sb_allocation_fail_after(-1, false);
    assert_true(calls ? happened || status == SB_OK : status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
    bool now_torn = is_torn(l.state, &reason);
    if (now_torn) {
        assert_true(calls && status != SB_OK);
        assert_says(reason, "the state is torn, since ");
        MUST(sb_state_reset(l.state, error));
        torn++;
    }
    int place = check_place(l.state, script);
    /* A device that fails when all has been done is an error, and the state is what it was to become. */
    if (now_torn)
        assert_int_equal(place, 0);
    else if (status == SB_OK || !calls)
        assert_int_equal(place, status == SB_OK ? runs_after(change) : RUNS_BEFORE);
    else
        assert_true(place == RUNS_BEFORE || place == runs_after(change));
    assert_int_equal(check_place(other, script), RUNS_OF_OTHER);
    check_afterwards(&l, place);
    sb_session_destroy(o.session);
    sb_state_release(other);
    end(&l);
    return happened;
}

static void test_changes(void **context) {
    const char *path = folder_path("cache");
    torn = 0;
    setting s = start_model();
    for (change change = SAVE; change < CHANGES; change++) {
        for (int calls = 0; calls < 2; calls++) {
            for (int skip = 0; check_change(&s, *context, change, path, skip, calls != 0);)
                skip++;
        }
    }
    assert_true(torn > 0);
    finish(&s);
}

int main(void) {
    setenv("FAKE_CUDA_GUARD", "",
           1); /* none, for thousands of devices: other tests see whether the host follows addresses */
    fresh_fake();
    open_fake(); /* which is kept from now on */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_creating),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_driver_memory),
        cmocka_unit_test(test_calls),
        cmocka_unit_test_setup_teardown(test_changes, folder_open, folder_close),
    };
    return cmocka_run_group_tests(tests, open_script, close_script);
}
