/* Devices: what a back end with memory of its own implements, so that sessions can run on it.
 *
 * The host talks to a device through a *queue*: memory, copies, and the calls of kernels, in one order. What a queue is
 * given can be *recorded* and launched again as a whole, and measured. Everything here is one thread's at a time,
 * memory excepted: storage may be released by any thread and at any time, also after its queue is gone.
 *
 * Tensors on a device have addresses of the device as their data, which the host must not follow. */
#ifndef SB_KERNEL_DEVICE_H
#define SB_KERNEL_DEVICE_H

#include <pthread.h>
#include <string.h>

#include <samebit/device.h>

#include "tensor/tensor.h"

struct sb_kernel;
struct sb_kernel_query;

typedef struct sb_device_interface sb_device_interface;
typedef struct sb_recording sb_recording; /* tasks that were recorded; the back end's own */
typedef struct sb_trace sb_trace;         /* tasks that were measured; the back end's own */
typedef struct sb_mark sb_mark;           /* a place in a queue; the back end's own */

/* A timeline of runs on a device. Back ends' own queues begin with it. */
typedef struct sb_queue {
    const sb_device_interface *interface;
    void *device; /* the back end's device; storages on it have this address for their `device` */
    int device_index;
    void *target;      /* what the calls of kernels give their work to: sb_call.target */
    bool is_recording; /* between sb_queue_record and sb_queue_stop */
    bool is_capturing; /* … and nothing is carried out meanwhile */
    int64_t moves;     /* how often memory that runs use again has moved: its users count here */
} sb_queue;

/* A device in use: what the public interface calls by this name. */
struct sb_device {
    const sb_device_interface *interface;
    void *handle; /* the back end's device, one reference */
    const char *name;
    int index;
    pthread_mutex_t lock;
    sb_queue *queue; /* for copies of tensors; under the lock */
};

/* Memory of the host that a device reads and writes where it is. */
typedef struct sb_host_block {
    void *data;
    size_t bytes;
} sb_host_block;

/* Numbers of runs on their way to a device without a copy for each: places of pinned memory that take turns. The host
 * fills the next one and gives the queue work that begins by receiving it, and the device counts the same turns. Back ends'
 * own begin with it. One thread at a time. */
typedef struct sb_mailbox {
    char *places; /* `count` of them; each begins with the number of the turn that it is for, a word of 64 bits */
    size_t count, place_bytes;
    uint64_t turn; /* the next one: how often the queue has been told to receive */
} sb_mailbox;

/* How long a task took. */
typedef struct sb_measured_task {
    const char *name;        /* lives as long as the device */
    double start_ns, end_ns; /* since sb_trace_restart */
} sb_measured_task;

/* The functions of a back end. Their contracts are those of the functions below. */
struct sb_device_interface {
    void *(*retain)(void *handle); /* returns it */
    void (*release)(void *handle);
    void (*count)(void *handle, sb_device_counters *counters);
    bool (*is_lost)(const void *handle);
    /* sb_kernel_finder, declared where kernels are: kernel/kernel.h */
    sb_status (*find_kernel)(const struct sb_kernel_query *query, const struct sb_kernel **kernel, char *why,
                             sb_error *error);
    sb_status (*enter)(void *handle, sb_error *error);
    sb_status (*leave)(void *handle, sb_status status, sb_error *error);

    /* Waits for what a stream of somebody else has been given; NULL: the one that there is without asking. */
    sb_status (*wait_for_stream)(void *handle, void *stream, sb_error *error);
    sb_status (*create_queue)(void *handle, void *stream, bool dependent_launch, sb_queue **queue, sb_error *error);
    void (*destroy_queue)(sb_queue *queue);
    sb_status (*wait)(sb_queue *queue, sb_error *error);

    sb_status (*create_mark)(sb_queue *queue, sb_mark **mark, sb_error *error);
    void (*destroy_mark)(sb_mark *mark);
    sb_status (*set_mark)(sb_queue *queue, sb_mark *mark, sb_error *error);
    sb_status (*ask_mark)(const sb_mark *mark, bool *reached, sb_error *error);
    sb_status (*wait_for_mark)(const sb_mark *mark, sb_error *error);

    sb_status (*storage)(sb_queue *queue, size_t bytes, sb_storage **storage, sb_error *error);
    sb_storage *(*storage_at)(sb_queue *queue, const void *data, size_t bytes);
    sb_status (*create_host_block)(sb_queue *queue, size_t bytes, sb_host_block **block, sb_error *error);
    void (*destroy_host_block)(sb_host_block *block);

