#include "rules/counting.h"

const sb_fact *sb_cost_input(const sb_cost_question *question, int index) {
    int formal = question->node->input_count - question->node->capture_count;
    const sb_fact *fact = index < formal ? question->inputs[index] : NULL;
    return fact != NULL && fact->kind == SB_KIND_TENSOR && fact->rank >= 0 ? fact : NULL;
}

const sb_fact *sb_cost_output(const sb_cost_question *question) {
    for (int i = 0; i < question->node->output_count; i++) {
        const sb_fact *fact = &question->outputs[i];
        if (question->node->outputs[i] != SB_NO_VALUE)
            return fact->kind == SB_KIND_TENSOR && fact->rank >= 0 ? fact : NULL;
    }
    return NULL;
}

sb_dim sb_cost_extents(const sb_cost_question *question, const sb_fact *fact, int first) {
    sb_dim product = fact != NULL ? sb_dim_constant(question->scope, 1) : NULL;
    for (int d = first; fact != NULL && d < fact->rank; d++)
        product = sb_dim_multiply(question->scope, product, fact->dims[d]);
    return product;
}

sb_dim sb_cost_times(const sb_cost_question *question, int64_t factor, sb_dim dim) {
    return sb_dim_multiply(question->scope, sb_dim_constant(question->scope, factor), dim);
}

sb_dim sb_cost_bytes(const sb_cost_question *question, const sb_fact *fact) {
    if (fact == NULL || fact->kind != SB_KIND_TENSOR || fact->rank < 0 || fact->dtype == SB_STRING)
        return NULL;
    return sb_cost_times(question, (int64_t)sb_dtype_size(fact->dtype), sb_cost_extents(question, fact, 0));
}

/* ---- operations ---- */

static sb_dim none(const sb_cost_question *question, int64_t number) {
    return sb_dim_constant(question->scope, 0);
}

static sb_dim per_output(const sb_cost_question *question, int64_t number) {
    return sb_cost_times(question, number, sb_cost_extents(question, sb_cost_output(question), 0));
}

static sb_dim per_input(const sb_cost_question *question, int64_t number) {
    return sb_cost_times(question, number, sb_cost_extents(question, sb_cost_input(question, 0), 0));
}

const sb_flops_rule sb_flops_none = {none, "0"};
const sb_flops_rule sb_flops_uncounted = {NULL, "not counted"};
const sb_flops_rule sb_flops_per_output = {per_output, "# per element of the output"};
const sb_flops_rule sb_flops_per_input = {per_input, "# per element of the input"};

/* ---- bytes ---- */

/* The bytes of all present formal inputs from `first` on. */
static sb_dim inputs_from(const sb_cost_question *question, int first) {
    sb_dim sum = sb_dim_constant(question->scope, 0);
    for (int i = first; i < question->node->input_count - question->node->capture_count; i++) {
        if (question->inputs[i] != NULL)
            sum = sb_dim_add(question->scope, sum, sb_cost_bytes(question, question->inputs[i]));
    }
    return sum;
}

static sb_dim all_outputs(const sb_cost_question *question) {
    sb_dim sum = sb_dim_constant(question->scope, 0);
    for (int o = 0; o < question->node->output_count; o++) {
        if (question->node->outputs[o] != SB_NO_VALUE)
            sum = sb_dim_add(question->scope, sum, sb_cost_bytes(question, &question->outputs[o]));
    }
    return sum;
}

static void whole(const sb_cost_question *question, sb_dim *read, sb_dim *written) {
    *read = inputs_from(question, 0);
    *written = all_outputs(question);
}

static void view(const sb_cost_question *question, sb_dim *read, sb_dim *written) {
    *read = *written = sb_dim_constant(question->scope, 0);
}

static void written_only(const sb_cost_question *question, sb_dim *read, sb_dim *written) {
    *read = sb_dim_constant(question->scope, 0);
    *written = all_outputs(question);
}

static void first_input(const sb_cost_question *question, sb_dim *read, sb_dim *written) {
    *read = sb_cost_bytes(question, sb_cost_input(question, 0));
    *written = all_outputs(question);
}

static void chosen(const sb_cost_question *question, sb_dim *read, sb_dim *written) {
    *written = all_outputs(question);
    *read = sb_dim_add(question->scope, *written, inputs_from(question, 1));
}

const sb_bytes_rule sb_bytes_whole = {whole, "inputs and outputs"};
const sb_bytes_rule sb_bytes_view = {view, "none: a view"};
const sb_bytes_rule sb_bytes_written = {written_only, "outputs"};
const sb_bytes_rule sb_bytes_first = {first_input, "the first input and the output"};
const sb_bytes_rule sb_bytes_chosen = {chosen, "the elements that are chosen, indices and the output"};
const sb_bytes_rule sb_bytes_uncounted = {NULL, "not counted"};
