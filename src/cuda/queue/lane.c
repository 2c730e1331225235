#include "cuda/queue/lane.h"

#include <string.h>

#include "base/allocation.h"
#include "cuda/common/compute.h"

/* Bytes of each of the two pinned blocks that copies go through: large enough that a block's fixed
 * costs (some 10 us) do not show beside its transfer (20 GB/s and more). */
#define STAGING_BYTES (4u << 20)
/* Blocks that are kept for later; the oldest goes. */
#define KEPT_BLOCKS 64
#define BLOCK_ALIGNMENT 512

/* ---- the pool ---- */

/* A block of device memory with its storage, in use or in the list of those that wait. */
typedef struct pool_block {
    sb_storage storage;
    struct sb_lane_pool *pool;
    sb_cuda_memory *memory;
    struct pool_block *next;
} pool_block;

/* Lives as long as its lane or a storage. */
struct sb_lane_pool {
    atomic_int references;
    sb_cuda_device *device;
    pthread_mutex_t lock;
    pool_block *kept; /* given back last first; under the lock */
    int kept_count;
    bool closed; /* the lane is gone: nothing is kept any more; under the lock */
};

static void free_block(pool_block *block) {
    sb_cuda_memory_release(block->memory);
    sb_free(block);
}

static void free_blocks(pool_block *block) {
    while (block != NULL) {
        pool_block *next = block->next;
        free_block(block);
        block = next;
    }
}

static void release_pool(struct sb_lane_pool *pool) {
    if (atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&pool->lock);
    sb_cuda_device_release(pool->device);
    sb_free(pool);
}

static pool_block *take_all(struct sb_lane_pool *pool, bool close) {
    pthread_mutex_lock(&pool->lock);
    pool_block *kept = pool->kept;
    pool->kept = NULL;
    pool->kept_count = 0;
    pool->closed = pool->closed || close;
    pthread_mutex_unlock(&pool->lock);
    return kept;
}

/* The smaller block, and of equal ones that with the lower address: not the one given back last, since callers who let go of
 * outputs in changing order would get them in as many orders, and a graph is for one. */
static bool comes_before(const sb_cuda_memory *left, const sb_cuda_memory *right) {
    return left->bytes != right->bytes ? left->bytes < right->bytes : left->address < right->address;
}

