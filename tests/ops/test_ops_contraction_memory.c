/* Products, convolutions, pools, recurrent operators and operators of rows while memory runs out: by definition and by
 * kernel, every failed allocation is reported and leaves nothing behind. */
#include "ops/node_cases.h"

#include "support/failing.h"

typedef struct operand {
    sb_dtype dtype;
    int rank; /* -1: omitted */
    int64_t dims[4];
} operand;

typedef struct memory_case {
    const char *op;
    int version, outputs;
    bool has_kernel;
    const char *ints; /* an attribute that holds `values`, or NULL */
    int64_t count, values[4];
    int inputs;
    operand operands[9];
} memory_case;

#define NONE                                                                                                           \
    {                                                                                                                  \
        SB_F32, -1, {                                                                                                  \
            0                                                                                                          \
        }                                                                                                              \
    }

static const memory_case cases[] = {
    {"MatMul", 13, 1, true, NULL, 0, {0}, 2, {{SB_F32, 3, {2, 5, 7}}, {SB_F32, 2, {7, 6}}}},
    {"MatMul", 13, 1, true, NULL, 0, {0}, 2, {{SB_F16, 2, {5, 7}}, {SB_F16, 2, {7, 6}}}},
    {"MatMul", 13, 1, false, NULL, 0, {0}, 2, {{SB_S64, 2, {5, 7}}, {SB_S64, 2, {7, 6}}}},
    {"Gemm", 13, 1, true, NULL, 0, {0}, 3, {{SB_BF16, 2, {5, 7}}, {SB_BF16, 2, {7, 6}}, {SB_BF16, 1, {6}}}},
    {"MatMulInteger", 10, 1, true, NULL, 0, {0}, 3, {{SB_U8, 2, {5, 7}}, {SB_S8, 2, {7, 6}}, {SB_U8, 1, {5}}}},
    {"ConvInteger", 10, 1, true, NULL, 0, {0}, 3, {{SB_U8, 3, {2, 4, 9}}, {SB_S8, 3, {6, 4, 3}}, {SB_U8, 0, {0}}}},
    {"ConvInteger", 10, 1, true, "group", 1, {4}, 2, {{SB_U8, 3, {2, 4, 9}}, {SB_S8, 3, {4, 1, 3}}}},
    {"Conv", 11, 1, true, "group", 1, {4}, 3, {{SB_F16, 3, {2, 4, 9}}, {SB_F16, 3, {4, 1, 3}}, {SB_F16, 1, {4}}}},
    {"ConvTranspose",
     11,
     1,
     true,
     NULL,
     0,
     {0},
     3,
     {{SB_BF16, 3, {2, 4, 5}}, {SB_BF16, 3, {4, 3, 3}}, {SB_BF16, 1, {3}}}},
    {"Einsum", 12, 1, true, NULL, 0, {0}, 2, {{SB_F16, 2, {5, 7}}, {SB_F16, 2, {7, 6}}}},
    {"Upsample", 7, 1, true, NULL, 0, {0}, 1, {{SB_F16, 3, {2, 5, 7}}}},
    {"GridSample", 20, 1, true, NULL, 0, {0}, 2, {{SB_BF16, 4, {1, 3, 5, 6}}, {SB_BF16, 4, {1, 4, 3, 2}}}},
    {"Softmax", 13, 1, true, "axis", 1, {1}, 1, {{SB_F16, 3, {2, 5, 24}}}},
    {"ReduceMean", 13, 1, true, "axes", 2, {0, 1}, 1, {{SB_BF16, 3, {5, 3, 24}}}},
    {"DynamicQuantizeLinear", 11, 3, true, NULL, 0, {0}, 1, {{SB_F32, 2, {5, 7}}}},
    {"NonMaxSuppression", 11, 1, true, NULL, 0, {0}, 2, {{SB_F32, 3, {1, 5, 4}}, {SB_F32, 3, {1, 2, 5}}}},
    {"ReduceProd", 13, 1, true, "axes", 2, {0, 1}, 1, {{SB_F32, 3, {5, 3, 7}}}},
    {"QLinearMatMul",
     10,
     1,
     true,
     NULL,
     0,
     {0},
     8,
     {{SB_U8, 2, {5, 7}},
      {SB_F32, 0, {0}},
      {SB_U8, 0, {0}},
      {SB_S8, 2, {7, 6}},
      {SB_F32, 0, {0}},
      {SB_S8, 0, {0}},
      {SB_F32, 0, {0}},
      {SB_U8, 0, {0}}}},
    {"Conv",
     11,
     1,
     true,
     "pads",
     4,
     {1, 1, 1, 1},
     3,
     {{SB_F32, 4, {1, 3, 5, 6}}, {SB_F32, 4, {4, 3, 3, 3}}, {SB_F32, 1, {4}}}},
    {"Conv",
     11,
     1,
     true,
     "pads",
     4,
     {1, 1, 1, 1},
     3,
     {{SB_BF16, 4, {1, 3, 5, 6}}, {SB_BF16, 4, {4, 3, 3, 3}}, {SB_BF16, 1, {4}}}},
    {"ConvTranspose", 11, 1, false, "strides", 2, {2, 1}, 2, {{SB_F32, 4, {1, 3, 5, 6}}, {SB_F32, 4, {3, 4, 3, 3}}}},
    {"ConvInteger",
     10,
     1,
     false,
     "pads",
     4,
     {1, 1, 1, 1},
     4,
     {{SB_U8, 4, {1, 3, 5, 6}}, {SB_S8, 4, {4, 3, 3, 3}}, {SB_U8, 0, {0}}, {SB_S8, 1, {4}}}},
    {"QLinearConv",
     10,
     1,
     true,
     NULL,
     0,
     {0},
     9,
     {{SB_U8, 4, {1, 3, 5, 6}},
      {SB_F32, 0, {0}},
      {SB_U8, 0, {0}},
      {SB_S8, 4, {4, 3, 3, 3}},
      {SB_F32, 1, {4}},
      {SB_S8, 1, {4}},
      {SB_F32, 0, {0}},
      {SB_S8, 0, {0}},
      {SB_S32, 1, {4}}}},
    {"DeformConv",
     19,
     1,
     true,
     NULL,
     0,
     {0},
     3,
     {{SB_F32, 4, {1, 3, 5, 6}}, {SB_F32, 4, {4, 3, 3, 3}}, {SB_F32, 4, {1, 18, 3, 4}}}},
    {"DeformConv",
     19,
     1,
     true,
     NULL,
     0,
     {0},
     4,
     {{SB_BF16, 4, {1, 3, 5, 6}}, {SB_BF16, 4, {4, 3, 3, 3}}, {SB_BF16, 4, {1, 18, 3, 4}}, {SB_BF16, 1, {4}}}},
    {"DeformConv",
     19,
     1,
     false,
     NULL,
     0,
     {0},
     3,
     {{SB_F64, 4, {1, 3, 5, 6}}, {SB_F64, 4, {4, 3, 3, 3}}, {SB_F64, 4, {1, 18, 3, 4}}}},
    {"MaxPool", 12, 1, true, "kernel_shape", 2, {2, 2}, 1, {{SB_F32, 4, {1, 3, 5, 6}}}},
    {"MaxPool", 12, 2, true, "kernel_shape", 2, {2, 2}, 1, {{SB_F16, 4, {1, 3, 5, 6}}}},
    {"MaxPool", 12, 2, false, "kernel_shape", 2, {2, 2}, 1, {{SB_F64, 4, {1, 3, 5, 6}}}},
    {"ArgMax", 13, 1, true, "axis", 1, {1}, 1, {{SB_F16, 3, {3, 5, 16}}}},
    {"Hardmax", 11, 1, true, "axis", 1, {1}, 1, {{SB_F32, 3, {3, 5, 7}}}},
    {"LpNormalization", 1, 1, true, "axis", 1, {1}, 1, {{SB_BF16, 3, {3, 5, 16}}}},
    {"MeanVarianceNormalization", 13, 1, true, "axes", 2, {0, 2}, 1, {{SB_F32, 3, {3, 5, 7}}}},
    {"ReduceLogSumExp", 13, 1, true, "axes", 2, {0, 1}, 1, {{SB_F32, 3, {5, 3, 7}}}},
    {"LRN", 13, 1, true, "size", 1, {3}, 1, {{SB_F16, 4, {1, 5, 3, 7}}}},
    {"TopK", 1, 2, true, "k", 1, {3}, 1, {{SB_F16, 2, {5, 7}}}},
    {"AveragePool", 11, 1, true, "kernel_shape", 2, {2, 2}, 1, {{SB_F32, 4, {1, 3, 5, 6}}}},
    {"LpPool", 11, 1, false, "kernel_shape", 2, {2, 2}, 1, {{SB_F64, 4, {1, 3, 5, 6}}}},
    {"GlobalAveragePool", 1, 1, true, NULL, 0, {0}, 1, {{SB_F32, 4, {1, 3, 5, 6}}}},
    {"GlobalMaxPool", 1, 1, true, NULL, 0, {0}, 1, {{SB_F32, 4, {1, 3, 5, 6}}}},
    {"GlobalLpPool", 2, 1, false, NULL, 0, {0}, 1, {{SB_BF16, 4, {1, 3, 5, 6}}}},
    {"RNN", 14, 2, true, NULL, 0, {0}, 3, {{SB_F32, 3, {3, 2, 5}}, {SB_F32, 3, {1, 4, 5}}, {SB_F32, 3, {1, 4, 4}}}},
    {"GRU",
     14,
     2,
     true,
     NULL,
     0,
     {0},
     6,
     {{SB_F32, 3, {3, 2, 5}},
      {SB_F32, 3, {1, 12, 5}},
      {SB_F32, 3, {1, 12, 4}},
      {SB_F32, 2, {1, 24}},
      NONE,
      {SB_F32, 3, {1, 2, 4}}}},
    {"LSTM",
     14,
     3,
     true,
     "layout",
     1,
     {1},
     8,
     {{SB_F32, 3, {2, 3, 5}},
      {SB_F32, 3, {1, 16, 5}},
      {SB_F32, 3, {1, 16, 4}},
      {SB_F32, 2, {1, 32}},
      NONE,
      {SB_F32, 3, {2, 1, 4}},
      {SB_F32, 3, {2, 1, 4}},
      {SB_F32, 2, {1, 12}}}},
    {"LSTM", 14, 3, false, NULL, 0, {0}, 3, {{SB_F16, 3, {3, 2, 5}}, {SB_F16, 3, {1, 16, 5}}, {SB_F16, 3, {1, 16, 4}}}},
};

