/* Whether what a rule says of a node's axes is true, as far as running its definition on a case can tell.
 * Include after cmocka.h. */
#ifndef SB_TESTS_AXIS_TRUTH_H
#define SB_TESTS_AXIS_TRUTH_H

#include "rules/axis_case.h"

#define CASE_INPUTS 32
#define CASE_OUTPUTS 16
/* Cases with longer inputs are left out: they take most of the time, and show what shorter ones do. */
#define CASE_ELEMENTS 2500

/* What cases have shown of one operator. */
typedef struct axis_tally {
    const sb_op *op;
    int asked[3];     /* axes per kind, over all cases */
    int proven;       /* independent: garbage behind did not change the used rows */
    int viewed;       /* runs whose inputs were views amid garbage */
    int needed;       /* bounded or exact: garbage behind, unbounded, changed the result */
    int refused;      /* bounded or exact: the node cannot have more rows */
    int conservative; /* bounded or exact for want of knowledge */
    int symbolic;     /* the same answer where the extent is a symbol */
    int failed;       /* growths that failed for an element behind the used rows that the rule says is checked */
} axis_tally;

/* What a rule says of all axes of a case's inputs. */
typedef struct axis_answers {
    sb_axis_rule rules[CASE_INPUTS][SB_MAX_RANK];
    int output_axes[CASE_INPUTS][SB_MAX_RANK][CASE_OUTPUTS];
} axis_answers;

static inline bool is_tensor(const axis_case *c, int input) {
    return c->inputs[input].kind == SB_KIND_TENSOR;
}

static inline sb_status ask_all(const sb_axes_entry *entry, const axis_case *c, axis_answers *answers,
                                sb_error *error) {
    for (int i = 0; i < c->node->input_count; i++) {
        for (int d = 0; is_tensor(c, i) && d < c->inputs[i].tensor->rank; d++) {
            answers->rules[i][d].output_axes = answers->output_axes[i][d];
            SB_TRY(sb_axes_by(entry, c->node, c->input_facts, c->output_facts, i, d, &answers->rules[i][d], error));
        }
    }
    return SB_OK;
}

/* ---- growing ---- */

/* Lists that name extents of the output, which grow with them. */
static inline int extent_list_of(const sb_node *node, bool *from_end) {
    const char *name = node->op->name;
    *from_end = strcmp(name, "Expand") == 0;
    return strcmp(name, "Reshape") == 0 || strcmp(name, "AffineGrid") == 0 || *from_end ? 1 : -1;
}

static inline sb_tensor *grow_list(const sb_tensor *list, int entry, int64_t least) {
    sb_tensor *copy;
    assert_int_equal(sb_tensor_create(list->dtype, list->rank, list->dims, &copy, NULL), SB_OK);
    sb_tensor_copy_elements(copy, list);
    int64_t *values = (int64_t *)(void *)copy->data;
    if (entry >= 0 && entry < list->dims[0] && values[entry] >= least)
        values[entry] *= GROWTH;
    return copy;
}

/* What lies behind the used rows of an input. Elements that are checked are legal. */
static inline garbage legal_garbage(const axis_answers *answers, int input, garbage kind) {
    return answers->rules[input][0].checked ? GARBAGE_LEGAL : kind;
}

/* Runs the case again with the axes in `grown` [inputs], a bit set each, longer, and garbage of the kinds [inputs]
 * behind. `output_axis` (or SB_AXIS_NONE) is what lists of extents are told of. */
static inline sb_status run_with(const axis_case *c, const uint32_t *grown, int output_axis, const garbage *kinds,
                                 axis_case *result, sb_error *error) {
    sb_value inputs[CASE_INPUTS] = {{0}};
    bool from_end;
    int list = extent_list_of(c->node, &from_end);
    for (int i = 0; i < c->node->input_count; i++)
        inputs[i] = grown[i] != 0 ? sb_value_of_tensor(grow_tensor(c->inputs[i].tensor, grown[i], kinds[i]))
                                  : sb_value_retain(c->inputs[i]);
    if (list >= 0 && list < c->node->input_count && is_tensor(c, list) && output_axis != SB_AXIS_NONE &&
        c->inputs[list].tensor->dtype == SB_S64) {
        const sb_tensor *extents = inputs[list].tensor;
        int entry = output_axis - (from_end ? c->outputs[0].tensor->rank - (int)extents->dims[0] : 0);
        /* In Expand's list, 1 is the input's own extent. */
        sb_tensor *longer = grow_list(extents, entry, from_end ? 2 : 1);
        sb_value_release(&inputs[list]);
        inputs[list] = sb_value_of_tensor(longer);
    }
    return start_case(result, c->node, inputs, error);
}

