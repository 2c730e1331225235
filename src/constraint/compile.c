/* Rules of a grammar: each becomes an automaton, all of which are put one behind the other. */
#include "constraint/compile.h"

#include <string.h>

#include "base/allocation.h"
#include "constraint/characters.h"
#include "tokenizer/text.h"

#define MOST_RULES 65536
#define MOST_NEXT ((size_t)16 << 20) /* 64 MiB */

/* ---- finding rules ---- */

/* What tells a string of any characters from others is its length; all else follows from the places of the ways. */
static bool write_key(const sb_compiler *compiler, sb_rule_kind kind, const sb_any_of *ways, const unsigned char *parts,
                      sb_text *key) {
    unsigned char byte = (unsigned char)kind;
    if (!sb_text_append(key, (const char *)&byte, 1))
        return false;
    if (kind == SB_RULE_STRING && !sb_compile_has_pattern(compiler, ways->ways[0])) {
        sb_together t = sb_schema_together(&compiler->schema, ways->ways[0]);
        return sb_text_append(key, (const char *)&t.least_length, sizeof t.least_length) &&
               sb_text_append(key, (const char *)&t.most_length, sizeof t.most_length);
    }
    bool room = true;
    for (uint32_t i = 0; i < ways->count && room; i++) {
        const sb_all_of *way = &ways->ways[i];
        byte = parts != NULL ? parts[i] : 0;
        room = sb_text_append(key, (const char *)&byte, 1) &&
               sb_text_append(key, (const char *)&way->count, sizeof way->count) &&
               sb_text_append(key, (const char *)way->places, way->count * sizeof *way->places);
    }
    return room;
}

static void free_rule(sb_rule *rule) {
    sb_any_of_clear(&rule->ways);
    sb_free(rule->parts);
    sb_free(rule->key);
}

sb_status sb_compiler_rule(sb_compiler *compiler, sb_rule_kind kind, sb_any_of ways, unsigned char *parts,
                           uint32_t *rule) {
    sb_rule fresh = {.kind = kind, .ways = ways, .parts = parts};
    sb_text key = {0};
    bool room = write_key(compiler, kind, &ways, parts, &key);
    fresh.key = key.data;
    const int32_t *known = room ? sb_names_find_span(&compiler->known, key.data, key.bytes) : NULL;
    sb_status status = sb_schema_work(&compiler->schema, 1 + (int64_t)key.bytes / 16);
    if (status == SB_OK && !room)
        status = sb_fail_memory(compiler->error, key.bytes);
    if (status == SB_OK && known == NULL && compiler->rule_count == MOST_RULES)
        status = sb_fail(compiler->error, SB_ERROR_LIMIT, "the schema takes more than %d rules", MOST_RULES);
    if (status == SB_OK && known == NULL &&
        (!sb_grow((void **)&compiler->rules, &compiler->rule_capacity, compiler->rule_count + 1, sizeof fresh) ||
         !sb_names_put_span(&compiler->known, key.data, key.bytes, (int32_t)compiler->rule_count)))
        status = sb_fail_memory(compiler->error, (compiler->rule_count + 1) * sizeof fresh);
    if (status != SB_OK || known != NULL) {
        *rule = known != NULL ? (uint32_t)*known : 0;
        free_rule(&fresh);
        return status;
    }
    *rule = (uint32_t)compiler->rule_count;
    compiler->rules[compiler->rule_count++] = fresh;
    return SB_OK;
}

/* ---- adding automata ---- */

static sb_status add_map(sb_compiler *compiler, const sb_dfa *dfa, uint32_t *map) {
    sb_grammar *grammar = compiler->grammar;
    for (uint32_t i = 0; i < grammar->map_count; i++) {
        if (memcmp(grammar->maps[i], dfa->class_of, sizeof dfa->class_of) == 0) {
            *map = i;
            return SB_OK;
        }
    }
    if (!sb_grow((void **)&grammar->maps, &compiler->map_capacity, (size_t)grammar->map_count + 1,
                 sizeof *grammar->maps))
        return sb_fail_memory(compiler->error, compiler->map_capacity * sizeof *grammar->maps);
    memcpy(grammar->maps[grammar->map_count], dfa->class_of, sizeof dfa->class_of);
    *map = grammar->map_count++;
    return SB_OK;
}

