/* Reading dimension expressions: values, substitution, copies, symbols and text. Recursion is
 * bounded by IV_DIM_MOST_DEPTH and the whole work by IV_DIM_MOST_SIZE, also where parts are shared.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/dim_internal.h"

static const int64_t *bound_value(const iv_binding *binding, const char *name) {
    for (int i = 0; i < binding->count; i++) {
        if (strcmp(binding->names[i], name) == 0)
            return &binding->values[i];
    }
    return NULL;
}

/* ---- values ---- */

static bool evaluate_atom(const iv_atom *atom, const iv_binding *binding, int64_t *value) {
    if (atom->kind == IV_ATOM_SYMBOL) {
        const int64_t *bound = bound_value(binding, atom->name);
        if (bound == NULL || *bound < 0)
            return false;
        *value = *bound;
        return true;
    }
    int64_t result, other;
    if (!iv_dim_evaluate(atom->operands[0], binding, &result))
        return false;
    for (int i = 1; i < atom->operand_count; i++) {
        if (!iv_dim_evaluate(atom->operands[i], binding, &other))
            return false;
        if (atom->kind == IV_ATOM_FLOOR) {
            if (!iv_floor_divide_numbers(result, other, &result))
                return false;
        } else if ((atom->kind == IV_ATOM_MINIMUM) == (other < result)) {
            result = other;
        }
    }
    *value = result;
    return true;
}

