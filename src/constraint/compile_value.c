/* Values: what is short becomes a part of the automaton around it, and what nests a call. */
#include <string.h>

#include "base/allocation.h"
#include "constraint/characters.h"
#include "constraint/compile.h"
#include "constraint/expression.h"
#include "constraint/format.h"

/* Beyond it no number is written. */
#define MOST_NUMBER 1e15
#define MOST_COUNTED_CHARACTERS 4096

void sb_compile_space_before(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_count_action action) {
    uint32_t rule = 0, line = sb_nfa_state(nfa);
    sb_nfa_bytes(nfa, from, ' ', ' ', action, to);
    sb_nfa_bytes(nfa, from, '\n', '\n', action, line);
    sb_nfa_empty(nfa, line, to);
    sb_status status = sb_compiler_rule(compiler, SB_RULE_SPACES, (sb_any_of){0}, NULL, &rule);
    if (status != SB_OK)
        sb_nfa_fail(nfa, status);
    sb_nfa_call(nfa, line, rule, to);
}

void sb_compile_space(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to) {
    sb_nfa_empty(nfa, from, to);
    sb_compile_space_before(compiler, nfa, from, to, SB_COUNT_NONE);
}

/* ---- literals ---- */

static uint32_t add_string(sb_nfa *nfa, uint32_t from, const char *text, size_t bytes) {
    uint32_t begin = sb_nfa_text(nfa, from, "\"", 1);
    return sb_nfa_text(nfa, sb_nfa_written(nfa, begin, text, bytes), "\"", 1);
}

static void add_text(sb_nfa *nfa, uint32_t from, uint32_t to, const char *text) {
    sb_nfa_empty(nfa, sb_nfa_text(nfa, from, text, strlen(text)), to);
}

static void add_list(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, const json_t *value) {
    bool is_array = json_is_array(value);
    size_t count = is_array ? json_array_size(value) : json_object_size(value);
    uint32_t now = sb_nfa_text(nfa, from, is_array ? "[" : "{", 1);
    void *member = is_array ? NULL : json_object_iter((json_t *)(uintptr_t)value);
    for (size_t i = 0; i < count && nfa->status == SB_OK; i++) {
        uint32_t begin = sb_nfa_state(nfa), end = sb_nfa_state(nfa);
        sb_compile_space(compiler, nfa, now, begin);
        if (is_array) {
            sb_compile_literal(compiler, nfa, begin, end, json_array_get(value, i));
        } else {
            const char *name = json_object_iter_key(member);
            uint32_t colon = sb_nfa_text(nfa, add_string(nfa, begin, name, strlen(name)), ":", 1),
                     behind = sb_nfa_state(nfa);
            sb_nfa_empty(nfa, colon, behind);
            sb_nfa_bytes(nfa, colon, ' ', ' ', SB_COUNT_NONE, behind);
            sb_compile_literal(compiler, nfa, behind, end, json_object_iter_value(member));
            member = json_object_iter_next((json_t *)(uintptr_t)value, member);
        }
        now = end;
        if (i + 1 < count)
            now = sb_nfa_text(nfa, now, ",", 1);
    }
    uint32_t close = count > 0 ? sb_nfa_state(nfa) : now;
    if (count > 0)
        sb_compile_space(compiler, nfa, now, close);
    add_text(nfa, close, to, is_array ? "]" : "}");
}

void sb_compile_literal(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, const json_t *value) {
    char text[40];
    switch (json_typeof(value)) {
    case JSON_NULL:
        add_text(nfa, from, to, "null");
        return;
    case JSON_TRUE:
        add_text(nfa, from, to, "true");
        return;
    case JSON_FALSE:
        add_text(nfa, from, to, "false");
        return;
    case JSON_INTEGER:
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        add_text(nfa, from, to, text);
        return;
    case JSON_REAL:
        sb_number_text(json_real_value(value), text);
        add_text(nfa, from, to, text);
        return;
    case JSON_STRING:
        sb_nfa_empty(nfa, add_string(nfa, from, json_string_value(value), json_string_length(value)), to);
        return;
    default:
        add_list(compiler, nfa, from, to, value);
    }
}