    sb_status (*create_mailbox)(sb_queue *queue, size_t count, const sb_tensor *to, const sb_tensor *cleared,
                                sb_mailbox **mailbox, sb_error *error);
    void (*destroy_mailbox)(sb_mailbox *mailbox);
    sb_status (*receive)(sb_queue *queue, const sb_mailbox *mailbox, sb_error *error);
    sb_status (*leave_words)(sb_queue *queue, const sb_mailbox *mailbox, const void *address,
                             const sb_host_block *block, sb_error *error);
    sb_status (*collect_words)(sb_queue *queue, const sb_tensor *words, const sb_tensor *turn, void *places,
                               int64_t count, sb_error *error);

    sb_status (*upload)(sb_queue *queue, const sb_tensor *to, sb_tensor *from, sb_error *error);
    sb_status (*download)(sb_queue *queue, const sb_tensor *to, const sb_tensor *from, sb_error *error);
    sb_status (*fetch)(sb_queue *queue, void *to, const sb_tensor *from, sb_error *error);
    sb_status (*clear)(sb_queue *queue, const sb_tensor *tensor, sb_error *error);
    sb_status (*copy)(sb_queue *queue, int step, const sb_tensor *to, const sb_tensor *from, sb_error *error);

    sb_status (*record)(sb_queue *queue, bool capture, sb_error *error);
    sb_status (*stop)(sb_queue *queue, sb_status status, sb_recording **recording, sb_error *error);
    sb_status (*launch)(sb_queue *queue, const sb_recording *recording, sb_error *error);
    void (*measure_recording)(const sb_recording *recording, int64_t *tasks, int64_t *edges);
    void (*destroy_recording)(sb_recording *recording);

    sb_status (*create_trace)(sb_queue *queue, sb_trace **trace, sb_error *error);
    void (*destroy_trace)(sb_trace *trace);
    sb_status (*restart_trace)(sb_queue *queue, sb_trace *trace, sb_error *error);
    void (*attach_trace)(sb_queue *queue, sb_trace *trace);
    int (*trace_count)(const sb_trace *trace);
    sb_status (*trace_task)(const sb_trace *trace, int index, sb_measured_task *task, sb_error *error);
};

/** Whether the tensor's elements lie on a device. */
static inline bool sb_tensor_on_device(const sb_tensor *tensor) {
    return tensor->storage->device != NULL;
}

/* ---- queues ---- */

/** A queue on a device with a stream of its own, or the caller's `stream` (of the back end's kind, on that device, and
 * alive for as long as the queue). With `dependent_launch` kernels may be launched before those ahead of them have
 * ended. Errors: DEVICE; OUT_OF_MEMORY; INVALID_ARGUMENT when the stream is another device's. */
static inline sb_status sb_queue_create(const sb_device *device, void *stream, bool dependent_launch, sb_queue **queue,
                                        sb_error *error) {
    return device->interface->create_queue(device->handle, stream, dependent_launch, queue, error);
}

/** Waits for what was given to the queue and frees it; storages live on. NULL is allowed. */
static inline void sb_queue_destroy(sb_queue *queue) {
    if (queue != NULL)
        queue->interface->destroy_queue(queue);
}

/** Makes the device the thread's; until sb_queue_leave, which comes in any case if this succeeds. What says "entered"
 * below is for between the two. Fails with the first failure if the device is lost. */
static inline sb_status sb_queue_enter(sb_queue *queue, sb_error *error) {
    return queue->interface->enter(queue->device, error);
}

/** Gives the thread back what it had. Returns `status`, or when that is SB_OK, what went wrong here. */
static inline sb_status sb_queue_leave(sb_queue *queue, sb_status status, sb_error *error) {
    return queue->interface->leave(queue->device, status, error);
}

/** Waits until everything given to the queue is done, and reports what failed in it. */
static inline sb_status sb_queue_wait(sb_queue *queue, sb_error *error) {
    return queue->interface->wait(queue, error);
}

/** Whether the device has failed for good: nothing more is to be given to it. */
static inline bool sb_queue_is_lost(const sb_queue *queue) {
    return queue->interface->is_lost(queue->device);
}

/* ---- marks ---- */

/** A mark for a queue, which is nowhere in it yet and counts as reached. Errors: OUT_OF_MEMORY; DEVICE. */
static inline sb_status sb_mark_create(sb_queue *queue, sb_mark **mark, sb_error *error) {
    return queue->interface->create_mark(queue, mark, error);
}

/** NULL is allowed. */
static inline void sb_mark_destroy(const sb_queue *queue, sb_mark *mark) {
    if (mark != NULL)
        queue->interface->destroy_mark(mark);
}

/** Moves the mark behind everything that the queue has been given. (Entered, and not while a recording is made.) */
static inline sb_status sb_mark_set(sb_queue *queue, sb_mark *mark, sb_error *error) {
    return queue->interface->set_mark(queue, mark, error);
}

