/* Contractions: 2 operations for each multiply-add, 1 for each element that a bias is added to. */
#include "ops/list.h"
#include "ops/recurrent.h"
#include "rules/counting.h"

static sb_dim plus(const sb_cost_question *question, sb_dim left, sb_dim right) {
    return sb_dim_add(question->scope, left, right);
}

static sb_dim product(const sb_cost_question *question, sb_dim left, sb_dim right) {
    return sb_dim_multiply(question->scope, left, right);
}

static sb_dim matmul(const sb_cost_question *question, int64_t number) {
    const sb_fact *left = sb_cost_input(question, 0);
    if (left == NULL || left->rank == 0)
        return NULL;
    sb_dim all = sb_cost_extents(question, sb_cost_output(question), 0);
    return sb_cost_times(question, 2, product(question, all, left->dims[left->rank - 1]));
}

static sb_dim gemm(const sb_cost_question *question, int64_t number) {
    const sb_fact *left = sb_cost_input(question, 0);
    int64_t transposed = 0;
    if (left == NULL || left->rank != 2 || sb_node_int(question->node, "transA", 0, &transposed, NULL) != SB_OK)
        return NULL;
    sb_dim all = sb_cost_extents(question, sb_cost_output(question), 0);
    sb_dim sum = sb_cost_times(question, 2, product(question, all, left->dims[transposed != 0 ? 0 : 1]));
    return sb_cost_input(question, 2) != NULL ? plus(question, sum, all) : sum;
}

/* Where a convolution has its filters [out, in per group, kernel…] and its bias (-1: it has none). */
static const struct { int weights, bias; } convolutions[] = {{1, 2}, {1, -1}, {3, 8}};
enum { CONV, INTEGER, QLINEAR };

static sb_dim convolution(const sb_cost_question *question, int64_t number) {
    int weights = convolutions[number].weights, bias = convolutions[number].bias;
    sb_dim all = sb_cost_extents(question, sb_cost_output(question), 0);
    sb_dim taps = sb_cost_extents(question, sb_cost_input(question, weights), 1);
    sb_dim sum = sb_cost_times(question, 2, product(question, all, taps));
    return bias >= 0 && sb_cost_input(question, bias) != NULL ? plus(question, sum, all) : sum;
}

/* Filters are [in, out per group, kernel…]: every input element meets those of its channel. */
static sb_dim convolution_transpose(const sb_cost_question *question, int64_t number) {
    sb_dim all = sb_cost_extents(question, sb_cost_input(question, 0), 0);
    sb_dim taps = sb_cost_extents(question, sb_cost_input(question, 1), 1);
    sb_dim sum = sb_cost_times(question, 2, product(question, all, taps));
    if (sb_cost_input(question, 2) == NULL)
        return sum;
    return plus(question, sum, sb_cost_extents(question, sb_cost_output(question), 0));
}

/* RNN, GRU, LSTM: each step multiplies with W and R; `gates` says how many element-wise operations
 * follow per hidden element. */
static sb_dim recurrent(const sb_cost_question *question, int64_t gates) {
    const sb_fact *sequence = sb_cost_input(question, 0), *recurrence = sb_cost_input(question, 2);
    if (sequence == NULL || sequence->rank != 3 || recurrence == NULL || recurrence->rank != 3)
        return NULL;
    sb_dim steps = product(question, sequence->dims[0], sequence->dims[1]);
    sb_dim weights = plus(question, sb_cost_extents(question, sb_cost_input(question, 1), 0),
                          sb_cost_extents(question, recurrence, 0));
    sb_dim hidden = product(question, recurrence->dims[0], recurrence->dims[2]);
    return product(question, steps,
                   plus(question, sb_cost_times(question, 2, weights), sb_cost_times(question, gates, hidden)));
}

static sb_dim recurrent_turns(const sb_cost_question *question) {
    const sb_fact *sequence = sb_cost_input(question, SB_RECURRENT_X);
    bool batch_first = ((const sb_recurrent_params *)question->node->params)->batch_first;
    return sequence != NULL && sequence->rank == 3 ? sequence->dims[batch_first ? 1 : 0] : NULL;
}

static const sb_flops_rule matmul_flops = {matmul, "2 K per element of the output"};
static const sb_flops_rule gemm_flops = {gemm, "2 K per element of the output, 1 more with C"};
static const sb_flops_rule convolution_flops = {
    convolution, "2 per tap and input channel of a group for each element of the output, "
                 "1 more with a bias"};
static const sb_flops_rule transpose_flops = {
    convolution_transpose, "2 per tap and output channel of a group for each element of the input, 1 "
                           "per element of the output with a bias"};
static const sb_flops_rule recurrent_flops = {recurrent,
                                              "per step and batch row: 2 per element of W and R, # per hidden element"};

#define CONTRACTION(op_name, rule, value)                                                                              \
    { .op = {op_name}, .flops = &rule, .number = value, .bytes = &sb_bytes_whole }

#define RECURRENT(op_name, value)                                                                                      \
    { .op = {op_name}, .flops = &recurrent_flops, .number = value, .bytes = &sb_bytes_whole, .turns = recurrent_turns }

const sb_cost_entry sb_cost_contraction[] = {
    CONTRACTION("MatMul", matmul_flops, 0),
    {.op = {"MatMulF32", "samebit"}, .flops = &matmul_flops, .bytes = &sb_bytes_whole},
    CONTRACTION("MatMulInteger", matmul_flops, 0),
    CONTRACTION("QLinearMatMul", matmul_flops, 0),
    CONTRACTION("Gemm", gemm_flops, 0),
    CONTRACTION("Conv", convolution_flops, CONV),
    CONTRACTION("ConvInteger", convolution_flops, INTEGER),
    CONTRACTION("QLinearConv", convolution_flops, QLINEAR),
    CONTRACTION("ConvTranspose", transpose_flops, 0),
    CONTRACTION("DeformConv", sb_flops_uncounted, 0),
    CONTRACTION("Einsum", sb_flops_uncounted, 0),
    RECURRENT("RNN", 3),
    RECURRENT("GRU", 13),
    RECURRENT("LSTM", 17),
    {.op = {NULL}},
};
