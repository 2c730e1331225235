/* In which order things happen that a device may do in any order, for the emulated pipelines of Hopper. */
#ifndef HOST_SCHEDULES_H
#define HOST_SCHEDULES_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum host_order { HOST_OLDEST_FIRST, HOST_NEWEST_FIRST, HOST_ANY_ORDER } host_order;
typedef enum host_turns {
    HOST_DESCENDING,
    HOST_ASCENDING,
    HOST_SHUFFLED_WARPS,
    HOST_BLOCK_BY_BLOCK /* a cluster's next block only when none of the block's threads can go on */
} host_turns;

/** A schedule. What is not prompt is done when no thread can go on, or before with the probability `hurry`. */
typedef struct host_schedule {
    const char *name;
    bool prompt_loads, prompt_products, prompt_stores; /* done as soon as they are begun */
    bool partial_loads;                                /* copies arrive in parts */
    host_order order;                                  /* of what is waiting to be done */
    host_turns turns;                                  /* of threads */
    uint32_t hurry;                                    /* of 256, each time that all threads have had their turn */
    uint64_t seed;
} host_schedule;

#pragma GCC visibility push(default) /* of what the library host_kernels lends */

/** What kernels run by from now on; NULL: by a random schedule, of which each launch has its own. */
void host_set_schedule(const host_schedule *schedule);

/** The last kernel for Hopper that has run, how often its blocks have used each stage of their rings: the fewest times, and the
 * stages that there were; lines that the copy engine has filled with zeros, as there are none in the matrix; and boxes that it has stored. */
typedef struct host_rings {
    const char *kernel;
    unsigned least_uses, stages, filled, stored;
} host_rings;
host_rings host_last_rings(void);

/* Faults that tests plant, to see that they are found. */
typedef enum host_plant {
    HOST_NO_PLANT,
#define HOST_PLANT(name, meaning) HOST_PLANT_##name,
#include "host_plants.h"
#undef HOST_PLANT
    HOST_PLANTS
} host_plant;

/** Has the emulation do one thing wrong, as a kernel would that has this fault. */
void host_set_plant(host_plant plant);

#pragma GCC visibility pop

#if defined(__cplusplus)
}
#endif

#endif
