#include "graph/fact.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"

void sb_fact_clear(sb_fact *fact) {
    sb_tensor_release(fact->constant);
    sb_free(fact->elements);
    *fact = (sb_fact){0};
}

sb_status sb_fact_copy(sb_fact *target, const sb_fact *source, sb_error *error) {
    sb_dim *elements = NULL;
    if (source->elements != NULL) {
        size_t bytes = (size_t)source->element_count * sizeof *elements;
        elements = sb_allocate(bytes);
        if (elements == NULL)
            return sb_fail_memory(error, bytes);
        memcpy(elements, source->elements, bytes);
    }
    sb_tensor *constant = sb_tensor_retain(source->constant);
    sb_fact_clear(target);
    *target = *source;
    target->constant = constant;
    target->elements = elements;
    return SB_OK;
}

void sb_fact_set_tensor(sb_fact *fact, sb_dtype dtype, int rank, const sb_dim *dims) {
    sb_fact_clear(fact);
    fact->kind = SB_KIND_TENSOR;
    fact->dtype = dtype;
    fact->rank = rank;
    for (int i = 0; i < rank; i++)
        fact->dims[i] = dims[i];
}

sb_status sb_fact_of_tensor(sb_fact *fact, sb_scope *scope, sb_tensor *tensor, bool with_value, sb_error *error) {
    sb_dim dims[SB_MAX_RANK];
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = sb_dim_constant(scope, tensor->dims[i]);
    SB_TRY(sb_scope_check(scope, error));
    sb_fact_set_tensor(fact, tensor->dtype, tensor->rank, dims);
    if (with_value)
        fact->constant = sb_tensor_retain(tensor);
    return SB_OK;
}

sb_status sb_fact_of_value(sb_fact *fact, sb_scope *scope, sb_value value, bool with_value, sb_error *error) {
    if (value.kind == SB_KIND_TENSOR)
        return sb_fact_of_tensor(fact, scope, value.tensor, with_value, error);
    sb_fact_clear(fact);
    fact->kind = value.kind;
    fact->rank = SB_RANK_UNKNOWN;
    if (value.kind == SB_KIND_SEQUENCE)
        fact->dtype = value.sequence->dtype;
    else
        fact->optional = true;
    return SB_OK;
}

bool sb_fact_is_concrete(const sb_fact *fact, int64_t *dims) {
    if (fact->kind != SB_KIND_TENSOR || fact->rank == SB_RANK_UNKNOWN || fact->optional)
        return false;
    for (int i = 0; i < fact->rank; i++) {
        if (!sb_dim_is_constant(fact->dims[i], dims != NULL ? &dims[i] : NULL))
            return false;
    }
    return true;
}

bool sb_fact_same_shape(const sb_fact *left, const sb_fact *right) {
    if (left->kind != right->kind || left->dtype != right->dtype || left->rank != right->rank ||
        left->optional != right->optional)
        return false;
    for (int i = 0; i < left->rank; i++) {
        if (!sb_dim_equal(left->dims[i], right->dims[i]))
            return false;
    }
    return true;
}

static void append(char *text, size_t bytes, const char *more) {
    size_t used = strlen(text);
    if (used + 1 < bytes)
        snprintf(text + used, bytes - used, "%s", more);
}

char *sb_fact_text(const sb_fact *fact, char *text, size_t bytes) {
    text[0] = '\0';
    if (fact->optional)
        append(text, bytes, "optional ");
    if (fact->kind == SB_KIND_NONE) {
        append(text, bytes, "nothing");
        return text;
    }
    if (fact->kind == SB_KIND_SEQUENCE)
        append(text, bytes, "sequence of ");
    append(text, bytes, sb_dtype_name(fact->dtype));
    if (fact->rank == SB_RANK_UNKNOWN) {
        append(text, bytes, "[…]");
        return text;
    }
    append(text, bytes, "[");
    for (int i = 0; i < fact->rank; i++) {
        char dim[128];
        if (i > 0)
            append(text, bytes, ",");
        append(text, bytes, sb_dim_text(fact->dims[i], dim, sizeof dim));
    }
    append(text, bytes, "]");
    return text;
}
