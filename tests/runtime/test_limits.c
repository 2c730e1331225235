/* What ends a run early: interrupts, and limits of iterations and of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <samebit/samebit.h>

#include "base/allocation.h"
#include "base/machine_memory.h"
#include "onnx/text_proto.h"

#define HEAD "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" "
#define TENSOR(name, type, shape)                                                                                      \
    "{ name: \"" name "\" type { tensor_type { elem_type: " type " shape { " shape " } } } } "

/* A loop over `x` that has no node in its body, and one that has. */
#define LOOP(body)                                                                                                     \
    HEAD "input " TENSOR("trips", "7", "") "input " TENSOR("x", "1", "dim { dim_value: 2 } ") "output " TENSOR(        \
        "y", "1", "dim { dim_value: 2 } ") "node { op_type: "                                                          \
                                           "\"Loop\" name: "                                                           \
                                           "\"spin\" input: "                                                          \
                                           "\"trips\" input: "                                                         \
                                           "\"\" input: \"x\" "                                                        \
                                           "output: \"y\" "                                                            \
                                           "attribute { name: "                                                        \
                                           "\"body\" type: 5 g { "                                                     \
                                           "name: \"b\" "                                                              \
                                           "input " TENSOR("i", "7", "") "input " TENSOR(                              \
                                               "c", "9", "") "input"                                                   \
                                                             " " TENSOR("s", "1",                                      \
                                                                        "di"                                           \
                                                                        "m "                                           \
                                                                        "{ "                                           \
                                                                        "di"                                           \
                                                                        "m_"                                           \
                                                                        "va"                                           \
                                                                        "lu"                                           \
                                                                        "e:"                                           \
                                                                        " 2"                                           \
                                                                        " }"                                           \
                                                                        " ") body "} } } } "
#define EMPTY_BODY "output " TENSOR("c", "9", "") "output " TENSOR("s", "1", "dim { dim_value: 2 } ")
#define ADDING_BODY                                                                                                    \
    "node { op_type: \"Add\" name: \"twice\" input: \"s\" input: \"s\" output: \"t\" } "                               \
    "output " TENSOR("c", "9", "") "output " TENSOR("t", "1", "dim { dim_value: 2 } ")

static sb_model *load(const char *text) {
    static uint8_t bytes[TEXT_PROTO_ROOM];
    size_t size = text_proto(&onnx__model_proto__descriptor, text, bytes);
    sb_model *model;
    sb_error error = {SB_OK, ""};
    if (sb_model_load_memory(bytes, size, NULL, &model, &error) != SB_OK)
        fail_msg("%s", error.message);
    return model;
}

static sb_session *session_of(sb_model *model, int64_t iterations, int64_t bytes) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    options.threads = 1;
    options.iteration_limit = iterations;
    options.memory_limit = bytes;
    assert_int_equal(sb_session_create(model, &options, &session, NULL), SB_OK);
    return session;
}

/* Runs a loop model for `trips`; on success checks that y is x or, with an adding body, 2^trips x. */
static sb_status run_loop(sb_session *session, int64_t trips, float factor, sb_error *error) {
    sb_tensor *inputs[2], *output = NULL;
    assert_int_equal(sb_tensor_from_data(SB_S64, 0, NULL, &trips, &inputs[0], NULL), SB_OK);
    assert_int_equal(sb_tensor_from_data(SB_F32, 1, (int64_t[]){2}, (float[]){1, 3}, &inputs[1], NULL), SB_OK);
    sb_status status = sb_session_run_tensors(session, inputs, &output, error);
    if (status == SB_OK) {
        const float *found = sb_tensor_data(output);
        assert_true(found[0] == factor && found[1] == 3 * factor);
    }
    sb_tensor_release(output);
    sb_tensor_release(inputs[0]);
    sb_tensor_release(inputs[1]);
    return status;
}

static void expect(sb_status found, sb_status wanted, const sb_error *error, const char *message) {
    if (found != wanted || strstr(error->message, message) == NULL)
        fail_msg("'%s' is not in '%s' (%s)", message, error->message, sb_status_name(found));
}

