/* Where filters and tests are found. */
#ifndef SB_TEMPLATE_FILTER_H
#define SB_TEMPLATE_FILTER_H

#include "template/value.h"

/** A filter of what has items, or NULL: template_sequence.c. */
const sb_jinja_row *sb_jinja_find_sequence_filter(const sb_jinja_text *name);
/** One that calls another filter or a test for each item, or NULL: template_select.c. */
const sb_jinja_row *sb_jinja_find_item_filter(const sb_jinja_text *name);

/** What an attribute of a filter (`attribute="a.b.0"`) leads to: a path of names and numbers. */
typedef struct sb_jinja_path {
    size_t count;
    sb_jinja_value *parts;
    sb_jinja_value standard; /* for what is undefined on the way; MISSING: nothing */
    bool fold;               /* texts count in lower case */
} sb_jinja_path;

/** Of NONE or MISSING: the item itself. */
sb_status sb_jinja_read_path(sb_jinja *jinja, sb_jinja_value attribute, sb_jinja_path *path);
sb_status sb_jinja_follow(sb_jinja *jinja, const sb_jinja_path *path, sb_jinja_value item, sb_jinja_value *result);

#endif
