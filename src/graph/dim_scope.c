/* The scope: memory, interning and the first failure. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/dim_internal.h"

#define CHUNK_BYTES 16384

typedef struct chunk {
    struct chunk *next;
    size_t used, bytes;
    _Alignas(16) char data[];
} chunk;

/* An open-addressing table of interned things; each begins with its hash. */
typedef struct intern_table {
    void **slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} intern_table;

struct sb_scope {
    chunk *chunks;
    intern_table atoms, monomials, expressions;
    const sb_monomial *one;
    sb_error failure;
    uint64_t memory_failures;
    uint64_t fresh;
    bool busy;
};

/* ---- failures ---- */

sb_dim sb_scope_fail(sb_scope *scope, sb_status status, const char *format, ...) {
    if (status == SB_ERROR_OUT_OF_MEMORY)
        scope->memory_failures++;
    if (scope->failure.status == SB_OK) {
        scope->failure.status = status;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(scope->failure.message, sizeof scope->failure.message, format, arguments);
        va_end(arguments);
    }
    return NULL;
}

static void *fail_memory(sb_scope *scope, size_t bytes) {
    sb_scope_fail(scope, SB_ERROR_OUT_OF_MEMORY,
                  "out of memory: could not allocate %zu bytes for a dimension expression", bytes);
    return NULL;
}

sb_status sb_scope_check(sb_scope *scope, sb_error *error) {
    sb_status status = scope->failure.status;
    scope->failure.status = SB_OK;
    return status == SB_OK ? SB_OK : sb_fail(error, status, "%s", scope->failure.message);
}

sb_attempt sb_attempt_begin(const sb_scope *scope) {
    return (sb_attempt){scope->failure.status != SB_OK, scope->memory_failures};
}

bool sb_attempt_end(sb_scope *scope, sb_attempt attempt) {
    if (scope->memory_failures != attempt.memory_failures)
        return false;
    if (!attempt.failed_before)
        scope->failure.status = SB_OK;
    return true;
}

bool *sb_scope_busy(sb_scope *scope) {
    return &scope->busy;
}

/* ---- memory ---- */

static void *arena_allocate(sb_scope *scope, size_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    chunk *current = scope->chunks;
    if (current == NULL || current->bytes - current->used < bytes) {
        size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        current = sb_allocate(sizeof *current + room);
        if (current == NULL)
            return fail_memory(scope, sizeof *current + room);
        *current = (chunk){.next = scope->chunks, .used = 0, .bytes = room};
        scope->chunks = current;
    }
    void *block = current->data + current->used;
    current->used += bytes;
    return block;
}

/* Gives back the block that was allocated last. */
static void arena_rewind(sb_scope *scope, void *block) {
    scope->chunks->used = (size_t)((char *)block - scope->chunks->data);
}

sb_status sb_scope_create(sb_scope **scope, sb_error *error) {
    sb_scope *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->one = sb_scope_monomial(fresh, 0, NULL);
    if (fresh->one == NULL) {
        sb_scope_destroy(fresh);
        return sb_fail_memory(error, CHUNK_BYTES);
    }
    *scope = fresh;
    return SB_OK;
}

void sb_scope_destroy(sb_scope *scope) {
    if (scope == NULL)
        return;
    for (chunk *current = scope->chunks, *next; current != NULL; current = next) {
        next = current->next;
        sb_free(current);
    }
    sb_free(scope->atoms.slots);
    sb_free(scope->monomials.slots);
    sb_free(scope->expressions.slots);
    sb_free(scope);
}

/* ---- interning ---- */

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static uint64_t hash_of(const void *thing) {
    return *(const uint64_t *)thing;
}

static bool table_grow(sb_scope *scope, intern_table *table) {
    if (table->count * 2 < table->capacity)
        return true;
    size_t capacity = table->capacity == 0 ? 64 : table->capacity * 2;
    void **slots = sb_allocate_array(capacity, sizeof *slots);
    if (slots == NULL)
        return fail_memory(scope, capacity * sizeof *slots) != NULL;
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i] == NULL)
            continue;
        size_t at = hash_of(table->slots[i]) & (capacity - 1);
        while (slots[at] != NULL)
            at = (at + 1) & (capacity - 1);
        slots[at] = table->slots[i];
    }
    sb_free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

/* The interned equal of `candidate`, the block allocated last: an older one (the block is given
 * back), or itself. */