/* The same with one kind of garbage, as far as it is legal. */
static inline sb_status run_grown(const axis_case *c, const axis_answers *answers, const uint32_t *grown,
                                  int output_axis, garbage kind, axis_case *result, sb_error *error) {
    garbage kinds[CASE_INPUTS];
    for (int i = 0; i < c->node->input_count; i++)
        kinds[i] = legal_garbage(answers, i, kind);
    return run_with(c, grown, output_axis, kinds, result, error);
}

/* Whether growing fails for an element of a checked input, once it is not legal. */
static inline bool fails_when_checked(const axis_case *c, const axis_answers *answers, const uint32_t *grown,
                                      int output_axis) {
    static const garbage tries[][2] = {
        {GARBAGE_LEAST, GARBAGE_LEAST}, {GARBAGE_ZERO, GARBAGE_ZERO}, {GARBAGE_ZERO, GARBAGE_LEAST}};
    bool failed = false;
    for (int t = 0; t < 3 && !failed; t++) {
        garbage kinds[CASE_INPUTS];
        axis_case longer;
        for (int i = 0; i < c->node->input_count; i++)
            kinds[i] = answers->rules[i][0].checked ? tries[t][i > 0] : GARBAGE_LEGAL;
        failed = run_with(c, grown, output_axis, kinds, &longer, NULL) != SB_OK;
        if (!failed)
            clear_case(&longer);
    }
    return failed;
}

static inline bool can_grow(const axis_case *c, const uint32_t *grown) {
    for (int i = 0; i < c->node->input_count; i++) {
        if (grown[i] == 0)
            continue;
        if (!is_tensor(c, i) || sb_tensor_elements(c->inputs[i].tensor) == 0)
            return false;
    }
    return true;
}

/* ---- independent axes ---- */

/* Whether two axes go to the same axis of an output: then they are one, and grow together. */
static inline bool tied(const axis_case *c, const axis_answers *answers, int input, int axis, int other,
                        int other_axis) {
    if (answers->rules[other][other_axis].kind != SB_AXIS_INDEPENDENT)
        return false;
    for (int o = 0; o < c->node->output_count; o++) {
        int to = answers->output_axes[input][axis][o];
        if (c->node->outputs[o] != SB_NO_VALUE && to != SB_AXIS_NONE &&
            to == answers->output_axes[other][other_axis][o])
            return true;
    }
    return false;
}

/* The axes that grow with one of an independent kind. */
static inline void tie(const axis_case *c, const axis_answers *answers, int input, int axis, uint32_t *grown) {
    for (int i = 0; i < c->node->input_count; i++) {
        grown[i] = 0;
        for (int d = 0; is_tensor(c, i) && d < c->inputs[i].tensor->rank; d++) {
            bool self = i == input && d == axis;
            if (self || tied(c, answers, input, axis, i, d))
                grown[i] |= UINT32_C(1) << d;
        }
    }
}

static inline bool outputs_begin_with(const axis_case *grown, const axis_case *exact, const int *output_axes,
                                      int *wrong) {
    for (int o = 0; o < exact->node->output_count; o++) {
        if (exact->node->outputs[o] == SB_NO_VALUE || exact->outputs[o].kind != SB_KIND_TENSOR)
            continue;
        *wrong = o;
        if (!begins_with(grown->outputs[o].tensor, exact->outputs[o].tensor, output_axes[o]))
            return false;
    }
    return true;
}

