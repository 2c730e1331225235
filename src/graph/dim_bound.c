/* Bounds of dimension expressions, and the minimum and maximum that they decide. */
#include "base/allocation.h"
#include "graph/dim_internal.h"

/* ---- intervals ---- */

static bool infinite(int64_t bound) {
    return bound == SB_NO_LOWER || bound == SB_NO_UPPER;
}

/* A finite sum or product that leaves the range is a bound that no representable value reaches. */
static int64_t add_bounds(int64_t left, int64_t right) {
    if (infinite(left))
        return left;
    if (infinite(right))
        return right;
    int64_t sum;
    if (__builtin_add_overflow(left, right, &sum))
        return left < 0 ? SB_NO_LOWER : SB_NO_UPPER;
    return sum;
}

static int64_t multiply_bounds(int64_t left, int64_t right) {
    if (left == 0 || right == 0)
        return 0;
    int64_t product;
    bool negative = (left < 0) != (right < 0);
    if (infinite(left) || infinite(right) || __builtin_mul_overflow(left, right, &product))
        return negative ? SB_NO_LOWER : SB_NO_UPPER;
    return product;
}

/* A lower end of +infinity or an upper end of -infinity would read as "no bound" on the wrong side. */
static sb_interval tidy(sb_interval interval) {
    if (interval.lower == SB_NO_UPPER)
        interval.lower = INT64_MAX - 1;
    if (interval.upper == SB_NO_LOWER)
        interval.upper = INT64_MIN + 1;
    return interval;
}

sb_interval sb_interval_add(sb_interval left, sb_interval right) {
    return tidy((sb_interval){add_bounds(left.lower, right.lower), add_bounds(left.upper, right.upper)});
}

sb_interval sb_interval_multiply(sb_interval left, sb_interval right) {
    int64_t corners[4] = {multiply_bounds(left.lower, right.lower), multiply_bounds(left.lower, right.upper),
                          multiply_bounds(left.upper, right.lower), multiply_bounds(left.upper, right.upper)};
    sb_interval result = {corners[0], corners[0]};
    for (int i = 1; i < 4; i++) {
        result.lower = corners[i] < result.lower ? corners[i] : result.lower;
        result.upper = corners[i] > result.upper ? corners[i] : result.upper;
    }
    return tidy(result);
}

bool sb_floor_divide_numbers(int64_t left, int64_t right, int64_t *quotient) {
    if (right == 0 || (left == INT64_MIN && right == -1))
        return false;
    *quotient = left / right - (left % right != 0 && (left < 0) != (right < 0));
    return true;
}

/* floor(left / right) of a bound by a positive bound. */
static int64_t divide_bounds(int64_t left, int64_t right) {
    if (infinite(left))
        return left;
    if (infinite(right))
        return left < 0 ? -1 : 0;
    int64_t quotient = 0;
    sb_floor_divide_numbers(left, right, &quotient);
    return quotient;
}

sb_interval sb_interval_floor_divide(sb_interval left, sb_interval right) {
    /* The divisor 0 gives no value, so a divisor of at least 0 is one of at least 1. */
    if (right.lower < 0 || right.upper < 1)
        return (sb_interval){SB_NO_LOWER, SB_NO_UPPER};
    int64_t least = right.lower > 0 ? right.lower : 1;
    return tidy((sb_interval){divide_bounds(left.lower, left.lower < 0 ? least : right.upper),
                              divide_bounds(left.upper, left.upper < 0 ? right.upper : least)});
}

/* ---- proofs ---- */

/* How many replacements one proof may try: formulas of networks need a handful, and each costs a few sums. */
#define PROOF_STEPS 32

static bool prove(sb_scope *scope, sb_dim dim, int *steps);

/* dim without its term `at`, plus coefficient * operand. */
static sb_dim replace(sb_scope *scope, sb_dim dim, int at, sb_dim operand) {
    sb_term term = dim->terms[at];
    sb_dim whole = sb_scope_of_atom(scope, term.monomial->factors[0]);
    return sb_dim_add(scope, dim, sb_dim_scale(scope, sb_dim_subtract(scope, operand, whole), term.coefficient));
}

