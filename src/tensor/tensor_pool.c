#include "tensor/tensor_pool.h"

#include <pthread.h>

#include "base/allocation.h"

/* More than a run of a large network has at a time; loops that gather tensors in a sequence may
 * have any number. */
#define MOST_WAITING 4096

/* AddressSanitizer watches waiting tensors as if they had been freed. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHES_ADDRESSES
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(WATCHES_ADDRESSES)
#include <sanitizer/asan_interface.h>
#define FORBID(tensor) ASAN_POISON_MEMORY_REGION((tensor), sizeof *(tensor))
#define ALLOW(tensor) ASAN_UNPOISON_MEMORY_REGION((tensor), sizeof *(tensor))
#else
#define FORBID(tensor) (void)(tensor)
#define ALLOW(tensor) (void)(tensor)
#endif

/* Lives until it is closed and its last tensor is gone. */
struct iv_tensor_pool {
    pthread_mutex_t lock; /* of all that follows */
    iv_tensor *waiting;
    int waiting_count;
    int64_t used_count; /* tensors that have this as their home and do not wait */
    bool closed;
};

static _Thread_local iv_tensor_pool *current_pool;

iv_tensor_pool *iv_tensor_pool_create(void) {
    iv_tensor_pool *pool = iv_allocate_array(1, sizeof *pool);
    if (pool != NULL)
        pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

/* Unlocks, and frees a pool that nobody needs any more. */
static void unlock(iv_tensor_pool *pool) {
    bool needed = !pool->closed || pool->used_count > 0;
    pthread_mutex_unlock(&pool->lock);
    if (needed)
        return;
    pthread_mutex_destroy(&pool->lock);
    iv_free(pool);
}

/* The tensor that waits in front, which there is. */
static iv_tensor *take_first(iv_tensor_pool *pool) {
    iv_tensor *tensor = pool->waiting;
    ALLOW(tensor);
    pool->waiting = tensor->next;
    pool->waiting_count--;
    return tensor;
}

void iv_tensor_pool_close(iv_tensor_pool *pool) {
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    while (pool->waiting != NULL)
        iv_free(take_first(pool));
    unlock(pool);
}

iv_tensor_pool *iv_tensor_pool_enter(iv_tensor_pool *pool) {
    iv_tensor_pool *before = current_pool;
    current_pool = pool;
    return before;
}

iv_tensor *iv_tensor_pool_take(iv_tensor_pool **home) {
    iv_tensor_pool *pool = *home = current_pool;
    if (pool == NULL)
        return iv_allocate(sizeof(iv_tensor));
    pthread_mutex_lock(&pool->lock);
    iv_tensor *tensor = pool->waiting != NULL ? take_first(pool) : iv_allocate(sizeof *tensor);
    pool->used_count += tensor != NULL;
    pthread_mutex_unlock(&pool->lock);
    return tensor;
}

void iv_tensor_pool_give(iv_tensor *tensor) {
    iv_tensor_pool *pool = tensor->home;
    if (pool == NULL) {
        iv_free(tensor);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->used_count--;
    if (pool->closed || pool->waiting_count == MOST_WAITING) {
        iv_free(tensor);
    } else {
        tensor->next = pool->waiting;
        pool->waiting = tensor;
        pool->waiting_count++;
        FORBID(tensor);
    }
    unlock(pool);
}
