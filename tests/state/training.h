/* A network of two layers that learns: its weights are variables, of which kernels keep packed forms. With it, what says
 * what it ought to compute: the same nodes without variables, fed by hand. Include after cmocka.h. */
#ifndef SB_TESTS_TRAINING_H
#define SB_TESTS_TRAINING_H

#include <math.h>

#include "ops/convert_loops.h"
#include "runtime/derived.h"
#include "stateful.h"

#define BATCH 3

static const int64_t image_dims[] = {BATCH, 2, 6, 6}, target_dims[] = {BATCH, 5}, filter_dims[] = {4, 2, 3, 3},
                     matrix_dims[] = {64, 5};

/* Numbers in a dtype, up to 1/4: so small that learning converges. */
static inline sb_tensor *typed_numbers(sb_dtype dtype, int rank, const int64_t *dims, uint64_t seed) {
    sb_tensor *single = numbers(rank, dims, seed), *tensor;
    float *data = sb_tensor_mutable_data(single);
    for (int64_t i = 0; i < sb_tensor_elements(single); i++)
        data[i] /= 8;
    MUST(sb_tensor_create(dtype, rank, dims, &tensor, error));
    sb_convert_row(dtype, sb_tensor_mutable_data(tensor), SB_F32, sb_tensor_data(single), sizeof(float),
                   sb_tensor_elements(tensor));
    sb_tensor_release(single);
    return tensor;
}

/* ---- the graphs ---- */

typedef struct learning {
    sb_builder *b;
    sb_dtype dtype;
    bool by_hand; /* weights are inputs, and outputs behind the others */
    sb_builder_variable variables[2];
    sb_builder_value weights[2];
} learning;

static inline sb_status op(const learning *l, const char *name, int count, const sb_builder_value *inputs,
                           int attribute_count, const sb_builder_attribute *attributes, sb_builder_value *value,
                           sb_error *error) {
    return sb_builder_op(l->b, name, count, inputs, attribute_count, attributes, value, error);
}

static inline sb_status typed_input(const learning *l, const char *name, int rank, const int64_t *dims,
                                    sb_builder_value *value, sb_error *error) {
    sb_value_description description = described(name, l->dtype, rank, dims);
    return sb_builder_input(l->b, &description, value, error);
}

static inline sb_status add_weights(learning *l, sb_error *error) {
    static const int64_t *const dims[] = {filter_dims, matrix_dims};
    static const int ranks[] = {4, 2};
    static const char *const names[] = {"filter", "matrix"};
    for (int i = 0; i < 2 && !l->by_hand; i++) {
        sb_value_description description = described(names[i], l->dtype, ranks[i], dims[i]);
        sb_tensor *initial = typed_numbers(l->dtype, ranks[i], dims[i], 70 + (uint64_t)i);
        sb_status status = sb_builder_add_variable(l->b, &description, initial, NULL, &l->variables[i], error);
        sb_tensor_release(initial);
        SB_TRY(status);
    }
    return SB_OK;
}

/* The weights as a graph reads them. */
static inline sb_status read_weights(learning *l, sb_error *error) {
    if (l->by_hand) {
        SB_TRY(typed_input(l, "filter", 4, filter_dims, &l->weights[0], error));
        return typed_input(l, "matrix", 2, matrix_dims, &l->weights[1], error);
    }
    SB_TRY(sb_builder_read(l->b, l->variables[0], &l->weights[0], error));
    return sb_builder_read(l->b, l->variables[1], &l->weights[1], error);
}

/* c = conv(x, filter), f = the rows of max(c, 0), y = f · matrix. */
static inline sb_status add_forward(const learning *l, sb_builder_value x, sb_builder_value *c, sb_builder_value *f,
                                    sb_builder_value *y, sb_error *error) {
    sb_builder_value h;
    SB_TRY(op(l, "Conv", 2, (sb_builder_value[]){x, l->weights[0]}, 0, NULL, c, error));
    SB_TRY(op(l, "Relu", 1, c, 0, NULL, &h, error));
    SB_TRY(op(l, "Flatten", 1, &h, 1, (sb_builder_attribute[]){sb_attribute_int("axis", 1)}, f, error));
    return op(l, "MatMul", 2, (sb_builder_value[]){*f, l->weights[1]}, 0, NULL, y, error);
}

