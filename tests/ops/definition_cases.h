/* What the tests of definitions share: small tensors from lists, and one node run by its definition. */
#ifndef SB_TESTS_DEFINITION_CASES_H
#define SB_TESTS_DEFINITION_CASES_H

#include "ops/node_cases.h"

/* A tensor of a list of extents and a list of values, both in parentheses: TENSOR(SB_S64, (2, 1),
 * (int64_t, 3, 4)). */
#define UNWRAP(...) __VA_ARGS__
#define EXTENTS(...) ((int64_t[]){__VA_ARGS__})
#define COUNT_OF(type, ...) (sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#define LIST_OF(type, ...) ((type[]){__VA_ARGS__})
#define TENSOR(dtype, dims, values)                                                                                    \
    list_tensor(dtype, (int)(sizeof EXTENTS dims / sizeof(int64_t)), EXTENTS dims, LIST_OF values, COUNT_OF values)
#define LIST(dtype, values) list_tensor(dtype, 1, EXTENTS((int64_t)COUNT_OF values), LIST_OF values, COUNT_OF values)
#define SCALAR(dtype, value) list_tensor(dtype, 0, NULL, LIST_OF value, 1)

static inline sb_tensor *list_tensor(sb_dtype dtype, int rank, const int64_t *dims, const void *values, size_t count) {
    sb_tensor *tensor = NULL;
    assert_int_equal(sb_tensor_from_data(dtype, rank, dims, values, &tensor, NULL), SB_OK);
    assert_int_equal(sb_tensor_elements(tensor), count);
    return tensor;
}

static inline node_runner make_node(const char *op, int version, sb_tensor *first, sb_tensor *second,
                                    sb_tensor *third) {
    node_runner runner = {.op = op, .version = version, .output_count = 1};
    runner.inputs[0] = first;
    runner.inputs[1] = second;
    runner.inputs[2] = third;
    runner.input_count = third != NULL ? 3 : second != NULL ? 2 : 1;
    return runner;
}

/* Runs the definition; output 0 must be `expected` bit for bit. Releases everything. */
static inline void expect_output(node_runner runner, sb_tensor *expected) {
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_must_run(&runner, SB_ISA_BEST, outputs);
    const sb_tensor *got = outputs[0].tensor;
    if (!sb_tensor_equal(got, expected)) {
        size_t size = sb_dtype_size(got->dtype);
        char dims[SB_DIMS_TEXT_BYTES];
        for (int64_t i = 0; i < sb_tensor_elements(got) && got->dtype == expected->dtype &&
                            sb_tensor_elements(got) == sb_tensor_elements(expected);
             i++) {
            uint64_t left = 0, right = 0;
            memcpy(&left, got->data + (size_t)i * size, size);
            memcpy(&right, expected->data + (size_t)i * size, size);
            if (left != right)
                print_message("%s: element %lld is %llx instead of %llx\n", runner.op, (long long)i,
                              (unsigned long long)left, (unsigned long long)right);
        }
        fail_msg("%s gave another %s%s", runner.op, sb_dtype_name(got->dtype),
                 sb_dims_text(got->rank, got->dims, dims));
    }
    sb_tensor_release(expected);
    release_outputs(outputs);
    node_clear(&runner);
}

/* The definition must fail with `status` and say `words`. */
static inline void expect_refusal(node_runner runner, sb_status status, const char *words) {
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    sb_error error = {0};
    assert_int_equal(node_run(&runner, SB_ISA_BEST, outputs, &error), status);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, words);
    release_outputs(outputs);
    node_clear(&runner);
}

static inline int leaves_nothing(void **unused) {
    return sb_allocation_count().live_blocks == 0 ? 0 : -1;
}

#endif
