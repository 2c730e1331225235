#include "rules/question.h"

#include <string.h>

const sb_fact *sb_axis_input(const sb_axis_question *question, int index) {
    int formal = question->node->input_count - question->node->capture_count;
    const sb_fact *fact = index < formal ? question->inputs[index] : NULL;
    return fact != NULL && fact->kind == SB_KIND_TENSOR && fact->rank >= 0 ? fact : NULL;
}

const sb_fact *sb_axis_asked(const sb_axis_question *question) {
    return question->inputs[question->input];
}

sb_dim sb_axis_extent(const sb_axis_question *question) {
    return sb_axis_asked(question)->dims[question->axis];
}

/* ---- answers ---- */

static void send_to(const sb_axis_question *question, sb_axis_rule *answer, int output_axis) {
    for (int o = 0; answer->output_axes != NULL && o < question->node->output_count; o++)
        answer->output_axes[o] = output_axis;
}

sb_status sb_axis_independent(const sb_axis_question *question, sb_axis_rule *answer, int output_axis) {
    answer->kind = SB_AXIS_INDEPENDENT;
    send_to(question, answer, output_axis);
    return SB_OK;
}

sb_status sb_axis_bounded(const sb_axis_question *question, sb_axis_rule *answer, int output_axis, const char *reason) {
    answer->kind = SB_AXIS_BOUNDED;
    answer->reason = reason;
    send_to(question, answer, output_axis);
    return SB_OK;
}

sb_status sb_axis_exact(sb_axis_rule *answer, const char *reason) {
    answer->kind = SB_AXIS_EXACT;
    answer->reason = reason;
    return SB_OK;
}

sb_status sb_axis_unknown(sb_axis_rule *answer, const char *reason) {
    answer->conservative = true;
    return sb_axis_exact(answer, reason);
}

sb_status sb_axis_fixed(sb_axis_rule *answer) {
    return sb_axis_exact(answer, "its extent is part of what the operator is asked for");
}

sb_status sb_axis_all_fixed(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_fixed(answer);
}

sb_status sb_axis_align(const sb_axis_question *question, sb_axis_rule *answer, int output_axis) {
    int64_t number;
    if (output_axis < 0)
        return sb_axis_fixed(answer);
    if (sb_dim_equal(sb_axis_extent(question), question->outputs[0].dims[output_axis]))
        return sb_axis_independent(question, answer, output_axis);
    if (sb_dim_is_constant(sb_axis_extent(question), &number) && number == 1)
        return sb_axis_exact(answer, "its only row is repeated");
    return sb_axis_unknown(answer, "whether its only row is repeated depends on the extent");
}

sb_status sb_axis_broadcast(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_align(question, answer, question->outputs[0].rank - sb_axis_asked(question)->rank + question->axis);
}

sb_status sb_axis_per_index(const sb_axis_question *question, sb_axis_rule *answer, int output_axis) {
    int64_t number;
    if (sb_axis_asked(question)->rank != 1 || output_axis < 0)
        return sb_axis_unknown(answer, "its shape says how it is spread");
    if (!sb_dim_is_constant(sb_axis_extent(question), &number))
        return sb_axis_unknown(answer, "whether there is one number or many depends on the extent");
    return number == 1 ? sb_axis_fixed(answer) : sb_axis_independent(question, answer, output_axis);
}

/* ---- reading ---- */

int sb_axis_resolve(int64_t axis, int rank) {
    axis = axis < 0 ? axis + rank : axis;
    return axis >= 0 && axis < rank ? (int)axis : SB_AXIS_NONE;
}

int64_t sb_axis_attribute(const sb_axis_question *question, const char *name, int64_t otherwise) {
    int64_t value = otherwise;
    return sb_node_int(question->node, name, otherwise, &value, NULL) == SB_OK ? value : otherwise;
}

int64_t sb_axis_count(const sb_fact *list) {
    int64_t count = 1;
    if (list == NULL || list->rank > 1 || (list->rank == 1 && !sb_dim_is_constant(list->dims[0], &count)))
        return -1;
    return count;
}

bool sb_axis_number(const sb_fact *list, int64_t index, int64_t *value) {
    if (index < 0 || index >= sb_axis_count(list))
        return false;
    if (list->constant == NULL)
        return list->elements != NULL && sb_dim_is_constant(list->elements[index], value);
    const sb_tensor *tensor = list->constant;
    const char *data =
        tensor->data + (tensor->rank == 1 ? index * tensor->strides[0] : 0) * (int64_t)sb_dtype_size(tensor->dtype);
    int32_t narrow;
    if (tensor->dtype == SB_S64) {
        memcpy(value, data, sizeof *value);
        return true;
    }
    if (tensor->dtype != SB_S32)
        return false;
    memcpy(&narrow, data, sizeof narrow);
    *value = narrow;
    return true;
}

typedef struct symbol_search {
    sb_dim within;
    bool found;
} symbol_search;

static void look_for_symbol(void *context, const char *name) {
    symbol_search *search = context;
    search->found = search->found || sb_dim_mentions(search->within, name);
}

bool sb_axis_shares(sb_dim left, sb_dim right) {
    symbol_search search = {.within = right};
    sb_dim_visit_symbols(left, look_for_symbol, &search);
    return search.found;
}
