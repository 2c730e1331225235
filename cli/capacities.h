/* Capacities from the command line: --capacity. */
#ifndef CLI_CAPACITIES_H
#define CLI_CAPACITIES_H

#include "support.h"

#define CAPACITY_OPTION                                                                                                \
    {                                                                                                                  \
        "capacity", "SYMBOL=N", true,                                                                                  \
            "Plan a symbolic extent once for at most N, so that runs with others share the plan; with M..N, for M, "   \
            "2*M, … and N. A state that --state makes may then grow along it"                                        \
    }

/** What --capacity asks for: `*items` is NULL where it asks for nothing. The caller frees it with free_capacities.
 * Exit codes as in options.h, after printing what is wrong. */
int read_capacities(const arguments *arguments, sb_capacity **items, int *count);
void free_capacities(sb_capacity *items, int count);

#endif
