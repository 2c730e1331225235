/* The inside of dimension expressions: see dim.h for the contract.
 *
 * An expression is a sum of terms; a term is a coefficient times a monomial; a monomial is a
 * product of atoms; an atom is a symbol or a function (floor division, minimum, maximum) of
 * expressions. A ceiling division is written with floor. All four are interned, so inside a scope
 * equal things have equal addresses. Everything is ordered by structure and name, never by address,
 * so that texts are the same in every run. */
#ifndef IV_GRAPH_DIM_INTERNAL_H
#define IV_GRAPH_DIM_INTERNAL_H

#include "graph/dim.h"

/* Bounds that keep work and stack small whatever a file asks for. `size` counts what the text would
 * show. */
#define IV_DIM_MOST_SIZE 4096
#define IV_DIM_MOST_DEPTH 64
#define IV_DIM_MOST_DEGREE 32
#define IV_DIM_MOST_OPERANDS 64

/* Bounds on a value, both inclusive; the ends of int64 stand for "no bound". */
typedef struct iv_interval {
    int64_t lower, upper;
} iv_interval;
#define IV_NO_LOWER INT64_MIN
#define IV_NO_UPPER INT64_MAX

typedef enum iv_atom_kind {
    IV_ATOM_SYMBOL,
    IV_ATOM_FLOOR, /* operands: dividend, divisor */
    IV_ATOM_MINIMUM,
    IV_ATOM_MAXIMUM
} iv_atom_kind;

/* Each interned thing begins with its hash, which depends on structure and names only. */
typedef struct iv_atom {
    uint64_t hash;
    iv_interval interval;
    iv_atom_kind kind;
    int depth, size;
    const char *name; /* of a symbol */
    int operand_count;
    iv_dim operands[];
} iv_atom;

typedef struct iv_monomial {
    uint64_t hash;
    iv_interval interval;
    int depth, size;
    int degree;               /* the number of factors; 0 for the constant monomial */
    const iv_atom *factors[]; /* ascending, repeated for powers */
} iv_monomial;

typedef struct iv_term {
    int64_t coefficient; /* not 0 */
    const iv_monomial *monomial;
} iv_term;

struct iv_dim_expression {
    uint64_t hash;
    const iv_scope *scope;
    iv_interval interval;
    int depth, size;
    int term_count;  /* 0 for the number 0 */
    iv_term terms[]; /* by iv_monomial_compare: the constant comes last */
};

/* ---- scope (dim_scope.c) ---- */

/** Notes a failure in the scope, if it is the first, and returns NULL. */
iv_dim iv_scope_fail(iv_scope *scope, iv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** What a simplification that may be given up has to restore. */
typedef struct iv_attempt {
    bool failed_before;
    uint64_t memory_failures;
} iv_attempt;
/** Begins work whose overflow means "leave it as it was" rather than a failure. */
iv_attempt iv_attempt_begin(const iv_scope *scope);
/** Ends it, dropping the failure it noted. False when memory ran out: then the caller must fail
 * too. */
bool iv_attempt_end(iv_scope *scope, iv_attempt attempt);

/** A flag for whoever simplifies by calling operations that simplify: set, they do not do so again.
 */
bool *iv_scope_busy(iv_scope *scope);

/** The constant monomial. */
const iv_monomial *iv_scope_one(const iv_scope *scope);
/** The monomial of `degree` factors in ascending order; NULL on failure (noted). */
const iv_monomial *iv_scope_monomial(iv_scope *scope, int degree, const iv_atom *const *factors);
/** The function of those operands, not simplified further; NULL on failure (noted). */
const iv_atom *iv_scope_function(iv_scope *scope, iv_atom_kind kind, int count,
                                 const iv_dim *operands);
/** The symbol of that name; NULL on failure (noted). */
const iv_atom *iv_scope_symbol(iv_scope *scope, const char *name);
/** The expression of those terms, which are in order, distinct and not 0; NULL on failure (noted).
 */
iv_dim iv_scope_expression(iv_scope *scope, int count, const iv_term *terms);
/** The expression that is just `atom`; NULL for NULL. */
iv_dim iv_scope_of_atom(iv_scope *scope, const iv_atom *atom);
/** The expression as one of this scope: itself, or its copy when it comes from another; NULL for
 * NULL. */
iv_dim iv_scope_adopt(iv_scope *scope, iv_dim dim);

/* ---- order (dim_order.c) ---- */

/** Negative, 0 or positive as `left` comes before, is, or comes after `right`. Monomials follow the
 * graded lexicographic order, largest first, which is compatible with multiplication: polynomial
 * division relies on it. */
int iv_atom_compare(const iv_atom *left, const iv_atom *right);
int iv_monomial_compare(const iv_monomial *left, const iv_monomial *right);
int iv_dim_compare(iv_dim left, iv_dim right);

/* ---- bounds (dim_bound.c) ---- */

iv_interval iv_interval_add(iv_interval left, iv_interval right);
iv_interval iv_interval_multiply(iv_interval left, iv_interval right);
/** Of floor(left / right). */
iv_interval iv_interval_floor_divide(iv_interval left, iv_interval right);
/** Whether the expression is at least `bound` for all values of the symbols; looks through floor
 * divisions by numbers, minimum and maximum, so it tells more than the interval does. False on
 * failure (noted only for memory). */
bool iv_dim_proven_at_least(iv_scope *scope, iv_dim dim, int64_t bound);

/** The same value with its only minimum or maximum outermost, where that is shorter: n-max(n-1,0)
 * is min(n,1). NULL when memory runs out. */
iv_dim iv_dim_distribute(iv_scope *scope, iv_dim dim);

/* ---- polynomials (dim.c) ---- */

/** Terms being collected in any order. */
typedef struct iv_terms {
    iv_scope *scope;
    iv_term *terms;
    size_t count, capacity;
    bool failed;
} iv_terms;

/** Adds coefficient * monomial; a NULL monomial (a failure already noted) makes the whole fail. */
void iv_terms_add(iv_terms *terms, int64_t coefficient, const iv_monomial *monomial);
/** The sum of all that was added; NULL on failure. Frees the collection. */
iv_dim iv_terms_finish(iv_terms *terms);
/** The product of two monomials; NULL on failure (noted). */
const iv_monomial *iv_monomial_multiply(iv_scope *scope, const iv_monomial *left,
                                        const iv_monomial *right);
/** dividend / divisor when it is a monomial. False when it is not, or on failure (noted). */
bool iv_monomial_divide(iv_scope *scope, const iv_monomial *dividend, const iv_monomial *divisor,
                        const iv_monomial **quotient);
/** dim * coefficient. */
iv_dim iv_dim_scale(iv_scope *scope, iv_dim dim, int64_t coefficient);
/** The atom if the expression is exactly one, with coefficient 1; else NULL. */
const iv_atom *iv_dim_atom(iv_dim dim);
/** floor(left / right) of numbers; false on overflow or when right is 0. */
bool iv_floor_divide_numbers(int64_t left, int64_t right, int64_t *quotient);

#endif
