/* Regular expressions of `pattern`, in the part of ECMA-262 that an automaton can have. */
#ifndef SB_CONSTRAINT_EXPRESSION_H
#define SB_CONSTRAINT_EXPRESSION_H

#include "constraint/nfa.h"

/** Adds what an expression of UTF-8 finds: texts, as JSON writes them between quotes (sb_nfa_points), of which a part matches; all of
 * it between ^ and $. Errors, which say at which byte: INVALID_FILE for what is no expression; UNSUPPORTED for what is not read here:
 * looking ahead and back, references to groups, \b, \B, \p, flags, ^ and $ elsewhere than at the ends of an outermost alternative;
 * LIMIT. They are the builder's. */
sb_status sb_nfa_expression(sb_nfa *nfa, uint32_t from, uint32_t to, const char *expression, size_t bytes);

#endif