static sb_status make_room(sb_compiler *compiler, const sb_dfa *dfa) {
    sb_grammar *grammar = compiler->grammar;
    size_t states = (size_t)grammar->state_count + dfa->state_count;
    size_t next = grammar->next_count + (size_t)dfa->state_count * dfa->classes;
    size_t calls = grammar->call_count + (size_t)dfa->state_count * dfa->called_count;
    if (next > MOST_NEXT || calls > MOST_NEXT)
        return sb_fail(compiler->error, SB_ERROR_LIMIT,
                       "the schema's automaton takes more than 64 MiB: use fewer or shorter enumerations, patterns and "
                       "properties");
    bool room = sb_grow((void **)&grammar->states, &compiler->state_capacity, states, sizeof *grammar->states) &&
                sb_grow((void **)&grammar->next, &compiler->next_capacity, next, sizeof *grammar->next) &&
                sb_grow((void **)&grammar->calls, &compiler->call_capacity, calls + 1, sizeof *grammar->calls);
    return room ? SB_OK : sb_fail_memory(compiler->error, next * sizeof *grammar->next);
}

/* Appends an automaton; its first state is *start. */
static sb_status add_dfa(sb_compiler *compiler, const sb_dfa *dfa, uint32_t *start) {
    sb_grammar *grammar = compiler->grammar;
    uint32_t map, base = grammar->state_count, width = sb_dfa_width(dfa);
    SB_TRY(make_room(compiler, dfa));
    SB_TRY(add_map(compiler, dfa, &map));
    for (uint32_t s = 0; s < dfa->state_count; s++) {
        sb_grammar_state *state = &grammar->states[base + s];
        const uint32_t *row = dfa->next + (size_t)s * width;
        *state = (sb_grammar_state){.row = (uint32_t)grammar->next_count, .map = map, .accepts = dfa->accepts[s]};
        for (uint32_t i = 0; i < dfa->classes; i++)
            grammar->next[grammar->next_count++] = row[i] == SB_DEAD ? SB_DEAD : row[i] + base;
        for (uint32_t i = 0; i < dfa->called_count; i++) {
            if (row[dfa->classes + i] != SB_DEAD)
                grammar->calls[grammar->call_count++] = (sb_grammar_call){dfa->called[i], row[dfa->classes + i] + base};
        }
        state->calls_end = grammar->call_count;
    }
    grammar->state_count += dfa->state_count;
    *start = base;
    return SB_OK;
}

/* ---- making rules ---- */

static sb_counter length_of(const sb_compiler *compiler, sb_all_of way) {
    sb_together t = sb_schema_together(&compiler->schema, way);
    return (sb_counter){(int32_t)t.least_length, t.most_length == SB_UNBOUNDED ? SB_ANY_COUNT : (int32_t)t.most_length};
}

static void add_free_string(sb_nfa *nfa, uint32_t from, uint32_t to) {
    uint32_t body = sb_nfa_text(nfa, from, "\"", 1);
    sb_nfa_character(nfa, body, body, SB_COUNT_MORE);
    sb_nfa_bytes(nfa, body, '"', '"', SB_COUNT_DONE, to);
}

static void add_spaces(sb_nfa *nfa, uint32_t from, uint32_t to) {
    sb_nfa_bytes(nfa, from, ' ', ' ', SB_COUNT_NONE, to);
    sb_nfa_bytes(nfa, to, ' ', ' ', SB_COUNT_MORE, to);
}

