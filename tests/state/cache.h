/* A small model with a cache that each run makes longer, along an axis that is not the outermost, a script of runs with
 * what each gives at exact extents on the CPU, and checks of a state against it. Include after cmocka.h. */
#ifndef SB_TESTS_CACHE_H
#define SB_TESTS_CACHE_H

#include <stdlib.h>

#include "stateful.h"

#define CACHE_ROWS 2
#define CACHE_WIDTH 4
#define CACHE_PAIRS 2
#define CACHE_INPUTS (1 + CACHE_PAIRS)
#define CACHE_OUTPUTS (2 + CACHE_PAIRS)
#define CACHE_RUNS 8

static const int64_t cache_tokens[CACHE_RUNS] = {3, 1, 2, 1, 4, 1, 1, 2};

static inline sb_value_description cache_described(const char *name, const char *symbol) {
    static const int64_t dims[] = {CACHE_ROWS, -1, CACHE_WIDTH};
    static const char *texts[2][3] = {{NULL, "tokens", NULL}, {NULL, "past", NULL}};
    return (sb_value_description){.name = name,
                                  .kind = SB_KIND_TENSOR,
                                  .dtype = SB_F32,
                                  .rank = 3,
                                  .dims = dims,
                                  .dim_texts = texts[strcmp(symbol, "past") == 0]};
}

static inline sb_status add_named(sb_builder *b, const char *op, const char *name, int count,
                                  const sb_builder_value *inputs, const sb_builder_attribute *attribute,
                                  sb_builder_value *output, sb_error *error) {
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = op;
    node.input_count = count;
    node.inputs = inputs;
    node.attribute_count = attribute != NULL;
    node.attributes = attribute;
    node.output_names = &name;
    return sb_builder_add_node(b, &node, output, error);
}

static inline sb_status add_integers(sb_builder *b, const char *name, int rank, int64_t count, const int64_t *values,
                                     sb_builder_value *value, sb_error *error) {
    sb_tensor *tensor;
    SB_TRY(sb_tensor_from_data(SB_S64, rank, &count, values, &tensor, error));
    sb_status status = sb_builder_constant(b, name, tensor, value, error);
    sb_tensor_release(tensor);
    return status;
}

/* How many rows a cache has, as a scalar. */
static inline sb_status add_rows(sb_builder *b, sb_builder_value cache, const char *shape, const char *name,
                                 sb_builder_value axis, sb_builder_value *rows, sb_error *error) {
    sb_builder_value extents;
    SB_TRY(add_named(b, "Shape", shape, 1, &cache, NULL, &extents, error));
    return add_named(b, "Gather", name, 2, (sb_builder_value[]){extents, axis}, NULL, rows, error);
}

/* The positions of the new rows, behind those of the past, expanded to x: as exporters write it, with a shape of which no
 * extent is -1. */
static inline sb_status add_positions(sb_builder *b, sb_builder_value x, sb_builder_value past_key,
                                      sb_builder_value key, sb_builder_value *positions, sb_error *error) {
    static const int64_t ones[] = {1, 1, 1}, minus = -1;
    sb_builder_attribute to = sb_attribute_int("to", 1);
    sb_builder_value one, all, none, begin, end, range, numbers, column, shape, asked, wanted;
    SB_TRY(add_integers(b, "one", 0, 1, ones, &one, error));
    SB_TRY(add_integers(b, "ones", 1, 3, ones, &all, error));
    SB_TRY(add_integers(b, "none", 1, 1, &minus, &none, error));
    SB_TRY(add_rows(b, past_key, "past_shape", "begin", one, &begin, error));
    SB_TRY(add_rows(b, key, "key_shape", "end", one, &end, error));
    SB_TRY(add_named(b, "Range", "range", 3, (sb_builder_value[]){begin, end, one}, NULL, &range, error));
    SB_TRY(add_named(b, "Cast", "numbers", 1, &range, &to, &numbers, error));
    SB_TRY(add_named(b, "Unsqueeze", "column", 2, (sb_builder_value[]){numbers, none}, NULL, &column, error));
    SB_TRY(add_named(b, "Shape", "x_shape", 1, &x, NULL, &shape, error));
    SB_TRY(add_named(b, "Equal", "asked", 2, (sb_builder_value[]){shape, none}, NULL, &asked, error));
    SB_TRY(add_named(b, "Where", "wanted", 3, (sb_builder_value[]){asked, all, shape}, NULL, &wanted, error));
    return add_named(b, "Expand", "positions", 2, (sb_builder_value[]){column, wanted}, NULL, positions, error);
}

/* x [2,tokens,4] appended to past_key, its negative to past_value: [2,past,4] both. Outputs: x attending to both with the
 * positions added, and the shape of the keys, which is known without a kernel. */
