/* Reading dimension expressions: values, substitution, copies, symbols and text. Recursion is bounded by
 * SB_DIM_MOST_DEPTH and the whole work by SB_DIM_MOST_SIZE, also where parts are shared. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/dim_internal.h"

static const int64_t *bound_value(const sb_binding *binding, const char *name) {
    for (int i = 0; i < binding->count; i++) {
        if (strcmp(binding->names[i], name) == 0)
            return &binding->values[i];
    }
    return NULL;
}

/* ---- values ---- */

static bool evaluate_atom(const sb_atom *atom, const sb_binding *binding, int64_t *value) {
    if (atom->kind == SB_ATOM_SYMBOL) {
        const int64_t *bound = bound_value(binding, atom->name);
        if (bound == NULL || *bound < 0)
            return false;
        *value = *bound;
        return true;
    }
    int64_t result, other;
    if (!sb_dim_evaluate(atom->operands[0], binding, &result))
        return false;
    for (int i = 1; i < atom->operand_count; i++) {
        if (!sb_dim_evaluate(atom->operands[i], binding, &other))
            return false;
        if (atom->kind == SB_ATOM_FLOOR) {
            if (!sb_floor_divide_numbers(result, other, &result))
                return false;
        } else if ((atom->kind == SB_ATOM_MINIMUM) == (other < result)) {
            result = other;
        }
    }
    *value = result;
    return true;
}

bool sb_dim_evaluate(sb_dim dim, const sb_binding *binding, int64_t *value) {
    if (dim == NULL)
        return false;
    int64_t sum = 0;
    for (int i = 0; i < dim->term_count; i++) {
        int64_t product = dim->terms[i].coefficient, factor;
        const sb_monomial *monomial = dim->terms[i].monomial;
        for (int j = 0; j < monomial->degree; j++) {
            if (!evaluate_atom(monomial->factors[j], binding, &factor) ||
                __builtin_mul_overflow(product, factor, &product))
                return false;
        }
        if (__builtin_add_overflow(sum, product, &sum))
            return false;
    }
    *value = sum;
    return true;
}

/* ---- the same formula elsewhere ---- */

static const sb_atom *copy_atom(sb_scope *scope, const sb_atom *atom) {
    if (atom->kind == SB_ATOM_SYMBOL)
        return sb_scope_symbol(scope, atom->name);
    sb_dim operands[SB_DIM_MOST_OPERANDS];
    for (int i = 0; i < atom->operand_count; i++) {
        operands[i] = sb_dim_copy(scope, atom->operands[i]);
        if (operands[i] == NULL)
            return NULL;
    }
    return sb_scope_function(scope, atom->kind, atom->operand_count, operands);
}

static const sb_monomial *copy_monomial(sb_scope *scope, const sb_monomial *monomial) {
    const sb_atom *factors[SB_DIM_MOST_DEGREE];
    for (int i = 0; i < monomial->degree; i++) {
        factors[i] = copy_atom(scope, monomial->factors[i]);
        if (factors[i] == NULL)
            return NULL;
    }
    return sb_scope_monomial(scope, monomial->degree, factors);
}

/* The order of everything depends on structure and names only, so a copy keeps it and needs no simplification. */
sb_dim sb_dim_copy(sb_scope *scope, sb_dim dim) {
    if (dim == NULL || dim->scope == scope)
        return dim;
    sb_terms terms = {.scope = scope};
    for (int i = 0; i < dim->term_count && !terms.failed; i++)
        sb_terms_add(&terms, dim->terms[i].coefficient, copy_monomial(scope, dim->terms[i].monomial));
    return sb_terms_finish(&terms);
}

sb_dim sb_scope_adopt(sb_scope *scope, sb_dim dim) {
    return sb_dim_copy(scope, dim);
}

static sb_dim substitute_atom(sb_scope *scope, const sb_atom *atom, const sb_binding *binding) {
    if (atom->kind == SB_ATOM_SYMBOL) {
        const int64_t *bound = bound_value(binding, atom->name);
        if (bound == NULL)
            return sb_scope_of_atom(scope, sb_scope_symbol(scope, atom->name));
        if (*bound < 0)
            return sb_scope_fail(scope, SB_ERROR_SHAPE,
                                 "the symbolic dimension %.100s cannot be %lld: it must be at least 0", atom->name,
                                 (long long)*bound);
        return sb_dim_constant(scope, *bound);
    }
    sb_dim result = sb_dim_substitute(scope, atom->operands[0], binding);
    for (int i = 1; i < atom->operand_count && result != NULL; i++) {
        sb_dim other = sb_dim_substitute(scope, atom->operands[i], binding);
        if (atom->kind == SB_ATOM_FLOOR)
            result = sb_dim_floor_divide(scope, result, other);
        else if (atom->kind == SB_ATOM_MINIMUM)
            result = sb_dim_minimum(scope, result, other);
        else
            result = sb_dim_maximum(scope, result, other);
    }
    return result;
}