/* The values of enum or const that are right by everything else. */
static void add_values(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way) {
    const json_t *list = NULL, *single = NULL;
    for (uint32_t i = 0; i < way.count && list == NULL && single == NULL; i++) {
        list = compiler->schema.places[way.places[i]].keywords.enumeration;
        single = compiler->schema.places[way.places[i]].keywords.constant;
    }
    size_t count = single != NULL ? 1 : json_array_size(list);
    for (size_t i = 0; i < count && nfa->status == SB_OK; i++) {
        const json_t *value = single != NULL ? single : json_array_get(list, i);
        bool holds;
        sb_status status = sb_schema_holds(&compiler->schema, way, value, &holds);
        if (status != SB_OK)
            sb_nfa_fail(nfa, status);
        else if (holds)
            sb_compile_literal(compiler, nfa, from, to, value);
    }
}

/* ---- strings ---- */

bool sb_compile_has_pattern(const sb_compiler *compiler, sb_all_of way) {
    for (uint32_t i = 0; i < way.count; i++) {
        const sb_keywords *k = &compiler->schema.places[way.places[i]].keywords;
        if (k->pattern != NULL || k->format != NULL)
            return true;
    }
    return false;
}

/* Narrows `dfa` (which is empty before the first) to texts that the pattern finds. */
static sb_status narrow(sb_dfa *dfa, const sb_nfa *nfa, uint32_t from, uint32_t to, sb_error *error) {
    sb_dfa next, both;
    SB_TRY(sb_dfa_make(nfa, from, to, &next, error));
    if (dfa->state_count == 0) {
        *dfa = next;
        return SB_OK;
    }
    sb_status status = sb_dfa_both(dfa, &next, &both, error);
    sb_dfa_clear(&next);
    sb_dfa_clear(dfa);
    *dfa = both;
    return status;
}

static sb_status narrow_by_pattern(sb_compiler *compiler, sb_dfa *dfa, const sb_place *place, const char *keyword,
                                   const char *pattern) {
    sb_nfa nfa = sb_schema_nfa(&compiler->schema);
    uint32_t from = sb_nfa_state(&nfa), to = sb_nfa_state(&nfa);
    sb_nfa_expression(&nfa, from, to, pattern, strlen(pattern));
    sb_status status = narrow(dfa, &nfa, from, to, compiler->error);
    sb_nfa_clear(&nfa);
    if (status != SB_OK && status != SB_ERROR_OUT_OF_MEMORY)
        return sb_fail_within(compiler->error, status, "the schema at '%.300s/%s': ", place->pointer, keyword);
    return status;
}

/* By minLength and maxLength: as many states as characters. */
static sb_status narrow_by_length(sb_compiler *compiler, sb_dfa *dfa, const sb_together *t) {
    static const sb_point_range any = {1, SB_LAST_POINT};
    bool bounded = t->most_length != SB_UNBOUNDED;
    int64_t count = bounded ? t->most_length : t->least_length;
    sb_nfa nfa = sb_schema_nfa(&compiler->schema);
    if (count > MOST_COUNTED_CHARACTERS)
        return sb_fail(compiler->error, SB_ERROR_LIMIT,
                       "minLength and maxLength beside a pattern or format may be %d, and one is %lld",
                       MOST_COUNTED_CHARACTERS, (long long)count);
    uint32_t from = sb_nfa_state(&nfa), to = sb_nfa_state(&nfa), now = from;
    for (int64_t i = 0; i < count; i++) {
        uint32_t next = sb_nfa_state(&nfa);
        if (i >= t->least_length)
            sb_nfa_empty(&nfa, now, to);
        sb_nfa_points(&nfa, now, next, &any, 1, SB_COUNT_NONE);
        now = next;
    }
    sb_nfa_empty(&nfa, now, to);
    if (!bounded)
        sb_nfa_points(&nfa, now, now, &any, 1, SB_COUNT_NONE);
    sb_status status = narrow(dfa, &nfa, from, to, compiler->error);
    sb_nfa_clear(&nfa);
    return status;
}

