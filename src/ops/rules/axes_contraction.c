/* Matrix products and sums of products: rows and columns are independent, K is bounded. */
#include "ops/einsum.h"
#include "ops/list.h"
#include "rules/question.h"

#define SUMMED "the products are summed over it"

/* ---- MatMul, MatMulF32, MatMulInteger, QLinearMatMul ---- */

typedef struct matmul_inputs {
    int a, b, a_zero, b_zero; /* the zero points: -1 where there are none */
} matmul_inputs;

static const matmul_inputs products[] = {{0, 1, -1, -1}, {0, 1, 2, 3}, {0, 3, 2, 5}};

/* A batch dimension of an operand of rank `rank`; `other` is the other one's. */
static sb_status batch_axis(const sb_axis_question *question, sb_axis_rule *answer, int rank, int other) {
    int matrix = other == 1 ? 1 : 2; /* dimensions of the output that are no batch */
    return sb_axis_align(question, answer, question->outputs[0].rank - matrix - (rank - 2 - question->axis));
}

static sb_status left_axis(const sb_axis_question *question, sb_axis_rule *answer, int rank, int other) {
    if (question->axis == rank - 1)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, SUMMED);
    if (question->axis == rank - 2)
        return sb_axis_independent(question, answer, question->outputs[0].rank - (other == 1 ? 1 : 2));
    return batch_axis(question, answer, rank, other);
}

static sb_status right_axis(const sb_axis_question *question, sb_axis_rule *answer, int rank, int other) {
    if (rank == 1 || question->axis == rank - 2)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, SUMMED);
    if (question->axis == rank - 1)
        return sb_axis_independent(question, answer, question->outputs[0].rank - 1);
    return batch_axis(question, answer, rank, other);
}

static sb_status matmul(const sb_axis_question *question, sb_axis_rule *answer) {
    const matmul_inputs *inputs = &products[question->entry->number];
    const sb_fact *a = sb_axis_input(question, inputs->a), *b = sb_axis_input(question, inputs->b);
    if (a == NULL || b == NULL)
        return sb_axis_unknown(answer, "the rank of an input is not known");
    if (question->input == inputs->a)
        return left_axis(question, answer, a->rank, b->rank);
    if (question->input == inputs->b)
        return right_axis(question, answer, b->rank, a->rank);
    int rank = question->outputs[0].rank;
    if (question->input == inputs->a_zero && a->rank > 1)
        return sb_axis_per_index(question, answer, rank - (b->rank == 1 ? 1 : 2));
    if (question->input == inputs->b_zero && b->rank > 1)
        return sb_axis_per_index(question, answer, rank - 1);
    return sb_axis_fixed(answer);
}

/* ---- Gemm ---- */

static sb_status gemm(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input == 2)
        return sb_axis_broadcast(question, answer);
    bool transposed = sb_axis_attribute(question, question->input == 0 ? "transA" : "transB", 0) != 0;
    int summed = (question->input == 0) != transposed ? 1 : 0;
    if (question->axis == summed)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, SUMMED);
    return sb_axis_independent(question, answer, question->input);
}

/* ---- Einsum ---- */

/* The label of dimension `axis` of a term, and in *dimension, for one of the ellipsis, how many of it follow. */
static uint8_t label_at(const sb_einsum_term *term, int rank, int axis, int *dimension) {
    int wide = rank - term->count + 1; /* what an ellipsis stands for */
    *dimension = 0;
    for (int i = 0, d = 0; i < term->count; i++) {
        int step = term->labels[i] == SB_EINSUM_MARK ? wide : 1;
        if (axis < d + step) {
            *dimension = d + step - 1 - axis;
            return term->labels[i];
        }
        d += step;
    }
    return SB_EINSUM_MARK;
}

static int find_label(const sb_einsum_term *term, int rank, uint8_t label, int dimension, int *times) {
    int found = SB_AXIS_NONE, at;
    *times = 0;
    for (int d = 0; d < rank; d++) {
        if (label_at(term, rank, d, &at) == label && at == dimension) {
            found = d;
            ++*times;
        }
    }
    return found;
}

static sb_status einsum(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_einsum_params *params = question->node->params;
    const sb_einsum_term *term = &params->terms[question->input], *output = &params->terms[params->count];
    int rank = sb_axis_asked(question)->rank, dimension, times;
    uint8_t label = label_at(term, rank, question->axis, &dimension);
    find_label(term, rank, label, dimension, &times);
    if (times > 1)
        return sb_axis_unknown(answer, "a diagonal goes through it");
    int axis = find_label(output, question->outputs[0].rank, label, dimension, &times);
    if (axis == SB_AXIS_NONE)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, SUMMED);
    if (times > 1)
        return sb_axis_unknown(answer, "it is on several axes of the output");
    return label == SB_EINSUM_MARK ? sb_axis_align(question, answer, axis)
                                   : sb_axis_independent(question, answer, axis);
}

#define MATMUL(index, scalars, ...)                                                                                    \
    {                                                                                                                  \
        .op = {__VA_ARGS__}, .rule = matmul, .number = index, .independent = "batch, rows of A, columns of B" scalars, \
        .bounded = "K", .exact = "batch extents of 1 that are repeated"                                                \
    }

const sb_axes_entry sb_axes_contraction[] = {
    MATMUL(0, "", "MatMul"),
    MATMUL(0, "", "MatMulF32", "samebit"),
    MATMUL(1, ", zero points per row and column", "MatMulInteger"),
    MATMUL(2, ", zero points per row and column", "QLinearMatMul"),
    {.op = {"Gemm"},
     .rule = gemm,
     .independent = "rows of A, columns of B, axes of C",
     .bounded = "K",
     .exact = "extents of 1 of C that are repeated"},
    {.op = {"Einsum"},
     .rule = einsum,
     .independent = "axes of the output",
     .bounded = "axes that are summed",
     .exact = "diagonals; extents of 1 of an ellipsis that are repeated"},
    {.op = {NULL}},
};