static void test_iteration_limit(void **state) {
    sb_error error = {SB_OK, ""};
    for (int adding = 0; adding < 2; adding++) {
        sb_model *model = load(adding ? LOOP(ADDING_BODY) : LOOP(EMPTY_BODY));
        sb_session *session = session_of(model, 4, 0);
        /* Each run begins to count anew. */
        for (int again = 0; again < 2; again++) {
            assert_int_equal(run_loop(session, 4, adding ? 16 : 1, &error), SB_OK);
            expect(run_loop(session, 5, 0, &error), SB_ERROR_LIMIT, &error, "node spin (Loop): iteration 4");
            expect(run_loop(session, INT64_MAX, 0, &error), SB_ERROR_LIMIT, &error, "the 4 that the loops");
        }
        sb_session_destroy(session);
        sb_model_release(model);
    }
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* Iterations of loops in loops count together. */
static void test_nested_iterations(void **state) {
#define INNER                                                                                                          \
    "node { op_type: \"Loop\" name: \"inner\" input: \"trips\" input: \"\" input: \"s\" "                              \
    "output: \"t\" attribute { name: \"body\" type: 5 g { name: \"b2\" "                                               \
    "input " TENSOR("i2", "7", "") "input " TENSOR("c2", "9", "") "input " TENSOR(                                     \
        "s2", "1",                                                                                                     \
        "dim { dim_value: 2 } ") "output " TENSOR("c2", "9",                                                           \
                                                  "") "output " TENSOR("s2", "1",                                      \
                                                                       "dim { dim_value: 2 "                           \
                                                                       "} ") "} } } "                                  \
                                                                             "output"                                  \
                                                                             " " TENSOR(                               \
                                                                                 "c", "9",                             \
                                                                                 "") "output"                          \
                                                                                     " " TENSOR(                       \
                                                                                         "t", "1",                     \
                                                                                         "dim { dim_value: 2 } ")
    sb_model *model = load(LOOP(INNER));
    sb_session *session = session_of(model, 3 + 9, 0);
    sb_error error = {SB_OK, ""};
    assert_int_equal(run_loop(session, 3, 1, &error), SB_OK);
    expect(run_loop(session, 4, 0, &error), SB_ERROR_LIMIT, &error, "node inner (Loop)");
    sb_session_destroy(session);
    sb_model_release(model);
}

#define SCAN                                                                                                           \
    HEAD "input " TENSOR("x", "1", "dim { dim_param: \"n\" } ") "output " TENSOR(                                      \
        "y", "1", "dim { dim_param: \"n\" } ") "node { op_type: \"Scan\" name: \"walk\" input: \"x\" "                 \
                                               "output: \"y\" "                                                        \
                                               "attribute { name: \"num_scan_inputs\" type: 2 i: 1 } "                 \
                                               "attribute { name: \"body\" type: 5 g { name: \"b\" "                   \
                                               "input " TENSOR("e", "1", "") "node { op_type: \"Neg\" name: "          \
                                                                             "\"minus\" input: \"e\" output: \"f\" } " \
                                                                             "output " TENSOR("f", "1", "") "} } } } "

static void test_scan_iterations(void **state) {
    sb_model *model = load(SCAN);
    sb_session *session = session_of(model, 3, 0);
    sb_error error = {SB_OK, ""};
    for (int64_t extent = 3; extent < 5; extent++) {
        sb_tensor *x, *y = NULL;
        assert_int_equal(sb_tensor_create(SB_F32, 1, &extent, &x, NULL), SB_OK);
        sb_status status = sb_session_run_tensors(session, &x, &y, &error);
        if (extent == 3)
            assert_int_equal(status, SB_OK);
        else
            expect(status, SB_ERROR_LIMIT, &error, "node walk (Scan): iteration 3");
        sb_tensor_release(x);
        sb_tensor_release(y);
    }
    sb_session_destroy(session);
    sb_model_release(model);
}

/* ---- interrupts ---- */

static void test_interrupt_before(void **state) {
    sb_model *model = load(LOOP(ADDING_BODY));
    sb_session *session = session_of(model, 0, 0);
    sb_error error = {SB_OK, ""};
    sb_session_interrupt(session);
    sb_session_interrupt(session);
    expect(run_loop(session, 1, 2, &error), SB_ERROR_INTERRUPTED, &error, "interrupted before node spin (Loop)");
    assert_int_equal(run_loop(session, 1, 2, &error), SB_OK);
    sb_session_interrupt(session);
    sb_session_clear_interrupt(session);
    assert_int_equal(run_loop(session, 1, 2, &error), SB_OK);
    sb_session_destroy(session);
    sb_model_release(model);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static void *interrupt_soon(void *session) {
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    sb_session_interrupt(session);
    return NULL;
}

static sb_session *alarmed;

static void on_alarm(int signal) {
    sb_session_interrupt(alarmed);
}

/* A loop without end, with and without nodes in its body, ends by a thread and by a signal. */
static void test_interrupt_endless(void **state) {
    for (int adding = 0; adding < 2; adding++) {
        sb_model *model = load(adding ? LOOP(ADDING_BODY) : LOOP(EMPTY_BODY));
        sb_session *session = session_of(model, 0, 0);
        sb_error error = {SB_OK, ""};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, session), 0);
        sb_status status = run_loop(session, INT64_MAX, 0, &error);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(status, SB_ERROR_INTERRUPTED);
        assert_true(strstr(error.message, "spin") != NULL || strstr(error.message, "twice") != NULL);

        alarmed = session;
        signal(SIGALRM, on_alarm);
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 50000}}, NULL);
        status = run_loop(session, INT64_MAX, 0, &error);
        signal(SIGALRM, SIG_DFL);
        assert_int_equal(status, SB_ERROR_INTERRUPTED);
        assert_int_equal(run_loop(session, 2, adding ? 4 : 1, &error), SB_OK);
        sb_session_destroy(session);
        sb_model_release(model);
    }
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* ---- memory ---- */

