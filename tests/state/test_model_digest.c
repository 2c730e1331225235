/* By what a file of a state knows its model: the graphs as they were built, whatever the passes make of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/model_digest.h"
#include "stateful.h"
#include "support/failing.h"
#include "support/folder.h"

#define SIDE 512 /* of what is folded: a megabyte */

/* What differs between models; all 0: nothing. */
typedef struct change {
    int kept, folded, swept, merged, inside; /* added to an element of a constant */
    int perm;                                /* the order of a transposition that is folded */
    const char *op;                          /* in place of Add */
    const char *variable;                    /* in place of "v" */
    bool shape;                              /* x of another extent */
} change;

static sb_status add_filled(sb_builder *b, const char *name, int64_t rows, int64_t columns, int last,
                            sb_builder_value *value, sb_error *error) {
    float *data = malloc((size_t)(rows * columns) * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < rows * columns; i++)
        data[i] = (float)(i % 7) / 8;
    data[rows * columns - 1] += (float)last;
    sb_status status = add_constant(b, name, SB_F32, 2, (int64_t[]){rows, columns}, data, value, error);
    free(data);
    return status;
}

static sb_status add_op(sb_builder *b, const char *op, int count, const sb_builder_value *inputs,
                        const sb_builder_attribute *attribute, sb_builder_value *output, sb_error *error) {
    return sb_builder_op(b, op, count, inputs, attribute != NULL, attribute, output, error);
}

/* The graphs of an If of which each adds a constant of its own to `value`. */
static sb_status add_if(sb_builder *b, sb_builder_value condition, sb_builder_value value, int last,
                        sb_builder_value *output, sb_error *error) {
    sb_builder_graph graphs[2];
    for (int i = 0; i < 2; i++) {
        sb_builder_value constant, sum;
        SB_TRY(sb_builder_begin_graph(b, i == 0 ? "then" : "else", error));
        SB_TRY(add_filled(b, "own", 1, 4, i == 0 ? last : 5, &constant, error));
        SB_TRY(add_op(b, "Add", 2, (sb_builder_value[]){value, constant}, NULL, &sum, error));
        SB_TRY(sb_builder_output(b, sum, error));
        SB_TRY(sb_builder_end_graph(b, &graphs[i], error));
    }
    sb_builder_attribute attributes[] = {sb_attribute_graph("then_branch", graphs[0]),
                                         sb_attribute_graph("else_branch", graphs[1])};
    return sb_builder_op(b, "If", 1, &condition, 2, attributes, output, error);
}

static sb_status combine(sb_builder *b, const char *op, sb_builder_value *sum, sb_builder_value other,
                         sb_error *error) {
    return add_op(b, op, 2, (sb_builder_value[]){*sum, other}, NULL, sum, error);
}

/* Constants that the passes leave nothing of, *sum with them: the sum of a large one, that of the rows of a transposed
 * one, one that nothing needs, and one that stands there twice. */
static sb_status add_dropped(sb_builder *b, const change *c, sb_builder_value *sum, sb_error *error) {
    static const int64_t swapped[2][2] = {{1, 0}, {0, 1}}, zero = 0;
    sb_builder_value large, square, unused, twice[2], axis, first;
    sb_builder_attribute perm = sb_attribute_ints("perm", 2, swapped[c->perm]);
    SB_TRY(add_filled(b, "large", SIDE, SIDE, c->folded, &large, error));
    SB_TRY(add_op(b, "ReduceSum", 1, &large, NULL, &large, error));
    SB_TRY(combine(b, "Add", sum, large, error));
    SB_TRY(add_filled(b, "square", 4, 4, 0, &square, error));
    SB_TRY(add_constant(b, "axes", SB_S64, 1, (int64_t[]){1}, &zero, &axis, error));
    SB_TRY(add_op(b, "Transpose", 1, &square, &perm, &square, error));
    SB_TRY(add_op(b, "ReduceSum", 2, (sb_builder_value[]){square, axis}, NULL, &square, error));
    SB_TRY(combine(b, "Add", sum, square, error));
    SB_TRY(add_filled(b, "unused", 1, 4, c->swept, &unused, error));
    SB_TRY(add_op(b, "Neg", 1, &unused, NULL, &unused, error));
    SB_TRY(add_filled(b, "twice", 1, 4, 0, &twice[0], error));
    SB_TRY(add_filled(b, "again", 1, 4, c->merged, &twice[1], error));
    SB_TRY(add_op(b, "Mul", 2, (sb_builder_value[]){*sum, twice[0]}, NULL, &first, error));
    SB_TRY(combine(b, "Mul", sum, twice[1], error));
    return combine(b, c->op != NULL ? c->op : "Add", sum, first, error);
}

