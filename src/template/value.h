/* Values of a template at work, and what makes them. All memory is an arena's, which is freed at once. */
#ifndef SB_TEMPLATE_VALUE_H
#define SB_TEMPLATE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "template/template.h"

typedef struct sb_jinja sb_jinja;

typedef enum sb_jinja_kind {
    SB_JINJA_MISSING, /* no value: an argument that was not given, a name that is not set yet */
    SB_JINJA_UNDEFINED,
    SB_JINJA_NONE,
    SB_JINJA_BOOLEAN,
    SB_JINJA_INTEGER,
    SB_JINJA_REAL,
    SB_JINJA_TEXT,
    SB_JINJA_LIST,
    SB_JINJA_TUPLE,
    SB_JINJA_DICT,
    SB_JINJA_VIEW, /* items(), keys() and values() of a dict */
    SB_JINJA_RANGE,
    SB_JINJA_ITERATOR, /* what can be gone through once */
    SB_JINJA_NAMESPACE,
    SB_JINJA_LOOP,
    SB_JINJA_MACRO,
    SB_JINJA_METHOD,
    SB_JINJA_FUNCTION
} sb_jinja_kind;

/** UTF-8 without a NUL behind it, and how many code points it has. */
typedef struct sb_jinja_text {
    const char *data;
    size_t bytes, points;
} sb_jinja_text;

/** Why a value is undefined: `text` of it is the name. */
typedef enum sb_jinja_why { SB_JINJA_NO_NAME, SB_JINJA_NO_MEMBER, SB_JINJA_UNSAFE, SB_JINJA_NO_ITEM } sb_jinja_why;
typedef enum sb_jinja_view { SB_JINJA_ITEMS, SB_JINJA_KEYS, SB_JINJA_VALUES } sb_jinja_view;

typedef struct sb_jinja_list sb_jinja_list;
typedef struct sb_jinja_dict sb_jinja_dict;
typedef struct sb_jinja_range sb_jinja_range;
typedef struct sb_jinja_method sb_jinja_method;
typedef struct sb_jinja_iterator sb_jinja_iterator;
typedef struct sb_jinja_loop sb_jinja_loop;
typedef struct sb_jinja_macro sb_jinja_macro;
typedef struct sb_jinja_row sb_jinja_row;

typedef struct sb_jinja_value {
    uint8_t kind;   /* sb_jinja_kind */
    uint8_t detail; /* of a text: it is escaped (Markup); of UNDEFINED: sb_jinja_why; of a view: sb_jinja_view */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const sb_jinja_text *text; /* of UNDEFINED: may be NULL */
        const sb_jinja_list *list; /* and of a tuple */
        sb_jinja_dict *dict;       /* and of a namespace, and of a view */
        const sb_jinja_range *range;
        const sb_jinja_method *method;
        sb_jinja_iterator *iterator;
        sb_jinja_loop *loop;
        const sb_jinja_macro *macro;
        const sb_jinja_row *function;
    };
} sb_jinja_value;

struct sb_jinja_list {
    size_t count;
    sb_jinja_value *items;
};

typedef struct sb_jinja_entry {
    sb_jinja_value key, value;
} sb_jinja_entry;

/* In the order of insertion. Searched from its beginning, which counts as steps: dicts of conversations are small. */
struct sb_jinja_dict {
    size_t count, capacity;
    sb_jinja_entry *entries;
};

struct sb_jinja_range {
    int64_t start, stop, step, count;
};

struct sb_jinja_method {
    sb_jinja_value self;
    const sb_jinja_row *row;
};

/** Arguments of a call: `names[i]` is NULL for one that was given by its place. */
typedef struct sb_jinja_arguments {
    size_t count;
    sb_jinja_value *items;
    const sb_jinja_text *const *names;
} sb_jinja_arguments;

typedef sb_status sb_jinja_function(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                                    sb_jinja_value *result);
typedef sb_status sb_jinja_raw_function(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_arguments *arguments,
                                        sb_jinja_value *result);

/** A filter, a test, a method or a function. `self` is what it is applied to; arguments that were not given are MISSING. */
struct sb_jinja_row {
    const char *name;
    const char *parameters; /* "width first blank"; NULL: `raw` takes what there is */
    int least;              /* how many of them have to be given */
    sb_jinja_function *function;
    sb_jinja_raw_function *raw;
};
#define SB_JINJA_PARAMETERS 6