/* `rules` move while a rule is made, but not what this one refers to. */
static void add_rule(sb_compiler *compiler, const sb_rule *rule, sb_nfa *nfa, uint32_t from, uint32_t to,
                     sb_counter *counter) {
    *counter = (sb_counter){0, SB_ANY_COUNT};
    switch (rule->kind) {
    case SB_RULE_TEXT:
        sb_compile_ways(compiler, nfa, from, to, &rule->ways);
        break;
    case SB_RULE_SPACES:
        *counter = (sb_counter){0, SB_MOST_INDENT - 1};
        add_spaces(nfa, from, to);
        break;
    case SB_RULE_STRING:
        if (sb_compile_has_pattern(compiler, rule->ways.ways[0])) {
            sb_compile_pattern(compiler, nfa, from, to, rule->ways.ways[0]);
            break;
        }
        *counter = length_of(compiler, rule->ways.ways[0]);
        add_free_string(nfa, from, to);
        break;
    case SB_RULE_NESTED:
        for (uint32_t i = 0; i < rule->ways.count; i++) {
            if ((rule->parts[i] & SB_PART_OBJECT) != 0)
                sb_compile_object(compiler, nfa, from, to, rule->ways.ways[i]);
            if ((rule->parts[i] & SB_PART_ARRAY) != 0)
                sb_compile_array(compiler, nfa, from, to, rule->ways.ways[i], counter);
        }
        break;
    case SB_RULE_COUNTED:
        sb_compile_array(compiler, nfa, from, to, rule->ways.ways[0], counter);
        break;
    }
}

static sb_status make_rule(sb_compiler *compiler, size_t index) {
    const sb_rule rule = compiler->rules[index];
    sb_grammar *grammar = compiler->grammar;
    sb_nfa nfa = sb_schema_nfa(&compiler->schema);
    sb_dfa dfa = {0};
    bool free_string = rule.kind == SB_RULE_STRING && !sb_compile_has_pattern(compiler, rule.ways.ways[0]);
    if (!sb_grow((void **)&grammar->rules, &compiler->made_capacity, index + 1, sizeof *grammar->rules))
        return sb_fail_memory(compiler->error, (index + 1) * sizeof *grammar->rules);
    sb_grammar_rule made = {.start = compiler->free_string};
    if (free_string && compiler->free_string != SB_DEAD) {
        made.counter = length_of(compiler, rule.ways.ways[0]);
    } else {
        uint32_t from = sb_nfa_state(&nfa), to = sb_nfa_state(&nfa);
        add_rule(compiler, &rule, &nfa, from, to, &made.counter);
        sb_status status = sb_dfa_make(&nfa, from, to, &dfa, compiler->error);
        if (status == SB_OK)
            status = add_dfa(compiler, &dfa, &made.start);
        sb_dfa_clear(&dfa);
        sb_nfa_clear(&nfa);
        SB_TRY(status);
        compiler->free_string = free_string ? made.start : compiler->free_string;
    }
    grammar->rules[grammar->rule_count++] = made;
    return SB_OK;
}

/* ---- what a state needs ---- */

static uint16_t smaller(uint16_t left, uint16_t right) {
    return left < right ? left : right;
}

/* The least of what leads on: none to an end, one more for what a call nests. */
static uint16_t need_of(const sb_grammar *grammar, uint32_t index, uint32_t classes) {
    const sb_grammar_state *state = &grammar->states[index];
    uint16_t need = state->accepts ? 0 : SB_NEVER;
    for (uint32_t i = 0; i < classes && need > 0; i++) {
        uint32_t entry = grammar->next[state->row + i];
        if (entry != SB_DEAD)
            need = smaller(need, grammar->states[SB_NEXT_STATE(entry)].need);
    }
    for (uint32_t c = sb_grammar_first_call(grammar, index); c < state->calls_end && need > 0; c++) {
        const sb_grammar_call *call = &grammar->calls[c];
        uint16_t inner = grammar->states[grammar->rules[call->rule].start].need, after = grammar->states[call->to].need;
        if (inner >= SB_MOST_NESTING || after == SB_NEVER)
            continue;
        inner++;
        need = smaller(need, inner > after ? inner : after);
    }
    return need;
}

