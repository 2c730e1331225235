/* What methods of texts and filters share. Where `self` is no text, these make one of it first, unless it says otherwise. */
#ifndef SB_TEMPLATE_STRING_H
#define SB_TEMPLATE_STRING_H

#include "template/value.h"

sb_jinja_function sb_jinja_trim, sb_jinja_upper, sb_jinja_lower, sb_jinja_capitalize;
/** str.replace(old, new, count), all of them texts. */
sb_jinja_function sb_jinja_replace;
/** str.splitlines() of a text. */
sb_status sb_jinja_lines(sb_jinja *jinja, sb_jinja_value self, bool keep, sb_jinja_list **list);
const sb_jinja_row *sb_jinja_find_text_method(const sb_jinja_text *name);

#endif
