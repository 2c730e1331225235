#include "graph/value.h"

#include "base/allocation.h"

sb_status sb_sequence_create(sb_dtype dtype, int64_t count, sb_sequence **sequence, sb_error *error) {
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, sizeof(sb_value), &bytes) ||
        __builtin_add_overflow(bytes, sizeof(sb_sequence), &bytes))
        return sb_fail(error, SB_ERROR_SHAPE, "a sequence of %lld items is too long", (long long)count);
    sb_sequence *fresh = sb_allocate_array(1, bytes);
    if (fresh == NULL)
        return sb_fail_memory(error, bytes);
    fresh->references = 1;
    fresh->dtype = dtype;
    fresh->count = count;
    *sequence = fresh;
    return SB_OK;
}

sb_value sb_value_of_tensor(sb_tensor *tensor) {
    return (sb_value){.kind = tensor != NULL ? SB_KIND_TENSOR : SB_KIND_NONE, .tensor = tensor};
}

sb_status sb_value_of_sequence(sb_dtype dtype, int64_t count, const sb_value *items, sb_value *value, sb_error *error) {
    sb_sequence *sequence;
    for (int64_t i = 0; i < count; i++) {
        if (items[i].kind == SB_KIND_TENSOR)
            SB_TRY(sb_tensor_check_on_host(items[i].tensor, "part of a sequence", error));
    }
    SB_TRY(sb_sequence_create(dtype, count, &sequence, error));
    for (int64_t i = 0; i < count; i++)
        sequence->items[i] = sb_value_retain(items[i]);
    *value = (sb_value){.kind = SB_KIND_SEQUENCE, .sequence = sequence};
    return SB_OK;
}

int64_t sb_sequence_count(const sb_sequence *sequence) {
    return sequence->count;
}

sb_value sb_sequence_item(const sb_sequence *sequence, int64_t index) {
    return sequence->items[index];
}

sb_dtype sb_sequence_dtype(const sb_sequence *sequence) {
    return sequence->dtype;
}

sb_value sb_value_retain(sb_value value) {
    if (value.kind == SB_KIND_TENSOR)
        sb_tensor_retain(value.tensor);
    else if (value.kind == SB_KIND_SEQUENCE)
        atomic_fetch_add_explicit(&value.sequence->references, 1, memory_order_relaxed);
    return value;
}

static void release_sequence(sb_sequence *sequence) {
    if (atomic_fetch_sub_explicit(&sequence->references, 1, memory_order_acq_rel) != 1)
        return;
    for (int64_t i = 0; i < sequence->count; i++)
        sb_value_release(&sequence->items[i]);
    sb_free(sequence);
}

void sb_value_release(sb_value *value) {
    sb_value held = *value;
    *value = (sb_value){0};
    if (held.kind == SB_KIND_TENSOR)
        sb_tensor_release(held.tensor);
    else if (held.kind == SB_KIND_SEQUENCE)
        release_sequence(held.sequence);
}
