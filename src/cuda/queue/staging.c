#include "cuda/queue/staging.h"

#include <string.h>

#include "base/allocation.h"
#include "base/workers.h"

/* Uploads from so many bytes on, which are weights, are copied into the blocks by several threads, each COPY_GRAIN bytes or more at a
 * time: one thread fills a block at a third of the speed or less at which a device takes it, or slower where the file's pages have
 * to be found first. */
#define LARGE_UPLOAD (8u << 20)
#define COPY_GRAIN (256u << 10)
#define COPIERS 4

/* Two blocks take turns when the host waits for the device anyway. */
#define TURNS 2
#define ALIGNMENT 256

/* A pinned block. Copies fill it from the front; it is used again from the front once the
 * device has done with them all. */
typedef struct staging_block {
    sb_cuda_pinned *pinned;
    /* Behind the last copy, as soon as something is to be waited for: a copy that is, or the block's turn being over. An
     * event for each small upload would be a tenth of a token's time on the host. */
    sb_cuda_event *done;
    size_t used;
    uint64_t turn; /* when it was begun: the oldest is waited for */
} staging_block;

struct sb_cuda_staging {
    sb_cuda_device *device;
    size_t bytes; /* of each block */
    uint64_t turns;
    int count;
    staging_block *current;
    sb_workers *copiers; /* NULL until there was a large upload */
    staging_block blocks[SB_CUDA_MOST_STAGING_BLOCKS];
};

static void destroy_block(staging_block *block) {
    sb_cuda_event_destroy(block->done);
    sb_cuda_pinned_destroy(block->pinned);
    *block = (staging_block){0};
}

static sb_status add_block(sb_cuda_staging *staging, sb_error *error) {
    staging_block *block = &staging->blocks[staging->count];
    SB_TRY(sb_cuda_pinned_create(staging->device, staging->bytes, &block->pinned, error));
    sb_status status = sb_cuda_event_create(staging->device, false, &block->done, error);
    if (status != SB_OK) {
        destroy_block(block);
        return status;
    }
    staging->count++;
    return SB_OK;
}

sb_status sb_cuda_staging_create(sb_cuda_device *device, size_t bytes, sb_cuda_staging **staging, sb_error *error) {
    sb_cuda_staging *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    created->device = device; /* which the blocks keep */
    created->bytes = bytes;
    created->current = created->blocks;
    sb_status status = SB_OK;
    while (created->count < TURNS && status == SB_OK)
        status = add_block(created, error);
    if (status != SB_OK) {
        sb_cuda_staging_destroy(created);
        return status;
    }
    *staging = created;
    return SB_OK;
}

void sb_cuda_staging_destroy(sb_cuda_staging *staging) {
    if (staging == NULL)
        return;
    for (int i = 0; i < staging->count; i++)
        destroy_block(&staging->blocks[i]);
    sb_workers_destroy(staging->copiers);
    sb_free(staging);
}

/* ---- copies that are waited for ---- */

/* After the stream has done everything: every block is free. */
static void free_all(sb_cuda_staging *staging) {
    for (int i = 0; i < staging->count; i++)
        staging->blocks[i].used = 0;
    staging->current = staging->blocks;
}

/* Waits for the stream whatever `status` is: the blocks are used again. */
static sb_status finish(sb_cuda_staging *staging, const sb_cuda_queue *queue, sb_status status, sb_error *error) {
    sb_cuda_device *device = queue->stream->device;
    CUresult result = device->driver->cuStreamSynchronize(queue->stream->handle);
    if (status == SB_OK)
        status = sb_cuda_check(device, result, "cuStreamSynchronize", error);
    if (result == CUDA_SUCCESS)
        free_all(staging);
    return sb_cuda_leave(device, status, error);
}

static sb_status launch_copy(const sb_cuda_queue *queue, sb_cuda_task_kind kind, CUdeviceptr to, CUdeviceptr from,
                             size_t bytes, sb_error *error) {
    sb_cuda_task task = {.kind = kind, .step = -1, .copy = {.to = to, .from = from, .bytes = bytes}};
    return sb_cuda_launch(queue, &task, error);
}

static CUdeviceptr address_in(const staging_block *block, size_t offset) {
    return (CUdeviceptr)(uintptr_t)block->pinned->data + offset;
}

static size_t smaller(size_t left, size_t right) {
    return left < right ? left : right;
}

/* The device is a block ahead of the host. What is on its way to the device from the same blocks comes
 * before in the stream. */
static sb_status download_pieces(sb_cuda_staging *staging, const sb_cuda_queue *queue, char *to, CUdeviceptr from,
                                 size_t bytes, sb_error *error) {
    size_t piece = staging->bytes, count = bytes / piece + (bytes % piece != 0);
    for (size_t i = 0; i < count + TURNS - 1; i++) {
        if (i < count) {
            const staging_block *ahead = &staging->blocks[i % TURNS];
            SB_TRY(launch_copy(queue, SB_CUDA_COPY_TO_HOST, address_in(ahead, 0), from + i * piece,
                               smaller(bytes - i * piece, piece), error));
            SB_TRY(sb_cuda_event_record(ahead->done, queue->stream, error));
        }
        if (i >= TURNS - 1 && i - (TURNS - 1) < count) {
            size_t arrived = i - (TURNS - 1);
            const staging_block *block = &staging->blocks[arrived % TURNS];
            SB_TRY(sb_cuda_event_synchronize(block->done, error));
            memcpy(to + arrived * piece, block->pinned->data, smaller(bytes - arrived * piece, piece));
        }
    }
    return SB_OK;
}