static inline sb_status check_garbage(const axis_case *c, const axis_answers *answers, int input, int axis,
                                      const uint32_t *grown, garbage kind, sb_error *error) {
    const int *output_axes = answers->output_axes[input][axis];
    axis_case longer;
    sb_error refused = {SB_OK, ""};
    if (run_grown(c, answers, grown, output_axes[0], kind, &longer, &refused) != SB_OK)
        return sb_fail(error, SB_ERROR_INTERNAL, "node %s (%s): axis %d of input %d is said to be independent, but: %s",
                       c->node->name, c->node->op->name, axis, input, refused.message);
    int wrong = 0;
    bool same = outputs_begin_with(&longer, c, output_axes, &wrong);
    clear_case(&longer);
    if (!same)
        return sb_fail(
            error, SB_ERROR_INTERNAL,
            "node %s (%s): axis %d of input %d is said to be independent and to become axis %d of output %d, "
            "but what lies behind it changes that output",
            c->node->name, c->node->op->name, axis, input, output_axes[wrong], wrong);
    return SB_OK;
}

/* Garbage behind an independent axis must not change a used row. */
static inline sb_status check_independent(const axis_case *c, const axis_answers *answers, int input, int axis,
                                          axis_tally *tally, sb_error *error) {
    uint32_t grown[CASE_INPUTS];
    tie(c, answers, input, axis, grown);
    if (!can_grow(c, grown))
        return SB_OK;
    SB_TRY(check_garbage(c, answers, input, axis, grown, GARBAGE_NAN, error));
    SB_TRY(check_garbage(c, answers, input, axis, grown, GARBAGE_LEAST, error));
    if (answers->rules[input][axis].checked)
        tally->failed += fails_when_checked(c, answers, grown, answers->output_axes[input][axis][0]);
    tally->proven++;
    return SB_OK;
}

/* ---- bounded and exact axes ---- */

/* The axes of other inputs that have the same extent as this one: they may be the same axis. */
static inline void tie_equal(const axis_case *c, int input, int axis, uint32_t *grown) {
    int64_t extent = c->inputs[input].tensor->dims[axis];
    for (int i = 0; i < c->node->input_count; i++) {
        grown[i] = 0;
        for (int d = 0; is_tensor(c, i) && d < c->inputs[i].tensor->rank; d++) {
            bool list = c->inputs[i].tensor->rank == 1 && c->inputs[i].tensor->dtype == SB_S64 && i != input;
            if (i == input ? d == axis : !list && c->inputs[i].tensor->dims[d] == extent)
                grown[i] |= UINT32_C(1) << d;
        }
    }
}

/* Whether every output begins with the exact one on an axis. */
static inline bool looks_independent(const axis_case *grown, const axis_case *exact) {
    for (int o = 0; o < exact->node->output_count; o++) {
        if (exact->node->outputs[o] == SB_NO_VALUE)
            continue;
        if (exact->outputs[o].kind != SB_KIND_TENSOR || grown->outputs[o].kind != SB_KIND_TENSOR)
            return false;
        bool begins = false;
        for (int axis = SB_AXIS_NONE; axis < exact->outputs[o].tensor->rank; axis++)
            begins = begins || begins_with(grown->outputs[o].tensor, exact->outputs[o].tensor, axis);
        if (!begins)
            return false;
    }
    return true;
}

static inline void try_growth(const axis_case *c, const axis_answers *answers, const uint32_t *grown, bool checked,
                              axis_tally *tally) {
    bool needed = false, refused = true;
    for (garbage kind = GARBAGE_NAN; kind <= GARBAGE_LEAST && can_grow(c, grown); kind++) {
        axis_case longer;
        if (run_grown(c, answers, grown, SB_AXIS_NONE, kind, &longer, NULL) != SB_OK)
            continue;
        refused = false;
        if (kind == GARBAGE_NAN && checked)
            tally->failed += fails_when_checked(c, answers, grown, SB_AXIS_NONE);
        needed = needed || !looks_independent(&longer, c);
        clear_case(&longer);
    }
    tally->needed += needed;
    tally->refused += refused;
}

/* Looks for a reason why the axis is not simply independent. */
static inline void look_for_need(const axis_case *c, const axis_answers *answers, int input, int axis,
                                 axis_tally *tally) {
    uint32_t alone[CASE_INPUTS] = {0}, together[CASE_INPUTS];
    bool checked = answers->rules[input][axis].checked;
    alone[input] = UINT32_C(1) << axis;
    if (!can_grow(c, alone))
        return;
    try_growth(c, answers, alone, checked, tally);
    tie_equal(c, input, axis, together);
    if (memcmp(alone, together, (size_t)c->node->input_count * sizeof alone[0]) != 0)
        try_growth(c, answers, together, checked, tally);
}

