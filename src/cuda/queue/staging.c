#include "cuda/queue/staging.h"

#include <string.h>

#include "base/allocation.h"

#define TURNS 2

struct sb_cuda_staging {
    size_t bytes; /* of each block */
    sb_cuda_pinned *blocks[TURNS];
    sb_cuda_event *done[TURNS]; /* the device has finished with the block */
};

sb_status sb_cuda_staging_create(sb_cuda_device *device, size_t bytes, sb_cuda_staging **staging, sb_error *error) {
    sb_cuda_staging *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    created->bytes = bytes;
    sb_status status = SB_OK;
    for (int turn = 0; turn < TURNS && status == SB_OK; turn++) {
        status = sb_cuda_pinned_create(device, bytes, &created->blocks[turn], error);
        if (status == SB_OK)
            status = sb_cuda_event_create(device, false, &created->done[turn], error);
    }
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
    for (int turn = 0; turn < TURNS; turn++) {
        sb_cuda_event_destroy(staging->done[turn]);
        sb_cuda_pinned_destroy(staging->blocks[turn]);
    }
    sb_free(staging);
}

/* A piece of a copy and the block that carries it. */
typedef struct piece {
    int turn;
    size_t offset, bytes;
    char *block;
    CUdeviceptr block_address; /* the same, as tasks want it */
} piece;

static size_t piece_count(const sb_cuda_staging *staging, size_t bytes) {
    return bytes / staging->bytes + (bytes % staging->bytes != 0);
}

static piece get_piece(const sb_cuda_staging *staging, size_t bytes, size_t index) {
    piece piece = {.turn = (int)(index % TURNS), .offset = index * staging->bytes};
    piece.bytes = bytes - piece.offset < staging->bytes ? bytes - piece.offset : staging->bytes;
    piece.block = staging->blocks[piece.turn]->data;
    piece.block_address = (CUdeviceptr)(uintptr_t)piece.block;
    return piece;
}

static sb_status launch_piece(sb_cuda_staging *staging, const sb_cuda_queue *queue, sb_cuda_task_kind kind,
                              CUdeviceptr to, CUdeviceptr from, const piece *piece, sb_error *error) {
    sb_cuda_task task = {.kind = kind, .step = -1, .copy = {.to = to, .from = from, .bytes = piece->bytes}};
    SB_TRY(sb_cuda_launch(queue, &task, error));
    return sb_cuda_event_record(staging->done[piece->turn], queue->stream, error);
}

static sb_status upload_pieces(sb_cuda_staging *staging, const sb_cuda_queue *queue, CUdeviceptr to, const char *from,
                               size_t bytes, sb_error *error) {
    size_t count = piece_count(staging, bytes);
    for (size_t i = 0; i < count; i++) {
        piece piece = get_piece(staging, bytes, i);
        if (i >= TURNS)
            SB_TRY(sb_cuda_event_synchronize(staging->done[piece.turn], error));
        memcpy(piece.block, from + piece.offset, piece.bytes);
        SB_TRY(launch_piece(staging, queue, SB_CUDA_COPY_TO_DEVICE, to + piece.offset, piece.block_address, &piece,
                            error));
    }
    return SB_OK;
}

/* The device is a block ahead of the host. */
static sb_status download_pieces(sb_cuda_staging *staging, const sb_cuda_queue *queue, char *to, CUdeviceptr from,
                                 size_t bytes, sb_error *error) {
    size_t count = piece_count(staging, bytes);
    for (size_t i = 0; i < count + TURNS - 1; i++) {
        if (i < count) {
            piece ahead = get_piece(staging, bytes, i);
            SB_TRY(launch_piece(staging, queue, SB_CUDA_COPY_TO_HOST, ahead.block_address, from + ahead.offset, &ahead,
                                error));
        }
        if (i >= TURNS - 1 && i - (TURNS - 1) < count) {
            piece piece = get_piece(staging, bytes, i - (TURNS - 1));
            SB_TRY(sb_cuda_event_synchronize(staging->done[piece.turn], error));
            memcpy(to + piece.offset, piece.block, piece.bytes);
        }
    }
    return SB_OK;
}

/* Waits for the stream whatever `status` is: the blocks are used again. */
static sb_status finish(const sb_cuda_queue *queue, sb_status status, sb_error *error) {
    sb_cuda_device *device = queue->stream->device;
    CUresult result = device->driver->cuStreamSynchronize(queue->stream->handle);
    if (status == SB_OK)
        status = sb_cuda_check(device, result, "cuStreamSynchronize", error);
    return sb_cuda_leave(device, status, error);
}

sb_status sb_cuda_upload(sb_cuda_staging *staging, const sb_cuda_queue *queue, CUdeviceptr to, const void *from,
                         size_t bytes, sb_error *error) {
    SB_TRY(sb_cuda_enter(queue->stream->device, error));
    return finish(queue, upload_pieces(staging, queue, to, from, bytes, error), error);
}

sb_status sb_cuda_download(sb_cuda_staging *staging, const sb_cuda_queue *queue, void *to, CUdeviceptr from,
                           size_t bytes, sb_error *error) {
    SB_TRY(sb_cuda_enter(queue->stream->device, error));
    return finish(queue, download_pieces(staging, queue, to, from, bytes, error), error);
}