/* floor(a/b) is at least 0 when a is at least 0 and b > 0; and with a number b > 0, floor(a/b) >=
 * (a-b+1)/b and -floor(a/b) >= -a/b. The last two are multiplied by b to stay among integers. */
static bool prove_division(sb_scope *scope, sb_dim dim, int at, int *steps) {
    sb_term term = dim->terms[at];
    const sb_atom *atom = term.monomial->factors[0];
    sb_dim dividend = atom->operands[0], zero = sb_dim_constant(scope, 0);
    if (term.coefficient > 0 && sb_dim_at_least(atom->operands[1], 0) && prove(scope, dividend, steps) &&
        prove(scope, replace(scope, dim, at, zero), steps))
        return true;
    int64_t divisor;
    if (!sb_dim_is_constant(atom->operands[1], &divisor) || divisor < 1)
        return false;
    if (term.coefficient > 0)
        dividend = sb_dim_subtract(scope, dividend, sb_dim_constant(scope, divisor - 1));
    sb_dim rest = sb_dim_scale(scope, replace(scope, dim, at, zero), divisor);
    return prove(scope, sb_dim_add(scope, rest, sb_dim_scale(scope, dividend, term.coefficient)), steps);
}

/* A maximum is at least each operand, so one that suffices is enough; a minimum is one of them, so
 * all must do. */
static bool prove_extreme(sb_scope *scope, sb_dim dim, int at, int *steps) {
    sb_term term = dim->terms[at];
    const sb_atom *atom = term.monomial->factors[0];
    bool one_suffices = (atom->kind == SB_ATOM_MAXIMUM) == (term.coefficient > 0);
    for (int i = 0; i < atom->operand_count; i++) {
        if (prove(scope, replace(scope, dim, at, atom->operands[i]), steps) == one_suffices)
            return one_suffices;
    }
    return !one_suffices;
}

/* Whether dim >= 0: by its interval, or after its functions have been replaced one after the other. */
static bool prove(sb_scope *scope, sb_dim dim, int *steps) {
    if (dim == NULL || dim->interval.upper < 0 || --*steps < 0)
        return false;
    if (dim->interval.lower >= 0)
        return true;
    for (int i = 0; i < dim->term_count; i++) {
        const sb_monomial *monomial = dim->terms[i].monomial;
        if (monomial->degree != 1 || monomial->factors[0]->kind == SB_ATOM_SYMBOL)
            continue;
        return monomial->factors[0]->kind == SB_ATOM_FLOOR ? prove_division(scope, dim, i, steps)
                                                           : prove_extreme(scope, dim, i, steps);
    }
    return false;
}

bool sb_dim_proven_at_least(sb_scope *scope, sb_dim dim, int64_t bound) {
    if (dim == NULL)
        return false;
    if (sb_dim_at_least(dim, bound))
        return true;
    sb_attempt attempt = sb_attempt_begin(scope);
    int steps = PROOF_STEPS;
    bool proven = prove(scope, sb_dim_subtract(scope, dim, sb_dim_constant(scope, bound)), &steps);
    return sb_attempt_end(scope, attempt) && proven;
}

/* ---- minimum and maximum ---- */

typedef struct operand_list {
    int count;
    sb_dim operands[SB_DIM_MOST_OPERANDS];
} operand_list;

/* Whether `left` is the extreme of the two for all values of the symbols. */
static bool decides(sb_scope *scope, sb_atom_kind kind, sb_dim left, sb_dim right) {
    int64_t number;
    if (sb_dim_is_constant(right, &number) && number == (kind == SB_ATOM_MAXIMUM ? INT64_MIN : INT64_MAX))
        return true; /* no value lies beyond: "to the end" in many models */
    sb_attempt attempt = sb_attempt_begin(scope);
    sb_dim difference =
        kind == SB_ATOM_MAXIMUM ? sb_dim_subtract(scope, left, right) : sb_dim_subtract(scope, right, left);
    bool decided = sb_dim_proven_at_least(scope, difference, 0);
    return sb_attempt_end(scope, attempt) && decided;
}