/* ---- symbols ---- */

/* The facts of the case's inputs in `scope`, with the symbol n for the extents of the axes in `open` [inputs]. */
static inline void open_facts(const axis_case *c, const uint32_t *open, sb_scope *scope, sb_fact *facts) {
    for (int i = 0; i < c->node->input_count; i++) {
        if (c->input_facts[i] == NULL)
            continue;
        MUST(sb_fact_copy(&facts[i], c->input_facts[i], error));
        if (open[i] == 0)
            continue;
        sb_dim dims[SB_MAX_RANK];
        sb_fact fact = facts[i];
        for (int d = 0; d < fact.rank; d++)
            dims[d] = (open[i] >> d & 1) != 0 ? sb_dim_symbol(scope, "n") : fact.dims[d];
        sb_fact_clear(&facts[i]); /* also of its value */
        sb_fact_set_tensor(&facts[i], fact.dtype, fact.rank, dims);
    }
}

/* An answer for a symbol may be harder than that for a number, never softer, and an axis goes to the same place. */
static inline sb_status compare_answers(const axis_case *c, const axis_answers *answers, int input, int axis,
                                        const sb_axis_rule *symbolic, axis_tally *tally, sb_error *error) {
    const sb_axis_rule *number = &answers->rules[input][axis];
    if (symbolic->kind < number->kind && !number->conservative)
        return sb_fail(error, SB_ERROR_INTERNAL,
                       "node %s (%s): axis %d of input %d is %s, but %s when its extent is a symbol", c->node->name,
                       c->node->op->name, axis, input, sb_axis_kind_name(number->kind),
                       sb_axis_kind_name(symbolic->kind));
    for (int o = 0; o < c->node->output_count && symbolic->kind == number->kind; o++) {
        int to = symbolic->output_axes[o];
        if (c->node->outputs[o] == SB_NO_VALUE || to == number->output_axes[o])
            continue;
        /* [2, 3] as [-1, 2, 3] has an extent of 1 in front, which is what grows once the first one is a symbol. */
        if (to != SB_AXIS_NONE && c->outputs[o].tensor->dims[to] == 1)
            continue;
        return sb_fail(
            error, SB_ERROR_INTERNAL,
            "node %s (%s): axis %d of input %d becomes axis %d of output %d, but %d when its extent is a symbol",
            c->node->name, c->node->op->name, axis, input, number->output_axes[o], o, to);
    }
    tally->symbolic += symbolic->kind == number->kind;
    return SB_OK;
}

static inline sb_status ask_symbolic(const sb_axes_entry *entry, const axis_case *c, const axis_answers *answers,
                                     int input, int axis, axis_tally *tally, sb_error *error) {
    uint32_t open[CASE_INPUTS] = {0};
    sb_fact facts[CASE_INPUTS] = {{0}}, outputs[CASE_OUTPUTS] = {{0}};
    const sb_fact *inputs[CASE_INPUTS] = {NULL};
    int output_axes[CASE_OUTPUTS];
    sb_axis_rule rule = {.output_axes = output_axes};
    sb_scope *scope;
    MUST(sb_scope_create(&scope, error));
    open[input] = UINT32_C(1) << axis;
    if (answers->rules[input][axis].kind == SB_AXIS_INDEPENDENT)
        tie(c, answers, input, axis, open);
    open_facts(c, open, scope, facts);
    for (int i = 0; i < c->node->input_count; i++)
        inputs[i] = c->input_facts[i] != NULL ? &facts[i] : NULL;
    sb_status status = SB_OK;
    /* Not all axes may have any extent. */
    if (sb_node_infer(c->node, scope, inputs, outputs, NULL) == SB_OK) {
        status = sb_axes_by(entry, c->node, inputs, outputs, input, axis, &rule, error);
        if (status == SB_OK)
            status = compare_answers(c, answers, input, axis, &rule, tally, error);
    }
    for (int i = 0; i < c->node->input_count; i++)
        sb_fact_clear(&facts[i]);
    for (int o = 0; o < c->node->output_count; o++)
        sb_fact_clear(&outputs[o]);
    sb_scope_destroy(scope);
    return status;
}

/* ---- views ---- */

