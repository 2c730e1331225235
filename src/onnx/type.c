/* Declared types and facts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "onnx/importer.h"

/* A type taken apart: sequences and optionals of tensors, and tensors. */
typedef struct declared {
    iv_kind kind; /* NONE when the type says nothing at all */
    bool optional;
    iv_dtype dtype;
    const Onnx__TensorShapeProto *shape; /* NULL: not even the rank is known */
} declared;

static iv_status unsupported(const char *what, iv_error *error) {
    return iv_fail(error, IV_ERROR_UNSUPPORTED,
                   "its type is %s: tensors, sequences of tensors and optionals of both are "
                   "supported",
                   what);
}

static iv_status take_apart(const Onnx__TypeProto *type, declared *parts, iv_error *error) {
    *parts = (declared){0};
    if (type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
        parts->optional = true;
        type = type->optional_type->elem_type;
    }
    if (type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
        parts->kind = IV_KIND_SEQUENCE;
        type = type->sequence_type->elem_type;
    }
    if (type == NULL)
        return IV_OK;
    switch (type->value_case) {
    case ONNX__TYPE_PROTO__VALUE__NOT_SET:
        return IV_OK;
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        if (parts->kind == IV_KIND_NONE)
            parts->kind = IV_KIND_TENSOR;
        parts->shape = type->tensor_type->shape;
        if (parts->shape != NULL && parts->shape->n_dim > IV_MAX_RANK)
            return iv_fail(error, IV_ERROR_UNSUPPORTED,
                           "it has %zu dimensions, and %d are supported", parts->shape->n_dim,
                           IV_MAX_RANK);
        return iv_onnx_dtype(type->tensor_type->elem_type, &parts->dtype, error);
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

/* The name of a symbolic dimension; NULL for numbers and for those that have none. */
static const char *symbol_name(const Onnx__TensorShapeProto__Dimension *dim) {
    bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                 dim->dim_param != NULL && dim->dim_param[0] != '\0';
    return named ? dim->dim_param : NULL;
}

static bool is_number(const Onnx__TensorShapeProto__Dimension *dim) {
    return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
           dim->dim_value >= 0;
}

void iv_onnx_declare_symbols(iv_scope *scope, const Onnx__TypeProto *type) {
    declared parts;
    iv_error ignored; /* the same type is reported when its fact is made */
    if (take_apart(type, &parts, &ignored) != IV_OK || parts.shape == NULL)
        return;
    for (size_t i = 0; i < parts.shape->n_dim; i++) {
        const char *symbol = symbol_name(parts.shape->dim[i]);
        if (symbol != NULL)
            iv_dim_symbol(scope, symbol);
    }
}

static iv_dim dimension(iv_scope *scope, const Onnx__TensorShapeProto__Dimension *dim,
                        const char *name, size_t axis) {
    const char *symbol = symbol_name(dim);
    if (symbol != NULL)
        return iv_dim_symbol(scope, symbol);
    if (is_number(dim))
        return iv_dim_constant(scope, dim->dim_value);
    char hint[64];
    snprintf(hint, sizeof hint, "%.40s.%zu", name, axis);
    return iv_dim_fresh(scope, hint);
}

iv_status iv_onnx_fact_of_type(iv_scope *scope, const Onnx__TypeProto *type, const char *name,
                               iv_fact *fact, iv_error *error) {
    declared parts;
    iv_status status = take_apart(type, &parts, error);
    if (status == IV_OK && parts.dtype == IV_DTYPE_NONE)
        status = iv_fail(error, IV_ERROR_INVALID_MODEL, "its type is missing");
    iv_dim dims[IV_MAX_RANK] = {0};
    int rank = parts.shape != NULL ? (int)parts.shape->n_dim : IV_RANK_UNKNOWN;
    for (int i = 0; status == IV_OK && i < rank; i++)
        dims[i] = dimension(scope, parts.shape->dim[i], name, (size_t)i);
    if (status == IV_OK)
        status = iv_scope_check(scope, error);
    if (status != IV_OK)
        return iv_fail_within(error, status, "value '%.200s': ", name);
    iv_fact_set_tensor(fact, parts.dtype, rank, dims);
    fact->kind = parts.kind;
    fact->optional = parts.optional;
    return IV_OK;
}

static void append(char *text, size_t bytes, const char *more) {
    size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s", more);
}

/* As iv_fact_text writes it. */
static void declared_text(const declared *parts, char *text, size_t bytes) {
    snprintf(text, bytes, "%s%s%s", parts->optional ? "optional " : "",
             parts->kind == IV_KIND_SEQUENCE ? "sequence of " : "", iv_dtype_name(parts->dtype));
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

static bool contradicts(const declared *parts, const iv_fact *fact) {
    if (fact->kind == IV_KIND_NONE || parts->kind == IV_KIND_NONE)
        return false;
    if (fact->kind != parts->kind || fact->dtype != parts->dtype)
        return true;
    if (fact->rank == IV_RANK_UNKNOWN || parts->shape == NULL)
        return false;
    if ((size_t)fact->rank != parts->shape->n_dim)
        return true;
    for (int i = 0; i < fact->rank; i++) {
        int64_t extent;
        if (is_number(parts->shape->dim[i]) && iv_dim_is_constant(fact->dims[i], &extent) &&
            extent != parts->shape->dim[i]->dim_value)
            return true;
    }
    return false;
}

iv_status iv_onnx_check_type(const Onnx__TypeProto *type, const iv_fact *fact, const char *name,
                             iv_error *error) {
    declared parts;
    iv_status status = take_apart(type, &parts, error);
    if (status != IV_OK)
        return iv_fail_within(error, status, "value '%.200s': ", name);
    if (!contradicts(&parts, fact))
        return IV_OK;
    char inferred[IV_FACT_TEXT_BYTES], said[IV_FACT_TEXT_BYTES];
    declared_text(&parts, said, sizeof said);
    return iv_fail(error, IV_ERROR_INVALID_MODEL,
                   "value '%.200s' is declared as %s, but the nodes make it %s", name, said,
                   iv_fact_text(fact, inferred, sizeof inferred));
}

iv_status iv_onnx_type_text(const Onnx__TypeProto *type, char *text, size_t bytes,
                            iv_error *error) {
    declared parts;
    IV_TRY(take_apart(type, &parts, error));
    if (parts.dtype == IV_DTYPE_NONE)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "the type is incomplete");
    snprintf(text, bytes, "%s%s(%s)%s", parts.optional ? "optional(" : "",
             parts.kind == IV_KIND_SEQUENCE ? "sequence" : "tensor", iv_dtype_name(parts.dtype),
             parts.optional ? ")" : "");
    return IV_OK;
}
