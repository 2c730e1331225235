/* The registry `axes`: what a node does with one axis of one of its inputs, and where that axis goes.
 *
 * The question behind it: a buffer has room for N rows of the axis, and n of them are used. What happens to a node that
 * is told N, with garbage behind the n rows? */
#ifndef SB_RULES_AXES_H
#define SB_RULES_AXES_H

#include "rules/registry.h"

typedef enum sb_axis_kind {
    /* Rows do not see each other. The used rows of the input alone decide the used rows of the outputs, which are first
     * on their axis (how many: inference says, told n); garbage behind makes garbage behind. */
    SB_AXIS_INDEPENDENT,
    /* The kernel has to stop at the used extent, exactly as if the tensor ended there: it sums, compares, normalises,
     * slides, counts from the end, or puts the result behind the last row. */
    SB_AXIS_BOUNDED,
    /* The node has to be planned at the used extent. */
    SB_AXIS_EXACT
} sb_axis_kind;

/* The axis of an output that an input axis does not go to. */
#define SB_AXIS_NONE (-1)

typedef struct sb_axis_rule {
    sb_axis_kind kind;
    /* Why the axis is bounded or exact, as a phrase ("the sum runs over it"); static; NULL for independent axes. */
    const char *reason;
    /* Bounded or exact only for want of knowledge or of a finer rule: nodes like this one may do better. */
    bool conservative;
    /* Elements of this input may be refused, and so fail the run (an index out of range, a division by 0). Nobody may
     * look at those behind the used extent. */
    bool checked;
    /* The caller's, with room for an entry per output of the node: the axis of that output that this one becomes, or
     * SB_AXIS_NONE where the output does not have it. The extent may be another one: outputs' facts say which. With
     * SB_AXIS_EXACT all are SB_AXIS_NONE. */
    int *output_axes;
} sb_axis_rule;

typedef struct sb_axis_question sb_axis_question;

/** An entry of the registry. */
typedef struct sb_axes_entry {
    sb_rule_key op;
    /* Answers into `answer`, cleared but for its output axes, which are SB_AXIS_NONE. The question has a tensor of
     * known rank, and so have the wanted outputs that are tensors. */
    sb_status (*rule)(const sb_axis_question *question, sb_axis_rule *answer);
    int number;       /* for rules of several operators: what differs */
    uint32_t checked; /* a bit per input whose elements may be refused */
    /* A bit per input whose elements say how many rows of an output there are, and nothing else: with larger ones the
     * first rows are as before. */
    uint32_t extents;
    /* Which axes the rule gives each kind, in words; NULL: none. A test compares them with what it says. */
    const char *independent, *bounded, *exact;
} sb_axes_entry;

/** The operator's entry; NULL if it has none. */
const sb_axes_entry *sb_axes_find(const sb_op *op);

/** Whether the elements of an input say how many rows of an output there are, and nothing else. */
bool sb_axes_says_extents(const sb_node *node, int input);

/** The registry, indexed. */
const sb_registry *sb_axes_registry(void);

/** What the node does with axis `axis` of input `input`, where `inputs` (an entry per node input, NULL where omitted)
 * and `outputs` (an entry per output) are its facts; symbolic extents and values are fine. `rule->output_axes` is the
 * caller's array, or NULL to do without. Errors: INVALID_ARGUMENT for an input or axis that the node does not have;
 * INTERNAL for an operator without an entry; OUT_OF_MEMORY. Any thread may call it. */
sb_status sb_axes_of(const sb_node *node, const sb_fact *const *inputs, const sb_fact *outputs, int input, int axis,
                     sb_axis_rule *rule, sb_error *error);

/** As sb_axes_of, by an entry that need not be the registry's. */
sb_status sb_axes_by(const sb_axes_entry *entry, const sb_node *node, const sb_fact *const *inputs,
                     const sb_fact *outputs, int input, int axis, sb_axis_rule *rule, sb_error *error);

/** "independent", "bounded" or "exact". */
const char *sb_axis_kind_name(sb_axis_kind kind);

#endif
