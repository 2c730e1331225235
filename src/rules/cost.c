#include "rules/cost.h"

#include <string.h>

typedef struct counting {
    const sb_node *node;
    sb_scope *scope;
    const sb_fact *const *inputs;
    const sb_fact *outputs;
} counting;

static const sb_fact *input(const counting *counting, int index) {
    int formal = counting->node->input_count - counting->node->capture_count;
    const sb_fact *fact = index < formal ? counting->inputs[index] : NULL;
    return fact != NULL && fact->kind == SB_KIND_TENSOR && fact->rank >= 0 ? fact : NULL;
}

/* The first output that somebody wants, if its rank is known. */
static const sb_fact *output(const counting *counting) {
    for (int i = 0; i < counting->node->output_count; i++) {
        const sb_fact *fact = &counting->outputs[i];
        if (counting->node->outputs[i] != SB_NO_VALUE)
            return fact->kind == SB_KIND_TENSOR && fact->rank >= 0 ? fact : NULL;
    }
    return NULL;
}

/* The product of the extents from `first` on; NULL for no fact. */
static sb_dim extents(const counting *counting, const sb_fact *fact, int first) {
    sb_dim product = fact != NULL ? sb_dim_constant(counting->scope, 1) : NULL;
    for (int d = first; fact != NULL && d < fact->rank; d++)
        product = sb_dim_multiply(counting->scope, product, fact->dims[d]);
    return product;
}

static sb_dim times(const counting *counting, int64_t factor, sb_dim dim) {
    return sb_dim_multiply(counting->scope, sb_dim_constant(counting->scope, factor), dim);
}

static sb_dim plus(const counting *counting, sb_dim left, sb_dim right) {
    return sb_dim_add(counting->scope, left, right);
}

static sb_dim product(const counting *counting, sb_dim left, sb_dim right) {
    return sb_dim_multiply(counting->scope, left, right);
}

/* ---- contractions ---- */

static sb_dim matmul(const counting *counting, int64_t unused) {
    const sb_fact *left = input(counting, 0);
    if (left == NULL || left->rank == 0)
        return NULL;
    sb_dim all = extents(counting, output(counting), 0);
    return times(counting, 2, product(counting, all, left->dims[left->rank - 1]));
}

static sb_dim gemm(const counting *counting, int64_t unused) {
    const sb_fact *left = input(counting, 0);
    int64_t transposed = 0;
    if (left == NULL || left->rank != 2 || sb_node_int(counting->node, "transA", 0, &transposed, NULL) != SB_OK)
        return NULL;
    sb_dim all = extents(counting, output(counting), 0);
    sb_dim sum = times(counting, 2, product(counting, all, left->dims[transposed != 0 ? 0 : 1]));
    return input(counting, 2) != NULL ? plus(counting, sum, all) : sum;
}

/* `weight` is the index of the input that holds the filters: [out, in per group, kernel…]. */
static sb_dim convolution(const counting *counting, int64_t weight) {
    sb_dim all = extents(counting, output(counting), 0);
    sb_dim sum = times(counting, 2, product(counting, all, extents(counting, input(counting, (int)weight), 1)));
    int bias = weight == 3 ? 8 : 2; /* QLinearConv has its filters at 3 */
    bool biased = weight != 1 || strcmp(counting->node->op->name, "ConvInteger") != 0;
    return biased && input(counting, bias) != NULL ? plus(counting, sum, all) : sum;
}

/* Filters are [in, out per group, kernel…]: every input element meets those of its channel. */
static sb_dim convolution_transpose(const counting *counting, int64_t unused) {
    sb_dim all = extents(counting, input(counting, 0), 0);
    sb_dim sum = times(counting, 2, product(counting, all, extents(counting, input(counting, 1), 1)));
    return input(counting, 2) != NULL ? plus(counting, sum, extents(counting, output(counting), 0)) : sum;
}

/* RNN, GRU, LSTM: each step multiplies with W and R; `gates` says how many element-wise operations
 * follow per hidden element. */
static sb_dim recurrent(const counting *counting, int64_t gates) {
    const sb_fact *sequence = input(counting, 0), *recurrence = input(counting, 2);
    if (sequence == NULL || sequence->rank != 3 || recurrence == NULL || recurrence->rank != 3)
        return NULL;
    sb_dim steps = product(counting, sequence->dims[0], sequence->dims[1]);
    sb_dim weights = plus(counting, extents(counting, input(counting, 1), 0), extents(counting, recurrence, 0));
    sb_dim hidden = product(counting, recurrence->dims[0], recurrence->dims[2]);
    return product(counting, steps, plus(counting, times(counting, 2, weights), times(counting, gates, hidden)));
}

/* ---- per element ---- */

static sb_dim per_output(const counting *counting, int64_t operations) {
    return times(counting, operations, extents(counting, output(counting), 0));
}

static sb_dim per_input(const counting *counting, int64_t operations) {
    return times(counting, operations, extents(counting, input(counting, 0), 0));
}

static sb_dim nothing(const counting *counting, int64_t unused) {
    return sb_dim_constant(counting->scope, 0);
}

static sb_dim window(const counting *counting, int64_t unused) {
    int64_t count = 0;
    const int64_t *kernel = NULL;
    if (sb_node_ints(counting->node, "kernel_shape", &count, &kernel, NULL) != SB_OK)
        return NULL;
    sb_dim sum = extents(counting, output(counting), 0);
    for (int64_t i = 0; i < count; i++)
        sum = times(counting, kernel[i], sum);
    return sum;
}

static sb_dim sum_of_inputs(const counting *counting, int64_t unused) {
    int formal = counting->node->input_count - counting->node->capture_count;
    return times(counting, formal - 1, extents(counting, output(counting), 0));
}

typedef struct rule {
    const char *op;
    sb_dim (*count)(const counting *counting, int64_t number);
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

sb_status sb_node_flops(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, const sb_fact *outputs,
                        sb_dim *flops, sb_error *error) {
    counting counting = {node, scope, inputs, outputs};
    const rule *rule = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && node->op->domain[0] == '\0'; i++) {
        if (strcmp(rules[i].op, node->op->name) == 0)
            rule = &rules[i];
    }
    *flops = NULL;
    if (rule != NULL)
        *flops = rule->count(&counting, rule->number);
    else if ((node->op->flags & SB_OP_ELEMENTWISE) != 0)
        *flops = per_output(&counting, 1);
    else if ((node->op->flags & SB_OP_VIEW) != 0 || node->op->moved_inputs != 0)
        *flops = nothing(&counting, 0);
    /* A count beyond 2^63, or a formula beyond the scope's bounds, is an unknown count and not an
     * error of the model. */
    sb_status status = sb_scope_check(scope, error);
    return status == SB_ERROR_OUT_OF_MEMORY ? status : SB_OK;
}
