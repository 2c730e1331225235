/* Every allocation of inference and evaluation failing in turn: reported, and nothing left behind. */
#include "ops/definition_cases.h"
#include "support/failing.h"

typedef struct failing_case {
    const char *op;
    int version, outputs;
    sb_dtype dtypes[5]; /* SB_DTYPE_NONE: no more inputs */
    int ranks[5];
    int64_t dims[5][3];
    const char *attribute;
    int64_t value;
} failing_case;

static const failing_case cases[] = {
    {"Exp", 13, 1, {SB_F32}, {2}, {{3, 4}}, NULL, 0},
    {"Add", 14, 1, {SB_F16, SB_F16}, {2, 1}, {{3, 4}, {4}}, NULL, 0},
    {"Pow", 15, 1, {SB_F32, SB_S64}, {2, 1}, {{3, 4}, {4}}, NULL, 0},
    {"Sum", 13, 1, {SB_F16, SB_F16, SB_F16}, {1, 1, 1}, {{4}, {4}, {4}}, NULL, 0},
    {"Where", 16, 1, {SB_BOOL, SB_F32, SB_F32}, {1, 1, 1}, {{4}, {4}, {4}}, NULL, 0},
    {"Clip", 13, 1, {SB_F32, SB_F32, SB_F32}, {1, 0, 0}, {{4}}, NULL, 0},
    {"Cast", 13, 1, {SB_F32}, {1}, {{4}}, "to", 8},
    {"QuantizeLinear", 13, 1, {SB_F32, SB_F32}, {1, 0}, {{4}}, NULL, 0},
    {"DynamicQuantizeLinear", 11, 3, {SB_F32}, {1}, {{4}}, NULL, 0},
    {"ReduceLogSumExp", 18, 1, {SB_BF16}, {2}, {{3, 4}}, NULL, 0},
    {"ArgMax", 13, 1, {SB_S8}, {2}, {{3, 4}}, NULL, 0},
    {"CumSum", 14, 1, {SB_F32, SB_S64}, {1, 0}, {{4}}, NULL, 0},
    {"Softmax", 13, 1, {SB_F32}, {2}, {{3, 4}}, NULL, 0},
    {"LayerNormalization", 17, 3, {SB_F32, SB_F32, SB_F32}, {2, 1, 1}, {{3, 4}, {4}, {4}}, NULL, 0},
    {"GroupNormalization", 21, 1, {SB_F32, SB_F32, SB_F32}, {3, 1, 1}, {{2, 4, 3}, {4}, {4}}, "num_groups", 2},
    {"InstanceNormalization", 6, 1, {SB_F64, SB_F64, SB_F64}, {3, 1, 1}, {{2, 4, 3}, {4}, {4}}, NULL, 0},
    {"MeanVarianceNormalization", 13, 1, {SB_F32}, {3}, {{2, 4, 3}}, "axes", 1},
    {"LpNormalization", 1, 1, {SB_F32}, {2}, {{2, 4}}, NULL, 0},
    {"LRN", 13, 1, {SB_F32}, {3}, {{2, 4, 3}}, "size", 3},
    {"BatchNormalization",
     15,
     3,
     {SB_F32, SB_F32, SB_F32, SB_F32, SB_F32},
     {3, 1, 1, 1, 1},
     {{2, 4, 3}, {4}, {4}, {4}, {4}},
     "training_mode",
     1},
    {"SoftmaxCrossEntropyLoss", 13, 2, {SB_F32, SB_S64, SB_F32}, {2, 1, 1}, {{2, 4}, {2}, {4}}, NULL, 0},
    {"Dropout", 13, 2, {SB_F32, SB_F32, SB_BOOL}, {1, 0, 0}, {{4}}, "seed", 1},
};

static sb_status attempt(void *context) {
    const failing_case *of = context;
    node_runner runner = {.op = of->op, .version = of->version, .output_count = of->outputs};
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    sb_error error;
    sb_status status = SB_OK;
    for (int i = 0; i < 5 && of->dtypes[i] != SB_DTYPE_NONE && status == SB_OK; i++) {
        runner.input_count = i + 1;
        status = sb_tensor_create(of->dtypes[i], of->ranks[i], of->dims[i], &runner.inputs[i], &error);
    }
    if (status == SB_OK && of->attribute != NULL)
        status = sb_attributes_add_ints(&runner.attributes, of->attribute, true, 1, &of->value, &error);
    if (status == SB_OK)
        status = node_run(&runner, SB_ISA_BEST, outputs, &error);
    if (status != SB_OK && status != SB_ERROR_OUT_OF_MEMORY)
        print_message("%s: %s\n", of->op, error.message);
    release_outputs(outputs);
    node_clear(&runner);
    return status;
}

static void no_failure_leaks(void **unused) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_failing_allocations(attempt, (void *)(uintptr_t)&cases[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_failure_leaks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
