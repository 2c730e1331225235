/* Capacities on a device: ranges, triangles and slices that begin where a run's extents say. Their kernels read that in the
 * run's table, so that one plan does for all extents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session_support.h"

#include "runtime/runner_internal.h"
#include "runtime/session_internal.h"

#define MOST_N 20
#define MOST_M 9
#define UNKNOWN 999

/* A model in the making: x f32[n,4] and y f32[m,4], one behind the other, and how many rows they have. */
typedef struct making {
    builder b;
    sb_value_id x, y, both, n, m, total;
} making;

static sb_value_id number(making *a, int64_t value) {
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, 0, NULL, &value, &tensor, error));
    return builder_constant(&a->b, tensor);
}

static sb_value_id list_of(making *a, sb_value_id scalar) {
    return builder_binary(&a->b, "Unsqueeze", scalar, integers(&a->b, 1, (int64_t[]){0}));
}

static sb_value_id rows_of(making *a, sb_value_id tensor) {
    return builder_binary(&a->b, "Gather", builder_unary(&a->b, "Shape", tensor), number(a, 0));
}

static making begin_making(void) {
    making a = {.b = builder_create()};
    a.x = builder_input(&a.b, SB_F32, 2, (int64_t[]){-1, 4});
    a.y = builder_input(&a.b, SB_F32, 2, (int64_t[]){-1, 4});
    a.b.graph->values[a.y].fact.dims[0] = sb_dim_symbol(a.b.scope, "m");
    a.both = concat(&a.b, a.x, a.y, 0);
    a.n = rows_of(&a, a.x);
    a.m = rows_of(&a, a.y);
    a.total = builder_binary(&a.b, "Add", a.n, a.m);
    return a;
}

/* ---- what is made ---- */

static sb_value_id range(making *a, sb_value_id start, sb_value_id limit, int64_t delta) {
    return builder_node(&a->b, "Range", 3, (sb_value_id[]){start, limit, number(a, delta)}, NULL);
}

static sb_value_id range_behind(making *a) {
    return range(a, a->n, a->total, 1);
}

static sb_value_id range_by_threes(making *a) {
    return range(a, number(a, 2), a->total, 3);
}

static sb_value_id range_down(making *a) {
    return range(a, a->total, a->n, -1);
}

static sb_value_id range_of_many(making *a) {
    return range(a, a->n, builder_binary(&a->b, "Add", a->n, number(a, 300)), 1);
}

/* [m,total] of what multiplies x and y, without the part on one side of a diagonal. */
static sb_value_id triangle(making *a, int64_t more, int64_t upper) {
    sb_value_id turned = transpose(&a->b, a->both, 2, (int64_t[]){1, 0});
    sb_value_id products = builder_binary(&a->b, "MatMul", a->y, turned);
    sb_value_id diagonal = builder_binary(&a->b, "Add", a->n, number(a, more));
    return attribute_node(&a->b, "Trilu", 2, (sb_value_id[]){products, diagonal}, "upper", true, 1, &upper);
}

static sb_value_id upper_triangle(making *a) {
    return triangle(a, 1, 1);
}

static sb_value_id lower_triangle(making *a) {
    return triangle(a, -2, 0);
}

static sb_value_id slice(making *a, sb_value_id from, sb_value_id start, sb_value_id end, int64_t step) {
    sb_value_id lists[] = {from, start, end, integers(&a->b, 1, (int64_t[]){0}), integers(&a->b, 1, &step)};
    return builder_node(&a->b, "Slice", 5, lists, NULL);
}

static sb_value_id slice_behind(making *a) {
    return slice(a, a->both, list_of(a, a->n), list_of(a, a->total), 1);
}

static sb_value_id slice_at_the_end(making *a) {
    return slice(a, a->both, integers(&a->b, 1, (int64_t[]){-2}), integers(&a->b, 1, (int64_t[]){INT64_MAX}), 1);
}

static sb_value_id slice_backwards(making *a) {
    return slice(a, a->both, integers(&a->b, 1, (int64_t[]){-1}), integers(&a->b, 1, (int64_t[]){INT64_MIN}), -2);
}

static sb_value_id slice_of_a_table(making *a) {
    sb_value_id table = builder_constant(&a->b, random_tensor(SB_F32, 2, (int64_t[]){64, 4}, 3));
    return slice(a, table, list_of(a, a->n), list_of(a, a->total), 1);
}