sb_dim sb_dim_substitute(sb_scope *scope, sb_dim dim, const sb_binding *binding) {
    if (dim == NULL)
        return NULL;
    sb_dim sum = sb_dim_constant(scope, 0);
    for (int i = 0; i < dim->term_count && sum != NULL; i++) {
        const sb_monomial *monomial = dim->terms[i].monomial;
        sb_dim product = sb_dim_constant(scope, dim->terms[i].coefficient);
        for (int j = 0; j < monomial->degree && product != NULL; j++)
            product = sb_dim_multiply(scope, product, substitute_atom(scope, monomial->factors[j], binding));
        sum = sb_dim_add(scope, sum, product);
    }
    return sum;
}

/* ---- symbols ---- */

void sb_dim_visit_symbols(sb_dim dim, void (*visit)(void *context, const char *name), void *context) {
    if (dim == NULL)
        return;
    for (int i = 0; i < dim->term_count; i++) {
        const sb_monomial *monomial = dim->terms[i].monomial;
        for (int j = 0; j < monomial->degree; j++) {
            const sb_atom *atom = monomial->factors[j];
            if (atom->kind == SB_ATOM_SYMBOL)
                visit(context, atom->name);
            for (int k = 0; k < atom->operand_count; k++)
                sb_dim_visit_symbols(atom->operands[k], visit, context);
        }
    }
}

typedef struct search {
    const char *name;
    bool found;
} search;

static void compare_name(void *context, const char *name) {
    search *wanted = context;
    wanted->found = wanted->found || strcmp(wanted->name, name) == 0;
}

bool sb_dim_mentions(sb_dim dim, const char *name) {
    search wanted = {name, false};
    sb_dim_visit_symbols(dim, compare_name, &wanted);
    return wanted.found;
}

/* ---- text ---- */

typedef struct writer {
    char *text;
    size_t bytes, used;
} writer;

static void put(writer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *out, const char *format, ...) {
    if (out->used + 1 >= out->bytes)
        return;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(out->text + out->used, out->bytes - out->used, format, arguments);
    va_end(arguments);
    size_t room = out->bytes - out->used - 1;
    if (wanted > 0)
        out->used += (size_t)wanted < room ? (size_t)wanted : room;
}

static bool plain_name(const char *name) {
    for (const char *c = name; *c != '\0'; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' || (unsigned char)*c >= 0x80;
        bool later = (*c >= '0' && *c <= '9') || *c == '.' || *c == '#' || *c == ':';
        if (!letter && (!later || c == name))
            return false;
    }
    return true;
}

/* Names that could be taken for a formula are quoted: some exporters name dimensions "past + 1". */
static void put_name(writer *out, const char *name) {
    if (plain_name(name)) {
        put(out, "%s", name);
        return;
    }
    put(out, "'");
    for (const char *c = name; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            put(out, "\\x%02x", (unsigned)*c);
        else
            put(out, *c == '\'' || *c == '\\' ? "\\%c" : "%c", *c);
    }
    put(out, "'");
}

static void put_dim(writer *out, sb_dim dim);

/* In parentheses unless nothing can be misread. */
static void put_operand(writer *out, sb_dim dim, bool divisor) {
    int64_t number;
    bool bare = dim->term_count <= 1 && (!divisor || sb_dim_is_constant(dim, &number) || sb_dim_atom(dim) != NULL);
    put(out, bare ? "" : "(");
    put_dim(out, dim);
    put(out, bare ? "" : ")");
}

static void put_atom(writer *out, const sb_atom *atom) {
    switch (atom->kind) {
    case SB_ATOM_SYMBOL:
        put_name(out, atom->name);
        return;
    case SB_ATOM_FLOOR:
        put(out, "floor(");
        put_operand(out, atom->operands[0], false);
        put(out, "/");
        put_operand(out, atom->operands[1], true);
        put(out, ")");
        return;
    case SB_ATOM_MINIMUM:
    case SB_ATOM_MAXIMUM:
        put(out, atom->kind == SB_ATOM_MINIMUM ? "min(" : "max(");
        for (int i = 0; i < atom->operand_count; i++) {
            put(out, i == 0 ? "" : ",");
            put_dim(out, atom->operands[i]);
        }
        put(out, ")");
        return;
    }
}

static void put_term(writer *out, sb_term term, bool first) {
    const sb_monomial *monomial = term.monomial;
    if (term.coefficient > 0 && !first)
        put(out, "+");
    if (monomial->degree == 0 || (term.coefficient != 1 && term.coefficient != -1))
        put(out, monomial->degree == 0 ? "%lld" : "%lld*", (long long)term.coefficient);
    else if (term.coefficient == -1)
        put(out, "-");
    for (int i = 0; i < monomial->degree; i++) {
        put(out, i == 0 ? "" : "*");
        put_atom(out, monomial->factors[i]);
    }
}

static void put_dim(writer *out, sb_dim dim) {
    if (dim->term_count == 0)
        put(out, "0");
    for (int i = 0; i < dim->term_count; i++)
        put_term(out, dim->terms[i], i == 0);
}

char *sb_dim_text(sb_dim dim, char *text, size_t bytes) {
    if (bytes == 0)
        return text;
    writer out = {text, bytes, 0};
    text[0] = '\0';
    if (dim == NULL)
        put(&out, "?");
    else
        put_dim(&out, dim);
    return text;
}