/** Whether everything before the mark is done, without waiting; what failed there is reported. */
static inline sb_status sb_mark_ask(const sb_queue *queue, const sb_mark *mark, bool *reached, sb_error *error) {
    return queue->interface->ask_mark(mark, reached, error);
}

/** Waits until everything before the mark is done, and for nothing behind it; reports what failed. */
static inline sb_status sb_mark_wait(const sb_queue *queue, const sb_mark *mark, sb_error *error) {
    return queue->interface->wait_for_mark(mark, error);
}

/* ---- memory ---- */

/** Storage on the device for `bytes` bytes, aligned to 256, not initialised: from blocks that were given back, of which
 * one serves requests of at least half its size, or freshly allocated. What the queue was told to do with a block
 * before it was given back comes before what it is told now. Errors: OUT_OF_MEMORY; DEVICE. */
static inline sb_status sb_queue_storage(sb_queue *queue, size_t bytes, sb_storage **storage, sb_error *error) {
    return queue->interface->storage(queue, bytes, storage, error);
}

/** The same with the block at `data`, if that is one that was given back and waits; else NULL. Allocates nothing. */
static inline sb_storage *sb_queue_storage_at(sb_queue *queue, const void *data, size_t bytes) {
    return queue->interface->storage_at(queue, data, bytes);
}

/** Memory of the host that the device can reach, not initialised, with one owner. Errors: OUT_OF_MEMORY; DEVICE. */
static inline sb_status sb_host_block_create(sb_queue *queue, size_t bytes, sb_host_block **block, sb_error *error) {
    return queue->interface->create_host_block(queue, bytes, block, error);
}

/** Frees the block of a queue's device, which nothing uses any more. NULL is allowed. */
static inline void sb_host_block_destroy(sb_queue *queue, sb_host_block *block) {
    if (block != NULL)
        queue->interface->destroy_host_block(block);
}

/* ---- mailboxes (entered) ---- */

/** A mailbox whose places hold what becomes the contents of `to`, u8 on the device and a multiple of 8 bytes; those of `cleared`,
 * u32 and on the device as well, become 0 at the same time. Both outlive it. `count` runs may be underway. Loads what
 * receiving takes. Errors: OUT_OF_MEMORY; DEVICE; UNSUPPORTED. */
static inline sb_status sb_mailbox_create(sb_queue *queue, size_t count, const sb_tensor *to, const sb_tensor *cleared,
                                          sb_mailbox **mailbox, sb_error *error) {
    return queue->interface->create_mailbox(queue, count, to, cleared, mailbox, error);
}

/** The queue must have done what was received. NULL is allowed. */
static inline void sb_mailbox_destroy(const sb_queue *queue, sb_mailbox *mailbox) {
    if (mailbox != NULL)
        queue->interface->destroy_mailbox(mailbox);
}

/** Puts `bytes` bytes into the place whose turn comes next, which the device has done with. Once the queue has been told to receive
 * them, the caller counts the turn. */
static inline void sb_mailbox_post(const sb_mailbox *mailbox, const void *data, size_t bytes) {
    char *place = mailbox->places + mailbox->turn % mailbox->count * mailbox->place_bytes;
    memcpy(place, &mailbox->turn, sizeof mailbox->turn);
    memcpy(place + sizeof mailbox->turn, data, bytes);
}

/** Has the device take the place whose turn it is when it comes so far, and clear what is to be cleared. */
static inline sb_status sb_queue_receive(sb_queue *queue, const sb_mailbox *mailbox, sb_error *error) {
    return queue->interface->receive(queue, mailbox, error);
}

/** Has the device put those words of what the mailbox clears that are no longer 0 into host memory, each in its place: where the 64-bit
 * word at `address`, on the device, says, which is somewhere in `block`. They are there when a mark behind it is reached. */
static inline sb_status sb_queue_leave_words(sb_queue *queue, const sb_mailbox *mailbox, const void *address,
                                             const sb_host_block *block, sb_error *error) {
    return queue->interface->leave_words(queue, mailbox, address, block, error);
}

/** Has the device put those words of `words`, u32 and there, that are not 0 into a place of host memory, each where it is in `words`, and
 * make them 0. `places` is memory of one of the queue's host blocks with room for them `count` times, which take turns: `turn`, u64
 * and there, 0 at first, counts how often it has been done. So it may be part of a recording. They are there when a mark behind it
 * is reached. */
static inline sb_status sb_queue_collect_words(sb_queue *queue, const sb_tensor *words, const sb_tensor *turn,
                                               void *places, int64_t count, sb_error *error) {
    return queue->interface->collect_words(queue, words, turn, places, count, error);
}

/* ---- copies (entered) ---- */

/** Copies the elements of `from`, on the host, to `to`, on the device: same dtype and extents, `to`
 * contiguous. The elements have been read when it returns, but the copy is only in its place in the queue:
 * who lets another queue use `to` waits first. */