static inline sb_status swap_first(const learning *l, sb_builder_value value, sb_builder_value *swapped,
                                   sb_error *error) {
    static const int64_t order[] = {1, 0, 2, 3};
    return op(l, "Transpose", 1, &value, 1, (sb_builder_attribute[]){sb_attribute_ints("perm", 4, order)}, swapped,
              error);
}

/* The gradients of half the squared distance of y from the target. */
static inline sb_status add_gradients(const learning *l, sb_builder_value x, sb_builder_value c, sb_builder_value f,
                                      sb_builder_value d, sb_builder_value *gradients, sb_error *error) {
    static const int64_t shape[] = {BATCH, 4, 4, 4}, four[] = {4};
    sb_builder_value gf, gh, to, zero, positive, mask, gc, xs, gs, gw;
    SB_TRY(op(l, "Gemm", 2, (sb_builder_value[]){f, d}, 1, (sb_builder_attribute[]){sb_attribute_int("transA", 1)},
              &gradients[1], error));
    SB_TRY(op(l, "Gemm", 2, (sb_builder_value[]){d, l->weights[1]}, 1,
              (sb_builder_attribute[]){sb_attribute_int("transB", 1)}, &gf, error));
    SB_TRY(add_constant(l->b, "shape", SB_S64, 1, four, shape, &to, error));
    SB_TRY(op(l, "Reshape", 2, (sb_builder_value[]){gf, to}, 0, NULL, &gh, error));
    SB_TRY(add_constant(l->b, "zero", l->dtype, 0, NULL, (float[]){0}, &zero, error));
    SB_TRY(op(l, "Greater", 2, (sb_builder_value[]){c, zero}, 0, NULL, &positive, error));
    SB_TRY(op(l, "CastLike", 2, (sb_builder_value[]){positive, gh}, 0, NULL, &mask, error));
    SB_TRY(op(l, "Mul", 2, (sb_builder_value[]){gh, mask}, 0, NULL, &gc, error));
    SB_TRY(swap_first(l, x, &xs, error));
    SB_TRY(swap_first(l, gc, &gs, error));
    SB_TRY(op(l, "Conv", 2, (sb_builder_value[]){xs, gs}, 0, NULL, &gw, error));
    return swap_first(l, gw, &gradients[0], error);
}

/* One step of gradient descent. Outputs: y; then conv(x, filter) and f · matrix with the next versions. */
static inline sb_status add_step(learning *l, sb_error *error) {
    sb_builder_value x, t, c, f, y, d, gradients[2], rate, change, next[2], late;
    sb_tensor *small = typed_numbers(l->dtype, 0, NULL, 1);
    sb_convert_row(l->dtype, sb_tensor_mutable_data(small), SB_F32, (float[]){0.25f}, 1, 1);
    SB_TRY(typed_input(l, "x", 4, image_dims, &x, error));
    SB_TRY(typed_input(l, "t", 2, target_dims, &t, error));
    SB_TRY(read_weights(l, error));
    SB_TRY(add_forward(l, x, &c, &f, &y, error));
    SB_TRY(op(l, "Sub", 2, (sb_builder_value[]){y, t}, 0, NULL, &d, error));
    SB_TRY(add_gradients(l, x, c, f, d, gradients, error));
    sb_status status = sb_builder_constant(l->b, "rate", small, &rate, error);
    sb_tensor_release(small);
    SB_TRY(status);
    for (int i = 0; i < 2; i++) {
        SB_TRY(op(l, "Mul", 2, (sb_builder_value[]){gradients[i], rate}, 0, NULL, &change, error));
        SB_TRY(op(l, "Sub", 2, (sb_builder_value[]){l->weights[i], change}, 0, NULL, &next[i], error));
        if (!l->by_hand)
            SB_TRY(sb_builder_update(l->b, l->variables[i], next[i], error));
    }
    SB_TRY(sb_builder_output(l->b, y, error));
    SB_TRY(op(l, "Conv", 2, (sb_builder_value[]){x, next[0]}, 0, NULL, &late, error));
    SB_TRY(sb_builder_output(l->b, late, error));
    SB_TRY(op(l, "MatMul", 2, (sb_builder_value[]){f, next[1]}, 0, NULL, &late, error));
    SB_TRY(sb_builder_output(l->b, late, error));
    for (int i = 0; i < 2 && l->by_hand; i++)
        SB_TRY(sb_builder_output(l->b, next[i], error));
    return SB_OK;
}