bool iv_dim_evaluate(iv_dim dim, const iv_binding *binding, int64_t *value) {
    if (dim == NULL)
        return false;
    int64_t sum = 0;
    for (int i = 0; i < dim->term_count; i++) {
        int64_t product = dim->terms[i].coefficient, factor;
        const iv_monomial *monomial = dim->terms[i].monomial;
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

static const iv_atom *copy_atom(iv_scope *scope, const iv_atom *atom) {
    if (atom->kind == IV_ATOM_SYMBOL)
        return iv_scope_symbol(scope, atom->name);
    iv_dim operands[IV_DIM_MOST_OPERANDS];
    for (int i = 0; i < atom->operand_count; i++) {
        operands[i] = iv_dim_copy(scope, atom->operands[i]);
        if (operands[i] == NULL)
            return NULL;
    }
    return iv_scope_function(scope, atom->kind, atom->operand_count, operands);
}

static const iv_monomial *copy_monomial(iv_scope *scope, const iv_monomial *monomial) {
    const iv_atom *factors[IV_DIM_MOST_DEGREE];
    for (int i = 0; i < monomial->degree; i++) {
        factors[i] = copy_atom(scope, monomial->factors[i]);
        if (factors[i] == NULL)
            return NULL;
    }
    return iv_scope_monomial(scope, monomial->degree, factors);
}

/* The order of everything depends on structure and names only, so a copy keeps it and needs no
 * simplification. */
iv_dim iv_dim_copy(iv_scope *scope, iv_dim dim) {
    if (dim == NULL || dim->scope == scope)
        return dim;
    iv_terms terms = {.scope = scope};
    for (int i = 0; i < dim->term_count && !terms.failed; i++)
        iv_terms_add(&terms, dim->terms[i].coefficient,
                     copy_monomial(scope, dim->terms[i].monomial));
    return iv_terms_finish(&terms);
}

iv_dim iv_scope_adopt(iv_scope *scope, iv_dim dim) {
    return iv_dim_copy(scope, dim);
}

static iv_dim substitute_atom(iv_scope *scope, const iv_atom *atom, const iv_binding *binding) {
    if (atom->kind == IV_ATOM_SYMBOL) {
        const int64_t *bound = bound_value(binding, atom->name);
        if (bound == NULL)
            return iv_scope_of_atom(scope, iv_scope_symbol(scope, atom->name));
        if (*bound < 0)
            return iv_scope_fail(
                scope, IV_ERROR_SHAPE,
                "the symbolic dimension %.100s cannot be %lld: it must be at least 0", atom->name,
                (long long)*bound);
        return iv_dim_constant(scope, *bound);
    }
    iv_dim result = iv_dim_substitute(scope, atom->operands[0], binding);
    for (int i = 1; i < atom->operand_count && result != NULL; i++) {
        iv_dim other = iv_dim_substitute(scope, atom->operands[i], binding);
        if (atom->kind == IV_ATOM_FLOOR)
            result = iv_dim_floor_divide(scope, result, other);
        else if (atom->kind == IV_ATOM_MINIMUM)
            result = iv_dim_minimum(scope, result, other);
        else
            result = iv_dim_maximum(scope, result, other);
    }
    return result;
}

iv_dim iv_dim_substitute(iv_scope *scope, iv_dim dim, const iv_binding *binding) {
    if (dim == NULL)
        return NULL;
    iv_dim sum = iv_dim_constant(scope, 0);
    for (int i = 0; i < dim->term_count && sum != NULL; i++) {
        const iv_monomial *monomial = dim->terms[i].monomial;
        iv_dim product = iv_dim_constant(scope, dim->terms[i].coefficient);
        for (int j = 0; j < monomial->degree && product != NULL; j++)
            product = iv_dim_multiply(scope, product,
                                      substitute_atom(scope, monomial->factors[j], binding));
        sum = iv_dim_add(scope, sum, product);
    }
    return sum;
}

/* ---- symbols ---- */

void iv_dim_visit_symbols(iv_dim dim, void (*visit)(void *context, const char *name),
                          void *context) {
    if (dim == NULL)
        return;
    for (int i = 0; i < dim->term_count; i++) {
        const iv_monomial *monomial = dim->terms[i].monomial;
        for (int j = 0; j < monomial->degree; j++) {
            const iv_atom *atom = monomial->factors[j];
            if (atom->kind == IV_ATOM_SYMBOL)
                visit(context, atom->name);
            for (int k = 0; k < atom->operand_count; k++)
                iv_dim_visit_symbols(atom->operands[k], visit, context);
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

bool iv_dim_mentions(iv_dim dim, const char *name) {
    search wanted = {name, false};
    iv_dim_visit_symbols(dim, compare_name, &wanted);
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
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' ||
                      (unsigned char)*c >= 0x80;
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

static void put_dim(writer *out, iv_dim dim);

/* In parentheses unless nothing can be misread. */
static void put_operand(writer *out, iv_dim dim, bool divisor) {
    int64_t number;
    bool bare = dim->term_count <= 1 &&
                (!divisor || iv_dim_is_constant(dim, &number) || iv_dim_atom(dim) != NULL);
    put(out, bare ? "" : "(");
    put_dim(out, dim);
    put(out, bare ? "" : ")");
}

static void put_atom(writer *out, const iv_atom *atom) {
    switch (atom->kind) {
    case IV_ATOM_SYMBOL:
        put_name(out, atom->name);
        return;
    case IV_ATOM_FLOOR:
        put(out, "floor(");
        put_operand(out, atom->operands[0], false);
        put(out, "/");
        put_operand(out, atom->operands[1], true);
        put(out, ")");
        return;
    case IV_ATOM_MINIMUM:
    case IV_ATOM_MAXIMUM:
        put(out, atom->kind == IV_ATOM_MINIMUM ? "min(" : "max(");
        for (int i = 0; i < atom->operand_count; i++) {
            put(out, i == 0 ? "" : ",");
            put_dim(out, atom->operands[i]);
        }
        put(out, ")");
        return;
    }
}

static void put_term(writer *out, iv_term term, bool first) {
    const iv_monomial *monomial = term.monomial;
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

static void put_dim(writer *out, iv_dim dim) {
    if (dim->term_count == 0)
        put(out, "0");
    for (int i = 0; i < dim->term_count; i++)
        put_term(out, dim->terms[i], i == 0);
}

char *iv_dim_text(iv_dim dim, char *text, size_t bytes) {
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
