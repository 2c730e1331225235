#include "runtime/flops.h"

#include <string.h>

typedef struct counting {
    const iv_node *node;
    iv_scope *scope;
    const iv_fact *const *inputs;
    const iv_fact *outputs;
} counting;

static const iv_fact *input(const counting *counting, int index) {
    int formal = counting->node->input_count - counting->node->capture_count;
    const iv_fact *fact = index < formal ? counting->inputs[index] : NULL;
    return fact != NULL && fact->kind == IV_KIND_TENSOR && fact->rank >= 0 ? fact : NULL;
}

/* The first output that somebody wants, if its rank is known. */
static const iv_fact *output(const counting *counting) {
    for (int i = 0; i < counting->node->output_count; i++) {
        const iv_fact *fact = &counting->outputs[i];
        if (counting->node->outputs[i] != IV_NO_VALUE)
            return fact->kind == IV_KIND_TENSOR && fact->rank >= 0 ? fact : NULL;
    }
    return NULL;
}

/* The product of the extents from `first` on; NULL for no fact. */
static iv_dim extents(const counting *counting, const iv_fact *fact, int first) {
    iv_dim product = fact != NULL ? iv_dim_constant(counting->scope, 1) : NULL;
    for (int d = first; fact != NULL && d < fact->rank; d++)
        product = iv_dim_multiply(counting->scope, product, fact->dims[d]);
    return product;
}

static iv_dim times(const counting *counting, int64_t factor, iv_dim dim) {
    return iv_dim_multiply(counting->scope, iv_dim_constant(counting->scope, factor), dim);
}

static iv_dim plus(const counting *counting, iv_dim left, iv_dim right) {
    return iv_dim_add(counting->scope, left, right);
}

static iv_dim product(const counting *counting, iv_dim left, iv_dim right) {
    return iv_dim_multiply(counting->scope, left, right);
}

/* ---- contractions ---- */

static iv_dim matmul(const counting *counting, int64_t unused) {
    const iv_fact *left = input(counting, 0);
    if (left == NULL || left->rank == 0)
        return NULL;
    iv_dim all = extents(counting, output(counting), 0);
    return times(counting, 2, product(counting, all, left->dims[left->rank - 1]));
}

static iv_dim gemm(const counting *counting, int64_t unused) {
    const iv_fact *left = input(counting, 0);
    int64_t transposed = 0;
    if (left == NULL || left->rank != 2 ||
        iv_node_int(counting->node, "transA", 0, &transposed, NULL) != IV_OK)
        return NULL;
    iv_dim all = extents(counting, output(counting), 0);
    iv_dim sum = times(counting, 2, product(counting, all, left->dims[transposed != 0 ? 0 : 1]));
    return input(counting, 2) != NULL ? plus(counting, sum, all) : sum;
}

/* `weight` is the index of the input that holds the filters: [out, in per group, kernel…]. */
static iv_dim convolution(const counting *counting, int64_t weight) {
    iv_dim all = extents(counting, output(counting), 0);
    iv_dim sum = times(counting, 2,
                       product(counting, all, extents(counting, input(counting, (int)weight), 1)));
    int bias = weight == 3 ? 8 : 2; /* QLinearConv has its filters at 3 */
    bool biased = weight != 1 || strcmp(counting->node->op->name, "ConvInteger") != 0;
    return biased && input(counting, bias) != NULL ? plus(counting, sum, all) : sum;
}

/* Filters are [in, out per group, kernel…]: every input element meets those of its channel. */
static iv_dim convolution_transpose(const counting *counting, int64_t unused) {
    iv_dim all = extents(counting, input(counting, 0), 0);
    iv_dim sum =
        times(counting, 2, product(counting, all, extents(counting, input(counting, 1), 1)));
    return input(counting, 2) != NULL ? plus(counting, sum, extents(counting, output(counting), 0))
                                      : sum;
}

/* RNN, GRU, LSTM: each step multiplies with W and R; `gates` says how many element-wise operations
 * follow per hidden element. */
static iv_dim recurrent(const counting *counting, int64_t gates) {
    const iv_fact *sequence = input(counting, 0), *recurrence = input(counting, 2);
    if (sequence == NULL || sequence->rank != 3 || recurrence == NULL || recurrence->rank != 3)
        return NULL;
    iv_dim steps = product(counting, sequence->dims[0], sequence->dims[1]);
    iv_dim weights =
        plus(counting, extents(counting, input(counting, 1), 0), extents(counting, recurrence, 0));
    iv_dim hidden = product(counting, recurrence->dims[0], recurrence->dims[2]);
    return product(counting, steps,
                   plus(counting, times(counting, 2, weights), times(counting, gates, hidden)));
}

/* ---- per element ---- */

static iv_dim per_output(const counting *counting, int64_t operations) {
    return times(counting, operations, extents(counting, output(counting), 0));
}

