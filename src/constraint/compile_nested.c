/* Objects and arrays. */
#include <string.h>

#include "base/allocation.h"
#include "constraint/characters.h"
#include "constraint/compile.h"

/* ---- objects ----
 *
 * Properties come in the order in which the schema names them, then those that it requires without naming them, then any others.
 * For property i there are three states: `empty`, where nothing has been written; `comma`, behind a value; `wanted`, behind a comma. From
 * each of them it may come, and where it is not required each leads on to the next. Where properties are counted, there are the latter two
 * for each number of them. */

typedef struct object {
    sb_compiler *compiler;
    sb_nfa *nfa;
    sb_all_of way;
    const char **names;
    size_t name_count, name_capacity;
} object;

static sb_status add_name(object *o, const char *name) {
    SB_TRY(sb_schema_work(&o->compiler->schema, 1 + (int64_t)o->name_count / 16));
    for (size_t i = 0; i < o->name_count; i++) {
        if (strcmp(o->names[i], name) == 0)
            return SB_OK;
    }
    if (!sb_grow((void **)&o->names, &o->name_capacity, o->name_count + 1, sizeof *o->names))
        return sb_fail_memory(o->compiler->error, o->name_count * sizeof *o->names);
    o->names[o->name_count++] = name;
    return SB_OK;
}

static sb_status collect_names(object *o) {
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < o->way.count; i++) {
            const sb_keywords *k = &o->compiler->schema.places[o->way.places[i]].keywords;
            const char *name;
            json_t *schema;
            for (size_t j = 0; pass == 1 && j < json_array_size(k->required); j++)
                SB_TRY(add_name(o, json_string_value(json_array_get(k->required, j))));
            if (pass == 0 && k->properties != NULL)
                json_object_foreach((json_t *)(uintptr_t)k->properties, name, schema) SB_TRY(add_name(o, name));
        }
    }
    return SB_OK;
}

static uint32_t add_colon(sb_nfa *nfa, uint32_t from) {
    uint32_t colon = sb_nfa_text(nfa, from, "\":", 2), behind = sb_nfa_state(nfa);
    sb_nfa_empty(nfa, colon, behind);
    sb_nfa_bytes(nfa, colon, ' ', ' ', SB_COUNT_NONE, behind);
    return behind;
}

/* A property with its value; nothing where it cannot be. */
static void add_property(object *o, const char *name, uint32_t from, uint32_t to) {
    sb_all_of all;
    bool possible;
    sb_status status = sb_schema_property(&o->compiler->schema, o->way, name, &all, &possible);
    if (status != SB_OK) {
        sb_nfa_fail(o->nfa, status);
        return;
    }
    if (possible) {
        uint32_t key = sb_nfa_written(o->nfa, sb_nfa_text(o->nfa, from, "\"", 1), name, strlen(name));
        sb_compile_value(o->compiler, o->nfa, add_colon(o->nfa, key), to, all);
    }
    sb_free(all.places);
}

/* A name between its quotes that is none of those that the schema has. */
static void add_other_name(object *o, uint32_t from, uint32_t to) {
    sb_nfa any = sb_schema_nfa(&o->compiler->schema), named = sb_schema_nfa(&o->compiler->schema);
    sb_dfa dfas[3] = {{0}, {0}, {0}};
    uint32_t loop = sb_nfa_state(&any), begin = sb_nfa_state(&named), end = sb_nfa_state(&named);
    sb_nfa_points(&any, loop, loop, &(sb_point_range){1, SB_LAST_POINT}, 1, SB_COUNT_NONE);
    for (size_t i = 0; i < o->name_count; i++)
        sb_nfa_empty(&named, sb_nfa_written(&named, begin, o->names[i], strlen(o->names[i])), end);
    sb_status status = sb_dfa_make(&any, loop, loop, &dfas[0], o->compiler->error);
    if (status == SB_OK)
        status = sb_dfa_make(&named, begin, end, &dfas[1], o->compiler->error);
    if (status == SB_OK)
        status = sb_dfa_without(&dfas[0], &dfas[1], &dfas[2], o->compiler->error);
    if (status == SB_OK)
        sb_dfa_embed(&dfas[2], o->nfa, from, to);
    else
        sb_nfa_fail(o->nfa, status);
    for (int i = 0; i < 3; i++)
        sb_dfa_clear(&dfas[i]);
    sb_nfa_clear(&any);
    sb_nfa_clear(&named);
}

/* Any property that the schema does not name, from `from` to `to`. */
static void add_others(object *o, uint32_t from, uint32_t to) {
    sb_all_of all;
    bool possible;
    sb_status status = sb_schema_property(&o->compiler->schema, o->way, NULL, &all, &possible);
    if (status != SB_OK) {
        sb_nfa_fail(o->nfa, status);
        return;
    }
    if (possible) {
        uint32_t end = sb_nfa_state(o->nfa);
        add_other_name(o, sb_nfa_text(o->nfa, from, "\"", 1), end);
        sb_compile_value(o->compiler, o->nfa, add_colon(o->nfa, end), to, all);
    }
    sb_free(all.places);
}

