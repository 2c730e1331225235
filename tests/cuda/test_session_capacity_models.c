/* Capacities on a device beside a state: inputs and outputs of the caller's wherever they lie, of two open extents, small
 * ones that go with the table of a run and large ones that do not; and models of which a node does not allow capacities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session_support.h"
#include "state/cache.h"

#include "runtime/runner_internal.h"
#include "runtime/session_internal.h"

#define TOKENS 6

/* How a session is made, and what its inputs are like. */
typedef struct way {
    sb_graph_mode mode;
    bool on_device, strided, device_outputs;
    int64_t capacity, least; /* of "past" */
    const char *force_cpu;
} way;

static sb_session *open_cache(const setting *s, const way *way) {
    sb_session_options options = options_on(s->device);
    sb_capacity items[] = {{"tokens", TOKENS, 0}, {"past", way->capacity, way->least}};
    options.graphs = way->mode;
    options.device_outputs = way->device_outputs;
    options.force_cpu = way->force_cpu;
    options.capacity_count = 2;
    options.capacities = items;
    return session_with(s->model, &options);
}

/* f32[2,rows,4], where asked for with gaps along every axis, and on the device. */
static sb_tensor *make_input(const setting *s, const way *way, int64_t rows, uint64_t seed) {
    sb_tensor *tensor = numbers(3, (int64_t[]){CACHE_ROWS * 2, 2 * rows, CACHE_WIDTH * 2}, seed), *given, *view;
    for (int axis = 0; axis < 3; axis++) {
        int64_t count = tensor->dims[axis] / 2;
        MUST(sb_tensor_slice(tensor, axis, 0, count, 2, &view, error));
        sb_tensor_release(tensor);
        tensor = view;
    }
    if (!way->strided) {
        MUST(sb_tensor_contiguous(tensor, &view, error));
        sb_tensor_release(tensor);
        tensor = view;
    }
    if (!way->on_device)
        return tensor;
    given = to_device(s->device, tensor);
    sb_tensor_release(tensor);
    return given;
}

/* Runs of many extents against the CPU. Two rounds are looked at together: outputs stay what they were. */
static void check_extents(const setting *s, const way *way, sb_session *session) {
    random_source source = {12};
    for (int round = 0; round < 12; round++) {
        int64_t tokens = 1 + round % TOKENS;
        int64_t past = round == 0 ? way->capacity : round < 3 ? round - 1 : random_between(&source, 0, way->capacity);
        sb_tensor *inputs[2][CACHE_INPUTS], *outputs[2][CACHE_OUTPUTS], *expected[CACHE_OUTPUTS], *host[CACHE_INPUTS];
        for (int run = 0; run < 2; run++) {
            for (int i = 0; i < CACHE_INPUTS; i++)
                inputs[run][i] = make_input(s, way, i == 0 ? tokens : past, (uint64_t)(round * 8 + run * 4 + i));
            run_session(session, inputs[run], outputs[run]);
        }
        for (int run = 0; run < 2; run++) {
            for (int i = 0; i < CACHE_INPUTS; i++)
                host[i] = to_host(s->device, inputs[run][i]);
            run_session(s->cpu, host, expected);
            for (int i = 0; i < CACHE_OUTPUTS; i++) {
                check_same(s->device, outputs[run][i], expected[i]);
                if (i != 1)
                    assert_int_equal(sb_tensor_on_device(outputs[run][i]), way->device_outputs);
            }
            release_all(host, CACHE_INPUTS);
            release_all(expected, CACHE_OUTPUTS);
            release_all(inputs[run], CACHE_INPUTS);
            release_all(outputs[run], CACHE_OUTPUTS);
        }
    }
}

static int plan_count(const sb_session *session) {
    int count = 0;
    for (const sb_plan *plan = session->runner->plans; plan != NULL; plan = plan->next)
        count++;
    return count;
}

static setting start_cache(void) {
    setting s = start_device();
    s.model = cache_model();
    s.cpu = cpu_session(s.model);
    return s;
}

/* The script, whose rows are of an axis that is not the outermost: its copies have gaps on one side. */
static void test_inputs_of_any_kind(void **context) {
    for (int kind = 0; kind < 3 * 8; kind++) {
        way way = {.mode = SB_GRAPHS_OFF + kind % 3,
                   .on_device = kind / 3 % 2 != 0,
                   .strided = kind / 6 % 2 != 0,
                   .device_outputs = kind / 12 != 0,
                   .capacity = 20};
        setting s = start_cache();
        sb_session *session = open_cache(&s, &way);
        check_extents(&s, &way, session);
        assert_string_equal(sb_session_exact_plans(session), "");
        assert_int_equal(plan_count(session), 1);
        sb_session_destroy(session);
        finish(&s);
    }
}

/* Inputs of 80 KiB, of which none has room in the table of a run, and buckets in which they have. */
static void test_large_inputs(void **context) {
    for (int kind = 0; kind < 4; kind++) {
        way way = {.mode = SB_GRAPHS_BUILD,
                   .strided = kind % 2 != 0,
                   .device_outputs = kind / 2 != 0,
                   .capacity = 2560,
                   .least = kind % 2 * 80};
        setting s = start_cache();
        sb_session *session = open_cache(&s, &way);
        assert_true(CACHE_ROWS * way.capacity * CACHE_WIDTH * (int64_t)sizeof(float) > SB_RUN_TABLE_INPUT_BYTES);
        check_extents(&s, &way, session);
        assert_string_equal(sb_session_exact_plans(session), "");
        sb_session_destroy(session);
        finish(&s);
    }
}

/* ---- models that do not allow capacities ---- */

