#include "graph/value.h"

#include "base/allocation.h"

iv_status iv_sequence_create(iv_dtype dtype, int64_t count, iv_sequence **sequence, iv_error *error) {
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, sizeof(iv_value), &bytes) ||
        __builtin_add_overflow(bytes, sizeof(iv_sequence), &bytes))
        return iv_fail(error, IV_ERROR_SHAPE, "a sequence of %lld items is too long", (long long)count);
    iv_sequence *fresh = iv_allocate_array(1, bytes);
    if (fresh == NULL)
        return iv_fail_memory(error, bytes);
    fresh->references = 1;
    fresh->dtype = dtype;
    fresh->count = count;
    *sequence = fresh;
    return IV_OK;
}

iv_value iv_value_of_tensor(iv_tensor *tensor) {
    return (iv_value){.kind = tensor != NULL ? IV_KIND_TENSOR : IV_KIND_NONE, .tensor = tensor};
}

iv_status iv_value_of_sequence(iv_dtype dtype, int64_t count, const iv_value *items,
                               iv_value *value, iv_error *error) {
    iv_sequence *sequence;
    for (int64_t i = 0; i < count; i++) {
        if (items[i].kind == IV_KIND_TENSOR)
            IV_TRY(iv_tensor_check_on_host(items[i].tensor, "part of a sequence", error));
    }
    IV_TRY(iv_sequence_create(dtype, count, &sequence, error));
    for (int64_t i = 0; i < count; i++)
        sequence->items[i] = iv_value_retain(items[i]);
    *value = (iv_value){.kind = IV_KIND_SEQUENCE, .sequence = sequence};
    return IV_OK;
}

int64_t iv_sequence_count(const iv_sequence *sequence) {
    return sequence->count;
}

iv_value iv_sequence_item(const iv_sequence *sequence, int64_t index) {
    return sequence->items[index];
}

iv_dtype iv_sequence_dtype(const iv_sequence *sequence) {
    return sequence->dtype;
}

iv_value iv_value_retain(iv_value value) {
    if (value.kind == IV_KIND_TENSOR)
        iv_tensor_retain(value.tensor);
    else if (value.kind == IV_KIND_SEQUENCE)
        atomic_fetch_add_explicit(&value.sequence->references, 1, memory_order_relaxed);
    return value;
}

static void release_sequence(iv_sequence *sequence) {
    if (atomic_fetch_sub_explicit(&sequence->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int64_t i = 0; i < sequence->count; i++)
        iv_value_release(&sequence->items[i]);
    iv_free(sequence);
}

void iv_value_release(iv_value *value) {
    iv_value held = *value;
    *value = (iv_value){0};
    if (held.kind == IV_KIND_TENSOR)
        iv_tensor_release(held.tensor);
    else if (held.kind == IV_KIND_SEQUENCE)
        release_sequence(held.sequence);
}