static inline sb_status add_cache_model(sb_builder *b, sb_error *error) {
    static const int64_t swapped[] = {0, 2, 1};
    sb_value_description x_like = cache_described("x", "tokens"), key_like = cache_described("past_key", "past"),
                         value_like = cache_described("past_value", "past");
    sb_builder_attribute axis = sb_attribute_int("axis", 1), perm = sb_attribute_ints("perm", 3, swapped);
    sb_builder_value x, past_key, past_value, negative, turned, scores, shares, mix[2], outputs[CACHE_OUTPUTS];
    sb_builder_value *mixed = &outputs[0], *length = &outputs[1], *key = &outputs[2], *value = &outputs[3];
    SB_TRY(sb_builder_input(b, &x_like, &x, error));
    SB_TRY(sb_builder_input(b, &key_like, &past_key, error));
    SB_TRY(sb_builder_input(b, &value_like, &past_value, error));
    SB_TRY(add_named(b, "Neg", "negative", 1, &x, NULL, &negative, error));
    SB_TRY(add_named(b, "Concat", "present_key", 2, (sb_builder_value[]){past_key, x}, &axis, key, error));
    SB_TRY(add_named(b, "Concat", "present_value", 2, (sb_builder_value[]){past_value, negative}, &axis, value, error));
    SB_TRY(add_named(b, "Transpose", "turned", 1, key, &perm, &turned, error));
    SB_TRY(add_named(b, "MatMul", "scores", 2, (sb_builder_value[]){x, turned}, NULL, &scores, error));
    SB_TRY(add_named(b, "Softmax", "shares", 1, &scores, NULL, &shares, error));
    SB_TRY(add_named(b, "MatMul", "mix", 2, (sb_builder_value[]){shares, *value}, NULL, &mix[0], error));
    SB_TRY(add_positions(b, x, past_key, *key, &mix[1], error));
    SB_TRY(add_named(b, "Add", "mixed", 2, mix, NULL, mixed, error));
    SB_TRY(add_named(b, "Shape", "length", 1, key, NULL, length, error));
    for (int i = 0; i < CACHE_OUTPUTS; i++)
        SB_TRY(sb_builder_output(b, outputs[i], error));
    return SB_OK;
}

static inline sb_model *cache_model(void) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_cache_model(b, error), &model, error));
    return model;
}

static inline sb_status try_cache_state(sb_model *model, sb_device *device, int64_t capacity, int64_t least,
                                        sb_state **state, sb_error *error) {
    sb_state_pair pairs[CACHE_PAIRS] = {{"past_key", "present_key", -1, NULL},
                                        {"past_value", "present_value", -1, NULL}};
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_capacity past = {"past", capacity, least};
    options.device = device;
    options.pair_count = CACHE_PAIRS;
    options.pairs = pairs;
    options.capacity_count = 1;
    options.capacities = &past;
    return sb_state_create(model, &options, state, error);
}

/* ---- the script ---- */

/* Runs from an empty cache: what goes in, what comes out, and what the cache is before each and behind the last. */
typedef struct cache_script {
    sb_tensor *x[CACHE_RUNS], *mixed[CACHE_RUNS], *length[CACHE_RUNS];
    sb_tensor *held[CACHE_RUNS + 1][CACHE_PAIRS];
    int64_t used[CACHE_RUNS + 1];
} cache_script;

static inline cache_script write_script(sb_model *model) {
    cache_script script = {.used = {0}};
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    options.threads = 1;
    MUST(sb_session_create(model, &options, &session, error));
    for (int i = 0; i < CACHE_PAIRS; i++)
        script.held[0][i] = numbers(3, (int64_t[]){CACHE_ROWS, 0, CACHE_WIDTH}, 0);
    for (int run = 0; run < CACHE_RUNS; run++) {
        sb_tensor *outputs[CACHE_OUTPUTS];
        script.x[run] = numbers(3, (int64_t[]){CACHE_ROWS, cache_tokens[run], CACHE_WIDTH}, 40 + (uint64_t)run);
        sb_tensor *inputs[CACHE_INPUTS] = {script.x[run], script.held[run][0], script.held[run][1]};
        MUST(sb_session_run_tensors(session, inputs, outputs, error));
        script.mixed[run] = outputs[0];
        script.length[run] = outputs[1];
        memcpy(script.held[run + 1], outputs + 2, sizeof script.held[0]);
        script.used[run + 1] = script.used[run] + cache_tokens[run];
    }
    sb_session_destroy(session);
    return script;
}

static inline void drop_script(cache_script *script) {
    for (int run = 0; run <= CACHE_RUNS; run++) {
        for (int i = 0; i < CACHE_PAIRS; i++)
            sb_tensor_release(script->held[run][i]);
        if (run == CACHE_RUNS)
            break;
        sb_tensor_release(script->x[run]);
        sb_tensor_release(script->mixed[run]);
        sb_tensor_release(script->length[run]);
    }
}

/* The state holds what the script's runs before one leave; which one that is. */
static inline int check_place(sb_state *state, const cache_script *script) {
    int64_t used;
    int run = 0;
    MUST(sb_state_extent(state, "past", &used, error));
    while (run < CACHE_RUNS && script->used[run] != used)
        run++;
    if (script->used[run] != used)
        fail_msg("the extent is %lld, which no run of the script leaves", (long long)used);
    for (int i = 0; i < CACHE_PAIRS; i++) {
        sb_tensor *held = NULL;
        MUST(sb_state_get(state, (size_t)i, &held, error));
        check_equal(held, script->held[run][i]);
        sb_tensor_release(held);
    }
    return run;
}

static inline bool is_torn(sb_state *state, sb_error *reason) {
    sb_tensor *held;
    sb_status status = sb_state_get(state, 0, &held, reason);
    if (status == SB_OK)
        sb_tensor_release(held);
    return status != SB_OK;
}

static inline sb_status try_cache_run(sb_session *session, const cache_script *script, int run, sb_value *outputs,
                                      sb_error *error) {
    sb_value inputs[CACHE_INPUTS] = {sb_value_of_tensor(script->x[run])};
    return sb_session_run(session, inputs, outputs, error);
}

static inline void release_outputs(sb_value *outputs) {
    for (int i = 0; i < CACHE_OUTPUTS; i++)
        sb_value_release(&outputs[i]);
}

#endif