/* The smallest kept block that is large enough and not more than twice as large, or NULL. */
static pool_block *take_kept(struct sb_lane_pool *pool, size_t bytes) {
    pool_block **best = NULL, *taken = NULL;
    pthread_mutex_lock(&pool->lock);
    for (pool_block **link = &pool->kept; *link != NULL; link = &(*link)->next) {
        const sb_cuda_memory *has = (*link)->memory;
        if (has->bytes >= bytes && has->bytes / 2 <= bytes && (best == NULL || comes_before(has, (*best)->memory)))
            best = link;
    }
    if (best != NULL) {
        taken = *best;
        *best = taken->next;
        pool->kept_count--;
    }
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

/* The kept block at an address, or NULL. */
static pool_block *take_kept_at(struct sb_lane_pool *pool, CUdeviceptr address, size_t bytes) {
    pool_block *taken = NULL;
    pthread_mutex_lock(&pool->lock);
    for (pool_block **link = &pool->kept; *link != NULL; link = &(*link)->next) {
        if ((*link)->memory->address != address || (*link)->memory->bytes < bytes)
            continue;
        taken = *link;
        *link = taken->next;
        pool->kept_count--;
        break;
    }
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

/* A storage's release: the block waits for the next storage. */
static void give_back(void *context) {
    pool_block *block = context, *surplus = NULL;
    struct sb_lane_pool *pool = block->pool;
    pthread_mutex_lock(&pool->lock);
    if (pool->closed) {
        surplus = block;
        surplus->next = NULL;
    } else {
        block->next = pool->kept;
        pool->kept = block;
        if (++pool->kept_count > KEPT_BLOCKS) {
            pool_block **last = &pool->kept;
            while ((*last)->next != NULL)
                last = &(*last)->next;
            surplus = *last;
            *last = NULL;
            pool->kept_count--;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    free_blocks(surplus);
    release_pool(pool);
}

/* Allocates; when the device has no more, once again after letting go of what is kept. */
static sb_status make_block(struct sb_lane_pool *pool, size_t bytes, pool_block **made, sb_error *error) {
    pool_block *block = sb_allocate_array(1, sizeof *block);
    if (block == NULL)
        return sb_fail_memory(error, sizeof *block);
    block->pool = pool;
    sb_status status = sb_cuda_memory_create(pool->device, bytes, &block->memory, error);
    if (status == SB_ERROR_OUT_OF_MEMORY) {
        free_blocks(take_all(pool, false));
        status = sb_cuda_memory_create(pool->device, bytes, &block->memory, error);
    }
    if (status != SB_OK) {
        sb_free(block);
        return status;
    }
    *made = block;
    return SB_OK;
}

/* The storage of a block, in use from now on. */
static sb_storage *use(sb_lane *lane, pool_block *block, size_t bytes) {
    atomic_fetch_add_explicit(&lane->pool->references, 1, memory_order_relaxed);
    block->storage = (sb_storage){.references = 1,
                                  .data = (void *)(uintptr_t)block->memory->address,
                                  .bytes = bytes,
                                  .release = give_back,
                                  .context = block,
                                  .device = lane->device,
                                  .device_index = lane->device->index,
                                  .embedded = true};
    return &block->storage;
}

sb_status sb_lane_storage(sb_lane *lane, size_t bytes, sb_storage **storage, sb_error *error) {
    size_t rounded =
        bytes > SIZE_MAX - BLOCK_ALIGNMENT ? bytes : (bytes + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
    pool_block *block = take_kept(lane->pool, rounded);
    if (block == NULL)
        SB_TRY(make_block(lane->pool, rounded, &block, error));
    *storage = use(lane, block, bytes);
    return SB_OK;
}

sb_storage *sb_lane_storage_at(sb_lane *lane, const void *data, size_t bytes) {
    pool_block *block = take_kept_at(lane->pool, (CUdeviceptr)(uintptr_t)data, bytes);
    return block != NULL ? use(lane, block, bytes) : NULL;
}

/* ---- a lane ---- */

static sb_status create_pool(sb_lane *lane, sb_error *error) {
    struct sb_lane_pool *pool = sb_allocate_array(1, sizeof *pool);
    if (pool == NULL)
        return sb_fail_memory(error, sizeof *pool);
    atomic_init(&pool->references, 1);
    pthread_mutex_init(&pool->lock, NULL);
    pool->device = sb_cuda_device_retain(lane->device);
    lane->pool = pool;
    return SB_OK;
}

static sb_status fill_lane(sb_lane *lane, void *stream, sb_error *error) {
    if (stream != NULL)
        SB_TRY(sb_cuda_stream_wrap(lane->device, stream, &lane->queue.stream, error));
    else
        SB_TRY(sb_cuda_stream_create(lane->device, &lane->queue.stream, error));
    SB_TRY(sb_cuda_staging_create(lane->device, STAGING_BYTES, &lane->staging, error));
    return create_pool(lane, error);
}

sb_status sb_lane_create(sb_cuda_device *device, void *stream, sb_lane **lane, sb_error *error) {
    sb_lane *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->device = sb_cuda_device_retain(device);
    sb_status status = fill_lane(fresh, stream, error);
    if (status != SB_OK) {
        sb_lane_destroy(fresh);
        return status;
    }
    *lane = fresh;
    return SB_OK;
}

void sb_lane_destroy(sb_lane *lane) {
    if (lane == NULL)
        return;
    if (lane->queue.stream != NULL)
        (void)sb_cuda_stream_synchronize(lane->queue.stream, NULL);
    if (lane->pool != NULL) {
        free_blocks(take_all(lane->pool, true));
        release_pool(lane->pool);
    }
    sb_cuda_staging_destroy(lane->staging);
    sb_cuda_stream_destroy(lane->queue.stream);
    sb_cuda_device_release(lane->device);
    sb_free(lane);
}

/* ---- copies ---- */

static CUdeviceptr address_of(const sb_tensor *tensor) {
    return (CUdeviceptr)(uintptr_t)tensor->data;
}

static size_t bytes_of(const sb_tensor *tensor) {
    return (size_t)sb_tensor_elements(tensor) * sb_dtype_size(tensor->dtype);
}

sb_status sb_lane_to_device(sb_lane *lane, sb_tensor *source, sb_tensor **tensor, sb_error *error) {
    sb_storage *storage;
    SB_TRY(sb_lane_storage(lane, bytes_of(source), &storage, error));
    sb_status status =
        sb_tensor_over(storage, storage->data, source->dtype, source->rank, source->dims, NULL, tensor, error);
    sb_storage_release(storage);
    if (status != SB_OK)
        return status;
    status = sb_lane_upload(lane, *tensor, source, error);
    if (status != SB_OK) {
        sb_tensor_release(*tensor);
        *tensor = NULL;
    }
    return status;
}

sb_status sb_lane_upload(sb_lane *lane, const sb_tensor *to, sb_tensor *from, sb_error *error) {
    sb_tensor *dense;
    SB_TRY(sb_tensor_contiguous(from, &dense, error));
    sb_status status = sb_cuda_upload(lane->staging, &lane->queue, address_of(to), dense->data, bytes_of(to), error);
    sb_tensor_release(dense);
    return status;
}

/* A view is packed on the device first. */
static sb_status pack(sb_lane *lane, const sb_tensor *from, sb_tensor **packed, sb_error *error) {
    sb_storage *storage;
    SB_TRY(sb_lane_storage(lane, bytes_of(from), &storage, error));
    sb_status status = sb_tensor_over(storage, storage->data, from->dtype, from->rank, from->dims, NULL, packed, error);
    sb_storage_release(storage);
    if (status != SB_OK)
        return status;
    status = sb_lane_copy(lane, -1, *packed, from, error);
    if (status != SB_OK)
        sb_tensor_release(*packed);
    return status;
}

sb_status sb_lane_download(sb_lane *lane, const sb_tensor *to, const sb_tensor *from, sb_error *error) {
    sb_tensor *packed = NULL;
    if (!sb_tensor_is_contiguous(from))
        SB_TRY(pack(lane, from, &packed, error));
    sb_status status = sb_cuda_download(lane->staging, &lane->queue, to->data,
                                        address_of(packed != NULL ? packed : from), bytes_of(to), error);
    sb_tensor_release(packed);
    return status;
}

sb_status sb_lane_copy(sb_lane *lane, int step, const sb_tensor *to, const sb_tensor *from, sb_error *error) {
    const sb_cuda_kernel *kernel;
    SB_TRY(sb_cuda_find_copy(lane->device, to->dtype, &kernel, error));
    return sb_cuda_launch_copy(&lane->queue, step, kernel, to, from, error);
}

sb_status sb_lane_wait(sb_lane *lane, sb_error *error) {
    return sb_cuda_stream_synchronize(lane->queue.stream, error);
}