/* Puts an operand into the sorted list, unless others make it superfluous; drops those that it makes so. */
static bool insert(sb_scope *scope, sb_atom_kind kind, operand_list *list, sb_dim operand) {
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        if (decides(scope, kind, list->operands[i], operand))
            return true;
    }
    for (int i = 0; i < list->count; i++) {
        if (!decides(scope, kind, operand, list->operands[i]))
            list->operands[kept++] = list->operands[i];
    }
    list->count = kept;
    if (kept == SB_DIM_MOST_OPERANDS) {
        sb_scope_fail(scope, SB_ERROR_UNSUPPORTED, "a dimension is the minimum or maximum of more than %d expressions",
                      SB_DIM_MOST_OPERANDS);
        return false;
    }
    int at = kept;
    for (; at > 0 && sb_dim_compare(operand, list->operands[at - 1]) < 0; at--)
        list->operands[at] = list->operands[at - 1];
    list->operands[at] = operand;
    list->count++;
    return true;
}

/* Inserts the operands of a nested function of the same kind one by one. */
static bool insert_flat(sb_scope *scope, sb_atom_kind kind, operand_list *list, sb_dim operand) {
    const sb_atom *atom = sb_dim_atom(operand);
    if (atom == NULL || atom->kind != kind)
        return insert(scope, kind, list, operand);
    for (int i = 0; i < atom->operand_count; i++) {
        if (!insert(scope, kind, list, atom->operands[i]))
            return false;
    }
    return true;
}

static sb_dim extreme(sb_scope *scope, sb_atom_kind kind, sb_dim left, sb_dim right) {
    left = sb_scope_adopt(scope, left);
    right = sb_scope_adopt(scope, right);
    if (left == NULL || right == NULL || left == right)
        return left == right ? left : NULL;
    operand_list list = {0};
    if (!insert_flat(scope, kind, &list, left) || !insert_flat(scope, kind, &list, right))
        return NULL;
    if (list.count == 1)
        return list.operands[0];
    return sb_scope_of_atom(scope, sb_scope_function(scope, kind, list.count, list.operands));
}

/* The only term that is a minimum or maximum with coefficient 1 or -1; -1 when there is none or several. */
static int only_extreme(sb_dim dim) {
    int found = -1;
    for (int i = 0; i < dim->term_count; i++) {
        sb_term term = dim->terms[i];
        if (term.monomial->degree != 1 || (term.coefficient != 1 && term.coefficient != -1) ||
            term.monomial->factors[0]->kind < SB_ATOM_MINIMUM)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

sb_dim sb_dim_distribute(sb_scope *scope, sb_dim dim) {
    int at = dim->term_count > 1 ? only_extreme(dim) : -1;
    if (at < 0)
        return dim;
    const sb_atom *atom = dim->terms[at].monomial->factors[0];
    bool negated = dim->terms[at].coefficient < 0;
    sb_atom_kind kind = (atom->kind == SB_ATOM_MINIMUM) != negated ? SB_ATOM_MINIMUM : SB_ATOM_MAXIMUM;
    sb_attempt attempt = sb_attempt_begin(scope);
    sb_dim inside = replace(scope, dim, at, atom->operands[0]);
    for (int i = 1; i < atom->operand_count; i++)
        inside = extreme(scope, kind, inside, replace(scope, dim, at, atom->operands[i]));
    if (!sb_attempt_end(scope, attempt))
        return NULL;
    return inside != NULL && inside->size < dim->size ? inside : dim;
}

sb_dim sb_dim_minimum(sb_scope *scope, sb_dim left, sb_dim right) {
    return extreme(scope, SB_ATOM_MINIMUM, left, right);
}

sb_dim sb_dim_maximum(sb_scope *scope, sb_dim left, sb_dim right) {
    return extreme(scope, SB_ATOM_MAXIMUM, left, right);
}