/* Two entries over the same weights: "train", a step, and "rollout", which only reads them. */
static inline sb_status add_learning(learning *l, sb_error *error) {
    sb_builder_value x, c, f, y;
    SB_TRY(add_weights(l, error));
    SB_TRY(sb_builder_entry(l->b, "train", error));
    SB_TRY(add_step(l, error));
    SB_TRY(sb_builder_entry(l->b, "rollout", error));
    SB_TRY(typed_input(l, "x", 4, image_dims, &x, error));
    SB_TRY(read_weights(l, error));
    SB_TRY(add_forward(l, x, &c, &f, &y, error));
    return sb_builder_output(l->b, y, error);
}

static inline sb_model *learning_model(sb_dtype dtype, bool by_hand) {
    learning l = {.dtype = dtype, .by_hand = by_hand};
    sb_model *model;
    MUST(sb_builder_create(&l.b, error));
    MUST(build_and_destroy(l.b, add_learning(&l, error), &model, error));
    return model;
}

#define STEP_OUTPUTS 3

/* ---- what it ought to compute ---- */

/* The network fed by hand, on the CPU. */
typedef struct teacher {
    sb_dtype dtype;
    sb_model *model;
    sb_session *step, *rollout;
    sb_tensor *weights[2];
    int steps, changes; /* of which so many have changed both weights */
} teacher;

static inline teacher start_teacher(sb_dtype dtype) {
    teacher t = {.dtype = dtype, .model = learning_model(dtype, true)};
    t.step = bound_session(t.model, NULL, "train", NULL);
    t.rollout = bound_session(t.model, NULL, "rollout", NULL);
    t.weights[0] = typed_numbers(dtype, 4, filter_dims, 70);
    t.weights[1] = typed_numbers(dtype, 2, matrix_dims, 71);
    return t;
}

static inline void set_weights(teacher *t, sb_tensor *filter, sb_tensor *matrix) {
    sb_tensor_release(t->weights[0]);
    sb_tensor_release(t->weights[1]);
    t->weights[0] = filter;
    t->weights[1] = matrix;
}

static inline void end_teacher(teacher *t) {
    set_weights(t, NULL, NULL);
    sb_session_destroy(t->step);
    sb_session_destroy(t->rollout);
    sb_model_release(t->model);
}

static inline void clear_tensors(sb_tensor **tensors, int count) {
    for (int i = 0; i < count; i++)
        sb_tensor_release(tensors[i]);
}

/* Where nothing is finite any more, everything agrees. */
static inline bool is_finite(sb_tensor *tensor) {
    bool finite = true;
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++) {
        float number;
        sb_convert_row(SB_F32, &number, tensor->dtype, tensor->data + i * (int64_t)sb_dtype_size(tensor->dtype), 1, 1);
        finite = finite && isfinite(number);
    }
    return finite;
}

