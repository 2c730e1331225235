#include "runtime/outbox.h"

#include <string.h>

#include "base/allocation.h"

#define ALIGNMENT 64

static size_t bytes_of(const sb_tensor *tensor) {
    return (size_t)sb_tensor_elements(tensor) * sb_dtype_size(tensor->dtype);
}

size_t sb_outbox_bytes(const sb_tensor *tensor) {
    size_t bytes = bytes_of(tensor);
    return bytes > SIZE_MAX / 2 ? SIZE_MAX / 2 : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

sb_status sb_outbox_open(sb_outbox *outbox, sb_queue *queue, size_t bytes, sb_error *error) {
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
    if (!sb_grow((void **)&outbox->parcels, &outbox->capacity, outbox->count + 1, sizeof *outbox->parcels))
        return sb_fail_memory(error, (outbox->count + 1) * sizeof *outbox->parcels);
    SB_TRY(sb_queue_fetch(queue, (char *)outbox->block->data + outbox->used, from, error));
    outbox->parcels[outbox->count++] = (sb_parcel){sb_tensor_retain(to), outbox->used};
    outbox->used += sb_outbox_bytes(to);
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
