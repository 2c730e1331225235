/* Derived values of variables: what kernels make of a version ahead of their launches, such as packed weights.
 *
 * A state keeps them, one for each variable, kernel and layout, so that sessions over it, of one entry graph or of
 * several, share them. Each knows the contents that it was made of. A plan looks up those that its steps take and makes
 * room for them; before the first step of a run, and outside of what is recorded, those of contents that have changed
 * since are made again. A segment that is replayed only ever reads them. So a version is packed once, however many runs
 * read it, and no step meets the packed form of another version: those that a run makes itself are packed by the launches
 * that read them, like any value. */
#ifndef SB_RUNTIME_DERIVED_H
#define SB_RUNTIME_DERIVED_H

#include "runtime/plan.h"
#include "runtime/state.h"

typedef struct sb_runner sb_runner;

/* What kernels with one `derive` make of a variable. On the variable's side, where it stays for as long as the state
 * lives: recordings know its address. */
typedef struct sb_derived_value {
    const sb_held_variable *variable;
    const sb_kernel *kernel; /* the first that wanted it */
    uint64_t layout;
    sb_storage *storage;
    int64_t contents; /* sb_held_variable::contents that it was made of; 0: of none */
    struct sb_derived_value *next;
} sb_derived_value;

/** Finds the derived value that a planned step takes, or makes room for it, charged to the state: where its kernel derives
 * of an input that is a version with which runs begin, on the side of the state's home. (Of a plan with a binding,
 * entered, with the queue as well.) Errors: OUT_OF_MEMORY; DEVICE. */
sb_status sb_derived_plan(sb_plan *plan, sb_program *program, sb_queue *queue, size_t step,
                          const sb_fact *const *inputs, const sb_fact *outputs, sb_error *error);

/** After a kernel has been chosen again for a step at other extents, which are none of a derived input's: gives it what was
 * planned, if it derives the same. */
void sb_derived_find_again(sb_planned_step *planned);

/** Before the steps of a run: makes those again that the plan's steps take and whose variable has changed. On a device, in
 * the order of the queue. (Entered likewise.) Errors: OUT_OF_MEMORY; DEVICE. */
sb_status sb_derived_refresh(sb_runner *runner, sb_error *error);

/** After a run that failed, which may have made them half: they are of no contents any more. (Entered.) */
void sb_derived_forget(sb_state *state);

/** Frees the list. */
void sb_derived_destroy(sb_derived_value *values);

/** The bytes that those of a state take. (Under its lock.) */
int64_t sb_derived_bytes(const sb_state *state);

#endif