static const void *intern(sb_scope *scope, intern_table *table, void *candidate,
                          bool (*same)(const void *left, const void *right)) {
    if (!table_grow(scope, table))
        return NULL;
    uint64_t hash = hash_of(candidate);
    size_t at = hash & (table->capacity - 1);
    for (; table->slots[at] != NULL; at = (at + 1) & (table->capacity - 1)) {
        if (hash_of(table->slots[at]) == hash && same(table->slots[at], candidate)) {
            arena_rewind(scope, candidate);
            return table->slots[at];
        }
    }
    table->slots[at] = candidate;
    table->count++;
    return candidate;
}

static int larger(int left, int right) {
    return left > right ? left : right;
}

/* ---- monomials ---- */

const sb_monomial *sb_scope_one(const sb_scope *scope) {
    return scope->one;
}

static bool same_monomial(const void *left, const void *right) {
    const sb_monomial *a = left, *b = right;
    return a->degree == b->degree && memcmp(a->factors, b->factors, (size_t)a->degree * sizeof *a->factors) == 0;
}

const sb_monomial *sb_scope_monomial(sb_scope *scope, int degree, const sb_atom *const *factors) {
    if (degree > SB_DIM_MOST_DEGREE) {
        sb_scope_fail(scope, SB_ERROR_UNSUPPORTED, "a dimension expression multiplies more than %d symbols",
                      SB_DIM_MOST_DEGREE);
        return NULL;
    }
    sb_monomial *fresh = arena_allocate(scope, sizeof *fresh + (size_t)degree * sizeof *fresh->factors);
    if (fresh == NULL)
        return NULL;
    *fresh = (sb_monomial){.hash = mix(1, (uint64_t)degree), .interval = {1, 1}, .degree = degree};
    for (int i = 0; i < degree; i++) {
        fresh->factors[i] = factors[i];
        fresh->hash = mix(fresh->hash, factors[i]->hash);
        fresh->interval = sb_interval_multiply(fresh->interval, factors[i]->interval);
        fresh->depth = larger(fresh->depth, factors[i]->depth);
        fresh->size += factors[i]->size;
    }
    return intern(scope, &scope->monomials, fresh, same_monomial);
}

/* ---- atoms ---- */

static bool same_atom(const void *left, const void *right) {
    const sb_atom *a = left, *b = right;
    if (a->kind != b->kind || a->operand_count != b->operand_count)
        return false;
    if (a->kind == SB_ATOM_SYMBOL)
        return strcmp(a->name, b->name) == 0;
    return memcmp(a->operands, b->operands, (size_t)a->operand_count * sizeof *a->operands) == 0;
}

const sb_atom *sb_scope_symbol(sb_scope *scope, const char *name) {
    size_t bytes = strlen(name) + 1;
    sb_atom *fresh = arena_allocate(scope, sizeof *fresh + bytes);
    if (fresh == NULL)
        return NULL;
    char *copy = (char *)fresh + sizeof *fresh;
    memcpy(copy, name, bytes);
    *fresh = (sb_atom){
        .hash = mix(2, SB_ATOM_SYMBOL), .interval = {0, SB_NO_UPPER}, .kind = SB_ATOM_SYMBOL, .size = 1, .name = copy};
    for (size_t i = 0; i < bytes; i++)
        fresh->hash = mix(fresh->hash, (unsigned char)name[i]);
    return intern(scope, &scope->atoms, fresh, same_atom);
}

static sb_interval function_interval(sb_atom_kind kind, int count, const sb_dim *operands) {
    sb_interval result = operands[0]->interval;
    if (kind == SB_ATOM_FLOOR)
        return sb_interval_floor_divide(result, operands[1]->interval);
    for (int i = 1; i < count; i++) {
        sb_interval other = operands[i]->interval;
        bool take_lower = kind == SB_ATOM_MINIMUM ? other.lower < result.lower : other.lower > result.lower;
        bool take_upper = kind == SB_ATOM_MINIMUM ? other.upper < result.upper : other.upper > result.upper;
        result.lower = take_lower ? other.lower : result.lower;
        result.upper = take_upper ? other.upper : result.upper;
    }
    return result;
}