void sb_compile_pattern(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way) {
    sb_together t = sb_schema_together(&compiler->schema, way);
    sb_dfa dfa = {0};
    sb_status status = SB_OK;
    for (uint32_t i = 0; i < way.count && status == SB_OK; i++) {
        const sb_place *place = &compiler->schema.places[way.places[i]];
        if (place->keywords.pattern != NULL)
            status = narrow_by_pattern(compiler, &dfa, place, "pattern", place->keywords.pattern);
        if (status == SB_OK && place->keywords.format != NULL)
            status = narrow_by_pattern(compiler, &dfa, place, "format", sb_format_pattern(place->keywords.format));
    }
    if (status == SB_OK && (t.least_length > 0 || t.most_length != SB_UNBOUNDED))
        status = narrow_by_length(compiler, &dfa, &t);
    if (status != SB_OK) {
        sb_nfa_fail(nfa, status);
    } else {
        uint32_t begin = sb_nfa_text(nfa, from, "\"", 1), end = sb_nfa_state(nfa);
        sb_dfa_embed(&dfa, nfa, begin, end);
        sb_nfa_bytes(nfa, end, '"', '"', SB_COUNT_NONE, to);
    }
    sb_dfa_clear(&dfa);
}

/* ---- ways ---- */

static bool copy_way(sb_all_of way, sb_any_of *into) {
    sb_all_of copy;
    if (!sb_all_of_create(way.count, &copy))
        return false;
    if (way.count > 0)
        memcpy(copy.places, way.places, way.count * sizeof *copy.places);
    copy.count = way.count;
    if (!sb_grow((void **)&into->ways, &into->capacity, (size_t)into->count + 1, sizeof copy)) {
        sb_free(copy.places);
        return false;
    }
    into->ways[into->count++] = copy;
    return true;
}

/* A call of a rule of one way. */
static void call_way(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_rule_kind kind, sb_all_of way) {
    sb_any_of own = {0};
    uint32_t rule = 0;
    sb_status status = copy_way(way, &own) ? SB_OK : sb_fail_memory(compiler->error, way.count * sizeof *way.places);
    if (status == SB_OK)
        status = sb_compiler_rule(compiler, kind, own, NULL, &rule);
    else
        sb_any_of_clear(&own);
    if (status != SB_OK)
        sb_nfa_fail(nfa, status);
    sb_nfa_call(nfa, from, rule, to);
}

/* Digits whose remainder, by which states are told apart, is 0 at the end; and signs. */
static void add_remainders(sb_nfa *nfa, int64_t multiple, uint32_t *from) {
    uint32_t states[SB_MOST_MULTIPLE];
    for (int64_t i = 0; i < multiple; i++)
        states[i] = sb_nfa_state(nfa);
    for (int64_t i = 0; i < multiple * 10; i++) {
        unsigned digit = (unsigned)('0' + i % 10);
        sb_nfa_bytes(nfa, states[i / 10], digit, digit, SB_COUNT_NONE, states[i % multiple]);
    }
    sb_nfa_bytes(nfa, states[0], '-', '-', SB_COUNT_NONE, states[0]);
    *from = states[0];
}

/* Whole numbers within the bounds that are multiples. Other numbers are none, so that nothing is lost where they are allowed. */
static void add_multiples(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, const sb_together *t) {
    sb_nfa whole = sb_schema_nfa(&compiler->schema), divided = sb_schema_nfa(&compiler->schema);
    sb_dfa dfas[3] = {{0}, {0}, {0}};
    uint32_t begin = sb_nfa_state(&whole), end = sb_nfa_state(&whole), zero;
    if (t->multiple > SB_MOST_MULTIPLE) {
        sb_nfa_clear(&whole);
        sb_nfa_fail(nfa, sb_fail(compiler->error, SB_ERROR_LIMIT,
                                 "the least common multiple of several multipleOf is more than %d", SB_MOST_MULTIPLE));
        return;
    }
    sb_nfa_integers(&whole, begin, end, t->low, t->high);
    add_remainders(&divided, t->multiple, &zero);
    sb_status status = sb_dfa_make(&whole, begin, end, &dfas[0], compiler->error);
    if (status == SB_OK)
        status = sb_dfa_make(&divided, zero, zero, &dfas[1], compiler->error);
    if (status == SB_OK)
        status = sb_dfa_both(&dfas[0], &dfas[1], &dfas[2], compiler->error);
    if (status == SB_OK)
        sb_dfa_embed(&dfas[2], nfa, from, to);
    else
        sb_nfa_fail(nfa, status);
    for (int i = 0; i < 3; i++)
        sb_dfa_clear(&dfas[i]);
    sb_nfa_clear(&whole);
    sb_nfa_clear(&divided);
}

