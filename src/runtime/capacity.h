/* Capacities: the symbols of a session that are planned by the most that they may be. */
#ifndef SB_RUNTIME_CAPACITY_H
#define SB_RUNTIME_CAPACITY_H

#include <samebit/capacity.h>

#include "runtime/program.h"

typedef struct sb_capacities {
    const sb_program *program; /* the session's; nested graphs are planned exactly */
    int count;
    sb_capacity *items; /* symbols owned */
    /* Of the run in progress. */
    int64_t *extents;    /* by item: what the symbol is; -1 where no input says so */
    int64_t *buckets;    /* by item: the capacity of the plan that holds it */
    bool *shrunk;        /* by item: the bucket is less than the extent alone would get */
    sb_binding run;      /* all symbols of its inputs, borrowed */
    const char *refused; /* why no plan of the session makes use of them; static; NULL: some may */
} sb_capacities;

/** INVALID_ARGUMENT for a capacity that is none. */
sb_status sb_capacity_check(const sb_capacity *capacity, sb_error *error);

/** Whether an input, or a variable, of the program has an extent in which the symbol occurs. */
bool sb_capacities_of_program(const sb_program *program, const char *symbol);

/** Copies `count` capacities for a program; two of one symbol, or of one that its inputs do not have, are refused
 * (INVALID_ARGUMENT). The caller destroys *capacities. */
sb_status sb_capacities_create(const sb_program *program, int count, const sb_capacity *items,
                               sb_capacities **capacities, sb_error *error);
/** NULL is allowed. */
void sb_capacities_destroy(sb_capacities *capacities);

/** Before a run, whose symbols are `run` (borrowed until the next one): which plan it needs. Errors: SHAPE for an extent
 * beyond its capacity. */
sb_status sb_capacities_choose(sb_capacities *capacities, const sb_binding *run, sb_error *error);

/** After a plan for these buckets has turned out to hold no more than `planned` of each symbol: chooses the next larger
 * ones, or, where a symbol's capacity is reached, less of those that `add` to what grows towards it. Errors: SHAPE when
 * the run has no room. */
sb_status sb_capacities_enlarge(sb_capacities *capacities, const int64_t *planned, const bool *add, sb_error *error);

/** Which of the symbols occurs in the formula; -1: none. */
int sb_capacities_find(const sb_capacities *capacities, sb_dim formula);

#endif
