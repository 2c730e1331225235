/* Constants that are read packed: one form for all that read it; where nobody else reads them their elements go, and come back for
 * whoever looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ops/convert_loops.h"
#include "runtime/model.h"
#include "runtime/model_digest.h"
#include "state/stateful.h"

#define K 150
#define N 301 /* no multiple of any panel */

/* y = x w, and what stands behind it. */
typedef struct network {
    const char *op;
    sb_dtype dtype;
    bool transposed, fused, twice; /* twice: w is added to a second product too */
} network;

static const network networks[] = {
    {"MatMul", SB_F32, false, false, false}, {"MatMul", SB_F32, false, true, false},
    {"Gemm", SB_F32, true, false, false},    {"MatMul", SB_BF16, false, false, false},
    {"Gemm", SB_F16, true, true, false},     {"MatMul", SB_F32, false, false, true},
};
#define NETWORKS (sizeof networks / sizeof networks[0])

/* Any bits, NaN among them. */
static sb_tensor *weights(const network *net) {
    random_source source = {7};
    sb_tensor *tensor;
    MUST(sb_tensor_create(net->dtype, 2, net->transposed ? (int64_t[]){N, K} : (int64_t[]){K, N}, &tensor, error));
    unsigned char *bytes = sb_tensor_mutable_data(tensor);
    for (size_t i = 0; i < (size_t)(K * N) * sb_dtype_size(net->dtype); i++)
        bytes[i] = (unsigned char)random_bits(&source);
    return tensor;
}

static sb_status add_network(sb_builder *b, const network *net, sb_tensor *w, sb_error *error) {
    const int64_t dims[] = {-1, K};
    sb_value_description x_is = described("x", net->dtype, 2, dims);
    sb_builder_attribute transposed = sb_attribute_int("transB", net->transposed);
    sb_builder_value x, held, y;
    SB_TRY(sb_builder_input(b, &x_is, &x, error));
    SB_TRY(sb_builder_constant(b, "w", w, &held, error));
    SB_TRY(sb_builder_op(b, net->op, 2, (sb_builder_value[]){x, held}, strcmp(net->op, "Gemm") == 0, &transposed, &y,
                         error));
    if (net->fused)
        SB_TRY(sb_builder_op(b, "Relu", 1, &y, 0, NULL, &y, error));
    SB_TRY(sb_builder_output(b, y, error));
    if (!net->twice)
        return SB_OK;
    SB_TRY(sb_builder_op(b, "Exp", 1, &held, 0, NULL, &y, error));
    SB_TRY(add_binary(b, "MatMul", x, y, &y, error));
    SB_TRY(add_binary(b, "Mul", x, x, &x, error));
    SB_TRY(add_binary(b, "MatMul", x, held, &x, error));
    SB_TRY(sb_builder_output(b, x, error));
    return sb_builder_output(b, y, error);
}

/* `owned`: as the importer says of what it has read. */
static sb_model *model_of(const network *net, bool owned, const sb_tensor **held) {
    sb_builder *b;
    sb_model *model;
    sb_tensor *w = weights(net);
    w->storage->dispensable = owned;
    *held = w;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_network(b, net, w, error), &model, error));
    sb_tensor_release(w); /* the model's from here on */
    return model;
}

/* The outputs' digest for some rows, in a session of their own. */
static void run(sb_model *model, const network *net, int64_t rows, char digest[SB_DIGEST_TEXT_BYTES]) {
    sb_session *session;
    sb_tensor *x, *wide, *outputs[3];
    sb_value values[3];
    int count = sb_model_output_count(model);
    wide = numbers(2, (int64_t[]){rows, K}, 3);
    MUST(sb_tensor_create(net->dtype, 2, wide->dims, &x, error));
    sb_convert_row(net->dtype, x->data, SB_F32, wide->data, sizeof(float), rows * K);
    sb_tensor_release(wide);
    MUST(sb_session_create(model, NULL, &session, error));
    MUST(sb_session_run_tensors(session, &x, outputs, error));
    for (int i = 0; i < count; i++)
        values[i] = sb_value_of_tensor(outputs[i]);
    MUST(sb_digest_values(count, values, digest, error));
    for (int i = 0; i < count; i++)
        sb_tensor_release(outputs[i]);
    sb_tensor_release(x);
    sb_session_destroy(session);
}

static bool equal_bits(const sb_tensor *left, const sb_tensor *right) {
    return left->data != NULL &&
           memcmp(left->data, right->data, (size_t)sb_tensor_elements(right) * sb_dtype_size(right->dtype)) == 0;
}

/* Only those that the model alone holds, and one node alone reads, go; no bit of any output depends on it. */
static void test_going(void **state) {
    (void)state;
    for (size_t i = 0; i < NETWORKS; i++) {
        const sb_tensor *held, *kept;
        char expected[SB_DIGEST_TEXT_BYTES], found[SB_DIGEST_TEXT_BYTES];
        sb_model *model = model_of(&networks[i], true, &held), *other = model_of(&networks[i], false, &kept);
        assert_non_null(held->data);
        for (int64_t rows = 1; rows < 4; rows++) {
            run(other, &networks[i], rows, expected);
            run(model, &networks[i], rows, found);
            assert_string_equal(found, expected);
        }
        assert_int_equal(held->data == NULL, !networks[i].twice);
        assert_non_null(kept->data);
        sb_model_release(model);
        sb_model_release(other);
    }
}

