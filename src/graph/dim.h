/* Dimension expressions: the extents of tensors as formulas over symbols such as `batch`.
 *
 * Expressions are immutable, interned in a scope and kept in a normal form (a polynomial with
 * integer coefficients over atoms; an atom is a symbol, or a floor or ceiling division, minimum or
 * maximum of expressions), so that equal formulas are the same pointer in one scope. A scope may be
 * used by one thread at a time; expressions of a finished scope may be read by all.
 *
 * Operands of another scope are copied into this one. Sizes are bounded, whatever a file asks for:
 * a formula of more than 4096 parts, 64 nested divisions, minima and maxima, or 32 factors is
 * refused (UNSUPPORTED).
 *
 * Functions that make expressions return NULL when memory runs out or a coefficient overflows,
 * accept NULL operands (and return NULL), and note the first reason in the scope: build a formula
 * without checks, then call `iv_scope_check` once. */
#ifndef IV_GRAPH_DIM_H
#define IV_GRAPH_DIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct iv_scope iv_scope;
typedef const struct iv_dim_expression *iv_dim;

iv_status iv_scope_create(iv_scope **scope, iv_error *error);
/** Frees the scope and all its expressions. NULL is allowed. */
void iv_scope_destroy(iv_scope *scope);
/** IV_OK, or the first failure since the scope was made or last checked. */
iv_status iv_scope_check(iv_scope *scope, iv_error *error);

iv_dim iv_dim_constant(iv_scope *scope, int64_t value);
/** The symbol of that name: the same one each time. Symbols stand for integers of at least 0. */
iv_dim iv_dim_symbol(iv_scope *scope, const char *name);
/** A symbol that differs from all others, for an extent that only the data decide; its name is
 * `hint`, '#' and a number that no symbol of the scope has used. */
iv_dim iv_dim_fresh(iv_scope *scope, const char *hint);

iv_dim iv_dim_add(iv_scope *scope, iv_dim left, iv_dim right);
iv_dim iv_dim_subtract(iv_scope *scope, iv_dim left, iv_dim right);
iv_dim iv_dim_multiply(iv_scope *scope, iv_dim left, iv_dim right);
/** Division rounded toward minus infinity; the divisor must not be the constant 0 (NULL, noted in
 * the scope). A divisor that divides every coefficient, or the polynomial itself, divides exactly.
 */
iv_dim iv_dim_floor_divide(iv_scope *scope, iv_dim left, iv_dim right);
iv_dim iv_dim_ceiling_divide(iv_scope *scope, iv_dim left, iv_dim right);
/** Decided at once where bounds allow it: symbols are at least 0. */
iv_dim iv_dim_minimum(iv_scope *scope, iv_dim left, iv_dim right);
iv_dim iv_dim_maximum(iv_scope *scope, iv_dim left, iv_dim right);

/** Whether the expression is a number, which goes to *value (may be NULL). */
bool iv_dim_is_constant(iv_dim dim, int64_t *value);
/** Whether two expressions, of any scopes, are the same formula. */
bool iv_dim_equal(iv_dim left, iv_dim right);
/** Whether `left >= right` for all values of the symbols, as far as simple bounds tell. */
bool iv_dim_at_least(iv_dim left, int64_t bound);
/** The symbol's name if the expression is exactly one symbol, else NULL. */
const char *iv_dim_symbol_name(iv_dim dim);
/** Whether a symbol of that name occurs in the expression. */
bool iv_dim_mentions(iv_dim dim, const char *name);
/** Calls `visit` for the name of each symbol in the expression (a name may come more than once). */
void iv_dim_visit_symbols(iv_dim dim, void (*visit)(void *context, const char *name),
                          void *context);

/** Values of symbols: parallel arrays, in any order. */
typedef struct iv_binding {
    int count;
    const char *const *names;
    const int64_t *values;
} iv_binding;

/** Evaluates with the values of `binding`. False when a symbol has no value there or
 * a negative one, a division by 0 occurs, or a step overflows. */
bool iv_dim_evaluate(iv_dim dim, const iv_binding *binding, int64_t *value);

/** The same formula in another scope. */
iv_dim iv_dim_copy(iv_scope *scope, iv_dim dim);
/** The formula with each symbol that `binding` names replaced by its value. */
iv_dim iv_dim_substitute(iv_scope *scope, iv_dim dim, const iv_binding *binding);

/** Writes the formula as text ("2*batch+1", "floor((width+3)/2)", "max(a,b)"), cut to `bytes`;
 * returns `text`. */
char *iv_dim_text(iv_dim dim, char *text, size_t bytes);

#endif
