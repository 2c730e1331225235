/* Memory: the one door through which the library allocates, so that tests can count what is live and make
 * any allocation fail. */
#ifndef SB_BASE_ALLOCATION_H
#define SB_BASE_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The alignment of every block: one cache line, and one zmm register. */
#define SB_ALIGNMENT 64

/** Allocates `bytes` bytes (0 gives a unique block), aligned to SB_ALIGNMENT and not initialised; NULL on failure. */
void *sb_allocate(size_t bytes);

/** Allocates `count` × `size` zeroed bytes; NULL on failure or when the product overflows. */
void *sb_allocate_array(size_t count, size_t size);

/** Resizes a block that `sb_allocate*` or this function gave; the old block stays when NULL is returned.
 * Bytes past the old size are not initialised. */
void *sb_reallocate(void *block, size_t bytes);

/** Grows `*array` (elements of `size` bytes, `*capacity` of them) so that it holds at least `count`.
 * Doubles, so that appending is linear. False on failure, with everything unchanged. */
bool sb_grow(void **array, size_t *capacity, size_t count, size_t size);

/** Asks the system for pages of 2 MiB wherever whole ones lie in a block that sb_allocate* gave and nobody has written yet:
 * for what is read again and again from one end to the other, such as packed weights. A hint, which changes nothing else. */
void sb_allocation_wants_large_pages(void *block);

/** Frees a block. NULL is allowed. */
void sb_free(void *block);

/** A copy of a NUL-terminated string; NULL on failure. */
char *sb_duplicate_string(const char *text);

/** What the allocator has done, for tests and reports. */
typedef struct sb_allocation_counters {
    int64_t live_blocks;
    int64_t live_bytes;
    int64_t peak_bytes;
    int64_t allocations; /* since the process began */
} sb_allocation_counters;

sb_allocation_counters sb_allocation_count(void);

/* ---- budgets ---- */

/** A bound on the bytes that are allocated on behalf of somebody (a session, say) and not yet freed. Each block
 * remembers its budget, so it may be freed by any thread at any time. */
typedef struct sb_memory_budget sb_memory_budget;

/** Creates a budget of `limit` bytes; NULL when memory runs out. */
sb_memory_budget *sb_memory_budget_create(int64_t limit);
/** Gives up the creator's reference; blocks that are charged to the budget keep it alive. NULL is allowed. */
void sb_memory_budget_release(sb_memory_budget *budget);
/** From now on what this thread allocates is charged to `budget` (NULL: to nobody), and fails where it would exceed the
 * limit. Returns the budget before, to be entered again. */
sb_memory_budget *sb_memory_budget_enter(sb_memory_budget *budget);
/** The limit of the budget that this thread has entered, and what is in use of it (may be NULL);
 * INT64_MAX without one. */
int64_t sb_memory_budget_limit(int64_t *used);

/** Makes the allocation after the next `successes` ones fail, and every later one too when `forever`.
 * A negative number switches the failures off. For tests only. */
void sb_allocation_fail_after(int64_t successes, bool forever);

#endif