static void test_a_node_on_the_cpu(void **context) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        way way = {.mode = mode, .capacity = 20, .force_cpu = "Softmax"};
        setting s = start_cache();
        sb_session *session = open_cache(&s, &way);
        check_extents(&s, &way, session);
        assert_non_null(strstr(sb_session_exact_plans(session), "(Softmax): "));
        assert_non_null(strstr(sb_session_exact_plans(session), "forced to the CPU by \"Softmax\""));
        sb_session_destroy(session);
        finish(&s);
    }
}

/* A cache at exact extents, because a node stays on the CPU. */
static void test_a_state_at_exact_extents(void **context) {
    setting s = start_cache();
    cache_script script = write_script(s.model);
    sb_session_options options = options_on(s.device);
    sb_state *state;
    MUST(try_cache_state(s.model, s.device, 20, 4, &state, error));
    options.state = state;
    options.force_cpu = "Softmax";
    sb_session *session = session_with(s.model, &options);
    for (int run = 0; run < CACHE_RUNS; run++) {
        sb_value outputs[CACHE_OUTPUTS];
        MUST(try_cache_run(session, &script, run, outputs, error));
        check_equal(outputs[0].tensor, script.mixed[run]);
        check_equal(outputs[1].tensor, script.length[run]);
        release_outputs(outputs);
        assert_int_equal(check_place(state, &script), run + 1);
    }
    assert_non_null(strstr(sb_session_exact_plans(session), "(Softmax): "));
    sb_session_destroy(session);
    sb_state_release(state);
    drop_script(&script);
    finish(&s);
}

/* x [n,4] through an op along n. */
typedef struct along {
    const char *op;
    sb_dtype dtype;
    const char
        *text[2]; /* what is said about it; NULL: it does allow one, with a kernel that stops at the rows in use */
} along;

/* A model of that node, and a session in which n has a capacity. */
static sb_session *open_along(setting *s, const along *given, sb_graph_mode mode) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, given->dtype, 2, (int64_t[]){-1, 4}), y;
    if (strcmp(given->op, "CumSum") == 0)
        y = builder_binary(&b, given->op, x, integers(&b, 1, (int64_t[]){0}));
    else if (strcmp(given->op, "Softmax") == 0 || strcmp(given->op, "Hardmax") == 0)
        y = attribute_node(&b, given->op, 1, &x, "axis", true, 1, (int64_t[]){0});
    else
        y = builder_unary(&b, given->op, x);
    mark_output(&b, y);
    s->model = model_of(&b, false);
    s->cpu = cpu_session(s->model);
    sb_session_options options = options_on(s->device);
    options.graphs = mode;
    options.capacity_count = 1;
    options.capacities = &(sb_capacity){"n", 40, 0};
    return session_with(s->model, &options);
}

static void check_along(const along *given) {
    setting s = start_device();
    sb_session *session = open_along(&s, given, SB_GRAPHS_AUTO);
    for (int64_t n = 1; n <= 40; n += 3) {
        sb_tensor *input = random_tensor(given->dtype, 2, (int64_t[]){n, 4}, (uint64_t)n);
        run_both(session, s.cpu, s.device, 1, &input, 1);
        sb_tensor_release(input);
    }
    const char *why = sb_session_exact_plans(session);
    assert_int_equal(why[0] == '\0', given->text[0] == NULL);
    for (int i = 0; i < 2 && given->text[i] != NULL; i++) {
        if (strstr(why, given->text[i]) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", given->op, why, given->text[i]);
    }
    sb_session_destroy(session);
    finish(&s);
}

static void test_nodes_along_an_open_axis(void **context) {
    check_along(&(along){"NonZero", SB_F32, {"(NonZero): ", "which no formula of the symbols tells"}});
    check_along(&(along){"Hardmax", SB_F32, {NULL}});
    check_along(&(along){"Softmax", SB_F64, {NULL}});
    check_along(&(along){"CumSum", SB_F32, {NULL}});
}

/* Of no rows there is none to choose. The host sees that before it launches anything; in a plan for a capacity only the
 * kernel can, which leaves a fault, whether such a run is the first or comes among others. */
static void check_nothing_to_choose(const char *op, sb_graph_mode mode, int empty_run) {
    setting s = start_device();
    sb_session *session = open_along(&s, &(along){op, SB_F32, {NULL}}, mode);
    for (int run = 0; run < 6; run++) {
        int64_t n = run == empty_run ? 0 : 7 * run + 1;
        sb_tensor *input = random_tensor(SB_F32, 2, (int64_t[]){n, 4}, (uint64_t)run), *output;
        sb_error error, host;
        if (n != 0) {
            run_both(session, s.cpu, s.device, 1, &input, 1);
        } else {
            assert_int_equal(sb_session_run_tensors(session, &input, &output, &error), SB_ERROR_INVALID_ARGUMENT);
            assert_says(error, "node ");
            assert_says(error, op);
            assert_says(error, "more elements are to be chosen than there are");
            assert_null(output);
            assert_int_equal(sb_session_run_tensors(s.cpu, &input, &output, &host), error.status);
        }
        sb_tensor_release(input);
    }
    assert_string_equal(sb_session_exact_plans(session), "");
    sb_session_destroy(session);
    finish(&s);
}

static void test_nothing_to_choose(void **context) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int empty_run = 0; empty_run < 6; empty_run++) {
            check_nothing_to_choose("ArgMax", mode, empty_run);
            check_nothing_to_choose("ArgMin", mode, empty_run);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs_of_any_kind),       cmocka_unit_test(test_large_inputs),
        cmocka_unit_test(test_a_node_on_the_cpu),        cmocka_unit_test(test_a_state_at_exact_extents),
        cmocka_unit_test(test_nodes_along_an_open_axis), cmocka_unit_test(test_nothing_to_choose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
