/* Arithmetic on dimension expressions: polynomials over atoms. */
#include "graph/dim.h"

#include <stdlib.h>

#include "base/allocation.h"
#include "graph/dim_internal.h"

/* ---- collecting terms ---- */

void sb_terms_add(sb_terms *terms, int64_t coefficient, const sb_monomial *monomial) {
    if (monomial == NULL)
        terms->failed = true;
    if (terms->failed || coefficient == 0)
        return;
    if (!sb_grow((void **)&terms->terms, &terms->capacity, terms->count + 1, sizeof(sb_term))) {
        sb_scope_fail(terms->scope, SB_ERROR_OUT_OF_MEMORY,
                      "out of memory: could not store %zu terms of a dimension expression", terms->count + 1);
        terms->failed = true;
        return;
    }
    terms->terms[terms->count++] = (sb_term){coefficient, monomial};
}

static int compare_terms(const void *left, const void *right) {
    return sb_monomial_compare(((const sb_term *)left)->monomial, ((const sb_term *)right)->monomial);
}

static sb_dim fail_overflow(sb_scope *scope) {
    return sb_scope_fail(scope, SB_ERROR_SHAPE, "a number in a dimension expression overflows 64 bits");
}

/* Sums up terms of equal monomials in place. */
static sb_dim combine(sb_terms *terms) {
    sb_term *list = terms->terms;
    if (terms->count > 1)
        qsort(list, terms->count, sizeof *list, compare_terms);
    size_t kept = 0;
    for (size_t i = 0; i < terms->count;) {
        sb_term sum = list[i++];
        for (; i < terms->count && list[i].monomial == sum.monomial; i++) {
            if (__builtin_add_overflow(sum.coefficient, list[i].coefficient, &sum.coefficient))
                return fail_overflow(terms->scope);
        }
        if (sum.coefficient != 0)
            list[kept++] = sum;
    }
    /* Each term has a size of at least 1, so more terms than SB_DIM_MOST_SIZE are refused in any case. */
    int count = kept > SB_DIM_MOST_SIZE ? SB_DIM_MOST_SIZE + 1 : (int)kept;
    return sb_scope_expression(terms->scope, count, list);
}

sb_dim sb_terms_finish(sb_terms *terms) {
    sb_dim sum = terms->failed ? NULL : combine(terms);
    sb_free(terms->terms);
    terms->terms = NULL;
    return sum;
}

/* ---- monomials ---- */

const sb_monomial *sb_monomial_multiply(sb_scope *scope, const sb_monomial *left, const sb_monomial *right) {
    if (left->degree == 0)
        return right;
    if (right->degree == 0)
        return left;
    const sb_atom *factors[2 * SB_DIM_MOST_DEGREE];
    int degree = 0, i = 0, j = 0;
    while (i < left->degree || j < right->degree) {
        bool take_left =
            j == right->degree || (i < left->degree && sb_atom_compare(left->factors[i], right->factors[j]) <= 0);
        factors[degree++] = take_left ? left->factors[i++] : right->factors[j++];
    }
    return sb_scope_monomial(scope, degree, factors);
}

bool sb_monomial_divide(sb_scope *scope, const sb_monomial *dividend, const sb_monomial *divisor,
                        const sb_monomial **quotient) {
    const sb_atom *factors[SB_DIM_MOST_DEGREE];
    int degree = 0, j = 0;
    for (int i = 0; i < dividend->degree; i++) {
        if (j < divisor->degree && dividend->factors[i] == divisor->factors[j])
            j++;
        else
            factors[degree++] = dividend->factors[i];
    }
    if (j != divisor->degree)
        return false;
    *quotient = sb_scope_monomial(scope, degree, factors);
    return *quotient != NULL;
}

/* ---- the operations ---- */

sb_dim sb_dim_constant(sb_scope *scope, int64_t value) {
    return sb_scope_expression(scope, value == 0 ? 0 : 1, &(sb_term){value, sb_scope_one(scope)});
}

