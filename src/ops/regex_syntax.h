/* Regular expressions in the syntax of RE2, which the standard names, rewritten for the library that matches them. */
#ifndef SB_OPS_REGEX_SYNTAX_H
#define SB_OPS_REGEX_SYNTAX_H

#include "base/error.h"

/** Rewrites `pattern` (UTF-8) as a pattern of PCRE2 that ends at the end of the text and is otherwise matched by the
 * same texts: of its constructs only those are used that mean one thing, and that need no search among groups. `*translated` is the caller's to sb_free.
 *
 * Errors, which say at which byte: INVALID_MODEL for what RE2 refuses too; UNSUPPORTED for what it has and this has not
 * (single bytes, Unicode classes without regard to case); OUT_OF_MEMORY. */
sb_status sb_regex_translate(const char *pattern, char **translated, sb_error *error);

#endif
