/* Memory: the one door through which the library allocates, so that tests can count what is live and make
 * any allocation fail. */
#ifndef IV_BASE_ALLOCATION_H
#define IV_BASE_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The alignment of every block: one cache line, and one zmm register. */
#define IV_ALIGNMENT 64

/** Allocates `bytes` bytes (0 gives a unique block), aligned to IV_ALIGNMENT and not initialised; NULL on failure. */
void *iv_allocate(size_t bytes);

/** Allocates `count` × `size` zeroed bytes; NULL on failure or when the product overflows. */
void *iv_allocate_array(size_t count, size_t size);

/** Resizes a block that `iv_allocate*` or this function gave; the old block stays when NULL is returned.
 * Bytes past the old size are not initialised. */
void *iv_reallocate(void *block, size_t bytes);

/** Grows `*array` (elements of `size` bytes, `*capacity` of them) so that it holds at least `count`.
 * Doubles, so that appending is linear. False on failure, with everything unchanged. */
bool iv_grow(void **array, size_t *capacity, size_t count, size_t size);

/** Frees a block. NULL is allowed. */
void iv_free(void *block);

/** A copy of a NUL-terminated string; NULL on failure. */
char *iv_duplicate_string(const char *text);

/** What the allocator has done, for tests and reports. */
typedef struct iv_allocation_counters {
    int64_t live_blocks;
    int64_t live_bytes;
    int64_t peak_bytes;
    int64_t allocations; /* since the process began */
} iv_allocation_counters;

iv_allocation_counters iv_allocation_count(void);

/** Makes the allocation after the next `successes` ones fail, and every later one too when `forever`.
 * A negative number switches the failures off. For tests only. */
void iv_allocation_fail_after(int64_t successes, bool forever);

#endif
