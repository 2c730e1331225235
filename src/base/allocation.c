#define _GNU_SOURCE /* madvise */
#include "base/allocation.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE_PAGE ((size_t)2 << 20)

struct sb_memory_budget {
    atomic_llong references; /* the creator's, and one for each block */
    atomic_llong used;
    int64_t limit;
};

/* Each block starts with a header that remembers its size and who pays; the header takes a whole alignment unit so that
 * the block behind it stays aligned. */
typedef struct header {
    size_t bytes;
    sb_memory_budget *budget; /* may be NULL */
} header;

static _Thread_local sb_memory_budget *current_budget;

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
    long long now =
        atomic_fetch_add_explicit(&live_bytes, sign * (long long)bytes, memory_order_relaxed) + sign * (long long)bytes;
    if (sign < 0)
        return;
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    long long peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) {
    }
}

/* Takes `bytes` from the thread's budget, if it has one. */
static bool charge(size_t bytes) {
    sb_memory_budget *budget = current_budget;
    if (budget == NULL)
        return true;
    if (bytes > (size_t)budget->limit)
        return false;
    long long before = atomic_fetch_add_explicit(&budget->used, (long long)bytes, memory_order_relaxed);
    if (before > budget->limit || (long long)bytes > budget->limit - before) {
        atomic_fetch_sub_explicit(&budget->used, (long long)bytes, memory_order_relaxed);
        return false;
    }
    atomic_fetch_add_explicit(&budget->references, 1, memory_order_relaxed);
    return true;
}

static void refund(sb_memory_budget *budget, size_t bytes) {
    if (budget == NULL)
        return;
    atomic_fetch_sub_explicit(&budget->used, (long long)bytes, memory_order_relaxed);
    sb_memory_budget_release(budget);
}

void *sb_allocate(size_t bytes) {
    if (bytes > SIZE_MAX / 2 || must_fail() || !charge(bytes))
        return NULL;
    size_t rounded = (bytes + SB_ALIGNMENT + SB_ALIGNMENT - 1) / SB_ALIGNMENT * SB_ALIGNMENT;
    char *block = aligned_alloc(SB_ALIGNMENT, rounded);
    if (block == NULL) {
        refund(current_budget, bytes);
        return NULL;
    }
    *(header *)(void *)block = (header){bytes, current_budget};
    count_block(bytes, 1);
    return block + SB_ALIGNMENT;
}

void sb_allocation_wants_large_pages(void *block) {
    uintptr_t start = (uintptr_t)block;
    uintptr_t end = start + ((header *)(void *)((char *)block - SB_ALIGNMENT))->bytes;
    uintptr_t first = (start + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE, last = end / LARGE_PAGE * LARGE_PAGE;
    if (first < last)
        (void)madvise((char *)block + (first - start), last - first,
                      MADV_HUGEPAGE); /* a hint: a machine may have none */
}

void *sb_allocate_array(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *block = sb_allocate(bytes);
    if (block != NULL)
        memset(block, 0, bytes);
    return block;
}

void *sb_reallocate(void *block, size_t bytes) {
    if (block == NULL)
        return sb_allocate(bytes);
    void *larger = sb_allocate(bytes);
    if (larger == NULL)
        return NULL;
    size_t old = ((header *)(void *)((char *)block - SB_ALIGNMENT))->bytes;
    memcpy(larger, block, old < bytes ? old : bytes);
    sb_free(block);
    return larger;
}

bool sb_grow(void **array, size_t *capacity, size_t count, size_t size) {
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
    void *moved = sb_reallocate(*array, bytes);
    if (moved == NULL)
        return false;
    *array = moved;
    *capacity = larger;
    return true;
}

void sb_free(void *block) {
    if (block == NULL)
        return;
    char *start = (char *)block - SB_ALIGNMENT;
    header about = *(header *)(void *)start;
    count_block(about.bytes, -1);
    free(start);
    refund(about.budget, about.bytes);
}

sb_memory_budget *sb_memory_budget_create(int64_t limit) {
    /* The budget is charged to nobody: the last block that it pays for frees it. */
    sb_memory_budget *before = sb_memory_budget_enter(NULL);
    sb_memory_budget *budget = sb_allocate_array(1, sizeof *budget);
    sb_memory_budget_enter(before);
    if (budget == NULL)
        return NULL;
    atomic_init(&budget->references, 1);
    budget->limit = limit;
    return budget;
}

void sb_memory_budget_release(sb_memory_budget *budget) {
    if (budget != NULL && atomic_fetch_sub_explicit(&budget->references, 1, memory_order_acq_rel) == 1)
        sb_free(budget);
}

sb_memory_budget *sb_memory_budget_enter(sb_memory_budget *budget) {
    sb_memory_budget *before = current_budget;
    current_budget = budget;
    return before;
}

int64_t sb_memory_budget_limit(int64_t *used) {
    const sb_memory_budget *budget = current_budget;
    if (used != NULL)
        *used = budget != NULL ? atomic_load_explicit(&budget->used, memory_order_relaxed) : 0;
    return budget != NULL ? budget->limit : INT64_MAX;
}

char *sb_duplicate_string(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = sb_allocate(bytes);
    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

sb_allocation_counters sb_allocation_count(void) {
    return (sb_allocation_counters){
        .live_blocks = atomic_load(&live_blocks),
        .live_bytes = atomic_load(&live_bytes),
        .peak_bytes = atomic_load(&peak_bytes),
        .allocations = atomic_load(&allocations),
    };
}

void sb_allocation_fail_after(int64_t successes, bool forever) {
    atomic_store(&fail_forever, forever);
    atomic_store(&successes_left, successes);
}
