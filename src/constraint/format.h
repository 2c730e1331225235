/* Formats of texts, as patterns. */
#ifndef SB_CONSTRAINT_FORMAT_H
#define SB_CONSTRAINT_FORMAT_H

#include <stddef.h>

/** The pattern, for sb_nfa_expression, of texts of this format; NULL for one that is not known. */
const char *sb_format_pattern(const char *name);
/** The names of all formats, for messages. */
extern const char sb_format_names[];

#endif