/* A comma and white space. */
static void add_comma(object *o, uint32_t from, uint32_t to) {
    sb_compile_space(o->compiler, o->nfa, sb_nfa_text(o->nfa, from, ",", 1), to);
}

/* How many properties there may be, and up to which number they are told apart: `comma[i]` and `wanted[i]` are the states behind i of them
 * or, at the last and without a bound, i or more. */
typedef struct members {
    int64_t least, most, levels;
    uint32_t empty, *comma, *wanted;
} members;

/* What is counted: names that the schema has, each of which comes once at most. Others could come twice, which no automaton sees, so
 * beside them there may be one at least, or none at all. *possible false: there are too few names. */
static sb_status count_members(object *o, members *m, bool *possible) {
    const sb_together t = sb_schema_together(&o->compiler->schema, o->way);
    int64_t names = (int64_t)o->name_count;
    bool bounded = t.most_properties != SB_UNBOUNDED, others;
    sb_all_of all;
    SB_TRY(sb_schema_property(&o->compiler->schema, o->way, NULL, &all, &others));
    sb_free(all.places);
    *m = (members){.least = t.least_properties, .most = t.most_properties};
    *possible = others || m->least <= names;
    if (others && ((bounded && m->most > 0) || m->least > 1))
        return sb_fail(o->compiler->error, SB_ERROR_UNSUPPORTED,
                       "the schema at '%.300s': properties are counted by minProperties and maxProperties only where "
                       "additionalProperties is false and each is named in properties",
                       o->compiler->schema.places[o->way.places[0]].pointer);
    m->levels = !bounded ? (m->least > 1 ? m->least : 1) : m->most < names ? m->most : names;
    return *possible ? sb_schema_work(&o->compiler->schema, (1 + names) * (1 + m->levels)) : SB_OK;
}

/* States for what has been written, where nothing leads yet but from commas on. */
static void begin_members(object *o, const members *like, uint32_t *states, members *m) {
    *m = *like;
    m->comma = states;
    m->wanted = states + like->levels;
    m->empty = sb_nfa_state(o->nfa);
    for (int64_t i = 0; i < m->levels; i++) {
        m->comma[i] = sb_nfa_state(o->nfa);
        m->wanted[i] = sb_nfa_state(o->nfa);
        add_comma(o, m->comma[i], m->wanted[i]);
    }
}

/* A property by its name, or any other (NULL), as number `level` + 1: behind so many or, at the last level without a bound, more. */
static void add_member(object *o, const members *m, int64_t level, const char *name, uint32_t to) {
    uint32_t key = sb_nfa_state(o->nfa);
    sb_nfa_empty(o->nfa, level == 0 ? m->empty : m->wanted[level - 1], key);
    if (m->most == SB_UNBOUNDED && level + 1 == m->levels)
        sb_nfa_empty(o->nfa, m->wanted[level], key);
    if (name != NULL)
        add_property(o, name, key, to);
    else
        add_others(o, key, to);
}

static void leave_out(object *o, const members *now, const members *next) {
    sb_nfa_empty(o->nfa, now->empty, next->empty);
    for (int64_t i = 0; i < now->levels; i++) {
        sb_nfa_empty(o->nfa, now->comma[i], next->comma[i]);
        sb_nfa_empty(o->nfa, now->wanted[i], next->wanted[i]);
    }
}

static void close_members(object *o, const members *m, uint32_t to) {
    uint32_t close = sb_nfa_state(o->nfa);
    if (m->least == 0)
        sb_nfa_empty(o->nfa, m->empty, close);
    for (int64_t i = m->least > 1 ? m->least - 1 : 0; i < m->levels; i++)
        sb_compile_space(o->compiler, o->nfa, m->comma[i], close);
    sb_nfa_bytes(o->nfa, close, '}', '}', SB_COUNT_NONE, to);
}

static void add_members(object *o, const members *like, uint32_t *states, uint32_t from, uint32_t to) {
    sb_nfa *nfa = o->nfa;
    members now, next;
    begin_members(o, like, states, &now);
    sb_compile_space(o->compiler, nfa, sb_nfa_text(nfa, from, "{", 1), now.empty);
    for (size_t i = 0; i < o->name_count && nfa->status == SB_OK; i++) {
        begin_members(o, like, states + (i % 2 == 0 ? 2 * like->levels : 0), &next);
        for (int64_t level = 0; level < like->levels && nfa->status == SB_OK; level++)
            add_member(o, &now, level, o->names[i], next.comma[level]);
        if (!sb_schema_requires(&o->compiler->schema, o->way, o->names[i]))
            leave_out(o, &now, &next);
        now = next;
    }
    if (like->most == SB_UNBOUNDED && nfa->status == SB_OK && like->levels == 1)
        add_member(o, &now, 0, NULL, now.comma[0]);
    close_members(o, &now, to);
}

