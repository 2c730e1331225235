/* Capacities: symbolic extents that grow or vary from run to run, planned once for the most that they may be. */
#ifndef SAMEBIT_CAPACITY_H
#define SAMEBIT_CAPACITY_H

#include <stdint.h>

/** A symbolic extent of a model that is planned by its capacity: runs in which it has different values share a plan, and
 * on a device a recording. No bit of a result depends on it. */
typedef struct sb_capacity {
    const char *symbol;
    int64_t capacity; /**< the most that the extent may be, at least 1 */
    /** Plans are made for least, twice that, four times …, and for the capacity, the smallest that holds the extent being
     * the one that runs; 0: for the capacity alone. */
    int64_t least;
} sb_capacity;

#endif