/* f32[n] of ones for a given n, then y = what `nodes` make of "ones". */
#define ONES(shape, nodes)                                                                                             \
    HEAD "input " TENSOR("n", "7", "dim { dim_value: 1 } ") "output " TENSOR(                                          \
        "y", "1", shape) "node { op_type: \"ConstantOfShape\" name: \"fill\" input: \"n\" "                            \
                         "output: \"ones\" } " nodes "} "
#define SUM(from)                                                                                                      \
    "node { op_type: \"ReduceSum\" name: \"sum\" input: \"" from "\" output: \"y\" "                                   \
    "attribute { name: \"keepdims\" type: 2 i: 0 } } "

static sb_status run_ones(sb_session *session, int64_t extent, sb_error *error) {
    sb_tensor *n, *y = NULL;
    assert_int_equal(sb_tensor_from_data(SB_S64, 1, (int64_t[]){1}, &extent, &n, NULL), SB_OK);
    sb_status status = sb_session_run_tensors(session, &n, &y, error);
    sb_tensor_release(n);
    sb_tensor_release(y);
    return status;
}

static void test_memory_limit(void **state) {
    sb_model *model = load(ONES("", SUM("ones")));
    sb_error error = {SB_OK, ""};
    sb_session *session = session_of(model, 0, 1 << 20);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(run_ones(session, 1000, &error), SB_OK);
        expect(run_ones(session, 1 << 18, &error), SB_ERROR_OUT_OF_MEMORY, &error,
               "node fill (ConstantOfShape): output 0, f32[262144]: out of memory: 1048576 bytes");
        expect(run_ones(session, INT64_C(1) << 40, &error), SB_ERROR_OUT_OF_MEMORY, &error, "limit of 1048576 bytes");
    }
    sb_session_destroy(session);
    /* By default there is as much as the machine has. */
    session = session_of(model, 0, 0);
    assert_int_equal(run_ones(session, 1 << 18, &error), SB_OK);
    expect(run_ones(session, INT64_C(1) << 48, &error), SB_ERROR_OUT_OF_MEMORY, &error,
           "node fill (ConstantOfShape): output 0, f32[281474976710656]: out of memory");
    sb_session_destroy(session);
    sb_model_release(model);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* A view of one element, shown 2^60 times: nobody could sum that in time. */