/* Inputs that are views amid garbage give the same outputs: nothing beyond the extents is read. */
static inline sb_status check_views(const axis_case *c, axis_tally *tally, sb_error *error) {
    sb_value inputs[CASE_INPUTS] = {{0}};
    axis_case viewed;
    for (int i = 0; i < c->node->input_count; i++) {
        bool plain = is_tensor(c, i) && sb_tensor_elements(c->inputs[i].tensor) != 0;
        inputs[i] = plain ? sb_value_of_tensor(view_in_garbage(c->inputs[i].tensor)) : sb_value_retain(c->inputs[i]);
    }
    SB_TRY(start_case(&viewed, c->node, inputs, error));
    sb_status status = SB_OK;
    for (int o = 0; o < c->node->output_count && status == SB_OK; o++) {
        if (c->node->outputs[o] == SB_NO_VALUE || c->outputs[o].kind != SB_KIND_TENSOR)
            continue;
        if (!same_bits(viewed.outputs[o].tensor, c->outputs[o].tensor))
            status =
                sb_fail(error, SB_ERROR_INTERNAL, "node %s (%s): output %d is another one when the inputs are views",
                        c->node->name, c->node->op->name, o);
    }
    clear_case(&viewed);
    tally->viewed++;
    return status;
}

/* ---- a case ---- */

static inline const char *words_of(const sb_axes_entry *entry, sb_axis_kind kind) {
    return kind == SB_AXIS_INDEPENDENT ? entry->independent : kind == SB_AXIS_BOUNDED ? entry->bounded : entry->exact;
}

static inline sb_status check_answer(const sb_axes_entry *entry, const axis_case *c, const axis_answers *answers,
                                     int input, int axis, axis_tally *tally, sb_error *error) {
    const sb_axis_rule *rule = &answers->rules[input][axis];
    tally->asked[rule->kind]++;
    tally->conservative += rule->conservative;
    if (!rule->conservative && words_of(entry, rule->kind) == NULL)
        return sb_fail(error, SB_ERROR_INTERNAL,
                       "node %s (%s): axis %d of input %d is %s, and the entry has no words for such axes",
                       c->node->name, c->node->op->name, axis, input, sb_axis_kind_name(rule->kind));
    if ((rule->kind == SB_AXIS_INDEPENDENT) != (rule->reason == NULL))
        return sb_fail(error, SB_ERROR_INTERNAL, "node %s (%s): axis %d of input %d is %s %s a reason", c->node->name,
                       c->node->op->name, axis, input, sb_axis_kind_name(rule->kind),
                       rule->reason == NULL ? "without" : "with");
    SB_TRY(ask_symbolic(entry, c, answers, input, axis, tally, error));
    if (rule->kind == SB_AXIS_INDEPENDENT)
        return check_independent(c, answers, input, axis, tally, error);
    look_for_need(c, answers, input, axis, tally);
    return SB_OK;
}

static inline bool is_short(const axis_case *c) {
    for (int i = 0; i < c->node->input_count; i++) {
        if (is_tensor(c, i) && sb_tensor_elements(c->inputs[i].tensor) > CASE_ELEMENTS)
            return false;
    }
    return true;
}

/* Checks all that `entry` says of the case, unless it is long.
 * Operators whose runs differ are only asked, not run again. */
static inline sb_status check_case(const sb_axes_entry *entry, const axis_case *c, axis_tally *tally, sb_error *error) {
    static axis_answers answers;
    bool repeats = (c->node->op->flags & SB_OP_RANDOM) == 0 || sb_node_has(c->node, "seed");
    if (c->node->input_count > CASE_INPUTS || c->node->output_count > CASE_OUTPUTS)
        return sb_fail(error, SB_ERROR_INTERNAL, "node %s has more inputs or outputs than a case", c->node->name);
    if (!is_short(c))
        return SB_OK;
    SB_TRY(ask_all(entry, c, &answers, error));
    for (int i = 0; i < c->node->input_count && repeats; i++) {
        for (int d = 0; is_tensor(c, i) && d < c->inputs[i].tensor->rank; d++)
            SB_TRY(check_answer(entry, c, &answers, i, d, tally, error));
    }
    return repeats ? check_views(c, tally, error) : SB_OK;
}

#endif
