#include "runtime/outbox.h"

#include <string.h>

#include "base/allocation.h"

#define ALIGNMENT 64

static size_t bytes_of(const sb_tensor *tensor) {
    return (size_t)sb_tensor_elements(tensor) * sb_dtype_size(tensor->dtype);
}

size_t sb_outbox_bytes(sb_dtype dtype, int rank, const int64_t *dims) {
    int64_t elements;
    if (sb_count_elements(dtype, rank, dims, &elements, NULL) != SB_OK)
        return SIZE_MAX / 2;
    size_t bytes = (size_t)elements * sb_dtype_size(dtype);
    return bytes > SIZE_MAX / 2 ? SIZE_MAX / 2 : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

sb_status sb_outbox_open(sb_outbox *outbox, sb_queue *queue, size_t bytes, size_t count, sb_error *error) {
    if (!sb_grow((void **)&outbox->parcels, &outbox->capacity, count, sizeof *outbox->parcels))
        return sb_fail_memory(error, count * sizeof *outbox->parcels);
    if (bytes == 0 || (outbox->block != NULL && outbox->block->bytes >= bytes))
        return SB_OK;
    sb_host_block *larger;
    SB_TRY(sb_host_block_create(queue, bytes, &larger, error));
    sb_host_block_destroy(queue, outbox->block);
    outbox->block = larger;
    return SB_OK;
}

sb_status sb_outbox_fetch(sb_outbox *outbox, sb_queue *queue, sb_tensor *to, const sb_tensor *from, sb_error *error) {
    if (bytes_of(to) == 0)
        return SB_OK;
    SB_TRY(sb_queue_fetch(queue, (char *)outbox->block->data + outbox->used, from, error));
    outbox->parcels[outbox->count++] = (sb_parcel){sb_tensor_retain(to), outbox->used};
    outbox->used += sb_outbox_bytes(to->dtype, to->rank, to->dims);
    return SB_OK;
}

void sb_outbox_deliver(sb_outbox *outbox) {
    for (size_t i = 0; i < outbox->count; i++) {
        const sb_parcel *parcel = &outbox->parcels[i];
        memcpy(parcel->to->data, (const char *)outbox->block->data + parcel->offset, bytes_of(parcel->to));
    }
    sb_outbox_drop(outbox);
}

void sb_outbox_drop(sb_outbox *outbox) {
    for (size_t i = 0; i < outbox->count; i++)
        sb_tensor_release(outbox->parcels[i].to);
    outbox->count = 0;
    outbox->used = 0;
}

void sb_outbox_destroy(sb_outbox *outbox, sb_queue *queue) {
    sb_outbox_drop(outbox);
    if (outbox->block != NULL)
        sb_host_block_destroy(queue, outbox->block);
    sb_free(outbox->parcels);
    *outbox = (sb_outbox){0};
}
