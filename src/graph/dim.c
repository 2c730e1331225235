/* Arithmetic on dimension expressions: polynomials over atoms. */
#include "graph/dim.h"

#include <stdlib.h>

#include "base/allocation.h"
#include "graph/dim_internal.h"

/* ---- collecting terms ---- */

void iv_terms_add(iv_terms *terms, int64_t coefficient, const iv_monomial *monomial) {
    if (monomial == NULL)
        terms->failed = true;
    if (terms->failed || coefficient == 0)
        return;
    if (!iv_grow((void **)&terms->terms, &terms->capacity, terms->count + 1, sizeof(iv_term))) {
        iv_scope_fail(terms->scope, IV_ERROR_OUT_OF_MEMORY,
                      "out of memory: could not store %zu terms of a dimension expression",
                      terms->count + 1);
        terms->failed = true;
        return;
    }
    terms->terms[terms->count++] = (iv_term){coefficient, monomial};
}

static int compare_terms(const void *left, const void *right) {
    return iv_monomial_compare(((const iv_term *)left)->monomial,
                               ((const iv_term *)right)->monomial);
}

static iv_dim fail_overflow(iv_scope *scope) {
    return iv_scope_fail(scope, IV_ERROR_SHAPE,
                         "a number in a dimension expression overflows 64 bits");
}

/* Sums up terms of equal monomials in place. */
static iv_dim combine(iv_terms *terms) {
    iv_term *list = terms->terms;
    if (terms->count > 1)
        qsort(list, terms->count, sizeof *list, compare_terms);
    size_t kept = 0;
    for (size_t i = 0; i < terms->count;) {
        iv_term sum = list[i++];
        for (; i < terms->count && list[i].monomial == sum.monomial; i++) {
            if (__builtin_add_overflow(sum.coefficient, list[i].coefficient, &sum.coefficient))
                return fail_overflow(terms->scope);
        }
        if (sum.coefficient != 0)
            list[kept++] = sum;
    }
    /* Each term has a size of at least 1, so more terms than IV_DIM_MOST_SIZE are refused in any
     * case. */
    int count = kept > IV_DIM_MOST_SIZE ? IV_DIM_MOST_SIZE + 1 : (int)kept;
    return iv_scope_expression(terms->scope, count, list);
}

iv_dim iv_terms_finish(iv_terms *terms) {
    iv_dim sum = terms->failed ? NULL : combine(terms);
    iv_free(terms->terms);
    terms->terms = NULL;
    return sum;
}

/* ---- monomials ---- */

const iv_monomial *iv_monomial_multiply(iv_scope *scope, const iv_monomial *left,
                                        const iv_monomial *right) {
    if (left->degree == 0)
        return right;
    if (right->degree == 0)
        return left;
    const iv_atom *factors[2 * IV_DIM_MOST_DEGREE];
    int degree = 0, i = 0, j = 0;
    while (i < left->degree || j < right->degree) {
        bool take_left =
            j == right->degree ||
            (i < left->degree && iv_atom_compare(left->factors[i], right->factors[j]) <= 0);
        factors[degree++] = take_left ? left->factors[i++] : right->factors[j++];
    }
    return iv_scope_monomial(scope, degree, factors);
}

bool iv_monomial_divide(iv_scope *scope, const iv_monomial *dividend, const iv_monomial *divisor,
                        const iv_monomial **quotient) {
    const iv_atom *factors[IV_DIM_MOST_DEGREE];
    int degree = 0, j = 0;
    for (int i = 0; i < dividend->degree; i++) {
        if (j < divisor->degree && dividend->factors[i] == divisor->factors[j])
            j++;
        else
            factors[degree++] = dividend->factors[i];
    }
    if (j != divisor->degree)
        return false;
    *quotient = iv_scope_monomial(scope, degree, factors);
    return *quotient != NULL;
}

/* ---- the operations ---- */

iv_dim iv_dim_constant(iv_scope *scope, int64_t value) {
    return iv_scope_expression(scope, value == 0 ? 0 : 1, &(iv_term){value, iv_scope_one(scope)});
}

