/* Updates along an axis with a capacity: only a Concat whose first input is the variable's own version leaves the rows
 * where they are. Others make the variable longer too, and are copied; all have the bits of runs that are fed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cache.h"

#define ROOM 40
#define LEFT 2 /* variables */
#define OUTPUTS (2 * LEFT)

/* What the next versions of a and b [past, 4] are made of: of a, b and x [n, 4]. */
typedef enum kind {
    APPEND,  /* a x, b x */
    PREPEND, /* x a, b x */
    CROSS,   /* b x, a x */
    LATE,    /* a x, b x; the outputs are sums of the versions before, made when the next ones are there */
    KINDS
} kind;

typedef struct grower {
    kind kind;
    sb_model *model;
    sb_state *state;
    sb_session *session, *by_hand;
} grower;

static sb_status add_past(sb_builder *b, const char *name, sb_builder_value *value, sb_error *error) {
    static const int64_t dims[] = {-1, CACHE_WIDTH};
    static const char *const texts[] = {"past", NULL};
    return sb_builder_input(
        b,
        &(sb_value_description){
            .name = name, .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 2, .dims = dims, .dim_texts = texts},
        value, error);
}

static sb_status add_grower(sb_builder *b, kind kind, sb_error *error) {
    static const int64_t dims[] = {-1, CACHE_WIDTH};
    static const char *const names[LEFT] = {"next_a", "next_b"}, *const late[LEFT] = {"late_a", "late_b"};
    sb_builder_attribute axis = sb_attribute_int("axis", 0), keep = sb_attribute_int("keepdims", 0);
    sb_builder_value x, old[LEFT], next[LEFT], output;
    SB_TRY(add_input(b, "x", 2, dims, &x, error));
    SB_TRY(add_past(b, "a", &old[0], error));
    SB_TRY(add_past(b, "b", &old[1], error));
    for (int i = 0; i < LEFT; i++) {
        sb_builder_value parts[] = {kind == CROSS ? old[1 - i] : old[i], x};
        if (kind == PREPEND && i == 0)
            memcpy(parts, (sb_builder_value[]){x, old[i]}, sizeof parts);
        SB_TRY(add_named(b, "Concat", names[i], 2, parts, &axis, &next[i], error));
        SB_TRY(sb_builder_output(b, next[i], error));
    }
    for (int i = 0; i < LEFT; i++) {
        SB_TRY(add_named(b, "ReduceSum", late[i], 1, kind == LATE ? &old[i] : &next[i], &keep, &output, error));
        SB_TRY(sb_builder_output(b, output, error));
    }
    return SB_OK;
}

static grower begin(kind kind) {
    static const sb_state_pair pairs[LEFT] = {{"a", "next_a", -1, NULL}, {"b", "next_b", -1, NULL}};
    grower g = {.kind = kind};
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_builder *b;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_grower(b, kind, error), &g.model, error));
    options.pair_count = LEFT;
    options.pairs = pairs;
    options.capacity_count = 1;
    options.capacities = &(sb_capacity){"past", ROOM, 8};
    options.symbol_count = 1;
    options.symbols = (const char *const[]){"past"};
    options.symbol_values = (int64_t[]){1};
    MUST(sb_state_create(g.model, &options, &g.state, error));
    g.session = bound_session(g.model, g.state, NULL, NULL);
    g.by_hand = bound_session(g.model, NULL, NULL, NULL);
    return g;
}

static void end(grower *g) {
    sb_session_destroy(g->session);
    sb_session_destroy(g->by_hand);
    sb_state_release(g->state);
    sb_model_release(g->model);
}

/* A run of the state, and the same of what it holds by hand, which its next contents have to be. */
static void check_run(grower *g, int64_t rows, uint64_t seed) {
    sb_tensor *x = numbers(2, (int64_t[]){rows, CACHE_WIDTH}, seed);
    sb_tensor *inputs[] = {x, contents(g->state, "a"), contents(g->state, "b")};
    sb_tensor *outputs[OUTPUTS], *expected[OUTPUTS];
    run_tensors(g->by_hand, inputs, expected);
    run_tensors(g->session, (sb_tensor *[]){x, NULL, NULL}, outputs);
    sb_tensor *found[] = {contents(g->state, "a"), contents(g->state, "b")};
    for (int i = 0; i < LEFT; i++) {
        check_equal(found[i], expected[i]);
        check_equal(outputs[LEFT + i], expected[LEFT + i]);
        sb_tensor *all[] = {inputs[1 + i], found[i], expected[i], expected[LEFT + i], outputs[LEFT + i]};
        for (int t = 0; t < 5; t++)
            sb_tensor_release(all[t]);
    }
    sb_tensor_release(x);
}

static void test_kinds(void **unused) {
    static const int in_place[KINDS] = {[APPEND] = 2, [PREPEND] = 1, [CROSS] = 0, [LATE] = 2};
    for (kind kind = APPEND; kind < KINDS; kind++) {
        grower g = begin(kind);
        int64_t used = 1, runs = 0;
        for (uint64_t seed = 0; used < ROOM; seed++, runs++) {
            int64_t rows = 1 + (int64_t)seed % 3;
            if (used + rows > ROOM)
                break;
            check_run(&g, rows, seed);
            used += rows;
        }
        assert_true(runs >= 5);
        assert_int_equal(counted(g.state).updates, LEFT * runs);
        assert_int_equal(counted(g.state).updates_in_place, in_place[kind] * runs);
        assert_true(counted(g.state).copies >= (LEFT - in_place[kind]) * runs);
        end(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
