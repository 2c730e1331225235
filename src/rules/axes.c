#include "rules/axes.h"

#include <pthread.h>

#include "rules/question.h"

static sb_registry registry = {.name = "axes", .tables = sb_axes_tables, .entry_bytes = sizeof(sb_axes_entry)};
static pthread_once_t indexed = PTHREAD_ONCE_INIT;

static void make_index(void) {
    sb_registry_index(&registry);
}

const sb_registry *sb_axes_registry(void) {
    pthread_once(&indexed, make_index);
    return &registry;
}

const sb_axes_entry *sb_axes_find(const sb_op *op) {
    return sb_registry_find(sb_axes_registry(), op);
}

const char *sb_axis_kind_name(sb_axis_kind kind) {
    static const char *const names[] = {"independent", "bounded", "exact"};
    return names[kind];
}

/* Whether all wanted outputs that are tensors have a known rank: then rules need not ask. */
static bool outputs_known(const sb_node *node, const sb_fact *outputs) {
    for (int o = 0; o < node->output_count; o++) {
        bool tensor = outputs[o].kind != SB_KIND_SEQUENCE;
        if (node->outputs[o] != SB_NO_VALUE && tensor && (outputs[o].kind == SB_KIND_NONE || outputs[o].rank < 0))
            return false;
    }
    return true;
}

sb_status sb_axes_by(const sb_axes_entry *entry, const sb_node *node, const sb_fact *const *inputs,
                     const sb_fact *outputs, int input, int axis, sb_axis_rule *rule, sb_error *error) {
    *rule = (sb_axis_rule){.output_axes = rule->output_axes};
    for (int o = 0; rule->output_axes != NULL && o < node->output_count; o++)
        rule->output_axes[o] = SB_AXIS_NONE;
    const sb_fact *fact = input >= 0 && input < node->input_count ? inputs[input] : NULL;
    if (fact == NULL || axis < 0 || (fact->kind == SB_KIND_TENSOR && fact->rank >= 0 && axis >= fact->rank))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "node %s (%s) has no axis %d of an input %d", node->name,
                       node->op->name, axis, input);
    rule->checked = input < 32 && (entry->checked >> input & 1) != 0;
    if (fact->kind != SB_KIND_TENSOR)
        return sb_axis_unknown(rule, "the input is no tensor");
    if (fact->rank < 0)
        return sb_axis_unknown(rule, "the rank of the input is not known");
    if (!outputs_known(node, outputs))
        return sb_axis_unknown(rule, "the rank of an output is not known");
    const sb_axis_question question = {entry, node, inputs, outputs, input, axis, error};
    return entry->rule(&question, rule);
}

sb_status sb_axes_of(const sb_node *node, const sb_fact *const *inputs, const sb_fact *outputs, int input, int axis,
                     sb_axis_rule *rule, sb_error *error) {
    const sb_axes_entry *entry = sb_axes_find(node->op);
    if (entry == NULL)
        return sb_fail(error, SB_ERROR_INTERNAL, "node %s: the registry axes has no entry for %s", node->name,
                       node->op->name);
    return sb_axes_by(entry, node, inputs, outputs, input, axis, rule, error);
}

bool sb_axes_says_extents(const sb_node *node, int input) {
    const sb_axes_entry *entry = sb_axes_find(node->op);
    return entry != NULL && input < 32 && (entry->extents >> input & 1) != 0;
}