static sb_dim combine_linear(sb_scope *scope, sb_dim left, sb_dim right, bool negate) {
    left = sb_scope_adopt(scope, left);
    right = sb_scope_adopt(scope, right);
    if (left == NULL || right == NULL)
        return NULL;
    sb_terms terms = {.scope = scope};
    for (int i = 0; i < left->term_count; i++)
        sb_terms_add(&terms, left->terms[i].coefficient, left->terms[i].monomial);
    for (int i = 0; i < right->term_count; i++) {
        int64_t coefficient = right->terms[i].coefficient;
        if (negate && __builtin_sub_overflow(0, coefficient, &coefficient)) {
            terms.failed = true;
            fail_overflow(scope);
        }
        sb_terms_add(&terms, coefficient, right->terms[i].monomial);
    }
    sb_dim sum = sb_terms_finish(&terms);
    bool *busy = sb_scope_busy(scope);
    if (sum == NULL || *busy)
        return sum;
    *busy = true;
    sum = sb_dim_distribute(scope, sum);
    *busy = false;
    return sum;
}

sb_dim sb_dim_add(sb_scope *scope, sb_dim left, sb_dim right) {
    return combine_linear(scope, left, right, false);
}

sb_dim sb_dim_subtract(sb_scope *scope, sb_dim left, sb_dim right) {
    return combine_linear(scope, left, right, true);
}

sb_dim sb_dim_multiply(sb_scope *scope, sb_dim left, sb_dim right) {
    left = sb_scope_adopt(scope, left);
    right = sb_scope_adopt(scope, right);
    if (left == NULL || right == NULL)
        return NULL;
    /* Bounds the work: a legitimate product has a handful of terms. */
    if ((int64_t)left->term_count * right->term_count > 16 * SB_DIM_MOST_SIZE)
        return sb_scope_fail(scope, SB_ERROR_UNSUPPORTED, "a product of dimension expressions has %d times %d terms",
                             left->term_count, right->term_count);
    sb_terms terms = {.scope = scope};
    for (int i = 0; i < left->term_count && !terms.failed; i++) {
        for (int j = 0; j < right->term_count && !terms.failed; j++) {
            int64_t coefficient;
            if (__builtin_mul_overflow(left->terms[i].coefficient, right->terms[j].coefficient, &coefficient)) {
                terms.failed = true;
                fail_overflow(scope);
                break;
            }
            sb_terms_add(&terms, coefficient,
                         sb_monomial_multiply(scope, left->terms[i].monomial, right->terms[j].monomial));
        }
    }
    return sb_terms_finish(&terms);
}

sb_dim sb_dim_scale(sb_scope *scope, sb_dim dim, int64_t coefficient) {
    return sb_dim_multiply(scope, dim, sb_dim_constant(scope, coefficient));
}

/* ---- questions ---- */

bool sb_dim_is_constant(sb_dim dim, int64_t *value) {
    if (dim == NULL || dim->term_count > 1 || (dim->term_count == 1 && dim->terms[0].monomial->degree != 0))
        return false;
    if (value != NULL)
        *value = dim->term_count == 0 ? 0 : dim->terms[0].coefficient;
    return true;
}

const sb_atom *sb_dim_atom(sb_dim dim) {
    if (dim == NULL || dim->term_count != 1 || dim->terms[0].coefficient != 1 || dim->terms[0].monomial->degree != 1)
        return NULL;
    return dim->terms[0].monomial->factors[0];
}

const char *sb_dim_symbol_name(sb_dim dim) {
    const sb_atom *atom = sb_dim_atom(dim);
    return atom != NULL && atom->kind == SB_ATOM_SYMBOL ? atom->name : NULL;
}

bool sb_dim_at_least(sb_dim dim, int64_t bound) {
    return dim != NULL && (bound == INT64_MIN || dim->interval.lower >= bound);
}