const sb_atom *sb_scope_function(sb_scope *scope, sb_atom_kind kind, int count, const sb_dim *operands) {
    sb_atom *fresh = arena_allocate(scope, sizeof *fresh + (size_t)count * sizeof *operands);
    if (fresh == NULL)
        return NULL;
    *fresh = (sb_atom){.hash = mix(2, kind), .kind = kind, .size = 1, .operand_count = count};
    for (int i = 0; i < count; i++) {
        fresh->operands[i] = operands[i];
        fresh->hash = mix(fresh->hash, operands[i]->hash);
        fresh->depth = larger(fresh->depth, operands[i]->depth + 1);
        fresh->size += operands[i]->size;
    }
    if (fresh->depth > SB_DIM_MOST_DEPTH) {
        arena_rewind(scope, fresh);
        sb_scope_fail(scope, SB_ERROR_UNSUPPORTED,
                      "a dimension expression nests more than %d divisions, minima and maxima", SB_DIM_MOST_DEPTH);
        return NULL;
    }
    fresh->interval = function_interval(kind, count, operands);
    return intern(scope, &scope->atoms, fresh, same_atom);
}

/* ---- expressions ---- */

static bool same_expression(const void *left, const void *right) {
    sb_dim a = left, b = right;
    if (a->term_count != b->term_count)
        return false;
    for (int i = 0; i < a->term_count; i++) {
        if (a->terms[i].coefficient != b->terms[i].coefficient || a->terms[i].monomial != b->terms[i].monomial)
            return false;
    }
    return true;
}

sb_dim sb_scope_expression(sb_scope *scope, int count, const sb_term *terms) {
    int size = 0;
    for (int i = 0; i < count; i++) {
        size += 1 + terms[i].monomial->size;
        if (size > SB_DIM_MOST_SIZE)
            return sb_scope_fail(scope, SB_ERROR_UNSUPPORTED, "a dimension expression has more than %d parts",
                                 SB_DIM_MOST_SIZE);
    }
    struct sb_dim_expression *fresh = arena_allocate(scope, sizeof *fresh + (size_t)count * sizeof *terms);
    if (fresh == NULL)
        return NULL;
    *fresh =
        (struct sb_dim_expression){.hash = mix(3, (uint64_t)count), .scope = scope, .size = size, .term_count = count};
    for (int i = 0; i < count; i++) {
        int64_t coefficient = terms[i].coefficient;
        const sb_monomial *monomial = terms[i].monomial;
        fresh->terms[i] = terms[i];
        fresh->hash = mix(mix(fresh->hash, (uint64_t)coefficient), monomial->hash);
        fresh->depth = larger(fresh->depth, monomial->depth);
        fresh->interval = sb_interval_add(
            fresh->interval, sb_interval_multiply((sb_interval){coefficient, coefficient}, monomial->interval));
    }
    return intern(scope, &scope->expressions, fresh, same_expression);
}

/* A cell belongs to no scope, so that it is compared by what it says. */
sb_dim sb_dim_cell(sb_scope *scope, int64_t value) {
    struct sb_dim_expression *cell = arena_allocate(scope, sizeof *cell + sizeof *cell->terms);
    if (cell == NULL)
        return NULL;
    *cell = (struct sb_dim_expression){.size = 1 + scope->one->size};
    cell->terms[0].monomial = scope->one;
    sb_dim_set_cell(cell, value);
    return cell;
}

void sb_dim_set_cell(sb_dim dim, int64_t value) {
    struct sb_dim_expression *cell = (struct sb_dim_expression *)dim;
    cell->term_count = value != 0;
    cell->terms[0].coefficient = value;
    cell->interval = (sb_interval){value, value};
    cell->hash = mix(3, (uint64_t)cell->term_count);
    if (value != 0)
        cell->hash = mix(mix(cell->hash, (uint64_t)value), cell->terms[0].monomial->hash);
}

sb_dim sb_scope_of_atom(sb_scope *scope, const sb_atom *atom) {
    if (atom == NULL)
        return NULL;
    const sb_monomial *monomial = sb_scope_monomial(scope, 1, &atom);
    return monomial == NULL ? NULL : sb_scope_expression(scope, 1, &(sb_term){1, monomial});
}

/* ---- symbols ---- */

sb_dim sb_dim_symbol(sb_scope *scope, const char *name) {
    if (name == NULL || name[0] == '\0')
        return sb_scope_fail(scope, SB_ERROR_INVALID_ARGUMENT, "a symbolic dimension needs a name");
    return sb_scope_of_atom(scope, sb_scope_symbol(scope, name));
}

sb_dim sb_dim_fresh(sb_scope *scope, const char *hint) {
    if (hint == NULL || hint[0] == '\0')
        hint = "extent";
    char name[128];
    for (;;) {
        snprintf(name, sizeof name, "%.100s#%llu", hint, (unsigned long long)++scope->fresh);
        size_t known = scope->atoms.count;
        const sb_atom *atom = sb_scope_symbol(scope, name);
        if (atom == NULL || scope->atoms.count != known)
            return sb_scope_of_atom(scope, atom);
    }
}