/* x [4] and v [4]: the sum of v, x times a constant, and those above; behind it an If whose graphs have constants of their
 * own. That is the output, and the next v. */
static sb_status add_model(sb_builder *b, const change *c, sb_error *error) {
    static const int64_t four[] = {4};
    static const float nothing = 0;
    const char *name = c->variable != NULL ? c->variable : "v";
    sb_value_description whole = {.name = name, .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 1, .dims = four};
    sb_value_description input = whole;
    sb_builder_variable variable;
    sb_builder_value sum, v, kept, zero, condition, shape;
    input.name = "x";
    input.dims = c->shape ? (int64_t[]){1} : four;
    SB_TRY(sb_builder_add_variable(b, &whole, NULL, NULL, &variable, error));
    SB_TRY(sb_builder_input(b, &input, &sum, error));
    SB_TRY(sb_builder_read(b, variable, &v, error));
    SB_TRY(add_filled(b, "kept", 1, 4, c->kept, &kept, error));
    SB_TRY(combine(b, "Mul", &sum, kept, error));
    SB_TRY(combine(b, "Add", &sum, v, error));
    SB_TRY(add_dropped(b, c, &sum, error));
    SB_TRY(add_constant(b, "nothing", SB_F32, 0, NULL, &nothing, &zero, error));
    SB_TRY(add_op(b, "ReduceSum", 1, &sum, NULL, &condition, error));
    SB_TRY(combine(b, "Greater", &condition, zero, error));
    SB_TRY(add_if(b, condition, sum, c->inside, &sum, error));
    SB_TRY(add_constant(b, "shape", SB_S64, 1, (int64_t[]){1}, four, &shape, error));
    SB_TRY(combine(b, "Reshape", &sum, shape, error));
    SB_TRY(sb_builder_update(b, variable, sum, error));
    return sb_builder_output(b, sum, error);
}

static sb_status try_model(const change *c, bool passes, sb_model **model, sb_error *error) {
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    sb_builder *b;
    options.passes = passes;
    SB_TRY(sb_builder_create(&b, error));
    sb_status status = add_model(b, c, error);
    if (status == SB_OK)
        status = sb_builder_build(b, &options, model, error);
    sb_builder_destroy(b);
    return status;
}

static sb_model *make_model(const change *c, bool passes) {
    sb_model *model;
    MUST(try_model(c, passes, &model, error));
    return model;
}

/* ---- which models are the same ---- */

static void digest_of(const change *c, bool passes, unsigned char *bytes) {
    sb_model *model = make_model(c, passes);
    unsigned char again[SB_DIGEST_BYTES];
    MUST(sb_model_digest(model, bytes, error));
    MUST(sb_model_digest(model, again, error));
    assert_memory_equal(bytes, again, SB_DIGEST_BYTES);
    sb_model_release(model);
}

static void test_same(void **unused) {
    unsigned char with[SB_DIGEST_BYTES], without[SB_DIGEST_BYTES];
    digest_of(&(change){0}, true, with);
    digest_of(&(change){0}, false, without);
    assert_memory_equal(with, without, SB_DIGEST_BYTES);
}

