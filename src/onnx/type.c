/* Declared types and facts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "onnx/importer.h"

/* A type taken apart: sequences and optionals of tensors, and tensors. */
typedef struct declared {
    sb_kind kind; /* NONE when the type says nothing at all */
    bool optional;
    sb_dtype dtype;
    const Onnx__TensorShapeProto *shape; /* NULL: not even the rank is known */
} declared;

static sb_status unsupported(const char *what, sb_error *error) {
    return sb_fail(error, SB_ERROR_UNSUPPORTED,
                   "its type is %s: tensors, sequences of tensors and optionals of both are "
                   "supported",
                   what);
}

static sb_status take_apart(const Onnx__TypeProto *type, declared *parts, sb_error *error) {
    *parts = (declared){0};
    if (type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
        parts->optional = true;
        type = type->optional_type->elem_type;
    }
    if (type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
        parts->kind = SB_KIND_SEQUENCE;
        type = type->sequence_type->elem_type;
    }
    if (type == NULL)
        return SB_OK;
    switch (type->value_case) {
    case ONNX__TYPE_PROTO__VALUE__NOT_SET:
        return SB_OK;
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        if (parts->kind == SB_KIND_NONE)
            parts->kind = SB_KIND_TENSOR;
        parts->shape = type->tensor_type->shape;
        if (parts->shape != NULL && parts->shape->n_dim > SB_MAX_RANK)
            return sb_fail(error, SB_ERROR_UNSUPPORTED, "it has %zu dimensions, and %d are supported",
                           parts->shape->n_dim, SB_MAX_RANK);
        return sb_onnx_dtype(type->tensor_type->elem_type, &parts->dtype, error);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return unsupported("a sequence of sequences", error);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return unsupported("a map", error);
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return unsupported("an optional inside another type", error);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        return unsupported("a sparse tensor", error);
    default:
        return unsupported("unknown", error);
    }
}

/* Writers have names for extents of which they know nothing, which are therefore not the same extent. */
static bool says_nothing(const char *symbol) {
    static const char *const names[] = {"", "?", "*", "-1", "None", "unk", "unknown"};
    symbol += strspn(symbol, " ");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(symbol, names[i]) == 0)
            return true;
    }
    return false;
}

/* The name of a symbolic dimension; NULL for numbers and for those that have none. */
static const char *symbol_name(const Onnx__TensorShapeProto__Dimension *dim) {
    bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && dim->dim_param != NULL &&
                 !says_nothing(dim->dim_param);
    return named ? dim->dim_param : NULL;
}

static bool is_number(const Onnx__TensorShapeProto__Dimension *dim) {
    return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && dim->dim_value >= 0;
}

void sb_onnx_declare_symbols(sb_scope *scope, const Onnx__TypeProto *type) {
    declared parts;
    sb_error ignored; /* the same type is reported when its fact is made */
    if (take_apart(type, &parts, &ignored) != SB_OK || parts.shape == NULL)
        return;
    for (size_t i = 0; i < parts.shape->n_dim; i++) {
        const char *symbol = symbol_name(parts.shape->dim[i]);
        if (symbol != NULL)
            sb_dim_symbol(scope, symbol);
    }
}

/* Whether one of the names, with commas between, is `name` of `length` bytes. */
static bool lists(const char *names, const char *name, size_t length) {
    while (names != NULL) {
        size_t one = strcspn(names, ",");
        if (one == length && memcmp(names, name, length) == 0)
            return true;
        names = names[one] == ',' ? names + one + 1 : NULL;
    }
    return false;
}

static bool mentions(const Onnx__TypeProto *type, const char *name, size_t length) {
    declared parts;
    sb_error ignored;
    if (take_apart(type, &parts, &ignored) != SB_OK || parts.shape == NULL)
        return false;
    for (size_t i = 0; i < parts.shape->n_dim; i++) {
        const char *symbol = symbol_name(parts.shape->dim[i]);
        if (symbol != NULL && strlen(symbol) == length && memcmp(symbol, name, length) == 0)
            return true;
    }
    return false;
}

sb_status sb_onnx_check_unrelated(const sb_importer *importer, const Onnx__GraphProto *graph, sb_error *error) {
    for (const char *names = importer->unrelated; names != NULL;) {
        size_t length = strcspn(names, ",");
        bool found = false;
        for (size_t i = 0; i < graph->n_input && !found; i++)
            found = mentions(graph->input[i]->type, names, length);
        for (size_t i = 0; i < graph->n_value_info && !found; i++)
            found = mentions(graph->value_info[i]->type, names, length); /* the types of some inputs stand there */
        if (!found)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "no extent of an input is called '%.*s', which is said to be unrelated", (int)length, names);
        names = names[length] == ',' ? names + length + 1 : NULL;
    }
    return SB_OK;
}

