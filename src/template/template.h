/* Chat templates: the part of Jinja that they are written in, rendered to the bytes that jinja2 gives with the settings of
 * the transformers package (trimmed and stripped blocks, loop controls, an immutable sandbox). docs/llm.md says what is
 * understood. Words like "namespace" are Jinja's.
 *
 * A template comes from outside and is a program: how deep it nests, how long it runs and what it allocates have limits. */
#ifndef SB_TEMPLATE_TEMPLATE_H
#define SB_TEMPLATE_TEMPLATE_H

#include <jansson.h>
#include <samebit/llm.h>

#include "base/error.h"

/** A template that was parsed; it is not changed by being rendered, which any number of threads may do at a time. */
typedef struct sb_jinja_template sb_jinja_template;

/** Parses `bytes` of UTF-8, which are copied. The caller frees the template. Errors: INVALID_FILE for what is no template,
 * UNSUPPORTED for a statement, filter or test that is not understood, LIMIT, OUT_OF_MEMORY; each with the line. */
sb_status sb_jinja_parse(const char *source, size_t bytes, sb_jinja_template **result, sb_error *error);
/** NULL is allowed. */
void sb_jinja_free(sb_jinja_template *parsed);

/** Renders with the members of an object of JSON as variables; `date` is what strftime_now writes, and may be NULL for
 * templates that do not ask; `steps` is the most that it may take, 0: 20 million, which takes under a second. `*text` is the
 * caller's, to free by sb_free: `*bytes` bytes of UTF-8 with a NUL behind them.
 *
 * Errors: INVALID_ARGUMENT where the template raises an exception, or does with its variables what cannot be done;
 * UNSUPPORTED for a method, function or operation that is not understood; LIMIT; OUT_OF_MEMORY; each with the line. */
sb_status sb_jinja_render(const sb_jinja_template *parsed, const json_t *variables, const sb_llm_date *date,
                          int64_t steps, char **text, size_t *bytes, sb_error *error);

#endif