static iv_dim combine_linear(iv_scope *scope, iv_dim left, iv_dim right, bool negate) {
    left = iv_scope_adopt(scope, left);
    right = iv_scope_adopt(scope, right);
    if (left == NULL || right == NULL)
        return NULL;
    iv_terms terms = {.scope = scope};
    for (int i = 0; i < left->term_count; i++)
        iv_terms_add(&terms, left->terms[i].coefficient, left->terms[i].monomial);
    for (int i = 0; i < right->term_count; i++) {
        int64_t coefficient = right->terms[i].coefficient;
        if (negate && __builtin_sub_overflow(0, coefficient, &coefficient)) {
            terms.failed = true;
            fail_overflow(scope);
        }
        iv_terms_add(&terms, coefficient, right->terms[i].monomial);
    }
    iv_dim sum = iv_terms_finish(&terms);
    bool *busy = iv_scope_busy(scope);
    if (sum == NULL || *busy)
        return sum;
    *busy = true;
    sum = iv_dim_distribute(scope, sum);
    *busy = false;
    return sum;
}

iv_dim iv_dim_add(iv_scope *scope, iv_dim left, iv_dim right) {
    return combine_linear(scope, left, right, false);
}

iv_dim iv_dim_subtract(iv_scope *scope, iv_dim left, iv_dim right) {
    return combine_linear(scope, left, right, true);
}

iv_dim iv_dim_multiply(iv_scope *scope, iv_dim left, iv_dim right) {
    left = iv_scope_adopt(scope, left);
    right = iv_scope_adopt(scope, right);
    if (left == NULL || right == NULL)
        return NULL;
    /* Bounds the work: a legitimate product has a handful of terms. */
    if ((int64_t)left->term_count * right->term_count > 16 * IV_DIM_MOST_SIZE)
        return iv_scope_fail(scope, IV_ERROR_UNSUPPORTED,
                             "a product of dimension expressions has %d times %d terms",
                             left->term_count, right->term_count);
    iv_terms terms = {.scope = scope};
    for (int i = 0; i < left->term_count && !terms.failed; i++) {
        for (int j = 0; j < right->term_count && !terms.failed; j++) {
            int64_t coefficient;
            if (__builtin_mul_overflow(left->terms[i].coefficient, right->terms[j].coefficient,
                                       &coefficient)) {
                terms.failed = true;
                fail_overflow(scope);
                break;
            }
            iv_terms_add(
                &terms, coefficient,
                iv_monomial_multiply(scope, left->terms[i].monomial, right->terms[j].monomial));
        }
    }
    return iv_terms_finish(&terms);
}

iv_dim iv_dim_scale(iv_scope *scope, iv_dim dim, int64_t coefficient) {
    return iv_dim_multiply(scope, dim, iv_dim_constant(scope, coefficient));
}

/* ---- questions ---- */

bool iv_dim_is_constant(iv_dim dim, int64_t *value) {
    if (dim == NULL || dim->term_count > 1 ||
        (dim->term_count == 1 && dim->terms[0].monomial->degree != 0))
        return false;
    if (value != NULL)
        *value = dim->term_count == 0 ? 0 : dim->terms[0].coefficient;
    return true;
}

const iv_atom *iv_dim_atom(iv_dim dim) {
    if (dim == NULL || dim->term_count != 1 || dim->terms[0].coefficient != 1 ||
        dim->terms[0].monomial->degree != 1)
        return NULL;
    return dim->terms[0].monomial->factors[0];
}

const char *iv_dim_symbol_name(iv_dim dim) {
    const iv_atom *atom = iv_dim_atom(dim);
    return atom != NULL && atom->kind == IV_ATOM_SYMBOL ? atom->name : NULL;
}

bool iv_dim_at_least(iv_dim dim, int64_t bound) {
    return dim != NULL && (bound == INT64_MIN || dim->interval.lower >= bound);
}