static sb_dim dimension(const sb_importer *importer, const Onnx__TensorShapeProto__Dimension *dim, const char *name,
                        size_t axis) {
    sb_scope *scope = importer->scope;
    const char *symbol = symbol_name(dim);
    if (symbol != NULL && !lists(importer->unrelated, symbol, strlen(symbol)))
        return sb_dim_symbol(scope, symbol);
    if (is_number(dim))
        return sb_dim_constant(scope, dim->dim_value);
    char hint[64];
    snprintf(hint, sizeof hint, "%.40s.%zu", name, axis);
    return sb_dim_fresh(scope, hint);
}

sb_status sb_onnx_fact_of_type(const sb_importer *importer, const Onnx__TypeProto *type, const char *name,
                               sb_fact *fact, sb_error *error) {
    declared parts;
    sb_status status = take_apart(type, &parts, error);
    if (status == SB_OK && parts.dtype == SB_DTYPE_NONE)
        status = sb_fail(error, SB_ERROR_INVALID_MODEL,
                         "its type is missing: give the model's input one, in its own entry or in value_info");
    sb_dim dims[SB_MAX_RANK] = {0};
    int rank = parts.shape != NULL ? (int)parts.shape->n_dim : SB_RANK_UNKNOWN;
    for (int i = 0; status == SB_OK && i < rank; i++)
        dims[i] = dimension(importer, parts.shape->dim[i], name, (size_t)i);
    if (status == SB_OK)
        status = sb_scope_check(importer->scope, error);
    if (status != SB_OK)
        return sb_fail_within(error, status, "value '%.200s': ", name);
    sb_fact_set_tensor(fact, parts.dtype, rank, dims);
    fact->kind = parts.kind;
    fact->optional = parts.optional;
    return SB_OK;
}

static void append(char *text, size_t bytes, const char *more) {
    size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s", more);
}

/* As sb_fact_text writes it. */
static void declared_text(const declared *parts, char *text, size_t bytes) {
    snprintf(text, bytes, "%s%s%s", parts->optional ? "optional " : "",
             parts->kind == SB_KIND_SEQUENCE ? "sequence of " : "", sb_dtype_name(parts->dtype));
    if (parts->shape == NULL) {
        append(text, bytes, "[…]");
        return;
    }
    for (size_t i = 0; i < parts->shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = parts->shape->dim[i];
        char one[64];
        if (is_number(dim))
            snprintf(one, sizeof one, "%" PRId64, dim->dim_value);
        else
            snprintf(one, sizeof one, "%.60s", symbol_name(dim) != NULL ? symbol_name(dim) : "?");
        append(text, bytes, i == 0 ? "[" : ",");
        append(text, bytes, one);
    }
    append(text, bytes, parts->shape->n_dim == 0 ? "[]" : "]");
}

static bool contradicts(const declared *parts, const sb_fact *fact) {
    if (fact->kind == SB_KIND_NONE || parts->kind == SB_KIND_NONE)
        return false;
    if (fact->kind != parts->kind || fact->dtype != parts->dtype)
        return true;
    if (fact->rank == SB_RANK_UNKNOWN || parts->shape == NULL)
        return false;
    if ((size_t)fact->rank != parts->shape->n_dim)
        return true;
    for (int i = 0; i < fact->rank; i++) {
        int64_t extent;
        if (is_number(parts->shape->dim[i]) && sb_dim_is_constant(fact->dims[i], &extent) &&
            extent != parts->shape->dim[i]->dim_value)
            return true;
    }
    return false;
}

sb_status sb_onnx_check_type(sb_importer *importer, const Onnx__TypeProto *type, const sb_fact *fact, const char *name,
                             sb_error *error) {
    declared parts;
    sb_error reason;
    if (take_apart(type, &parts, &reason) != SB_OK)
        return sb_warn(importer->warnings, error, "value '%.200s': what it is declared as is ignored: %.300s", name,
                       reason.message);
    if (!contradicts(&parts, fact))
        return SB_OK;
    char inferred[SB_FACT_TEXT_BYTES], said[SB_FACT_TEXT_BYTES];
    declared_text(&parts, said, sizeof said);
    return sb_warn(importer->warnings, error, "value '%.200s' is declared as %s, but the nodes make it %s", name, said,
                   sb_fact_text(fact, inferred, sizeof inferred));
}

sb_status sb_onnx_type_text(const Onnx__TypeProto *type, char *text, size_t bytes, sb_error *error) {
    declared parts;
    SB_TRY(take_apart(type, &parts, error));
    if (parts.dtype == SB_DTYPE_NONE)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "the type is incomplete");
    snprintf(text, bytes, "%s%s(%s)%s", parts.optional ? "optional(" : "",
             parts.kind == SB_KIND_SEQUENCE ? "sequence" : "tensor", sb_dtype_name(parts.dtype),
             parts.optional ? ")" : "");
    return SB_OK;
}