static void add_number(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, const sb_together *t) {
    sb_number_bound least = t->least, most = t->most;
    if (t->multiple != 0) {
        add_multiples(compiler, nfa, from, to, t);
        return;
    }
    if ((t->types & SB_TYPE_NUMBER) == 0) {
        sb_nfa_integers(nfa, from, to, t->low, t->high);
        return;
    }
    least.given = least.given && least.value > -MOST_NUMBER;
    most.given = most.given && most.value < MOST_NUMBER;
    if (least.given || most.given)
        sb_nfa_bounded_numbers(nfa, from, to, least, most);
    else
        sb_nfa_numbers(nfa, from, to);
}

/* All of a way but what nests. */
static void add_simple(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way,
                       const sb_together *t) {
    if ((t->types & SB_TYPE_NULL) != 0)
        add_text(nfa, from, to, "null");
    if ((t->types & SB_TYPE_BOOLEAN) != 0) {
        add_text(nfa, from, to, "true");
        add_text(nfa, from, to, "false");
    }
    if ((t->types & (SB_TYPE_INTEGER | SB_TYPE_NUMBER)) != 0)
        add_number(compiler, nfa, from, to, t);
    if ((t->types & SB_TYPE_STRING) != 0 && t->least_length <= t->most_length)
        call_way(compiler, nfa, from, to, SB_RULE_STRING, way);
}

/* Objects and arrays of several ways are one rule, so that what begins alike is one stack of states. */
static void add_nested(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, const sb_any_of *ways) {
    sb_any_of nested = {0};
    unsigned char *parts = sb_allocate_array((size_t)ways->count + 1, sizeof *parts);
    bool room = parts != NULL;
    for (uint32_t i = 0; i < ways->count && room; i++) {
        sb_together t = sb_schema_together(&compiler->schema, ways->ways[i]);
        bool has_objects = (t.types & SB_TYPE_OBJECT) != 0 && t.least_properties <= t.most_properties;
        unsigned part = has_objects ? SB_PART_OBJECT : 0;
        bool counted = sb_compile_is_counted(compiler, ways->ways[i]);
        if (t.enumerated)
            continue;
        if ((t.types & SB_TYPE_ARRAY) != 0 && t.least_items <= t.most_items && counted)
            call_way(compiler, nfa, from, to, SB_RULE_COUNTED, ways->ways[i]);
        else if ((t.types & SB_TYPE_ARRAY) != 0 && t.least_items <= t.most_items)
            part |= SB_PART_ARRAY;
        if (part == 0)
            continue;
        room = copy_way(ways->ways[i], &nested);
        if (room)
            parts[nested.count - 1] = (unsigned char)part;
    }
    uint32_t rule = 0;
    sb_status status = room ? SB_OK : sb_fail_memory(compiler->error, ways->count * sizeof *ways->ways);
    if (status != SB_OK || nested.count == 0) {
        sb_any_of_clear(&nested);
        sb_free(parts);
        if (status != SB_OK)
            sb_nfa_fail(nfa, status);
        return;
    }
    status = sb_compiler_rule(compiler, SB_RULE_NESTED, nested, parts, &rule);
    if (status != SB_OK)
        sb_nfa_fail(nfa, status);
    sb_nfa_call(nfa, from, rule, to);
}

void sb_compile_ways(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, const sb_any_of *ways) {
    for (uint32_t i = 0; i < ways->count && nfa->status == SB_OK; i++) {
        sb_together t = sb_schema_together(&compiler->schema, ways->ways[i]);
        if (t.enumerated)
            add_values(compiler, nfa, from, to, ways->ways[i]);
        else
            add_simple(compiler, nfa, from, to, ways->ways[i], &t);
    }
    if (nfa->status == SB_OK)
        add_nested(compiler, nfa, from, to, ways);
}

void sb_compile_value(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of all) {
    sb_any_of ways;
    sb_status status = nfa->status == SB_OK ? sb_schema_expand(&compiler->schema, all, &ways) : nfa->status;
    if (status != SB_OK) {
        sb_nfa_fail(nfa, status);
        return;
    }
    sb_compile_ways(compiler, nfa, from, to, &ways);
    sb_any_of_clear(&ways);
}