/* Whatever is in the model when it is built counts, whether the passes leave it or not. */
static void test_other(void **unused) {
    static const change changes[] = {{0},           {.kept = 1}, {.folded = 1}, {.swept = 1},      {.merged = 1},
                                     {.inside = 1}, {.perm = 1}, {.op = "Sub"}, {.variable = "w"}, {.shape = true}};
    enum { COUNT = sizeof changes / sizeof changes[0] };
    for (int passes = 0; passes < 2; passes++) {
        unsigned char bytes[COUNT][SB_DIGEST_BYTES];
        for (int i = 0; i < COUNT; i++) {
            digest_of(&changes[i], passes != 0, bytes[i]);
            for (int j = 0; j < i; j++)
                assert_memory_not_equal(bytes[i], bytes[j], SB_DIGEST_BYTES);
        }
    }
}

/* ---- files ---- */

typedef struct life {
    sb_model *model;
    sb_state *state;
    sb_session *session;
} life;

static life begin(const change *c, bool passes) {
    life l = {.model = make_model(c, passes)};
    MUST(sb_state_create(l.model, NULL, &l.state, error));
    l.session = bound_session(l.model, l.state, NULL, NULL);
    return l;
}

static void end(life *l) {
    sb_session_destroy(l->session);
    sb_state_release(l->state);
    sb_model_release(l->model);
}

static sb_tensor *run(life *l, uint64_t seed) {
    sb_tensor *x = numbers(1, (int64_t[]){4}, seed), *output;
    run_tensors(l->session, &x, &output);
    sb_tensor_release(x);
    return output;
}

/* A state goes from a model that has been through the passes to one that has not, and back, and on with the same bits. */
static void test_files(void **unused) {
    life lives[2] = {begin(&(change){0}, false), begin(&(change){0}, true)},
         other = begin(&(change){.folded = 1}, true);
    sb_error error;
    for (int round = 0; round < 6; round++) {
        life *from = &lives[round % 2], *to = &lives[1 - round % 2];
        sb_tensor *outputs[2];
        sb_tensor_release(run(from, 10 + (uint64_t)round));
        MUST(sb_state_save(from->state, folder_path("state"), error));
        MUST(sb_state_restore(to->state, folder_path("state"), error));
        check_same_contents(from->state, to->state);
        for (int i = 0; i < 2; i++)
            outputs[i] = run(&lives[i], 20 + (uint64_t)round);
        check_equal(outputs[0], outputs[1]);
        check_same_contents(from->state, to->state);
        assert_int_equal(sb_state_restore(other.state, folder_path("state"), &error), SB_ERROR_INVALID_ARGUMENT);
        ASSERT_SAYS(error, "at byte 16: the state of another model");
        sb_tensor_release(outputs[0]);
        sb_tensor_release(outputs[1]);
    }
    end(&other);
    end(&lives[0]);
    end(&lives[1]);
}

/* ---- memory ---- */

/* Constants that the passes have dropped are not kept for a digest that nobody may ask for. */
static void test_dropped(void **unused) {
    for (int passes = 0; passes < 2; passes++) {
        int64_t before = sb_allocation_count().live_bytes, large = SIDE * SIDE * (int64_t)sizeof(float);
        sb_model *model = make_model(&(change){0}, passes != 0);
        int64_t held = sb_allocation_count().live_bytes - before;
        assert_int_equal(held > large, passes == 0);
        assert_true(held < 2 * large);
        sb_model_release(model);
    }
}

static sb_status make_and_digest(void *context) {
    sb_error error;
    sb_model *model;
    unsigned char bytes[SB_DIGEST_BYTES];
    SB_TRY(try_model(&(change){0}, true, &model, &error));
    sb_status status = sb_model_digest(model, bytes, &error);
    sb_model_release(model);
    return status;
}

static void test_memory(void **unused) {
    check_failing_allocations(make_and_digest, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),    cmocka_unit_test(test_other),  cmocka_unit_test(test_files),
        cmocka_unit_test(test_dropped), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, folder_open, folder_close);
}