/* ---- the machine ---- */

typedef struct sb_jinja_chunk sb_jinja_chunk;
typedef struct sb_jinja_scope sb_jinja_scope;

/** A template being parsed or rendered: memory, limits, where it is, and what has been written. */
struct sb_jinja {
    sb_jinja_chunk *chunks;
    char *next; /* the free rest of the newest chunk */
    size_t left, total;
    int64_t steps; /* that are left */
    int depth, line;
    sb_error *error;
    /* The output, and behind it texts in the making: sb_jinja_begin. */
    char *output;
    size_t written, capacity;
    sb_jinja_scope *scope;
    const sb_llm_date *date;
};

/** How deep templates and values may nest, counted as the evaluator's and the parser's own calls. */
#define SB_JINJA_DEPTH 1000
#define SB_JINJA_PARSE_DEPTH 120
/** The longest source, the most steps, and what one rendering may allocate and write. */
#define SB_JINJA_SOURCE_BYTES ((size_t)1 << 20)
#define SB_JINJA_STEPS 20000000
#define SB_JINJA_MEMORY_BYTES ((size_t)256 << 20)
#define SB_JINJA_OUTPUT_BYTES ((size_t)64 << 20)

/** Fails with "the template, line N: …". */
sb_status sb_jinja_fail(sb_jinja *jinja, sb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Uninitialised memory, of `count` × `size` bytes; LIMIT or OUT_OF_MEMORY. `block` is the address of a pointer. */
sb_status sb_jinja_allocate(sb_jinja *jinja, size_t count, size_t size, void *block);
void sb_jinja_free_chunks(sb_jinja_chunk *chunks);
/** Counts steps. */
sb_status sb_jinja_spend(sb_jinja *jinja, size_t steps);
/** One level deeper; jinja->depth-- on the way back, also after a failure of what lies deeper. */
sb_status sb_jinja_enter(sb_jinja *jinja);

/* ---- making values ---- */

static inline sb_jinja_value sb_jinja_none(void) {
    return (sb_jinja_value){.kind = SB_JINJA_NONE};
}
static inline sb_jinja_value sb_jinja_boolean(bool boolean) {
    return (sb_jinja_value){.kind = SB_JINJA_BOOLEAN, .boolean = boolean};
}
static inline sb_jinja_value sb_jinja_integer(int64_t integer) {
    return (sb_jinja_value){.kind = SB_JINJA_INTEGER, .integer = integer};
}
static inline sb_jinja_value sb_jinja_real(double real) {
    return (sb_jinja_value){.kind = SB_JINJA_REAL, .real = real};
}
static inline sb_jinja_value sb_jinja_undefined(sb_jinja_why why, const sb_jinja_text *name) {
    return (sb_jinja_value){.kind = SB_JINJA_UNDEFINED, .detail = (uint8_t)why, .text = name};
}
static inline sb_jinja_value sb_jinja_of_list(sb_jinja_kind kind, const sb_jinja_list *list) {
    return (sb_jinja_value){.kind = (uint8_t)kind, .list = list};
}

/** A text over bytes that stay where they are. */
sb_status sb_jinja_text_over(sb_jinja *jinja, const char *data, size_t bytes, sb_jinja_value *value);
/** A list of `count` items, which the caller fills in. */
sb_status sb_jinja_new_list(sb_jinja *jinja, size_t count, sb_jinja_list **list);
/** Appends to a list that was made with no item and belongs to the caller; `*capacity` begins with 0. */
sb_status sb_jinja_append(sb_jinja *jinja, sb_jinja_list *list, size_t *capacity, sb_jinja_value value);
sb_status sb_jinja_new_dict(sb_jinja *jinja, size_t capacity, sb_jinja_dict **dict);
/** The value of a key, or NULL. INVALID_ARGUMENT for keys that cannot be any dict's. */
sb_status sb_jinja_find(sb_jinja *jinja, const sb_jinja_dict *dict, sb_jinja_value key, sb_jinja_value **found);
sb_status sb_jinja_put(sb_jinja *jinja, sb_jinja_dict *dict, sb_jinja_value key, sb_jinja_value value);
/** A value of JSON as the template sees it. */
sb_status sb_jinja_of_json(sb_jinja *jinja, const json_t *json, sb_jinja_value *value);

/* ---- asking ---- */

static inline bool sb_jinja_is_text(sb_jinja_value value, const char *text) {
    return value.kind == SB_JINJA_TEXT && strlen(text) == value.text->bytes &&
           memcmp(text, value.text->data, value.text->bytes) == 0;
}
static inline bool sb_jinja_is_whole(sb_jinja_value value) {
    return value.kind == SB_JINJA_INTEGER || value.kind == SB_JINJA_BOOLEAN;
}
static inline bool sb_jinja_is_number(sb_jinja_value value) {
    return sb_jinja_is_whole(value) || value.kind == SB_JINJA_REAL;
}
static inline int64_t sb_jinja_whole(sb_jinja_value value) {
    return value.kind == SB_JINJA_BOOLEAN ? value.boolean : value.integer;
}

/** Python's word for a kind: "list". */
const char *sb_jinja_kind_name(sb_jinja_value value);
bool sb_jinja_true(sb_jinja_value value);
/** len(); false for what has none. */
bool sb_jinja_length(sb_jinja_value value, int64_t *length);
sb_status sb_jinja_equal(sb_jinja *jinja, sb_jinja_value left, sb_jinja_value right, bool *equal);
/** −1, 0 or 1; fails for what has no order. `sign` is for the message. */
sb_status sb_jinja_compare(sb_jinja *jinja, sb_jinja_value left, sb_jinja_value right, const char *sign, int *order);
/** Fails for a value that is undefined, as jinja2 does when one is worked with. */
sb_status sb_jinja_check_defined(sb_jinja *jinja, sb_jinja_value value);
/** Fails for what is no text (an undefined value with its name). `whose` is for the message. */
sb_status sb_jinja_check_text(sb_jinja *jinja, const char *whose, sb_jinja_value value);
/** The number of an argument; `standard` where it is MISSING. */
sb_status sb_jinja_take_integer(sb_jinja *jinja, const char *whose, sb_jinja_value value, int64_t standard,
                                int64_t *number);

/* ---- texts in the making: template_text.c ---- */

/** Where a text in the making begins. Texts nest: the inner one is taken before the outer one goes on. */
static inline size_t sb_jinja_begin(const sb_jinja *jinja) {
    return jinja->written;
}
sb_status sb_jinja_write(sb_jinja *jinja, const char *data, size_t bytes);
/** Ends the text that began at `begin`. */
sb_status sb_jinja_take(sb_jinja *jinja, size_t begin, sb_jinja_value *text);
sb_status sb_jinja_write_point(sb_jinja *jinja, int32_t point);
/** Python's str() and repr(). */
sb_status sb_jinja_write_value(sb_jinja *jinja, sb_jinja_value value);
sb_status sb_jinja_write_representation(sb_jinja *jinja, sb_jinja_value value);
/** str(), as a value; a text is itself. */
sb_status sb_jinja_to_text(sb_jinja *jinja, sb_jinja_value value, sb_jinja_value *text);
/** With &, <, >, ' and " escaped, unless it is so already. */
sb_status sb_jinja_escape(sb_jinja *jinja, sb_jinja_value value, sb_jinja_value *text);
#define SB_JINJA_REAL_BYTES 40
/** The shortest decimal that is `real` again, as Python writes it; any locale. Returns its length. */
int sb_jinja_format_real(double real, char text[SB_JINJA_REAL_BYTES]);
/** Python's float() of a text; false for what is none. */
bool sb_jinja_parse_real(const sb_jinja_text *text, double *real);
/** The filter tojson. */
extern const sb_jinja_row sb_jinja_tojson;

/* ---- going through values: template_iterate.c ---- */

/** An iterator over whatever has items; one over an iterator is itself. */
sb_status sb_jinja_iterate(sb_jinja *jinja, sb_jinja_value value, sb_jinja_iterator **iterator);
/** reversed(), for what has it: `*iterator` is NULL for iterators, and for what has no items. */
sb_status sb_jinja_iterate_back(sb_jinja *jinja, sb_jinja_value value, sb_jinja_iterator **iterator);
/** The next item; `*found` is false behind the last. */
sb_status sb_jinja_next(sb_jinja *jinja, sb_jinja_iterator *iterator, sb_jinja_value *item, bool *found);
/** An iterator whose items `next` makes, from `state`. */
typedef sb_status sb_jinja_next_function(sb_jinja *jinja, void *state, sb_jinja_value *item, bool *found);
sb_status sb_jinja_new_iterator(sb_jinja *jinja, sb_jinja_next_function *next, void *state, sb_jinja_value *value);
/** A value of that iterator. */
static inline sb_jinja_value sb_jinja_of_iterator(sb_jinja_iterator *iterator) {
    return (sb_jinja_value){.kind = SB_JINJA_ITERATOR, .iterator = iterator};
}
/** All items as a fresh list. */
sb_status sb_jinja_collect(sb_jinja *jinja, sb_jinja_value value, sb_jinja_list **list);
/** `in`. */
sb_status sb_jinja_contains(sb_jinja *jinja, sb_jinja_value whole, sb_jinja_value item, bool *contains);

/* ---- members: template_member.c ---- */

/** value.name, and value[key]. */
sb_status sb_jinja_attribute(sb_jinja *jinja, sb_jinja_value value, const sb_jinja_text *name, sb_jinja_value *result);
sb_status sb_jinja_item(sb_jinja *jinja, sb_jinja_value value, sb_jinja_value key, sb_jinja_value *result);
/** value[start:stop:step], whose three may be NONE. */
sb_status sb_jinja_slice(sb_jinja *jinja, sb_jinja_value value, const sb_jinja_value bounds[3], sb_jinja_value *result);
/** The row of a method that texts, dicts or lists have here, or NULL. */
const sb_jinja_row *sb_jinja_find_method(sb_jinja_kind kind, const sb_jinja_text *name);

/* ---- operators: template_operator.c ---- */

/** `operator`: '+', '-', '*', '/', '%', 'f' (//), 'p' (**). */
sb_status sb_jinja_arithmetic(sb_jinja *jinja, char operator, sb_jinja_value left, sb_jinja_value right,
                              sb_jinja_value *result);
sb_status sb_jinja_negate(sb_jinja *jinja, sb_jinja_value value, bool negative, sb_jinja_value *result);

/* ---- calls ---- */

const sb_jinja_row *sb_jinja_find_filter(const sb_jinja_text *name);
const sb_jinja_row *sb_jinja_find_test(const sb_jinja_text *name);
/** A global function (range, namespace, …), or NULL. */
const sb_jinja_row *sb_jinja_find_function(const sb_jinja_text *name);
/** Finds the row of a sorted or unsorted table of `count`. */
const sb_jinja_row *sb_jinja_find_row(const sb_jinja_row *rows, size_t count, const sb_jinja_text *name);
/** Calls a row; `what` is "filter", "test", "method" or "function", for messages. */
sb_status sb_jinja_apply(sb_jinja *jinja, const char *what, const sb_jinja_row *row, sb_jinja_value self,
                         const sb_jinja_arguments *arguments, sb_jinja_value *result);
/** Fails about a name that is not understood. */
sb_status sb_jinja_fail_unknown(sb_jinja *jinja, const char *what, const sb_jinja_text *name);

/* ---- characters: template_character.c ---- */

typedef enum sb_jinja_case { SB_JINJA_UPPER, SB_JINJA_LOWER, SB_JINJA_TITLE } sb_jinja_case;

/** The code point at `data`, which is UTF-8, and its bytes. */
int32_t sb_jinja_point(const char *data, size_t *bytes);
/** The bytes of the code point that ends before `data + at`. */
size_t sb_jinja_back(const char *data, size_t at);
/** str.isspace(), str.isprintable(), and whether str.splitlines() ends a line there. */
bool sb_jinja_is_space(int32_t point);
bool sb_jinja_is_printable(int32_t point);
bool sb_jinja_ends_line(int32_t point);
/** Whether it has cases, which is how str.title() finds words. */
bool sb_jinja_is_cased(int32_t point);
/** Writes bytes [from, to) of a text in a case, by Unicode's full mappings. */
sb_status sb_jinja_write_case(sb_jinja *jinja, const sb_jinja_text *text, size_t from, size_t to, sb_jinja_case change);
/** How many bytes of space a text begins with, and ends with. */
size_t sb_jinja_leading_space(const char *data, size_t bytes);
size_t sb_jinja_trailing_space(const char *data, size_t bytes);
/** How many code points there are in valid UTF-8. */
size_t sb_jinja_count_points(const char *data, size_t bytes);

#endif