static uint32_t classes_of(const sb_grammar *grammar, uint32_t index) {
    return (uint32_t)grammar->maps[grammar->states[index].map][255] + 1;
}

/* Least solutions, from nothing on; then what leads nowhere is taken out. */
static void find_needs(sb_grammar *grammar) {
    for (uint32_t s = 0; s < grammar->state_count; s++)
        grammar->states[s].need = SB_NEVER;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t s = grammar->state_count; s-- > 0;) {
            uint16_t need = need_of(grammar, s, classes_of(grammar, s));
            changed = changed || need < grammar->states[s].need;
            grammar->states[s].need = smaller(need, grammar->states[s].need);
        }
    }
    for (uint32_t s = 0; s < grammar->state_count; s++) {
        sb_grammar_state *state = &grammar->states[s];
        for (uint32_t i = 0; i < classes_of(grammar, s); i++) {
            uint32_t *entry = &grammar->next[state->row + i];
            if (*entry != SB_DEAD && grammar->states[SB_NEXT_STATE(*entry)].need == SB_NEVER)
                *entry = SB_DEAD;
            state->takes = state->takes || *entry != SB_DEAD;
        }
        if (state->need != SB_NEVER && state->need > grammar->most_need)
            grammar->most_need = state->need;
    }
}

/* ---- all of it ---- */

static sb_status compile(sb_compiler *compiler, const char *text, size_t bytes) {
    sb_all_of whole;
    sb_any_of ways;
    uint32_t rule;
    bool possible = true;
    SB_TRY(sb_schema_read(&compiler->schema, text, bytes, compiler->error));
    if (!sb_all_of_create(1, &whole))
        return sb_fail_memory(compiler->error, sizeof *whole.places);
    sb_status status = sb_schema_add(&compiler->schema, compiler->schema.json, "", &whole, &possible);
    if (status == SB_OK)
        status = sb_schema_expand(&compiler->schema, whole, &ways);
    sb_free(whole.places);
    SB_TRY(status);
    if (!possible)
        sb_any_of_clear(&ways);
    SB_TRY(sb_compiler_rule(compiler, SB_RULE_TEXT, ways, NULL, &rule));
    for (size_t i = 0; i < compiler->rule_count; i++)
        SB_TRY(make_rule(compiler, i));
    find_needs(compiler->grammar);
    if (compiler->grammar->states[compiler->grammar->rules[0].start].need > SB_MOST_NESTING)
        return sb_fail(compiler->error, SB_ERROR_INVALID_FILE,
                       "no value is right by the schema, or none that nests less than %d deep", SB_MOST_NESTING);
    return SB_OK;
}

sb_status sb_grammar_of_schema(const char *schema, size_t bytes, sb_grammar *grammar, sb_error *error) {
    sb_error own;
    sb_compiler compiler = {.grammar = grammar, .free_string = SB_DEAD, .error = error != NULL ? error : &own};
    *grammar = (sb_grammar){0};
    sb_status status = compile(&compiler, schema, bytes);
    for (size_t i = 0; i < compiler.rule_count; i++)
        free_rule(&compiler.rules[i]);
    sb_free(compiler.rules);
    sb_names_clear(&compiler.known);
    sb_schema_clear(&compiler.schema);
    if (status != SB_OK)
        sb_grammar_clear(grammar);
    return status;
}

void sb_grammar_clear(sb_grammar *grammar) {
    sb_free(grammar->states);
    sb_free(grammar->maps);
    sb_free(grammar->next);
    sb_free(grammar->calls);
    sb_free(grammar->rules);
    *grammar = (sb_grammar){0};
}
