/* JSON schemas as they are read: keywords of each place, and what a place comes to when references and combinations of schemas are
 * followed. */
#ifndef SB_CONSTRAINT_SCHEMA_H
#define SB_CONSTRAINT_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/names.h"
#include "constraint/number.h"

/* Types, as bits. A whole number is a number. */
enum {
    SB_TYPE_NULL = 1,
    SB_TYPE_BOOLEAN = 2,
    SB_TYPE_INTEGER = 4,
    SB_TYPE_NUMBER = 8,
    SB_TYPE_STRING = 16,
    SB_TYPE_ARRAY = 32,
    SB_TYPE_OBJECT = 64,
    SB_TYPE_ANY = 127
};

#define SB_UNBOUNDED INT64_MAX

/* The largest number of which multiples are wanted: their automaton has as many remainders. */
#define SB_MOST_MULTIPLE 1000

/* What a schema says of one place, without what it combines. Members of JSON are the schema's, NULL where it has none. */
typedef struct sb_keywords {
    unsigned types;
    const json_t *enumeration, *constant;
    const json_t *properties, *required, *additional; /* object, array, schema */
    const json_t *prefix, *items;                     /* array of schemas, schema */
    int64_t least_length, most_length, least_items, most_items, least_properties, most_properties;
    const char *pattern, *format;
    sb_number_bound low, high;
    int64_t multiple;              /* of which numbers are multiples; 0: of any */
    const json_t *all, *any, *one; /* arrays of schemas */
    const char *reference;
} sb_keywords;

/* A schema within the schema, once however many ways lead there. */
typedef struct sb_place {
    const json_t *json; /* an object: true and false have no places */
    char *pointer;      /* where it stands, for messages: "" or "/properties/a" */
    sb_keywords keywords;
    uint32_t path;   /* it is being expanded on this path; 0: on none */
    bool is_checked; /* its oneOf has been looked at */
} sb_place;

/* Schemas that all hold: numbers of places, ascending. No places: anything is right. */
typedef struct sb_all_of {
    uint32_t *places;
    uint32_t count;
} sb_all_of;

/* Of which one has to hold. None: nothing is right. */
typedef struct sb_any_of {
    sb_all_of *ways;
    uint32_t count;
    size_t capacity;
} sb_any_of;

typedef struct sb_schema {
    json_t *json;
    sb_place *places;
    size_t place_count, place_capacity;
    sb_names numbers; /* the address of a place's JSON → number */
    int64_t steps;    /* of work that is left: a schema's pieces can multiply */
    int64_t edges;    /* that automata may still follow */
    uint32_t paths;   /* that have been begun */
    int depth;        /* of calls in one another */
    sb_error *error;
} sb_schema;

/** Reads a schema's text; its parts are read when something comes to them. Errors: INVALID_FILE for what is no JSON, with the
 * byte; LIMIT; OUT_OF_MEMORY. The schema is to be cleared in either case. */
sb_status sb_schema_read(sb_schema *schema, const char *text, size_t bytes, sb_error *error);
void sb_schema_clear(sb_schema *schema);

/** Adds the schema `json`, which stands at `pointer`, to those that have to hold: `*all` has room for it. *possible becomes false
 * where it is false. Errors: UNSUPPORTED, with the pointer and the keyword, for keywords that are not known here; INVALID_FILE for
 * values that a keyword cannot have; OUT_OF_MEMORY. */
sb_status sb_schema_add(sb_schema *schema, const json_t *json, const char *pointer, sb_all_of *all, bool *possible);

/** Follows references, allOf, anyOf and oneOf of all places in `all`: `*ways` are sets of places whose own keywords have to hold
 * together. The caller clears them. Errors: as above; INVALID_FILE for a schema that is itself with nothing in between, and for
 * references that lead nowhere; UNSUPPORTED for a oneOf of which two may hold at once; LIMIT. */
sb_status sb_schema_expand(sb_schema *schema, sb_all_of all, sb_any_of *ways);
void sb_any_of_clear(sb_any_of *any);

/** A way with room for so many places. False when memory ran out. */
bool sb_all_of_create(uint32_t count, sb_all_of *all);

/** Whether a value is right by the schemas of a set, with whatever they combine. Errors: as above. */
sb_status sb_schema_holds(sb_schema *schema, sb_all_of all, const json_t *value, bool *holds);

/** Whether no value is right by both ways; false also where that cannot be seen. Errors: as above. */
sb_status sb_schema_disjoint(sb_schema *schema, sb_all_of left, sb_all_of right, int depth, bool *disjoint);

/** Counts `steps` of work. Errors: LIMIT. */
sb_status sb_schema_work(sb_schema *schema, int64_t steps);

/** An empty automaton in the making, whose work counts as the schema's. */
static inline sb_nfa sb_schema_nfa(sb_schema *schema) {
    return (sb_nfa){.error = schema->error, .left = &schema->edges};
}

/* ---- ways together ---- */

/* What the places of one way say together. */
typedef struct sb_together {
    unsigned types;
    int64_t low, high; /* of whole numbers */
    sb_number_bound least, most;
    int64_t multiple; /* the least common one, 0: of any, SB_MOST_MULTIPLE + 1: of more than that */
    int64_t least_length, most_length, least_items, most_items, least_properties, most_properties;
    bool enumerated; /* a place has enum or const */
} sb_together;

/** What they say together. */
sb_together sb_schema_together(const sb_schema *schema, sb_all_of way);
/** The schemas of a property, for the caller to free `all->places`: of each place that of its properties, else
 * additionalProperties. `name` NULL: of properties that no place names. *possible false: one of them is false. */
sb_status sb_schema_property(sb_schema *schema, sb_all_of way, const char *name, sb_all_of *all, bool *possible);
/** The same for the item of an array; `index` -1: of those behind all prefixItems. */
sb_status sb_schema_item(sb_schema *schema, sb_all_of way, int64_t index, sb_all_of *all, bool *possible);
/** Whether some place of the way requires the property. */
bool sb_schema_requires(const sb_schema *schema, sb_all_of way, const char *name);

#endif
