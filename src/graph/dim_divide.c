/* Floor and ceiling division of dimension expressions.
 *
 * With divisor b != 0 (0 gives no value at all), for integers:
 *   floor((q*b + r) / b) = q + floor(r / b)                         whatever q is
 *   floor((g*a) / (g*b)) = floor(a / b)
 *   floor((g*a + r) / (g*b)) = floor((a + floor(r/g)) / b)          numbers g > 0, r; b > 0
 *   floor((floor(a/b) + k) / c) = floor((a + k*b) / (b*c))          c > 0
 *   ceil(a / b) = floor((a + b - 1) / b)                            b > 0
 *   ceil(a / b) = -floor(-a / b) */
#include "graph/dim_internal.h"

typedef struct division {
    sb_scope *scope;
    sb_dim dividend, divisor;
    sb_dim quotient; /* what has been split off: the result is quotient + floor(dividend / divisor) */
} division;

static bool valid(const division *work) {
    return work->dividend != NULL && work->divisor != NULL && work->quotient != NULL;
}

static uint64_t magnitude(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static uint64_t greatest_common_divisor(uint64_t left, uint64_t right) {
    while (right != 0) {
        uint64_t rest = left % right;
        left = right;
        right = rest;
    }
    return left;
}

/* The divisor's leading coefficient becomes positive. */
static bool normalise_sign(division *work) {
    if (work->divisor->terms[0].coefficient > 0)
        return true;
    work->dividend = sb_dim_scale(work->scope, work->dividend, -1);
    work->divisor = sb_dim_scale(work->scope, work->divisor, -1);
    return valid(work);
}

/* Each coefficient divided by `number`, rounded down. */
static sb_dim divide_coefficients(sb_scope *scope, sb_dim dim, int64_t number) {
    sb_terms terms = {.scope = scope};
    for (int i = 0; i < dim->term_count; i++) {
        int64_t quotient = 0;
        sb_floor_divide_numbers(dim->terms[i].coefficient, number, &quotient);
        sb_terms_add(&terms, quotient, dim->terms[i].monomial);
    }
    return sb_terms_finish(&terms);
}

/* Cancels the greatest common divisor of the coefficients. The dividend's constant may stay out
 * when the divisor is positive. */
static bool cancel_number(division *work) {
    uint64_t common = 0;
    for (int i = 0; i < work->divisor->term_count; i++)
        common = greatest_common_divisor(common, magnitude(work->divisor->terms[i].coefficient));
    bool positive = sb_dim_at_least(work->divisor, 0);
    for (int i = 0; i < work->dividend->term_count; i++) {
        if (!positive || work->dividend->terms[i].monomial->degree != 0)
            common = greatest_common_divisor(common, magnitude(work->dividend->terms[i].coefficient));
    }
    if (common <= 1 || common > INT64_MAX)
        return true;
    work->dividend = divide_coefficients(work->scope, work->dividend, (int64_t)common);
    work->divisor = divide_coefficients(work->scope, work->divisor, (int64_t)common);
    return valid(work);
}

/* How often `atom` is a factor of every term. */
static int least_power(sb_dim dim, const sb_atom *atom) {
    int least = SB_DIM_MOST_DEGREE;
    for (int i = 0; i < dim->term_count; i++) {
        const sb_monomial *monomial = dim->terms[i].monomial;
        int power = 0;
        for (int j = 0; j < monomial->degree; j++)
            power += monomial->factors[j] == atom;
        least = power < least ? power : least;
    }
    return least;
}

static sb_dim divide_monomials(sb_scope *scope, sb_dim dim, const sb_monomial *divisor) {
    sb_terms terms = {.scope = scope};
    for (int i = 0; i < dim->term_count; i++) {
        const sb_monomial *quotient = NULL;
        sb_monomial_divide(scope, dim->terms[i].monomial, divisor, &quotient);
        sb_terms_add(&terms, dim->terms[i].coefficient, quotient);
    }
    return sb_terms_finish(&terms);
}

/* Cancels the factors that all terms of dividend and divisor share. */
static bool cancel_monomial(division *work) {
    if (work->dividend->term_count == 0)
        return true;
    const sb_monomial *candidate = work->divisor->terms[work->divisor->term_count - 1].monomial;
    const sb_atom *common[SB_DIM_MOST_DEGREE];
    int degree = 0;
    for (int i = 0; i < candidate->degree; i++) {
        const sb_atom *atom = candidate->factors[i];
        if (i > 0 && atom == candidate->factors[i - 1])
            continue;
        int above = least_power(work->dividend, atom), below = least_power(work->divisor, atom);
        for (int power = above < below ? above : below; power > 0; power--)
            common[degree++] = atom;
    }
    if (degree == 0)
        return true;
    const sb_monomial *factor = sb_scope_monomial(work->scope, degree, common);
    if (factor == NULL)
        return false;
    work->dividend = divide_monomials(work->scope, work->dividend, factor);
    work->divisor = divide_monomials(work->scope, work->divisor, factor);
    return valid(work);
}

/* Moves what a divisor of one term divides, term by term, into the quotient; of a constant over a
 * constant, all but the rest. */
static bool split_terms(division *work) {
    sb_term divisor = work->divisor->terms[0];
    sb_terms whole = {.scope = work->scope}, rest = {.scope = work->scope};
    for (int i = 0; i < work->dividend->term_count; i++) {
        sb_term term = work->dividend->terms[i];
        int64_t quotient = 0;
        bool number = term.monomial->degree == 0 && divisor.monomial->degree == 0;
        const sb_monomial *monomial = NULL;
        bool exact = term.coefficient % divisor.coefficient == 0 &&
                     sb_monomial_divide(work->scope, term.monomial, divisor.monomial, &monomial);
        if (!exact && !number) {
            sb_terms_add(&rest, term.coefficient, term.monomial);
            continue;
        }
        int64_t left_over = term.coefficient % divisor.coefficient;
        left_over += left_over < 0 ? divisor.coefficient : 0;
        sb_floor_divide_numbers(term.coefficient, divisor.coefficient, &quotient);
        sb_terms_add(&whole, quotient, exact ? monomial : term.monomial);
        sb_terms_add(&rest, left_over, term.monomial);
    }
    work->quotient = sb_dim_add(work->scope, work->quotient, sb_terms_finish(&whole));
    work->dividend = sb_terms_finish(&rest);
    return valid(work);
}

/* Polynomial division by the leading term. The monomial order makes it end; each step costs one
 * pass, and a legitimate quotient has few terms. NULL in *quotient on failure. */
#define MOST_DIVISION_STEPS 64
static void divide_polynomials(sb_scope *scope, sb_dim dividend, sb_dim divisor, sb_dim *quotient, sb_dim *rest) {
    sb_term leading = divisor->terms[0];
    sb_terms whole = {.scope = scope}, left_over = {.scope = scope};
    sb_dim current = dividend;
    for (int step = 0; current != NULL && current->term_count != 0; step++) {
        sb_term term = current->terms[0];
        const sb_monomial *monomial = NULL;
        sb_dim part;
        if (step < MOST_DIVISION_STEPS && term.coefficient % leading.coefficient == 0 &&
            sb_monomial_divide(scope, term.monomial, leading.monomial, &monomial)) {
            sb_term factor = {term.coefficient / leading.coefficient, monomial};
            sb_terms_add(&whole, factor.coefficient, factor.monomial);
            part = sb_dim_multiply(scope, sb_scope_expression(scope, 1, &factor), divisor);
        } else if (step < 4 * MOST_DIVISION_STEPS) {
            sb_terms_add(&left_over, term.coefficient, term.monomial);
            part = sb_scope_expression(scope, 1, &term);
        } else {
            for (int i = 0; i < current->term_count; i++)
                sb_terms_add(&left_over, current->terms[i].coefficient, current->terms[i].monomial);
            break;
        }
        current = sb_dim_subtract(scope, current, part);
    }
    *quotient = sb_terms_finish(&whole);
    *rest = sb_terms_finish(&left_over);
    if (current == NULL)
        *quotient = NULL;
}

/* Takes the polynomial quotient when what remains has fewer terms than there were. */
static bool split_polynomial(division *work) {
    sb_dim quotient, rest;
    sb_attempt attempt = sb_attempt_begin(work->scope);
    divide_polynomials(work->scope, work->dividend, work->divisor, &quotient, &rest);
    sb_dim sum = sb_dim_add(work->scope, work->quotient, quotient);
    if (!sb_attempt_end(work->scope, attempt))
        return false;
    if (sum != NULL && rest != NULL && rest->term_count < work->dividend->term_count) {
        work->quotient = sum;
        work->dividend = rest;
    }
    return true;
}

/* The only term that is a floor division with coefficient 1; -1 when there is none or several. */
static int nested_division(sb_dim dim) {
    int found = -1;
    for (int i = 0; i < dim->term_count; i++) {
        sb_term term = dim->terms[i];
        if (term.coefficient != 1 || term.monomial->degree != 1 || term.monomial->factors[0]->kind != SB_ATOM_FLOOR)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

/* Merges a floor division inside the dividend with this one. True in *merged when something changed. */
static bool merge_nested(division *work, bool *merged) {
    *merged = false;
    int at = nested_division(work->dividend);
    if (at < 0 || !sb_dim_at_least(work->divisor, 0))
        return true;
    sb_scope *scope = work->scope;
    sb_attempt attempt = sb_attempt_begin(scope);
    const sb_atom *inner = work->dividend->terms[at].monomial->factors[0];
    sb_dim others = sb_dim_subtract(scope, work->dividend, sb_scope_of_atom(scope, inner));
    sb_dim dividend = sb_dim_add(scope, inner->operands[0], sb_dim_multiply(scope, others, inner->operands[1]));
    sb_dim divisor = sb_dim_multiply(scope, inner->operands[1], work->divisor);
    if (!sb_attempt_end(scope, attempt))
        return false;
    if (dividend != NULL && divisor != NULL) {
        work->dividend = dividend;
        work->divisor = divisor;
        *merged = true;
    }
    return true;
}

/* Applies the rules until none changes anything. Each round but the last makes the dividend
 * shorter, its coefficients smaller or its nesting shallower; the bound only guards against a cycle
 * that nobody foresaw. */
static bool reduce(division *work) {
    for (int round = 0; round < 4 * SB_DIM_MOST_DEPTH; round++) {
        sb_dim dividend = work->dividend, divisor = work->divisor;
        if (!normalise_sign(work) || !cancel_number(work) || !cancel_monomial(work))
            return false;
        if (!(work->divisor->term_count == 1 ? split_terms(work) : split_polynomial(work)))
            return false;
        bool merged;
        if (!merge_nested(work, &merged))
            return false;
        if (!merged && dividend == work->dividend && divisor == work->divisor)
            break;
    }
    return true;
}

/* Whether bounds alone give the value of floor(dividend / divisor). */
static bool decided(division *work, int64_t *value) {
    sb_interval bounds = sb_interval_floor_divide(work->dividend->interval, work->divisor->interval);
    *value = bounds.lower;
    if (bounds.lower == bounds.upper)
        return true;
    *value = 0;
    if (work->dividend->term_count == 0)
        return true;
    sb_scope *scope = work->scope;
    if (!sb_dim_proven_at_least(scope, work->dividend, 0))
        return false;
    sb_attempt attempt = sb_attempt_begin(scope);
    sb_dim gap = sb_dim_subtract(scope, work->divisor, work->dividend);
    bool below = sb_dim_proven_at_least(scope, gap, 1);
    return sb_attempt_end(scope, attempt) && below;
}

sb_dim sb_dim_floor_divide(sb_scope *scope, sb_dim left, sb_dim right) {
    left = sb_scope_adopt(scope, left);
    right = sb_scope_adopt(scope, right);
    if (left == NULL || right == NULL)
        return NULL;
    if (right->term_count == 0)
        return sb_scope_fail(scope, SB_ERROR_SHAPE, "a dimension expression divides by 0");
    division work = {scope, left, right, sb_dim_constant(scope, 0)};
    if (!valid(&work) || !reduce(&work))
        return NULL;
    int64_t value;
    if (decided(&work, &value))
        return sb_dim_add(scope, work.quotient, sb_dim_constant(scope, value));
    const sb_dim operands[2] = {work.dividend, work.divisor};
    const sb_atom *atom = sb_scope_function(scope, SB_ATOM_FLOOR, 2, operands);
    return sb_dim_add(scope, work.quotient, sb_scope_of_atom(scope, atom));
}

sb_dim sb_dim_ceiling_divide(sb_scope *scope, sb_dim left, sb_dim right) {
    right = sb_scope_adopt(scope, right);
    if (right == NULL)
        return NULL;
    if (sb_dim_at_least(right, 0)) {
        sb_dim less_one = sb_dim_subtract(scope, right, sb_dim_constant(scope, 1));
        return sb_dim_floor_divide(scope, sb_dim_add(scope, left, less_one), right);
    }
    sb_dim negated = sb_dim_floor_divide(scope, sb_dim_scale(scope, left, -1), right);
    return sb_dim_scale(scope, negated, -1);
}