sb_status sb_cuda_download(sb_cuda_staging *staging, const sb_cuda_queue *queue, void *to, CUdeviceptr from,
                           size_t bytes, sb_error *error) {
    SB_TRY(sb_cuda_enter(queue->stream->device, error));
    return finish(staging, queue, download_pieces(staging, queue, to, from, bytes, error), error);
}

/* ---- copies to the device in the order of the queue ---- */

/* A block that the device has done with, or NULL; *oldest is the one to wait for. */
static sb_status find_free(sb_cuda_staging *staging, staging_block **found, staging_block **oldest, sb_error *error) {
    *found = NULL;
    *oldest = staging->blocks;
    for (int i = 0; i < staging->count && *found == NULL; i++) {
        staging_block *block = &staging->blocks[i];
        bool reached = block->used == 0;
        if (!reached)
            SB_TRY(sb_cuda_event_reached(block->done, &reached, error));
        if (reached)
            *found = block;
        if (block->turn < (*oldest)->turn)
            *oldest = block;
    }
    return SB_OK;
}

/* Makes the current block one with nothing in it. The one before has had its turn. */
static sb_status begin_block(sb_cuda_staging *staging, const sb_cuda_queue *queue, sb_error *error) {
    staging_block *found, *oldest;
    SB_TRY(sb_cuda_event_record(staging->current->done, queue->stream, error));
    SB_TRY(find_free(staging, &found, &oldest, error));
    if (found == NULL && staging->count < SB_CUDA_MOST_STAGING_BLOCKS) {
        sb_status status = add_block(staging, error);
        if (status == SB_OK)
            found = &staging->blocks[staging->count - 1];
        else if (status != SB_ERROR_OUT_OF_MEMORY) /* which only costs time */
            return status;
    }
    if (found == NULL) {
        SB_TRY(sb_cuda_event_synchronize(oldest->done, error));
        found = oldest;
    }
    found->used = 0;
    found->turn = ++staging->turns;
    staging->current = found;
    return SB_OK;
}

typedef struct filling {
    char *to;
    const char *from;
    size_t bytes;
} filling;

static void fill_grains(void *context, int64_t begin, int64_t end) {
    const filling *filling = context;
    size_t first = (size_t)begin * COPY_GRAIN, behind = smaller((size_t)end * COPY_GRAIN, filling->bytes);
    memcpy(filling->to + first, filling->from + first, behind - first);
}

/* Copies a piece of an upload into pinned memory. Where there is no memory for threads, this one does it alone. */
static void fill(sb_cuda_staging *staging, size_t upload, char *to, const char *from, size_t bytes) {
    filling filling = {to, from, bytes};
    if (upload >= LARGE_UPLOAD && staging->copiers == NULL)
        (void)sb_workers_create(COPIERS, &staging->copiers, NULL);
    int64_t grains = (int64_t)(bytes / COPY_GRAIN + (bytes % COPY_GRAIN != 0));
    sb_workers_run(upload >= LARGE_UPLOAD ? staging->copiers : NULL, grains, 1, fill_grains, &filling);
}

/* What does not fit behind the others in a block, but into one, goes into the next: small copies are not cut. */
static sb_status upload_pieces(sb_cuda_staging *staging, const sb_cuda_queue *queue, CUdeviceptr to, const char *from,
                               size_t bytes, sb_error *error) {
    for (size_t offset = 0; offset < bytes;) {
        size_t piece = smaller(bytes - offset, staging->bytes);
        if (staging->current->used > staging->bytes - piece)
            SB_TRY(begin_block(staging, queue, error));
        staging_block *block = staging->current;
        size_t place = block->used;
        fill(staging, bytes, (char *)block->pinned->data + place, from + offset, piece);
        size_t padding = (ALIGNMENT - piece % ALIGNMENT) % ALIGNMENT;
        block->used = staging->bytes - place - piece > padding ? place + piece + padding : staging->bytes;
        SB_TRY(launch_copy(queue, SB_CUDA_COPY_TO_DEVICE, to + offset, address_in(block, place), piece, error));
        offset += piece;
    }
    return SB_OK;
}

sb_status sb_cuda_upload_later(sb_cuda_staging *staging, const sb_cuda_queue *queue, CUdeviceptr to, const void *from,
                               size_t bytes, sb_error *error) {
    sb_cuda_device *device = queue->stream->device;
    SB_TRY(sb_cuda_enter(device, error));
    sb_status status = upload_pieces(staging, queue, to, from, bytes, error);
    return status == SB_OK ? sb_cuda_leave(device, status, error) : finish(staging, queue, status, error);
}

sb_status sb_cuda_upload(sb_cuda_staging *staging, const sb_cuda_queue *queue, CUdeviceptr to, const void *from,
                         size_t bytes, sb_error *error) {
    SB_TRY(sb_cuda_enter(queue->stream->device, error));
    return finish(staging, queue, upload_pieces(staging, queue, to, from, bytes, error), error);
}
