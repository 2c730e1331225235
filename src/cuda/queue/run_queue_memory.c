/* Blocks of device memory that storages of a queue use again and again. */
#include <pthread.h>

#include "base/allocation.h"
#include "cuda/queue/run_queue.h"

/* Blocks that are kept for later; the oldest goes. */
#define KEPT_BLOCKS 64
#define BLOCK_ALIGNMENT 512

/* A block of device memory with its storage, in use or in the list of those that wait. */
typedef struct pool_block {
    sb_storage storage;
    struct sb_cuda_block_pool *pool;
    sb_cuda_memory *memory;
    struct pool_block *next;
} pool_block;

/* Lives as long as its queue or a storage. */
struct sb_cuda_block_pool {
    atomic_int references;
    sb_cuda_device *device;
    pthread_mutex_t lock;
    pool_block *kept; /* given back last first; under the lock */
    int kept_count;
    bool closed; /* the queue is gone: nothing is kept any more; under the lock */
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

static void release_pool(struct sb_cuda_block_pool *pool) {
    if (atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&pool->lock);
    sb_cuda_device_release(pool->device);
    sb_free(pool);
}

static pool_block *take_all(struct sb_cuda_block_pool *pool, bool close) {
    pthread_mutex_lock(&pool->lock);
    pool_block *kept = pool->kept;
    pool->kept = NULL;
    pool->kept_count = 0;
    pool->closed = pool->closed || close;
    pthread_mutex_unlock(&pool->lock);
    return kept;
}

/* The smaller block, and of equal ones that with the lower address: not the one given back last, since callers who let
 * go of outputs in changing order would get them in as many orders, and a graph is for one. */
static bool comes_before(const sb_cuda_memory *left, const sb_cuda_memory *right) {
    return left->bytes != right->bytes ? left->bytes < right->bytes : left->address < right->address;
}

/* The smallest kept block that is large enough and not more than twice as large, or NULL. */
static pool_block *take_kept(struct sb_cuda_block_pool *pool, size_t bytes) {
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
static pool_block *take_kept_at(struct sb_cuda_block_pool *pool, CUdeviceptr address, size_t bytes) {
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
    struct sb_cuda_block_pool *pool = block->pool;
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
static sb_status make_block(struct sb_cuda_block_pool *pool, size_t bytes, pool_block **made, sb_error *error) {
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
static sb_storage *use(const sb_queue *queue, pool_block *block, size_t bytes) {
    atomic_fetch_add_explicit(&block->pool->references, 1, memory_order_relaxed);
    block->storage = (sb_storage){.references = 1,
                                  .data = (void *)(uintptr_t)block->memory->address,
                                  .bytes = bytes,
                                  .release = give_back,
                                  .context = block,
                                  .device = queue->device,
                                  .device_index = queue->device_index,
                                  .embedded = true};
    return &block->storage;
}

static struct sb_cuda_block_pool *pool_of(sb_queue *queue) {
    return ((sb_cuda_run_queue *)queue)->pool;
}

sb_status sb_cuda_run_queue_storage(sb_queue *queue, size_t bytes, sb_storage **storage, sb_error *error) {
    size_t rounded =
        bytes > SIZE_MAX - BLOCK_ALIGNMENT ? bytes : (bytes + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
    pool_block *block = take_kept(pool_of(queue), rounded);
    if (block == NULL)
        SB_TRY(make_block(pool_of(queue), rounded, &block, error));
    *storage = use(queue, block, bytes);
    return SB_OK;
}

sb_storage *sb_cuda_run_queue_storage_at(sb_queue *queue, const void *data, size_t bytes) {
    pool_block *block = take_kept_at(pool_of(queue), (CUdeviceptr)(uintptr_t)data, bytes);
    return block != NULL ? use(queue, block, bytes) : NULL;
}

sb_status sb_cuda_block_pool_create(sb_cuda_run_queue *queue, sb_error *error) {
    struct sb_cuda_block_pool *pool = sb_allocate_array(1, sizeof *pool);
    if (pool == NULL)
        return sb_fail_memory(error, sizeof *pool);
    atomic_init(&pool->references, 1);
    pthread_mutex_init(&pool->lock, NULL);
    pool->device = sb_cuda_device_retain(queue->base.device);
    queue->pool = pool;
    return SB_OK;
}

void sb_cuda_block_pool_close(struct sb_cuda_block_pool *pool) {
    if (pool == NULL)
        return;
    free_blocks(take_all(pool, true));
    release_pool(pool);
}