static inline sb_status sb_queue_upload(sb_queue *queue, const sb_tensor *to, sb_tensor *from, sb_error *error) {
    return queue->interface->upload(queue, to, from, error);
}

/** The other way; `to`, on the host, is contiguous. Returns when it is done. */
static inline sb_status sb_queue_download(sb_queue *queue, const sb_tensor *to, const sb_tensor *from,
                                          sb_error *error) {
    return queue->interface->download(queue, to, from, error);
}

/** Gives the queue a copy of a tensor on the device, in row-major order, to memory of one of its host blocks, and does
 * not wait: the elements are there when a mark behind it is reached. */
static inline sb_status sb_queue_fetch(sb_queue *queue, void *to, const sb_tensor *from, sb_error *error) {
    return queue->interface->fetch(queue, to, from, error);
}

/** Sets every byte of a contiguous tensor on the device to 0, in the order of the queue. */
static inline sb_status sb_queue_clear(sb_queue *queue, const sb_tensor *tensor, sb_error *error) {
    return queue->interface->clear(queue, tensor, error);
}

/** Copies on the device, strides and broadcasting as they are; `step` is what measuring calls it by. */
static inline sb_status sb_queue_copy(sb_queue *queue, int step, const sb_tensor *to, const sb_tensor *from,
                                      sb_error *error) {
    return queue->interface->copy(queue, step, to, from, error);
}

/** A contiguous tensor on the queue's device with the elements of a host tensor, as sb_queue_upload copies them. The
 * caller releases it. Errors: OUT_OF_MEMORY; DEVICE. */
sb_status sb_queue_to_device(sb_queue *queue, sb_tensor *source, sb_tensor **tensor, sb_error *error);

/* ---- recording (entered) ---- */

/** Begins to record what the queue is given. With `capture` it is not carried out, and until sb_queue_stop this thread
 * must not allocate memory of the device, load kernels, or wait. Errors: OUT_OF_MEMORY; DEVICE. */
static inline sb_status sb_queue_record(sb_queue *queue, bool capture, sb_error *error) {
    return queue->interface->record(queue, capture, error);
}

/** Ends what sb_queue_record began and makes what was recorded launchable. `status` is how giving the tasks went: if
 * that is not SB_OK, nothing is kept, and `status` given back with the error as it is. Whatever happens, the queue can
 * be used again. Memory that the tasks use is the caller's to keep; one launch at a time. */
static inline sb_status sb_queue_stop(sb_queue *queue, sb_status status, sb_recording **recording, sb_error *error) {
    return queue->interface->stop(queue, status, recording, error);
}

/** Gives the queue everything that was recorded. */
static inline sb_status sb_queue_launch(sb_queue *queue, const sb_recording *recording, sb_error *error) {
    return queue->interface->launch(queue, recording, error);
}

/** Adds up the tasks of a recording, and the edges between them that its back end made. */
static inline void sb_recording_measure(const sb_queue *queue, const sb_recording *recording, int64_t *tasks,
                                        int64_t *edges) {
    queue->interface->measure_recording(recording, tasks, edges);
}

/** The queue must have done what was launched. NULL is allowed. */
static inline void sb_recording_destroy(const sb_queue *queue, sb_recording *recording) {
    if (recording != NULL)
        queue->interface->destroy_recording(recording);
}

/* ---- measuring ---- */

/** An empty trace for tasks of the queue. Errors: OUT_OF_MEMORY; DEVICE. */
static inline sb_status sb_trace_create(sb_queue *queue, sb_trace **trace, sb_error *error) {
    return queue->interface->create_trace(queue, trace, error);
}

/** The queue must have done what was measured. NULL is allowed. */
static inline void sb_trace_destroy(const sb_queue *queue, sb_trace *trace) {
    if (trace != NULL)
        queue->interface->destroy_trace(trace);
}

/** Forgets all tasks and waits for the queue: times count from then. (Entered.) */
static inline sb_status sb_trace_restart(sb_queue *queue, sb_trace *trace, sb_error *error) {
    return queue->interface->restart_trace(queue, trace, error);
}

/** Measures every task that the queue is given from now on; none with a trace of NULL. */
static inline void sb_queue_measure(sb_queue *queue, sb_trace *trace) {
    queue->interface->attach_trace(queue, trace);
}

static inline int sb_trace_count(const sb_queue *queue, const sb_trace *trace) {
    return queue->interface->trace_count(trace);
}

/** Task `index` in the order of launching; the queue must have done it. Errors: DEVICE. */
static inline sb_status sb_trace_task(const sb_queue *queue, const sb_trace *trace, int index, sb_measured_task *task,
                                      sb_error *error) {
    return queue->interface->trace_task(trace, index, task, error);
}

#endif
