/* Reading the keywords of one schema. */
#ifndef SB_CONSTRAINT_SCHEMA_KEYWORDS_H
#define SB_CONSTRAINT_SCHEMA_KEYWORDS_H

#include "constraint/schema.h"

/** Reads an object's keywords. `pointer` is where it stands. Errors: as sb_schema_place. */
sb_status sb_keywords_read(const json_t *json, const char *pointer, sb_keywords *keywords, sb_error *error);

#endif
