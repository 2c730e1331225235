/* Outboxes: the outputs of a run on their way from a device to the host. The device copies them to pinned memory, which
 * is the run's own, behind the run's work; when that is done they are copied to where the caller gets them. */
#ifndef SB_RUNTIME_OUTBOX_H
#define SB_RUNTIME_OUTBOX_H

#include "kernel/device.h"

/* The most pinned memory that the outputs of a run may take: enough for the scores of a language model's token, or
 * hundreds of pictures' features. */
#define SB_OUTBOX_BYTES ((size_t)64 << 20)

typedef struct sb_parcel {
    sb_tensor *to; /* on the host, contiguous; a reference of its own */
    size_t offset;
} sb_parcel;

/* All zero: empty, and without memory. One thread at a time. */
typedef struct sb_outbox {
    sb_host_block *block;
    size_t used;
    size_t count, capacity;
    sb_parcel *parcels;
} sb_outbox;

/** The bytes that a tensor of these extents, which exists or may, takes in an outbox. */
size_t sb_outbox_bytes(sb_dtype dtype, int rank, const int64_t *dims);
/** Makes room in an empty outbox for `count` tensors that take `bytes`, the most that has been asked for so far: memory
 * stays for later runs. Nothing is on its way in it. Errors: OUT_OF_MEMORY; DEVICE. */
sb_status sb_outbox_open(sb_outbox *outbox, sb_queue *queue, size_t bytes, size_t count, sb_error *error);
/** Gives the queue a copy of `from`, on the device, for `to`, which is contiguous and on the host. There is room.
 * (Entered.) Errors: DEVICE; OUT_OF_MEMORY where `from` has gaps between its elements. */
sb_status sb_outbox_fetch(sb_outbox *outbox, sb_queue *queue, sb_tensor *to, const sb_tensor *from, sb_error *error);
/** Once the device has done the copies: fills the tensors, and empties the outbox. */
void sb_outbox_deliver(sb_outbox *outbox);
/** Empties the outbox, whose copies are not wanted any more; the device has done them. */
void sb_outbox_drop(sb_outbox *outbox);
/** Drops, and gives the memory back. */
void sb_outbox_destroy(sb_outbox *outbox, sb_queue *queue);

#endif