/* Whether a step of the session gives the bits of a step by hand, in all its outputs. */
static inline bool step_agrees(teacher *t, sb_session *session, uint64_t seed) {
    sb_tensor *inputs[] = {typed_numbers(t->dtype, 4, image_dims, seed),
                           typed_numbers(t->dtype, 2, target_dims, seed + 7), t->weights[0], t->weights[1]};
    sb_tensor *found[STEP_OUTPUTS], *expected[STEP_OUTPUTS + 2];
    bool same = true;
    run_tensors(t->step, inputs, expected);
    run_tensors(session, inputs, found);
    for (int i = 0; i < STEP_OUTPUTS; i++)
        same = same && sb_tensor_equal(found[i], expected[i]);
    clear_tensors(inputs, 2);
    clear_tensors(found, STEP_OUTPUTS);
    assert_true(is_finite(expected[0]));
    clear_tensors(expected, STEP_OUTPUTS);
    t->steps++;
    t->changes += !sb_tensor_equal(t->weights[0], expected[STEP_OUTPUTS]) &&
                  !sb_tensor_equal(t->weights[1], expected[STEP_OUTPUTS + 1]);
    set_weights(t, expected[STEP_OUTPUTS], expected[STEP_OUTPUTS + 1]);
    return same;
}

static inline bool rollout_agrees(const teacher *t, sb_session *session, uint64_t seed) {
    sb_tensor *inputs[] = {typed_numbers(t->dtype, 4, image_dims, seed), t->weights[0], t->weights[1]};
    sb_tensor *found, *expected;
    run_tensors(t->rollout, inputs, &expected);
    run_tensors(session, inputs, &found);
    bool same = sb_tensor_equal(found, expected);
    sb_tensor_release(inputs[0]);
    sb_tensor_release(found);
    sb_tensor_release(expected);
    return same;
}

static inline void check_weights(const teacher *t, sb_state *state) {
    sb_tensor *filter = contents(state, "filter"), *matrix = contents(state, "matrix");
    check_equal(filter, t->weights[0]);
    check_equal(matrix, t->weights[1]);
    sb_tensor_release(filter);
    sb_tensor_release(matrix);
}

/* ---- a planted error ---- */

/* Makes the state take packed form number `index` of all that it keeps for one of the contents as they are now, without
 * packing them. False: it keeps no more than that. */
static inline bool plant_stale(sb_state *state, int index) {
    for (size_t i = 0; i < state->count; i++) {
        for (sb_derived_value *value = state->variables[i].derived; value != NULL; value = value->next) {
            if (index-- != 0)
                continue;
            value->contents = value->variable->contents;
            return true;
        }
    }
    return false;
}

/* The packed forms that a state keeps. */
static inline int count_derived(const sb_state *state) {
    int count = 0;
    for (size_t i = 0; i < state->count; i++) {
        for (const sb_derived_value *value = state->variables[i].derived; value != NULL; value = value->next)
            count++;
    }
    return count;
}

/* Steps of a network in whose state one form after the other is stale: each has to show. */
static inline void check_stale_shows(sb_dtype dtype, sb_device *device, sb_graph_mode mode) {
    for (int index = 0, forms = 1; index < forms; index++) {
        sb_model *model = learning_model(dtype, false);
        sb_state *state = state_on(device, model);
        sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
        sb_session *session;
        options.threads = 1;
        options.state = state;
        options.entry = "train";
        options.device = device;
        options.graphs = mode;
        MUST(sb_session_create(model, &options, &session, error));
        teacher t = start_teacher(dtype);
        bool same = true;
        for (uint64_t step = 0; step < 10; step++) {
            bool agrees = step_agrees(&t, session, step);
            if (step < 3)
                assert_true(agrees);
            same = same && agrees;
            if (step >= 2)
                assert_true(plant_stale(state, index));
        }
        if (same)
            fail_msg("nobody sees that form %d of %d is stale", index, forms);
        forms = count_derived(state);
        end_teacher(&t);
        sb_session_destroy(session);
        sb_state_release(state);
        sb_model_release(model);
    }
}

#endif
