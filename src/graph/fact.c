#include "graph/fact.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"

void iv_fact_clear(iv_fact *fact) {
    iv_tensor_release(fact->constant);
    iv_free(fact->elements);
    *fact = (iv_fact){0};
}

iv_status iv_fact_copy(iv_fact *target, const iv_fact *source, iv_error *error) {
    iv_dim *elements = NULL;
    if (source->elements != NULL) {
        size_t bytes = (size_t)source->element_count * sizeof *elements;
        elements = iv_allocate(bytes);
        if (elements == NULL)
            return iv_fail_memory(error, bytes);
        memcpy(elements, source->elements, bytes);
    }
    iv_tensor *constant = iv_tensor_retain(source->constant);
    iv_fact_clear(target);
    *target = *source;
    target->constant = constant;
    target->elements = elements;
    return IV_OK;
}

void iv_fact_set_tensor(iv_fact *fact, iv_dtype dtype, int rank, const iv_dim *dims) {
    iv_fact_clear(fact);
    fact->kind = IV_KIND_TENSOR;
    fact->dtype = dtype;
    fact->rank = rank;
    for (int i = 0; i < rank; i++)
        fact->dims[i] = dims[i];
}

iv_status iv_fact_of_tensor(iv_fact *fact, iv_scope *scope, iv_tensor *tensor, bool with_value,
                            iv_error *error) {
    iv_dim dims[IV_MAX_RANK];
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = iv_dim_constant(scope, tensor->dims[i]);
    IV_TRY(iv_scope_check(scope, error));
    iv_fact_set_tensor(fact, tensor->dtype, tensor->rank, dims);
    if (with_value)
        fact->constant = iv_tensor_retain(tensor);
    return IV_OK;
}

iv_status iv_fact_of_value(iv_fact *fact, iv_scope *scope, iv_value value, bool with_value,
                           iv_error *error) {
    if (value.kind == IV_KIND_TENSOR)
        return iv_fact_of_tensor(fact, scope, value.tensor, with_value, error);
    iv_fact_clear(fact);
    fact->kind = value.kind;
    fact->rank = IV_RANK_UNKNOWN;
    if (value.kind == IV_KIND_SEQUENCE)
        fact->dtype = value.sequence->dtype;
    else
        fact->optional = true;
    return IV_OK;
}

bool iv_fact_is_concrete(const iv_fact *fact, int64_t *dims) {
    if (fact->kind != IV_KIND_TENSOR || fact->rank == IV_RANK_UNKNOWN || fact->optional)
        return false;
    for (int i = 0; i < fact->rank; i++) {
        if (!iv_dim_is_constant(fact->dims[i], dims != NULL ? &dims[i] : NULL))
            return false;
    }
    return true;
}

bool iv_fact_same_shape(const iv_fact *left, const iv_fact *right) {
    if (left->kind != right->kind || left->dtype != right->dtype || left->rank != right->rank ||
        left->optional != right->optional)
        return false;
    for (int i = 0; i < left->rank; i++) {
        if (!iv_dim_equal(left->dims[i], right->dims[i]))
            return false;
    }
    return true;
}

static void append(char *text, size_t bytes, const char *more) {
    size_t used = strlen(text);
    if (used + 1 < bytes)
        snprintf(text + used, bytes - used, "%s", more);
}

char *iv_fact_text(const iv_fact *fact, char *text, size_t bytes) {
    text[0] = '\0';
    if (fact->optional)
        append(text, bytes, "optional ");
    if (fact->kind == IV_KIND_NONE) {
        append(text, bytes, "nothing");
        return text;
    }
    if (fact->kind == IV_KIND_SEQUENCE)
        append(text, bytes, "sequence of ");
    append(text, bytes, iv_dtype_name(fact->dtype));
    if (fact->rank == IV_RANK_UNKNOWN) {
        append(text, bytes, "[…]");
        return text;
    }
    append(text, bytes, "[");
    for (int i = 0; i < fact->rank; i++) {
        char dim[128];
        if (i > 0)
            append(text, bytes, ",");
        append(text, bytes, iv_dim_text(fact->dims[i], dim, sizeof dim));
    }
    append(text, bytes, "]");
    return text;
}
