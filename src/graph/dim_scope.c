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

struct iv_scope {
    chunk *chunks;
    intern_table atoms, monomials, expressions;
    const iv_monomial *one;
    iv_error failure;
    uint64_t memory_failures;
    uint64_t fresh;
    bool busy;
};

/* ---- failures ---- */

iv_dim iv_scope_fail(iv_scope *scope, iv_status status, const char *format, ...) {
    if (status == IV_ERROR_OUT_OF_MEMORY)
        scope->memory_failures++;
    if (scope->failure.status == IV_OK) {
        scope->failure.status = status;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(scope->failure.message, sizeof scope->failure.message, format, arguments);
        va_end(arguments);
    }
    return NULL;
}

static void *fail_memory(iv_scope *scope, size_t bytes) {
    iv_scope_fail(scope, IV_ERROR_OUT_OF_MEMORY,
                  "out of memory: could not allocate %zu bytes for a dimension expression", bytes);
    return NULL;
}

iv_status iv_scope_check(iv_scope *scope, iv_error *error) {
    iv_status status = scope->failure.status;
    scope->failure.status = IV_OK;
    return status == IV_OK ? IV_OK : iv_fail(error, status, "%s", scope->failure.message);
}

iv_attempt iv_attempt_begin(const iv_scope *scope) {
    return (iv_attempt){scope->failure.status != IV_OK, scope->memory_failures};
}

bool iv_attempt_end(iv_scope *scope, iv_attempt attempt) {
    if (scope->memory_failures != attempt.memory_failures)
        return false;
    if (!attempt.failed_before)
        scope->failure.status = IV_OK;
    return true;
}

bool *iv_scope_busy(iv_scope *scope) {
    return &scope->busy;
}

/* ---- memory ---- */