/* What the cases' operators need besides integers. */
static sb_status add_others(node_runner *runner, const char *op, sb_error *error) {
    static const float scales[] = {1.0f, 2.0f, 3.0f};
    static const sb_string equation = {"ij,jk->ik", 9}, mode = {"linear", 6};
    if (strcmp(op, "Einsum") == 0)
        return sb_attributes_add_strings(&runner->attributes, "equation", true, 1, &equation, error);
    if (strcmp(op, "Upsample") != 0)
        return SB_OK;
    sb_status status = sb_attributes_add_floats(&runner->attributes, "scales", false, 3, scales, error);
    if (status != SB_OK)
        return status;
    return sb_attributes_add_strings(&runner->attributes, "mode", true, 1, &mode, error);
}

typedef struct attempt {
    const memory_case *test;
    sb_tensor *inputs[NODE_INPUTS];
    sb_isa isa;
    uint64_t constants;
} attempt;

static sb_status run_attempt(void *context) {
    const attempt *attempt = context;
    const memory_case *test = attempt->test;
    node_runner runner = {.op = test->op,
                          .version = test->version,
                          .input_count = test->inputs,
                          .output_count = test->outputs,
                          .constants = attempt->constants};
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    sb_error error;
    for (int i = 0; i < test->inputs; i++)
        runner.inputs[i] = sb_tensor_retain(attempt->inputs[i]);
    sb_status status = SB_OK;
    if (test->ints != NULL)
        status =
            sb_attributes_add_ints(&runner.attributes, test->ints, test->count == 1, test->count, test->values, &error);
    if (status == SB_OK)
        status = add_others(&runner, test->op, &error);
    if (status == SB_OK)
        status = node_run(&runner, attempt->isa, outputs, &error);
    release_outputs(outputs);
    node_clear(&runner);
    return status;
}

static void failed_allocations_leave_nothing_behind(void **unused) {
    random_source source = {1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attempt attempt = {.test = &cases[i]};
        for (int k = 0; k < cases[i].inputs; k++) {
            const operand *operand = &cases[i].operands[k];
            if (operand->rank >= 0)
                attempt.inputs[k] = random_tensor(&source, ORDINARY, operand->dtype, operand->rank, operand->dims);
        }
        for (int constants = 0; constants < 2; constants++) {
            attempt.constants = constants == 0 ? 0 : 6; /* weights and bias */
            attempt.isa = SB_ISA_BEST;
            check_failing_allocations(run_attempt, &attempt);
            attempt.isa = SB_ISA_SCALAR;
            if (cases[i].has_kernel)
                check_failing_allocations(run_attempt, &attempt);
        }
        for (int k = 0; k < NODE_INPUTS; k++)
            sb_tensor_release(attempt.inputs[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(failed_allocations_leave_nothing_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