static iv_dim per_input(const counting *counting, int64_t operations) {
    return times(counting, operations, extents(counting, input(counting, 0), 0));
}

static iv_dim nothing(const counting *counting, int64_t unused) {
    return iv_dim_constant(counting->scope, 0);
}

static iv_dim window(const counting *counting, int64_t unused) {
    int64_t count = 0;
    const int64_t *kernel = NULL;
    if (iv_node_ints(counting->node, "kernel_shape", &count, &kernel, NULL) != IV_OK)
        return NULL;
    iv_dim sum = extents(counting, output(counting), 0);
    for (int64_t i = 0; i < count; i++)
        sum = times(counting, kernel[i], sum);
    return sum;
}

static iv_dim sum_of_inputs(const counting *counting, int64_t unused) {
    int formal = counting->node->input_count - counting->node->capture_count;
    return times(counting, formal - 1, extents(counting, output(counting), 0));
}

typedef struct rule {
    const char *op;
    iv_dim (*count)(const counting *counting, int64_t number);
    int64_t number;
} rule;

/* What element-wise ops (1 per output element) and ops that move elements (0) do not cover already.
 * Normalisations: sum, centre, square and sum, scale, and the factors per channel. Softmax:
 * subtract, exponential, sum, divide. */
static const rule rules[] = {
    {"MatMul", matmul, 0},
    {"MatMulInteger", matmul, 0},
    {"QLinearMatMul", matmul, 0},
    {"Gemm", gemm, 0},
    {"Conv", convolution, 1},
    {"ConvInteger", convolution, 1},
    {"QLinearConv", convolution, 3},
    {"ConvTranspose", convolution_transpose, 0},
    {"RNN", recurrent, 3},
    {"GRU", recurrent, 13},
    {"LSTM", recurrent, 17},
    {"MaxPool", window, 0},
    {"AveragePool", window, 0},
    {"LpPool", window, 0},
    {"GlobalAveragePool", per_input, 1},
    {"GlobalMaxPool", per_input, 1},
    {"GlobalLpPool", per_input, 2},
    {"ReduceSum", per_input, 1},
    {"ReduceMean", per_input, 1},
    {"ReduceMax", per_input, 1},
    {"ReduceMin", per_input, 1},
    {"ReduceProd", per_input, 1},
    {"ReduceL1", per_input, 2},
    {"ReduceL2", per_input, 2},
    {"ReduceSumSquare", per_input, 2},
    {"ReduceLogSum", per_input, 1},
    {"ReduceLogSumExp", per_input, 3},
    {"ArgMax", per_input, 1},
    {"ArgMin", per_input, 1},
    {"CumSum", per_input, 1},
    {"Softmax", per_output, 4},
    {"LogSoftmax", per_output, 4},
    {"BatchNormalization", per_output, 2},
    {"InstanceNormalization", per_output, 7},
    {"LayerNormalization", per_output, 7},
    {"GroupNormalization", per_output, 7},
    {"RMSNormalization", per_output, 4},
    {"MeanVarianceNormalization", per_output, 5},
    {"Gelu", per_output, 1},
    {"QuantizeLinear", per_output, 2},
    {"DequantizeLinear", per_output, 2},
    {"Sum", sum_of_inputs, 0},
    {"Mean", sum_of_inputs, 0},
    {"Max", sum_of_inputs, 0},
    {"Min", sum_of_inputs, 0},
    {"Identity", nothing, 0},
    {"Cast", nothing, 0},
    {"CastLike", nothing, 0},
    {"Dropout", nothing, 0},
    {"Shape", nothing, 0},
    {"Size", nothing, 0},
    {"Constant", nothing, 0},
    {"ConstantOfShape", nothing, 0},
    {"Gather", nothing, 0},
    {"GatherElements", nothing, 0},
    {"GatherND", nothing, 0},
    {"Where", nothing, 0},
};

iv_status iv_node_flops(const iv_node *node, iv_scope *scope, const iv_fact *const *inputs,
                        const iv_fact *outputs, iv_dim *flops, iv_error *error) {
    counting counting = {node, scope, inputs, outputs};
    const rule *rule = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && node->op->domain[0] == '\0'; i++) {
        if (strcmp(rules[i].op, node->op->name) == 0)
            rule = &rules[i];
    }
    *flops = NULL;
    if (rule != NULL)
        *flops = rule->count(&counting, rule->number);
    else if ((node->op->flags & IV_OP_ELEMENTWISE) != 0)
        *flops = per_output(&counting, 1);
    else if ((node->op->flags & IV_OP_VIEW) != 0 || node->op->moved_inputs != 0)
        *flops = nothing(&counting, 0);
    /* A count beyond 2^63, or a formula beyond the scope's bounds, is an unknown count and not an
     * error of the model. */
    iv_status status = iv_scope_check(scope, error);
    return status == IV_ERROR_OUT_OF_MEMORY ? status : IV_OK;
}
