#include "cuda/staging.h"

#include <string.h>

#include "base/allocation.h"

#define TURNS 2

struct iv_cuda_staging {
    size_t bytes; /* of each block */
    iv_cuda_pinned *blocks[TURNS];
    iv_cuda_event *done[TURNS]; /* the device has finished with the block */
};

iv_status iv_cuda_staging_create(iv_cuda_device *device, size_t bytes, iv_cuda_staging **staging,
                                 iv_error *error) {
    iv_cuda_staging *created = iv_allocate_array(1, sizeof *created);
    if (created == NULL)
        return iv_fail_memory(error, sizeof *created);
    created->bytes = bytes;
    iv_status status = IV_OK;
    for (int turn = 0; turn < TURNS && status == IV_OK; turn++) {
        status = iv_cuda_pinned_create(device, bytes, &created->blocks[turn], error);
        if (status == IV_OK)
            status = iv_cuda_event_create(device, false, &created->done[turn], error);
    }
    if (status != IV_OK) {
        iv_cuda_staging_destroy(created);
        return status;
    }
    *staging = created;
    return IV_OK;
}

void iv_cuda_staging_destroy(iv_cuda_staging *staging) {
    if (staging == NULL)
        return;
    for (int turn = 0; turn < TURNS; turn++) {
        iv_cuda_event_destroy(staging->done[turn]);
        iv_cuda_pinned_destroy(staging->blocks[turn]);
    }
    iv_free(staging);
}

/* A piece of a copy and the block that carries it. */
typedef struct piece {
    int turn;
    size_t offset, bytes;
    char *block;
    CUdeviceptr block_address; /* the same, as tasks want it */
} piece;

static size_t piece_count(const iv_cuda_staging *staging, size_t bytes) {
    return bytes / staging->bytes + (bytes % staging->bytes != 0);
}

static piece get_piece(const iv_cuda_staging *staging, size_t bytes, size_t index) {
    piece piece = {.turn = (int)(index % TURNS), .offset = index * staging->bytes};
    piece.bytes = bytes - piece.offset < staging->bytes ? bytes - piece.offset : staging->bytes;
    piece.block = staging->blocks[piece.turn]->data;
    piece.block_address = (CUdeviceptr)(uintptr_t)piece.block;
    return piece;
}

static iv_status launch_piece(iv_cuda_staging *staging, const iv_cuda_queue *queue,
                              iv_cuda_task_kind kind, CUdeviceptr to, CUdeviceptr from,
                              const piece *piece, iv_error *error) {
    iv_cuda_task task = {
        .kind = kind, .step = -1, .copy = {.to = to, .from = from, .bytes = piece->bytes}};
    IV_TRY(iv_cuda_launch(queue, &task, error));
    return iv_cuda_event_record(staging->done[piece->turn], queue->stream, error);
}

static iv_status upload_pieces(iv_cuda_staging *staging, const iv_cuda_queue *queue, CUdeviceptr to,
                               const char *from, size_t bytes, iv_error *error) {
    size_t count = piece_count(staging, bytes);
    for (size_t i = 0; i < count; i++) {
        piece piece = get_piece(staging, bytes, i);
        if (i >= TURNS)
            IV_TRY(iv_cuda_event_synchronize(staging->done[piece.turn], error));
        memcpy(piece.block, from + piece.offset, piece.bytes);
        IV_TRY(launch_piece(staging, queue, IV_CUDA_COPY_TO_DEVICE, to + piece.offset,
                            piece.block_address, &piece, error));
    }
    return IV_OK;
}

/* The device is a block ahead of the host. */
static iv_status download_pieces(iv_cuda_staging *staging, const iv_cuda_queue *queue, char *to,
                                 CUdeviceptr from, size_t bytes, iv_error *error) {
    size_t count = piece_count(staging, bytes);
    for (size_t i = 0; i < count + TURNS - 1; i++) {
        if (i < count) {
            piece ahead = get_piece(staging, bytes, i);
            IV_TRY(launch_piece(staging, queue, IV_CUDA_COPY_TO_HOST, ahead.block_address,
                                from + ahead.offset, &ahead, error));
        }
        if (i >= TURNS - 1 && i - (TURNS - 1) < count) {
            piece piece = get_piece(staging, bytes, i - (TURNS - 1));
            IV_TRY(iv_cuda_event_synchronize(staging->done[piece.turn], error));
            memcpy(to + piece.offset, piece.block, piece.bytes);
        }
    }
    return IV_OK;
}

/* Waits for the stream whatever `status` is: the blocks are used again. */
static iv_status finish(const iv_cuda_queue *queue, iv_status status, iv_error *error) {
    iv_cuda_device *device = queue->stream->device;
    CUresult result = device->driver->cuStreamSynchronize(queue->stream->handle);
    if (status == IV_OK)
        status = iv_cuda_check(device, result, "cuStreamSynchronize", error);
    return iv_cuda_leave(device, status, error);
}

iv_status iv_cuda_upload(iv_cuda_staging *staging, const iv_cuda_queue *queue, CUdeviceptr to,
                         const void *from, size_t bytes, iv_error *error) {
    IV_TRY(iv_cuda_enter(queue->stream->device, error));
    return finish(queue, upload_pieces(staging, queue, to, from, bytes, error), error);
}

iv_status iv_cuda_download(iv_cuda_staging *staging, const iv_cuda_queue *queue, void *to,
                           CUdeviceptr from, size_t bytes, iv_error *error) {
    IV_TRY(iv_cuda_enter(queue->stream->device, error));
    return finish(queue, download_pieces(staging, queue, to, from, bytes, error), error);
}
