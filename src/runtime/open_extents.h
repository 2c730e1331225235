/* Open extents: what a plan knows of extents that differ between its runs, because a symbol has a capacity.
 *
 * Facts are inferred once with such symbols left as symbols, so that every extent that follows from them is a formula. On
 * a device the plan is made of these formulas at the *planned* values of the symbols, and kernels read how many rows are
 * used from a table in the device's memory, which each run fills. On the host steps run at the extents that the run has:
 * the plan's facts have cells in these places, which each run fills, and memory is planned for the planned values. */
#ifndef SB_RUNTIME_OPEN_EXTENTS_H
#define SB_RUNTIME_OPEN_EXTENTS_H

#include "runtime/capacity.h"
#include "runtime/placement.h"
#include "runtime/run_table.h"

struct sb_plan;

/* A number that differs between runs: an extent, or an element that follows from one. */
typedef struct sb_run_scalar {
    sb_dim formula;
    sb_dim cell;     /* what facts on the host have in its place; NULL for elements */
    int64_t planned; /* its value at the planned values of the symbols; an extent never has more */
    int same;        /* an earlier scalar of the same formula, which is evaluated once; -1: none */
} sb_run_scalar;

/* The formula of one scalar or several. */
typedef struct sb_run_formula {
    sb_dim formula;
    int64_t most;   /* an extent never has more, nor less than 0; INT64_MAX where no extent has the formula … */
    int64_t number; /* … and what it is in the run in progress */
} sb_run_formula;

typedef struct sb_open_extents {
    sb_capacities *capacities;
    sb_queue *queue;   /* of the device, or NULL */
    int64_t *buckets;  /* by item: the capacity for which the plan was made … */
    int64_t *planned;  /* … and the symbol's value there, less than that where a variable grows up to the capacity */
    bool *add;         /* by item: the symbol adds to a variable that grows towards the capacity of another one */
    sb_fact *formulas; /* by value: facts with the symbols as symbols */
    bool *touched;     /* by step: an extent, or a known element, of an input or output is open */
    size_t scalar_count, scalar_capacity;
    sb_run_scalar *scalars;
    size_t distinct_count;
    sb_run_formula *distinct; /* what a run evaluates, */
    int *same;                /* and by scalar which of these it is */
    int *extents;             /* by value and axis (SB_MAX_RANK of them): the scalar, or -1 */
    int *elements;            /* by value: the first of the scalars that its elements are, or -1 */
    sb_run_table table;
    /* By sb_program::enter: a variable on the device with its planned extents, made when it first enters; else NULL. */
    sb_tensor **entered;
    struct {
        bool noted;
        sb_tensor **made;   /* by sb_program::leave: a variable's next version where it lies, retained */
        int *next;          /* by the state's extents: the scalar that it becomes; -1: it stays */
    } staying;              /* runtime/staying.h */
    const sb_fact **inputs; /* room for those of one node */
    sb_fact *outputs;
} sb_open_extents;

/** Sets plan->open and the plan's facts for runs whose symbols are like those of the run in progress. Leaves it NULL,
 * with the reason in plan->exact, where extents of the graph do not follow from its symbols alone. (On a device,
 * entered.) */
sb_status sb_open_extents_create(struct sb_plan *plan, const sb_program *program, const sb_placement *placement,
                                 const sb_value *inputs, sb_error *error);
/** NULL is allowed. */
void sb_open_extents_destroy(sb_open_extents *open, const sb_program *program);

/** Before memory is planned: facts on the host get their planned extents. */
void sb_open_extents_plan(sb_open_extents *open);

/** Before a run with these inputs: fills facts and table. *fits is false, and no fact has changed, where the run needs
 * more than was planned. (To a device the table has still to go.) */
void sb_open_extents_fill(sb_open_extents *open, sb_queue *queue, const sb_value *inputs, bool *fits);

/** Whether an input of the run in progress, seen as `tensor`, has the extents that the formulas say. */
bool sb_open_extents_match(const sb_open_extents *open, sb_value_id value, const sb_tensor *tensor);

/** Whether an extent of the value is open, */
bool sb_open_extents_has(const sb_open_extents *open, sb_value_id value);
/** and the value's extents in the run in progress, where `tensor` has the planned ones. */
void sb_open_extents_used(const sb_open_extents *open, sb_value_id value, const sb_tensor *tensor, int64_t *dims);

/** For a step that a plan with a device has placed: whether it gives the used rows the bits that they would have without
 * those behind. If not, `why` (SB_WHY_BYTES) says why. Errors: OUT_OF_MEMORY. */
sb_status sb_open_extents_allow(const struct sb_plan *plan, const sb_program *program, size_t step, sb_queue *queue,
                                bool *allowed, char *why, sb_error *error);

/** Notes why the plan has to be for exact extents, if that is not known yet. */
sb_status sb_open_extents_refuse(struct sb_plan *plan, const char *why, sb_error *error);

#endif