static void test_large_view(void **state) {
    sb_model *model = load(HEAD "input " TENSOR("n", "7", "dim { dim_value: 1 } ") "output " TENSOR(
        "y", "1", "") "node { op_type: \"Constant\" output: \"one\" attribute { name: "
                      "\"value_float\" type: 1 f: 1 } } "
                      "node { op_type: \"Expand\" name: \"repeat\" input: \"one\" input: \"n\" "
                      "output: \"many\" } " SUM("many") "} ");
    sb_session *session = session_of(model, 0, 1 << 20);
    sb_error error = {SB_OK, ""};
    assert_int_equal(run_ones(session, 1 << 18, &error), SB_OK);
    expect(run_ones(session, INT64_C(1) << 60, &error), SB_ERROR_OUT_OF_MEMORY, &error,
           "node repeat (Expand): output 0, f32[1152921504606846976], would have "
           "4611686018427387904 bytes");
    sb_session_destroy(session);
    sb_model_release(model);
}

/* What the plan puts into one block: four values of 2^62 bytes, whose sum is 0 modulo 2^64. */
static void test_planned_memory(void **state) {
    sb_model *model =
        load(HEAD "input " TENSOR("x", "1", "dim { dim_param: \"n\" } dim { dim_value: 1 } ") "input " TENSOR(
            "z", "1", "dim { dim_value: 1 } dim { dim_param: \"m\" } ") "output " TENSOR("y", "1",
                                                                                         "") "node { "
                                                                                             "op_type: "
                                                                                             "\"MatMul\" "
                                                                                             "name: \"a\" "
                                                                                             "input: \"x\" "
                                                                                             "input: \"z\" "
                                                                                             "output: \"p\" "
                                                                                             "} "
                                                                                             "node { "
                                                                                             "op_type: "
                                                                                             "\"Softmax\" "
                                                                                             "name: \"b\" "
                                                                                             "input: \"p\" "
                                                                                             "output: \"q\" "
                                                                                             "} "
                                                                                             "node { "
                                                                                             "op_type: "
                                                                                             "\"Softmax\" "
                                                                                             "name: \"c\" "
                                                                                             "input: \"q\" "
                                                                                             "output: \"r\" "
                                                                                             "} "
                                                                                             "node { "
                                                                                             "op_type: "
                                                                                             "\"MatMul\" "
                                                                                             "name: \"d\" "
                                                                                             "input: \"p\" "
                                                                                             "input: \"r\" "
                                                                                             "output: \"s\" "
                                                                                             "} " SUM("s") "} ");
    sb_error error = {SB_OK, ""};
    const float one = 1;
    sb_session *session = session_of(model, 0, 0);
    int64_t extent = INT64_C(1) << 30;
    sb_tensor *element, *inputs[2], *y = NULL;
    assert_int_equal(sb_tensor_from_data(SB_F32, 2, (int64_t[]){1, 1}, &one, &element, NULL), SB_OK);
    assert_int_equal(sb_tensor_broadcast(element, 2, (int64_t[]){extent, 1}, &inputs[0], NULL), SB_OK);
    assert_int_equal(sb_tensor_broadcast(element, 2, (int64_t[]){1, extent}, &inputs[1], NULL), SB_OK);
    expect(sb_session_run_tensors(session, inputs, &y, &error), SB_ERROR_OUT_OF_MEMORY, &error, "node a (MatMul)");
    expect(SB_ERROR_OUT_OF_MEMORY, SB_ERROR_OUT_OF_MEMORY, &error, "4611686018427387904");
    sb_tensor_release(inputs[0]);
    sb_tensor_release(inputs[1]);
    sb_tensor_release(element);
    sb_session_destroy(session);
    sb_model_release(model);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* A loop that stacks ever more comes to an end as well. */
static void test_stacking_loop(void **state) {
    sb_model *model =
        load(HEAD "input " TENSOR("trips", "7", "") "input " TENSOR("x", "1", "dim { dim_value: 2 } ") "output " TENSOR(
            "y", "1",
            "dim { dim_param: \"t\" } dim { dim_value: 2 "
            "} ") "node { op_type: \"Loop\" name: "
                  "\"pile\" input: \"trips\" input: \"\" "
                  "output: \"y\" "
                  "attribute { name: \"body\" type: 5 g "
                  "{ name: \"b\" input " TENSOR("i", "7", "") "input " TENSOR(
                      "c", "9", "") "node { op_type: \"Add\" name: "
                                    "\"twice\" input: \"x\" input: "
                                    "\"x\" output: \"t\" } "
                                    "output " TENSOR("c", "9", "") "output " TENSOR("t", "1",
                                                                                    "dim "
                                                                                    "{ "
                                                                                    "dim_"
                                                                                    "value"
                                                                                    ": 2 "
                                                                                    "} ") "} } } } ");
    sb_session *session = session_of(model, 0, 1 << 20);
    sb_tensor *inputs[2], *y = NULL;
    int64_t trips = INT64_MAX;
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_tensor_from_data(SB_S64, 0, NULL, &trips, &inputs[0], NULL), SB_OK);
    assert_int_equal(sb_tensor_from_data(SB_F32, 1, (int64_t[]){2}, (float[]){1, 3}, &inputs[1], NULL), SB_OK);
    sb_status status = sb_session_run_tensors(session, inputs, &y, &error);
    assert_int_equal(status, SB_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(error.message, "node "));
    sb_tensor_release(inputs[0]);
    sb_tensor_release(inputs[1]);
    sb_session_destroy(session);
    sb_model_release(model);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* Outputs may outlive their session, whose budget they still count with. */
static void test_outputs_outlive(void **state) {
    sb_model *model =
        load(ONES("dim { dim_param: \"k\" } ", "node { op_type: \"Identity\" input: \"ones\" output: \"y\" } "));
    sb_session *session = session_of(model, 0, 1 << 20);
    sb_tensor *n, *outputs[4] = {NULL};
    int64_t extent = 100000;
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_tensor_from_data(SB_S64, 1, (int64_t[]){1}, &extent, &n, NULL), SB_OK);
    assert_int_equal(sb_session_run_tensors(session, &n, &outputs[0], &error), SB_OK);
    assert_int_equal(sb_session_run_tensors(session, &n, &outputs[1], &error), SB_OK);
    assert_int_equal(sb_session_run_tensors(session, &n, &outputs[2], &error), SB_ERROR_OUT_OF_MEMORY);
    sb_tensor_release(outputs[1]);
    assert_int_equal(sb_session_run_tensors(session, &n, &outputs[1], &error), SB_OK);
    sb_session_destroy(session);
    sb_model_release(model);
    for (int i = 0; i < 2; i++)
        sb_tensor_release(outputs[i]);
    sb_tensor_release(n);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static void test_load_limit(void **state) {
    static uint8_t bytes[TEXT_PROTO_ROOM];
    size_t size = text_proto(&onnx__model_proto__descriptor, LOOP(ADDING_BODY), bytes);
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    sb_model *model;
    sb_error error = {SB_OK, ""};
    options.memory_limit = 1000;
    expect(sb_model_load_memory(bytes, size, &options, &model, &error), SB_ERROR_OUT_OF_MEMORY, &error,
           "limit of 1000 bytes");
    options.memory_limit = -1;
    expect(sb_model_load_memory(bytes, size, &options, &model, &error), SB_ERROR_INVALID_ARGUMENT, &error,
           "a memory limit of -1 bytes");
    options.memory_limit = 1 << 20;
    assert_int_equal(sb_model_load_memory(bytes, size, &options, &model, &error), SB_OK);
    sb_session_options session_options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    session_options.iteration_limit = -5;
    expect(sb_session_create(model, &session_options, &session, &error), SB_ERROR_INVALID_ARGUMENT, &error,
           "a limit of -5 iterations");
    sb_model_release(model);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
    assert_in_range(sb_machine_memory(), 1 << 20, INT64_C(1) << 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_iteration_limit),   cmocka_unit_test(test_nested_iterations),
        cmocka_unit_test(test_scan_iterations),   cmocka_unit_test(test_interrupt_before),
        cmocka_unit_test(test_interrupt_endless), cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_large_view),        cmocka_unit_test(test_planned_memory),
        cmocka_unit_test(test_stacking_loop),     cmocka_unit_test(test_outputs_outlive),
        cmocka_unit_test(test_load_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
