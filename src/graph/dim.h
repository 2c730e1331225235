/* Dimension expressions: the extents of tensors as formulas over symbols such as `batch`.
 *
 * Expressions are immutable, interned in a scope and kept in a normal form (a polynomial with integer coefficients over
 * atoms; an atom is a symbol, or a floor or ceiling division, minimum or maximum of expressions), so that equal
 * formulas are the same pointer in one scope. A scope may be used by one thread at a time; expressions of a finished
 * scope may be read by all.
 *
 * Operands of another scope are copied into this one. Sizes are bounded, whatever a file asks for: a formula of more
 * than 4096 parts, 64 nested divisions, minima and maxima, or 32 factors is refused (UNSUPPORTED).
 *
 * Functions that make expressions return NULL when memory runs out or a coefficient overflows, accept
 * NULL operands (and return NULL), and note the first reason in the scope: build a formula without
 * checks, then call `sb_scope_check` once. */
#ifndef SB_GRAPH_DIM_H
#define SB_GRAPH_DIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct sb_scope sb_scope;
typedef const struct sb_dim_expression *sb_dim;

sb_status sb_scope_create(sb_scope **scope, sb_error *error);
/** Frees the scope and all its expressions. NULL is allowed. */
void sb_scope_destroy(sb_scope *scope);
/** SB_OK, or the first failure since the scope was made or last checked. */
sb_status sb_scope_check(sb_scope *scope, sb_error *error);

sb_dim sb_dim_constant(sb_scope *scope, int64_t value);
/** The symbol of that name: the same one each time. Symbols stand for integers of at least 0. */
sb_dim sb_dim_symbol(sb_scope *scope, const char *name);
/** A symbol that differs from all others, for an extent that only the data decide; its name is
 * `hint`, '#' and a number that no symbol of the scope has used. */
sb_dim sb_dim_fresh(sb_scope *scope, const char *hint);

sb_dim sb_dim_add(sb_scope *scope, sb_dim left, sb_dim right);
sb_dim sb_dim_subtract(sb_scope *scope, sb_dim left, sb_dim right);
sb_dim sb_dim_multiply(sb_scope *scope, sb_dim left, sb_dim right);
/** Division rounded toward minus infinity; the divisor must not be the constant 0 (NULL, noted in the scope). A divisor
 * that divides every coefficient, or the polynomial itself, divides exactly. */
sb_dim sb_dim_floor_divide(sb_scope *scope, sb_dim left, sb_dim right);
sb_dim sb_dim_ceiling_divide(sb_scope *scope, sb_dim left, sb_dim right);
/** Decided at once where bounds allow it: symbols are at least 0. */
sb_dim sb_dim_minimum(sb_scope *scope, sb_dim left, sb_dim right);
sb_dim sb_dim_maximum(sb_scope *scope, sb_dim left, sb_dim right);

/** Whether the expression is a number, which goes to *value (may be NULL). */
bool sb_dim_is_constant(sb_dim dim, int64_t *value);
/** Whether two expressions, of any scopes, are the same formula. */
bool sb_dim_equal(sb_dim left, sb_dim right);
/** Whether `left >= right` for all values of the symbols, as far as simple bounds tell. */
bool sb_dim_at_least(sb_dim left, int64_t bound);
/** The symbol's name if the expression is exactly one symbol, else NULL. */
const char *sb_dim_symbol_name(sb_dim dim);
/** Whether a symbol of that name occurs in the expression. */
bool sb_dim_mentions(sb_dim dim, const char *name);
/** Calls `visit` for the name of each symbol in the expression (a name may come more than once). */
void sb_dim_visit_symbols(sb_dim dim, void (*visit)(void *context, const char *name), void *context);

/** Values of symbols: parallel arrays, in any order. */
typedef struct sb_binding {
    int count;
    const char *const *names;
    const int64_t *values;
} sb_binding;

/** Evaluates with the values of `binding`. False when a symbol has no value there or
 * a negative one, a division by 0 occurs, or a step overflows. */
bool sb_dim_evaluate(sb_dim dim, const sb_binding *binding, int64_t *value);

/** A number that its owner may change with sb_dim_set_cell: equal to whatever formula is that number now, and never the
 * same pointer. It lives as long as the scope. NULL when memory runs out (noted in the scope). */
sb_dim sb_dim_cell(sb_scope *scope, int64_t value);
/** Not while another thread reads it. */
void sb_dim_set_cell(sb_dim cell, int64_t value);

/** The same formula in another scope. */
sb_dim sb_dim_copy(sb_scope *scope, sb_dim dim);
/** The formula with each symbol that `binding` names replaced by its value. */
sb_dim sb_dim_substitute(sb_scope *scope, sb_dim dim, const sb_binding *binding);

/** Writes the formula as text ("2*batch+1", "floor((width+3)/2)", "max(a,b)"), cut to `bytes`; returns `text`. */
char *sb_dim_text(sb_dim dim, char *text, size_t bytes);

#endif