/* ---- runs ---- */

static sb_session *open_positions(setting *s, sb_value_id (*make)(making *), sb_graph_mode mode) {
    *s = start_device();
    making a = begin_making();
    mark_output(&a.b, make(&a));
    s->model = model_of(&a.b, true);
    s->cpu = cpu_session(s->model);
    sb_session_options options = options_on(s->device);
    options.graphs = mode;
    options.require_device = true;
    options.capacity_count = 2;
    options.capacities = (sb_capacity[]){{"n", MOST_N, 0}, {"m", MOST_M, 0}};
    return session_with(s->model, &options);
}

static void make_inputs(sb_tensor **inputs, int64_t n, int64_t m) {
    inputs[0] = random_tensor(SB_F32, 2, (int64_t[]){n, 4}, (uint64_t)(n + 1));
    inputs[1] = random_tensor(SB_F32, 2, (int64_t[]){m, 4}, (uint64_t)(m + 99));
}

static void check_run(const setting *s, sb_session *session, int64_t n, int64_t m) {
    sb_tensor *inputs[2];
    make_inputs(inputs, n, m);
    run_both(session, s->cpu, s->device, 2, inputs, 1);
    release_all(inputs, 2);
    assert_string_equal(sb_session_exact_plans(session), "");
    assert_null(session->runner->plans->next);
}

static void check_positions(sb_value_id (*make)(making *)) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s;
        random_source source = {17};
        sb_session *session = open_positions(&s, make, mode);
        check_run(&s, session, 5, 3);
        check_run(&s, session, 0, 1);
        check_run(&s, session, 1, 0);
        check_run(&s, session, MOST_N, MOST_M);
        for (int round = 0; round < 12; round++)
            check_run(&s, session, random_between(&source, 0, MOST_N), random_between(&source, 0, MOST_M));
        sb_session_destroy(session);
        finish(&s);
    }
}

static void test_ranges(void **context) {
    check_positions(range_behind);
    check_positions(range_by_threes);
    check_positions(range_down);
    check_positions(range_of_many);
}

static void test_triangles(void **context) {
    check_positions(upper_triangle);
    check_positions(lower_triangle);
}

static void test_slices(void **context) {
    check_positions(slice_behind);
    check_positions(slice_at_the_end);
    check_positions(slice_backwards);
    check_positions(slice_of_a_table);
}

/* ---- failures ---- */

/* A first run, or one behind `warm` others, in which an allocation or a call of the driver fails; whether one did. */
static bool fail_once(sb_value_id (*make)(making *), sb_graph_mode mode, int warm, bool calls, int skip) {
    setting s;
    sb_error error = {SB_OK, ""};
    sb_session *session = open_positions(&s, make, mode);
    sb_tensor *inputs[2], *output;
    for (int run = 0; run < warm; run++)
        check_run(&s, session, 4 + run, 3);
    make_inputs(inputs, 7, 2);
    if (calls)
        s.fake->plan_failure(NULL, skip, UNKNOWN);
    else
        sb_allocation_fail_after(skip, false);
    sb_status status = sb_session_run_tensors(session, inputs, &output, &error);
    bool happened = calls ? s.fake->failure_happened() : status != SB_OK || report_of(session).failed > 0;
    s.fake->plan_failure(NULL, -1, 0);
    sb_allocation_fail_after(-1, false);
    assert_true(status == SB_OK || (calls ? happened : status == SB_ERROR_OUT_OF_MEMORY));
    if (status == SB_OK)
        sb_tensor_release(output);
    release_all(inputs, 2);
    check_run(&s, session, 7, 2);
    check_run(&s, session, 3, 5);
    sb_session_destroy(session);
    finish(&s);
    return happened;
}

static void test_failures(void **context) {
    sb_value_id (*const makers[])(making *) = {range_behind, slice_behind, slice_at_the_end, upper_triangle};
    int failures = 0;
    for (int kind = 0; kind < 4 * 2 * 3; kind++) {
        sb_graph_mode mode = kind % 2 != 0 ? SB_GRAPHS_BUILD : SB_GRAPHS_CAPTURE;
        for (int calls = 0; calls < 2; calls++) {
            int skip = 0;
            while (fail_once(makers[kind / 6], mode, kind / 2 % 3, calls != 0, skip))
                skip++;
            failures += skip;
        }
    }
    assert_true(failures > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_triangles),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