/* A digest over the model, or a look at it, brings them back as they were, for good. */
static void test_coming_back(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * NETWORKS; i++) {
        const network *net = &networks[i / 2];
        const sb_tensor *held, *fresh_held;
        unsigned char digest[SB_DIGEST_BYTES], expected[SB_DIGEST_BYTES];
        char text[SB_DIGEST_TEXT_BYTES], again[SB_DIGEST_TEXT_BYTES];
        sb_tensor *w = weights(net);
        sb_model *model = model_of(net, true, &held), *fresh = model_of(net, true, &fresh_held);
        sb_inspection *inspection = NULL;
        run(model, net, 2, text);
        if (i % 2 == 0) {
            MUST(sb_model_digest(model, digest, error));
            MUST(sb_model_digest(fresh, expected, error));
            assert_memory_equal(digest, expected, sizeof digest);
        } else {
            MUST(sb_model_inspect(model, NULL, &inspection, error));
        }
        assert_true(equal_bits(held, w));
        run(model, net, 2, again);
        assert_string_equal(again, text);
        assert_true(equal_bits(held, w));
        /* One that was looked at before its first run keeps them. */
        run(fresh, net, 2, again);
        assert_int_equal(fresh_held->data == NULL, i % 2 != 0 && !net->twice);
        sb_inspection_release(inspection);
        sb_tensor_release(w);
        sb_model_release(model);
        sb_model_release(fresh);
    }
}

/* y = relu(x w) w w v, with v a constant of w's values: what three nodes have packed of w is one form, v's is another. */
static sb_status add_steps(sb_builder *b, sb_tensor *w, sb_tensor *v, sb_error *error) {
    sb_value_description x_is = described("x", SB_F32, 2, (int64_t[]){-1, K});
    sb_builder_value x, held, other;
    SB_TRY(sb_builder_input(b, &x_is, &x, error));
    SB_TRY(sb_builder_constant(b, "w", w, &held, error));
    SB_TRY(sb_builder_constant(b, "v", v, &other, error));
    SB_TRY(add_binary(b, "MatMul", x, held, &x, error));
    SB_TRY(sb_builder_op(b, "Relu", 1, &x, 0, NULL, &x, error));
    SB_TRY(add_binary(b, "MatMul", x, held, &x, error));
    SB_TRY(add_binary(b, "Gemm", x, held, &x, error));
    SB_TRY(add_binary(b, "MatMul", x, other, &x, error));
    return sb_builder_output(b, x, error);
}

static void test_sharing(void **state) {
    (void)state;
    sb_builder *b;
    sb_model *model;
    char digest[SB_DIGEST_TEXT_BYTES];
    sb_tensor *w = numbers(2, (int64_t[]){K, K}, 5), *v = numbers(2, (int64_t[]){K, K}, 5);
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_steps(b, w, v, error), &model, error));
    run(model, &networks[0], 2, digest);
    const sb_program *program = model->entries[0].program;
    const sb_storage *forms[4];
    size_t count = 0;
    for (size_t s = 0; s < program->step_count; s++) {
        if (program->steps[s].states != NULL && program->steps[s].states->derived != NULL) {
            assert_true(count < 4);
            forms[count++] = program->steps[s].states->derived;
        }
    }
    assert_int_equal(count, 4);
    assert_ptr_equal(forms[0], forms[1]);
    assert_ptr_equal(forms[0], forms[2]);
    assert_ptr_not_equal(forms[0], forms[3]);
    sb_tensor_release(w);
    sb_tensor_release(v);
    sb_model_release(model);
}

/* Where there is no memory to bring them back, nothing has changed. */
static void test_no_memory(void **state) {
    (void)state;
    const sb_tensor *held;
    sb_error failure;
    char text[SB_DIGEST_TEXT_BYTES], again[SB_DIGEST_TEXT_BYTES];
    sb_model *model = model_of(&networks[0], true, &held);
    sb_program *program = model->entries[0].program;
    run(model, &networks[0], 2, text);
    assert_null(held->data);
    sb_allocation_fail_after(0, true);
    sb_status status = sb_program_read_elements(program, 0, &failure);
    sb_allocation_fail_after(-1, false);
    assert_int_equal(status, SB_ERROR_OUT_OF_MEMORY);
    assert_null(held->data);
    run(model, &networks[0], 2, again);
    assert_string_equal(again, text);
    MUST(sb_program_read_elements(program, 0, error));
    sb_tensor *w = weights(&networks[0]);
    assert_true(equal_bits(held, w));
    sb_tensor_release(w);
    sb_model_release(model);
}

/* Initialisers of a file are the model's own. */
static void test_file(void **state) {
    (void)state;
    sb_model *model;
    size_t dispensable = 0;
    MUST(sb_model_load(DIGITS_FOLDER "/digits.onnx", NULL, &model, error));
    const sb_graph *graph = model->entries[0].graph;
    for (size_t v = 0; v < graph->value_count; v++)
        dispensable += graph->values[v].fact.constant != NULL && graph->values[v].fact.constant->storage->dispensable;
    assert_true(dispensable > 4);
    sb_model_release(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_going),     cmocka_unit_test(test_coming_back), cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
