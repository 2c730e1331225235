#include "tensor/tensor_pool.h"

#include <pthread.h>

#include "base/allocation.h"
#include "base/sanitizer.h"

/* More than a run of a large network has at a time; loops that gather tensors in a sequence may
 * have any number. */
#define MOST_WAITING 4096

/* AddressSanitizer watches waiting tensors as if they had been freed. */
#if SB_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define FORBID(tensor) ASAN_POISON_MEMORY_REGION((tensor), sizeof *(tensor))
#define ALLOW(tensor) ASAN_UNPOISON_MEMORY_REGION((tensor), sizeof *(tensor))
#else
#define FORBID(tensor) (void)(tensor)
#define ALLOW(tensor) (void)(tensor)
#endif

/* Lives until it is closed and its last tensor is gone. */
struct sb_tensor_pool {
    pthread_mutex_t lock; /* of all that follows */
    sb_tensor *waiting;
    int waiting_count;
    int64_t used_count; /* tensors that have this as their home and do not wait */
    bool closed;
};

static _Thread_local sb_tensor_pool *current_pool;

sb_tensor_pool *sb_tensor_pool_create(void) {
    sb_tensor_pool *pool = sb_allocate_array(1, sizeof *pool);
    if (pool != NULL)
        pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

/* Unlocks, and frees a pool that nobody needs any more. */
static void unlock(sb_tensor_pool *pool) {
    bool needed = !pool->closed || pool->used_count > 0;
    pthread_mutex_unlock(&pool->lock);
    if (needed)
        return;
    pthread_mutex_destroy(&pool->lock);
    sb_free(pool);
}

/* The tensor that waits in front, which there is. */
static sb_tensor *take_first(sb_tensor_pool *pool) {
    sb_tensor *tensor = pool->waiting;
    ALLOW(tensor);
    pool->waiting = tensor->next;
    pool->waiting_count--;
    return tensor;
}

void sb_tensor_pool_close(sb_tensor_pool *pool) {
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    while (pool->waiting != NULL)
        sb_free(take_first(pool));
    unlock(pool);
}

sb_tensor_pool *sb_tensor_pool_enter(sb_tensor_pool *pool) {
    sb_tensor_pool *before = current_pool;
    current_pool = pool;
    return before;
}

sb_tensor *sb_tensor_pool_take(sb_tensor_pool **home) {
    sb_tensor_pool *pool = *home = current_pool;
    if (pool == NULL)
        return sb_allocate(sizeof(sb_tensor));
    pthread_mutex_lock(&pool->lock);
    sb_tensor *tensor = pool->waiting != NULL ? take_first(pool) : sb_allocate(sizeof *tensor);
    pool->used_count += tensor != NULL;
    pthread_mutex_unlock(&pool->lock);
    return tensor;
}

bool sb_tensor_pool_reserve(size_t count) {
    sb_tensor_pool *pool = current_pool;
    sb_tensor *fresh = NULL;
    if (pool == NULL)
        return true;
    pthread_mutex_lock(&pool->lock);
    do {
        fresh = (size_t)pool->waiting_count < count && pool->waiting_count < MOST_WAITING ? sb_allocate(sizeof *fresh)
                                                                                          : NULL;
        if (fresh == NULL)
            break;
        fresh->next = pool->waiting;
        pool->waiting = fresh;
        pool->waiting_count++;
        FORBID(fresh);
    } while (true);
    bool enough = (size_t)pool->waiting_count >= count || pool->waiting_count == MOST_WAITING;
    pthread_mutex_unlock(&pool->lock);
    return enough;
}

void sb_tensor_pool_give(sb_tensor *tensor) {
    sb_tensor_pool *pool = tensor->home;
    if (pool == NULL) {
        sb_free(tensor);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->used_count--;
    if (pool->closed || pool->waiting_count == MOST_WAITING) {
        sb_free(tensor);
    } else {
        tensor->next = pool->waiting;
        pool->waiting = tensor;
        pool->waiting_count++;
        FORBID(tensor);
    }
    unlock(pool);
}
