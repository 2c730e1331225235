/* What the rules of the registry `axes` share: the question and the ways to answer it. */
#ifndef SB_RULES_AXES_QUESTION_H
#define SB_RULES_AXES_QUESTION_H

#include "rules/axes.h"

/** The tables of all families; NULL ends them. Defined where families are listed: ops/list.c. */
extern const void *const sb_axes_tables[];

struct sb_axis_question {
    const sb_axes_entry *entry;
    const sb_node *node;
    const sb_fact *const *inputs;
    const sb_fact *outputs;
    int input, axis;
    sb_error *error;
};

/** The fact of formal input `index`; NULL where it is omitted, no tensor, or of unknown rank. */
const sb_fact *sb_axis_input(const sb_axis_question *question, int index);
/** The fact of the input that is asked about. */
const sb_fact *sb_axis_asked(const sb_axis_question *question);
/** The extent that is asked about. */
sb_dim sb_axis_extent(const sb_axis_question *question);

/* Answers. `output_axis` is for all outputs; SB_AXIS_NONE is allowed. They return SB_OK. */

sb_status sb_axis_independent(const sb_axis_question *question, sb_axis_rule *answer, int output_axis);
sb_status sb_axis_bounded(const sb_axis_question *question, sb_axis_rule *answer, int output_axis, const char *reason);
sb_status sb_axis_exact(sb_axis_rule *answer, const char *reason);
/** As sb_axis_exact, for want of knowledge. */
sb_status sb_axis_unknown(sb_axis_rule *answer, const char *reason);
/** For lists (of axes, extents, bounds, scales) and for what has a fixed size: exact. */
sb_status sb_axis_fixed(sb_axis_rule *answer);
/** The rule of operators whose inputs are all lists or scalars. */
sb_status sb_axis_all_fixed(const sb_axis_question *question, sb_axis_rule *answer);

/** The axis becomes axis `output_axis` of output 0, or its only row is repeated there. */
sb_status sb_axis_align(const sb_axis_question *question, sb_axis_rule *answer, int output_axis);
/** The same for numpy's broadcasting of the asked input to output 0: a rule of its own. */
sb_status sb_axis_broadcast(const sb_axis_question *question, sb_axis_rule *answer);
/** For a list with a number per index of axis `output_axis` of all outputs, or with a single number for all. */
sb_status sb_axis_per_index(const sb_axis_question *question, sb_axis_rule *answer, int output_axis);

/** An axis of a tensor of that rank, counted from the end when negative; SB_AXIS_NONE when out of range. */
int sb_axis_resolve(int64_t axis, int rank);
/** The node's integer attribute; `otherwise` where it is absent. Of the right type, as the operator has checked. */
int64_t sb_axis_attribute(const sb_axis_question *question, const char *name, int64_t otherwise);
/** Element `index` of a list of integers, if it is known as a number. A scalar is a list of one. */
bool sb_axis_number(const sb_fact *list, int64_t index, int64_t *value);
/** How many elements a list has; -1 when that is not known. A scalar has one. */
int64_t sb_axis_count(const sb_fact *list);
/** Whether a symbol of `left` is in `right` as well. */
bool sb_axis_shares(sb_dim left, sb_dim right);

#endif