static sb_status compile_members(object *o, uint32_t from, uint32_t to) {
    members like;
    bool possible;
    SB_TRY(collect_names(o));
    SB_TRY(count_members(o, &like, &possible));
    if (!possible)
        return SB_OK;
    uint32_t *states = sb_allocate_array((size_t)like.levels * 4 + 1, sizeof *states);
    if (states == NULL)
        return sb_fail_memory(o->compiler->error, (size_t)like.levels * 4 * sizeof *states);
    add_members(o, &like, states, from, to);
    sb_free(states);
    return SB_OK;
}

void sb_compile_object(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way) {
    object o = {.compiler = compiler, .nfa = nfa, .way = way};
    sb_status status = compile_members(&o, from, to);
    if (status != SB_OK)
        sb_nfa_fail(nfa, status);
    sb_free(o.names);
}

/* ---- arrays ---- */

/* How many items have schemas of their own, and how many there may be in all. */
typedef struct array_shape {
    int64_t named, least, most;
} array_shape;

static array_shape shape_of(const sb_compiler *compiler, sb_all_of way) {
    sb_together t = sb_schema_together(&compiler->schema, way);
    array_shape shape = {0, t.least_items, t.most_items};
    for (uint32_t i = 0; i < way.count; i++) {
        const sb_keywords *k = &compiler->schema.places[way.places[i]].keywords;
        int64_t named = (int64_t)json_array_size(k->prefix);
        shape.named = named > shape.named ? named : shape.named;
        if (k->items != NULL && json_is_false(k->items) && named < shape.most)
            shape.most = named;
    }
    return shape;
}

bool sb_compile_is_counted(const sb_compiler *compiler, sb_all_of way) {
    array_shape shape = shape_of(compiler, way);
    return shape.most > shape.named && (shape.most != SB_UNBOUNDED || shape.least > shape.named + 1);
}

static int32_t clip(int64_t count) {
    return count < 0 ? 0 : count >= SB_ANY_COUNT ? SB_ANY_COUNT : (int32_t)count;
}

static void add_item(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way, int64_t index) {
    sb_all_of all;
    bool possible;
    sb_status status = sb_schema_item(&compiler->schema, way, index, &all, &possible);
    if (status != SB_OK) {
        sb_nfa_fail(nfa, status);
        return;
    }
    if (possible)
        sb_compile_value(compiler, nfa, from, to, all);
    sb_free(all.places);
}

static void close_array(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_count_action action) {
    uint32_t close = sb_nfa_state(nfa);
    sb_nfa_bytes(nfa, from, ']', ']', action, to);
    sb_compile_space_before(compiler, nfa, from, close, action);
    sb_nfa_bytes(nfa, close, ']', ']', SB_COUNT_NONE, to);
}

/* The items behind those with schemas of their own: `from` stands before the first of them. */
static void add_rest(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way, bool counted) {
    /* A state of its own: an array may end where no item has come, but not behind a comma. */
    uint32_t item = sb_nfa_state(nfa), behind = sb_nfa_state(nfa), comma = sb_nfa_state(nfa);
    sb_nfa_empty(nfa, from, item);
    add_item(compiler, nfa, item, behind, way, -1);
    sb_nfa_bytes(nfa, behind, ',', ',', counted ? SB_COUNT_MORE : SB_COUNT_NONE, comma);
    sb_compile_space(compiler, nfa, comma, item);
    close_array(compiler, nfa, behind, to, counted ? SB_COUNT_DONE : SB_COUNT_NONE);
}

void sb_compile_array(sb_compiler *compiler, sb_nfa *nfa, uint32_t from, uint32_t to, sb_all_of way,
                      sb_counter *counter) {
    array_shape shape = shape_of(compiler, way);
    bool counted = sb_compile_is_counted(compiler, way);
    uint32_t open = sb_nfa_text(nfa, from, "[", 1), now = sb_nfa_state(nfa);
    *counter = (sb_counter){0, SB_ANY_COUNT};
    sb_compile_space(compiler, nfa, open, now); /* before the first item */
    if (shape.least == 0)
        sb_nfa_bytes(nfa, now, ']', ']', SB_COUNT_NONE, to);
    int64_t most = shape.most < shape.named ? shape.most : shape.named;
    for (int64_t i = 0; i < most && nfa->status == SB_OK; i++) {
        uint32_t behind = sb_nfa_state(nfa), next = sb_nfa_state(nfa);
        add_item(compiler, nfa, now, behind, way, i);
        if (i + 1 >= shape.least)
            close_array(compiler, nfa, behind, to, SB_COUNT_NONE);
        if (i + 1 < shape.most)
            sb_compile_space(compiler, nfa, sb_nfa_text(nfa, behind, ",", 1), next);
        now = next;
    }
    if (shape.most > shape.named)
        add_rest(compiler, nfa, now, to, way, counted);
    if (counted) {
        counter->owed = clip(shape.least - shape.named - 1);
        counter->room = shape.most == SB_UNBOUNDED ? SB_ANY_COUNT : clip(shape.most - shape.named - 1);
    }
}