static void *arena_allocate(iv_scope *scope, size_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    chunk *current = scope->chunks;
    if (current == NULL || current->bytes - current->used < bytes) {
        size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        current = iv_allocate(sizeof *current + room);
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
static void arena_rewind(iv_scope *scope, void *block) {
    scope->chunks->used = (size_t)((char *)block - scope->chunks->data);
}

iv_status iv_scope_create(iv_scope **scope, iv_error *error) {
    iv_scope *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    fresh->one = iv_scope_monomial(fresh, 0, NULL);
    if (fresh->one == NULL) {
        iv_scope_destroy(fresh);
        return iv_fail_memory(error, CHUNK_BYTES);
    }
    *scope = fresh;
    return IV_OK;
}

void iv_scope_destroy(iv_scope *scope) {
    if (scope == NULL)
        return;
    for (chunk *current = scope->chunks, *next; current != NULL; current = next) {
        next = current->next;
        iv_free(current);
    }
    iv_free(scope->atoms.slots);
    iv_free(scope->monomials.slots);
    iv_free(scope->expressions.slots);
    iv_free(scope);
}

/* ---- interning ---- */

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static uint64_t hash_of(const void *thing) {
    return *(const uint64_t *)thing;
}

static bool table_grow(iv_scope *scope, intern_table *table) {
    if (table->count * 2 < table->capacity)
        return true;
    size_t capacity = table->capacity == 0 ? 64 : table->capacity * 2;
    void **slots = iv_allocate_array(capacity, sizeof *slots);
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
    iv_free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

/* The interned equal of `candidate`, the block allocated last: an older one (the block is given
 * back), or itself. */
static const void *intern(iv_scope *scope, intern_table *table, void *candidate,
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

const iv_monomial *iv_scope_one(const iv_scope *scope) {
    return scope->one;
}

static bool same_monomial(const void *left, const void *right) {
    const iv_monomial *a = left, *b = right;
    return a->degree == b->degree &&
           memcmp(a->factors, b->factors, (size_t)a->degree * sizeof *a->factors) == 0;
}

const iv_monomial *iv_scope_monomial(iv_scope *scope, int degree, const iv_atom *const *factors) {
    if (degree > IV_DIM_MOST_DEGREE) {
        iv_scope_fail(scope, IV_ERROR_UNSUPPORTED,
                      "a dimension expression multiplies more than %d symbols", IV_DIM_MOST_DEGREE);
        return NULL;
    }
    iv_monomial *fresh =
        arena_allocate(scope, sizeof *fresh + (size_t)degree * sizeof *fresh->factors);
    if (fresh == NULL)
        return NULL;
    *fresh = (iv_monomial){.hash = mix(1, (uint64_t)degree), .interval = {1, 1}, .degree = degree};
    for (int i = 0; i < degree; i++) {
        fresh->factors[i] = factors[i];
        fresh->hash = mix(fresh->hash, factors[i]->hash);
        fresh->interval = iv_interval_multiply(fresh->interval, factors[i]->interval);
        fresh->depth = larger(fresh->depth, factors[i]->depth);
        fresh->size += factors[i]->size;
    }
    return intern(scope, &scope->monomials, fresh, same_monomial);
}

/* ---- atoms ---- */

static bool same_atom(const void *left, const void *right) {
    const iv_atom *a = left, *b = right;
    if (a->kind != b->kind || a->operand_count != b->operand_count)
        return false;
    if (a->kind == IV_ATOM_SYMBOL)
        return strcmp(a->name, b->name) == 0;
    return memcmp(a->operands, b->operands, (size_t)a->operand_count * sizeof *a->operands) == 0;
}

const iv_atom *iv_scope_symbol(iv_scope *scope, const char *name) {
    size_t bytes = strlen(name) + 1;
    iv_atom *fresh = arena_allocate(scope, sizeof *fresh + bytes);
    if (fresh == NULL)
        return NULL;
    char *copy = (char *)fresh + sizeof *fresh;
    memcpy(copy, name, bytes);
    *fresh = (iv_atom){.hash = mix(2, IV_ATOM_SYMBOL),
                       .interval = {0, IV_NO_UPPER},
                       .kind = IV_ATOM_SYMBOL,
                       .size = 1,
                       .name = copy};
    for (size_t i = 0; i < bytes; i++)
        fresh->hash = mix(fresh->hash, (unsigned char)name[i]);
    return intern(scope, &scope->atoms, fresh, same_atom);
}

static iv_interval function_interval(iv_atom_kind kind, int count, const iv_dim *operands) {
    iv_interval result = operands[0]->interval;
    if (kind == IV_ATOM_FLOOR)
        return iv_interval_floor_divide(result, operands[1]->interval);
    for (int i = 1; i < count; i++) {
        iv_interval other = operands[i]->interval;
        bool take_lower =
            kind == IV_ATOM_MINIMUM ? other.lower < result.lower : other.lower > result.lower;
        bool take_upper =
            kind == IV_ATOM_MINIMUM ? other.upper < result.upper : other.upper > result.upper;
        result.lower = take_lower ? other.lower : result.lower;
        result.upper = take_upper ? other.upper : result.upper;
    }
    return result;
}

const iv_atom *iv_scope_function(iv_scope *scope, iv_atom_kind kind, int count,
                                 const iv_dim *operands) {
    iv_atom *fresh = arena_allocate(scope, sizeof *fresh + (size_t)count * sizeof *operands);
    if (fresh == NULL)
        return NULL;
    *fresh = (iv_atom){.hash = mix(2, kind), .kind = kind, .size = 1, .operand_count = count};
    for (int i = 0; i < count; i++) {
        fresh->operands[i] = operands[i];
        fresh->hash = mix(fresh->hash, operands[i]->hash);
        fresh->depth = larger(fresh->depth, operands[i]->depth + 1);
        fresh->size += operands[i]->size;
    }
    if (fresh->depth > IV_DIM_MOST_DEPTH) {
        arena_rewind(scope, fresh);
        iv_scope_fail(scope, IV_ERROR_UNSUPPORTED,
                      "a dimension expression nests more than %d divisions, minima and maxima",
                      IV_DIM_MOST_DEPTH);
        return NULL;
    }
    fresh->interval = function_interval(kind, count, operands);
    return intern(scope, &scope->atoms, fresh, same_atom);
}

/* ---- expressions ---- */

static bool same_expression(const void *left, const void *right) {
    iv_dim a = left, b = right;
    if (a->term_count != b->term_count)
        return false;
    for (int i = 0; i < a->term_count; i++) {
        if (a->terms[i].coefficient != b->terms[i].coefficient ||
            a->terms[i].monomial != b->terms[i].monomial)
            return false;
    }
    return true;
}

iv_dim iv_scope_expression(iv_scope *scope, int count, const iv_term *terms) {
    int size = 0;
    for (int i = 0; i < count; i++) {
        size += 1 + terms[i].monomial->size;
        if (size > IV_DIM_MOST_SIZE)
            return iv_scope_fail(scope, IV_ERROR_UNSUPPORTED,
                                 "a dimension expression has more than %d parts", IV_DIM_MOST_SIZE);
    }
    struct iv_dim_expression *fresh =
        arena_allocate(scope, sizeof *fresh + (size_t)count * sizeof *terms);
    if (fresh == NULL)
        return NULL;
    *fresh = (struct iv_dim_expression){
        .hash = mix(3, (uint64_t)count), .scope = scope, .size = size, .term_count = count};
    for (int i = 0; i < count; i++) {
        int64_t coefficient = terms[i].coefficient;
        const iv_monomial *monomial = terms[i].monomial;
        fresh->terms[i] = terms[i];
        fresh->hash = mix(mix(fresh->hash, (uint64_t)coefficient), monomial->hash);
        fresh->depth = larger(fresh->depth, monomial->depth);
        fresh->interval = iv_interval_add(
            fresh->interval,
            iv_interval_multiply((iv_interval){coefficient, coefficient}, monomial->interval));
    }
    return intern(scope, &scope->expressions, fresh, same_expression);
}

iv_dim iv_scope_of_atom(iv_scope *scope, const iv_atom *atom) {
    if (atom == NULL)
        return NULL;
    const iv_monomial *monomial = iv_scope_monomial(scope, 1, &atom);
    return monomial == NULL ? NULL : iv_scope_expression(scope, 1, &(iv_term){1, monomial});
}

/* ---- symbols ---- */

iv_dim iv_dim_symbol(iv_scope *scope, const char *name) {
    if (name == NULL || name[0] == '\0')
        return iv_scope_fail(scope, IV_ERROR_INVALID_ARGUMENT, "a symbolic dimension needs a name");
    return iv_scope_of_atom(scope, iv_scope_symbol(scope, name));
}

iv_dim iv_dim_fresh(iv_scope *scope, const char *hint) {
    if (hint == NULL || hint[0] == '\0')
        hint = "extent";
    char name[128];
    for (;;) {
        snprintf(name, sizeof name, "%.100s#%llu", hint, (unsigned long long)++scope->fresh);
        size_t known = scope->atoms.count;
        const iv_atom *atom = iv_scope_symbol(scope, name);
        if (atom == NULL || scope->atoms.count != known)
            return iv_scope_of_atom(scope, atom);
    }
}
