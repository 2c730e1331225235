/* The inside of dimension expressions: see dim.h for the contract.
 *
 * An expression is a sum of terms; a term is a coefficient times a monomial; a monomial is a
 * product of atoms; an atom is a symbol or a function (floor division, minimum, maximum) of
 * expressions. A ceiling division is written with floor. All four are interned, so inside a scope
 * equal things have equal addresses. Everything is ordered by structure and name, never by address,
 * so that texts are the same in every run. */
#ifndef SB_GRAPH_DIM_INTERNAL_H
#define SB_GRAPH_DIM_INTERNAL_H

#include "graph/dim.h"

/* Bounds that keep work and stack small whatever a file asks for. `size` counts what the text would show. */
#define SB_DIM_MOST_SIZE 4096
#define SB_DIM_MOST_DEPTH 64
#define SB_DIM_MOST_DEGREE 32
#define SB_DIM_MOST_OPERANDS 64

/* Bounds on a value, both inclusive; the ends of int64 stand for "no bound". */
typedef struct sb_interval {
    int64_t lower, upper;
} sb_interval;
#define SB_NO_LOWER INT64_MIN
#define SB_NO_UPPER INT64_MAX

typedef enum sb_atom_kind {
    SB_ATOM_SYMBOL,
    SB_ATOM_FLOOR, /* operands: dividend, divisor */
    SB_ATOM_MINIMUM,
    SB_ATOM_MAXIMUM
} sb_atom_kind;

/* Each interned thing begins with its hash, which depends on structure and names only. */
typedef struct sb_atom {
    uint64_t hash;
    sb_interval interval;
    sb_atom_kind kind;
    int depth, size;
    const char *name; /* of a symbol */
    int operand_count;
    sb_dim operands[];
} sb_atom;

typedef struct sb_monomial {
    uint64_t hash;
    sb_interval interval;
    int depth, size;
    int degree;               /* the number of factors; 0 for the constant monomial */
    const sb_atom *factors[]; /* ascending, repeated for powers */
} sb_monomial;

typedef struct sb_term {
    int64_t coefficient; /* not 0 */
    const sb_monomial *monomial;
} sb_term;

struct sb_dim_expression {
    uint64_t hash;
    const sb_scope *scope;
    sb_interval interval;
    int depth, size;
    int term_count;  /* 0 for the number 0 */
    sb_term terms[]; /* by sb_monomial_compare: the constant comes last */
};

/* ---- scope (dim_scope.c) ---- */

/** Notes a failure in the scope, if it is the first, and returns NULL. */
sb_dim sb_scope_fail(sb_scope *scope, sb_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** What a simplification that may be given up has to restore. */
typedef struct sb_attempt {
    bool failed_before;
    uint64_t memory_failures;
} sb_attempt;
/** Begins work whose overflow means "leave it as it was" rather than a failure. */
sb_attempt sb_attempt_begin(const sb_scope *scope);
/** Ends it, dropping the failure it noted. False when memory ran out: then the caller must fail too. */
bool sb_attempt_end(sb_scope *scope, sb_attempt attempt);

/** A flag for whoever simplifies by calling operations that simplify: set, they do not do so again. */
bool *sb_scope_busy(sb_scope *scope);

/** The constant monomial. */
const sb_monomial *sb_scope_one(const sb_scope *scope);
/** The monomial of `degree` factors in ascending order; NULL on failure (noted). */
const sb_monomial *sb_scope_monomial(sb_scope *scope, int degree, const sb_atom *const *factors);
/** The function of those operands, not simplified further; NULL on failure (noted). */
const sb_atom *sb_scope_function(sb_scope *scope, sb_atom_kind kind, int count, const sb_dim *operands);
/** The symbol of that name; NULL on failure (noted). */
const sb_atom *sb_scope_symbol(sb_scope *scope, const char *name);
/** The expression of those terms, which are in order, distinct and not 0; NULL on failure (noted). */
sb_dim sb_scope_expression(sb_scope *scope, int count, const sb_term *terms);
/** The expression that is just `atom`; NULL for NULL. */
sb_dim sb_scope_of_atom(sb_scope *scope, const sb_atom *atom);
/** The expression as one of this scope: itself, or its copy when it comes from another; NULL for NULL. */
sb_dim sb_scope_adopt(sb_scope *scope, sb_dim dim);

/* ---- order (dim_order.c) ---- */

/** Negative, 0 or positive as `left` comes before, is, or comes after `right`. Monomials follow the
 * graded lexicographic order, largest first, which is compatible with multiplication: polynomial
 * division relies on it. */
int sb_atom_compare(const sb_atom *left, const sb_atom *right);
int sb_monomial_compare(const sb_monomial *left, const sb_monomial *right);
int sb_dim_compare(sb_dim left, sb_dim right);

/* ---- bounds (dim_bound.c) ---- */

sb_interval sb_interval_add(sb_interval left, sb_interval right);
sb_interval sb_interval_multiply(sb_interval left, sb_interval right);
/** Of floor(left / right). */
sb_interval sb_interval_floor_divide(sb_interval left, sb_interval right);
/** Whether the expression is at least `bound` for all values of the symbols; looks through floor
 * divisions by numbers, minimum and maximum, so it tells more than the interval does. False on
 * failure (noted only for memory). */
bool sb_dim_proven_at_least(sb_scope *scope, sb_dim dim, int64_t bound);

/** The same value with its only minimum or maximum outermost, where that is shorter: n-max(n-1,0)
 * is min(n,1). NULL when memory runs out. */
sb_dim sb_dim_distribute(sb_scope *scope, sb_dim dim);

/* ---- polynomials (dim.c) ---- */

/** Terms being collected in any order. */
typedef struct sb_terms {
    sb_scope *scope;
    sb_term *terms;
    size_t count, capacity;
    bool failed;
} sb_terms;

/** Adds coefficient * monomial; a NULL monomial (a failure already noted) makes the whole fail. */
void sb_terms_add(sb_terms *terms, int64_t coefficient, const sb_monomial *monomial);
/** The sum of all that was added; NULL on failure. Frees the collection. */
sb_dim sb_terms_finish(sb_terms *terms);
/** The product of two monomials; NULL on failure (noted). */
const sb_monomial *sb_monomial_multiply(sb_scope *scope, const sb_monomial *left, const sb_monomial *right);
/** dividend / divisor when it is a monomial. False when it is not, or on failure (noted). */
bool sb_monomial_divide(sb_scope *scope, const sb_monomial *dividend, const sb_monomial *divisor,
                        const sb_monomial **quotient);
/** dim * coefficient. */
sb_dim sb_dim_scale(sb_scope *scope, sb_dim dim, int64_t coefficient);
/** The atom if the expression is exactly one, with coefficient 1; else NULL. */
const sb_atom *sb_dim_atom(sb_dim dim);
/** floor(left / right) of numbers; false on overflow or when right is 0. */
bool sb_floor_divide_numbers(int64_t left, int64_t right, int64_t *quotient);

#endif
