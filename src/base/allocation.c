#include "base/allocation.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Each block starts with a header that remembers its size; the header takes a whole alignment unit so that
 * the block behind it stays aligned. */
typedef struct header {
    size_t bytes;
} header;

static atomic_llong live_blocks, live_bytes, peak_bytes, allocations;
static atomic_llong successes_left = -1;
static atomic_bool fail_forever;

static bool must_fail(void) {
    long long left = atomic_load_explicit(&successes_left, memory_order_relaxed);
    if (left < 0)
        return false;
    left = atomic_fetch_sub(&successes_left, 1);
    if (left > 0)
        return false;
    /* left == 0 is the allocation to fail; below that, only `forever` keeps failing. */
    if (atomic_load(&fail_forever)) {
        atomic_store(&successes_left, 0);
        return true;
    }
    return left == 0;
}

static void count_block(size_t bytes, int sign) {
    atomic_fetch_add_explicit(&live_blocks, sign, memory_order_relaxed);
    long long now = atomic_fetch_add_explicit(&live_bytes, sign * (long long)bytes, memory_order_relaxed) +
                    sign * (long long)bytes;
    if (sign < 0)
        return;
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    long long peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) {
    }
}

void *iv_allocate(size_t bytes) {
    if (bytes > SIZE_MAX / 2 || must_fail())
        return NULL;
    size_t rounded = (bytes + IV_ALIGNMENT + IV_ALIGNMENT - 1) / IV_ALIGNMENT * IV_ALIGNMENT;
    char *block = aligned_alloc(IV_ALIGNMENT, rounded);
    if (block == NULL)
        return NULL;
    ((header *)(void *)block)->bytes = bytes;
    count_block(bytes, 1);
    return block + IV_ALIGNMENT;
}

void *iv_allocate_array(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *block = iv_allocate(bytes);
    if (block != NULL)
        memset(block, 0, bytes);
    return block;
}

void *iv_reallocate(void *block, size_t bytes) {
    if (block == NULL)
        return iv_allocate(bytes);
    void *larger = iv_allocate(bytes);
    if (larger == NULL)
        return NULL;
    size_t old = ((header *)(void *)((char *)block - IV_ALIGNMENT))->bytes;
    memcpy(larger, block, old < bytes ? old : bytes);
    iv_free(block);
    return larger;
}

bool iv_grow(void **array, size_t *capacity, size_t count, size_t size) {
    if (count <= *capacity)
        return true;
    size_t larger = *capacity < 8 ? 8 : *capacity;
    while (larger < count) {
        if (larger > SIZE_MAX / 2)
            return false;
        larger *= 2;
    }
    size_t bytes;
    if (__builtin_mul_overflow(larger, size, &bytes))
        return false;
    void *moved = iv_reallocate(*array, bytes);
    if (moved == NULL)
        return false;
    *array = moved;
    *capacity = larger;
    return true;
}

void iv_free(void *block) {
    if (block == NULL)
        return;
    char *start = (char *)block - IV_ALIGNMENT;
    count_block(((header *)(void *)start)->bytes, -1);
    free(start);
}

char *iv_duplicate_string(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = iv_allocate(bytes);
    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

iv_allocation_counters iv_allocation_count(void) {
    return (iv_allocation_counters){
        .live_blocks = atomic_load(&live_blocks),
        .live_bytes = atomic_load(&live_bytes),
        .peak_bytes = atomic_load(&peak_bytes),
        .allocations = atomic_load(&allocations),
    };
}

void iv_allocation_fail_after(int64_t successes, bool forever) {
    atomic_store(&fail_forever, forever);
    atomic_store(&successes_left, successes);
}
