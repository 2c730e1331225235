/* The inside of a state. See <samebit/state.h> for the contract. */
#ifndef SB_RUNTIME_STATE_H
#define SB_RUNTIME_STATE_H

#include <pthread.h>

#include <samebit/state.h>

#include "base/allocation.h"
#include "kernel/device.h"
#include "runtime/model.h"

/* A variable with its storage. */
typedef struct sb_held_variable {
    char *name;
    char *output;  /* of a pair; NULL: a variable that the model was built with */
    int variable;  /* in sb_graphs::variables, without `output` */
    int slot_axis; /* -1: none */
    /* Over a storage of its own that never moves, with room for `room`, whose row-major strides it has; its extents along
     * an axis with a capacity are what is used now. */
    sb_tensor *tensor;
    int64_t room[SB_MAX_RANK];
    int extents[SB_MAX_RANK]; /* by axis: which of the state's extents it is, or -1 */
    sb_tensor *initial;       /* on the host; numpy's rule makes it as large as `tensor` */
    int64_t version;
    /* How often they have changed, by whatever means, from 1 on, and as soon as a change is in the queue: unlike versions,
     * which come back, and which a run that is left to a device gets at its end. (Entered.) */
    int64_t contents;
    struct sb_derived_value *derived; /* what kernels have made of them: runtime/derived.h */
} sb_held_variable;

/* An extent that has a capacity. */
typedef struct sb_held_extent {
    char *symbol;
    int64_t capacity, least; /* as in sb_capacity */
    int64_t initial, used;
} sb_held_extent;

struct sb_state {
    atomic_int references;
    sb_model *model;
    int entry; /* of the pairs */
    sb_memory_budget *budget;
    sb_queue *queue; /* for copies; NULL: the home is the host */
    size_t count;
    sb_held_variable *variables;
    size_t extent_count;
    sb_held_extent *extents;
    pthread_mutex_t lock; /* of what follows, and of versions */
    pthread_cond_t freed;
    bool busy;       /* somebody works on the contents … */
    pthread_t owner; /* … this thread */
    bool torn;
    sb_error reason; /* with `torn`: what became of the run that tore it */
    sb_state_counters counters;
};

/** In place of a slot: the whole state. */
#define SB_ALL_SLOTS (-1)

sb_state *sb_state_retain(sb_state *state);

/** Whether the tensor's memory is that of a variable. */
bool sb_state_holds(const sb_state *state, const sb_tensor *tensor);

/** Waits until nobody works on the contents and makes the thread the one that does, until sb_state_leave.
 * INVALID_ARGUMENT when it already is. With `whole`, a torn state is refused with the reason. */
sb_status sb_state_enter(sb_state *state, bool whole, sb_error *error);
void sb_state_leave(sb_state *state);
/** Notes that the contents are torn, for the reason `error`; with NULL, that they are whole again. (Entered.) */
void sb_state_set_torn(sb_state *state, const sb_error *error);

/** The extent of that symbol, or -1 where it has no capacity. */
int sb_state_extent_index(const sb_state *state, const char *symbol);
/** Sets an extent, at most its capacity, for all variables along it. (Entered.) */
void sb_state_set_extent(sb_state *state, size_t extent, int64_t used);
/** The variable's tensor as it would be with other extents: `extents` has one for each of the state's. */
sb_status sb_state_view(const sb_held_variable *variable, const int64_t *extents, sb_tensor **view, sb_error *error);

/** Notes that a variable has other contents, and their version, which others may be looking at. (Entered.) */
void sb_state_set_version(sb_state *state, sb_held_variable *variable, int64_t version);

/* What a variable, or a slot of it, is to become. */
typedef struct sb_state_write {
    size_t variable;
    int64_t version;
    sb_tensor *target;
    sb_tensor *source; /* of the target's extents; on the host, or on the device where the target is not contiguous */
} sb_state_write;

/* Changes of a state that are made together: everything that can fail before the first of them comes before it. */
typedef struct sb_state_writes {
    size_t count;
    sb_state_write *items; /* room for one for each variable */
    int64_t *extents; /* what the state's extents are to become: as they are, to begin with; at most the capacities */
} sb_state_writes;

/** Starts an empty list; sb_state_writes_clear in any case. Who changes extents writes every variable along them. */
sb_status sb_state_writes_create(const sb_state *state, sb_state_writes *writes, sb_error *error);
void sb_state_writes_clear(sb_state_writes *writes);
/** Adds: variable `variable`, or with `slot` that slot of it, becomes `source` (repeated by numpy's rule; retained),
 * and its version `version`. (Entered, with its queue as well.) */
sb_status sb_state_writes_add(sb_state *state, sb_state_writes *writes, size_t variable, int64_t slot,
                              sb_tensor *source, int64_t version, sb_error *error);
/** Carries them out and waits for it. A failure, which only a device can have, tears the state. (Entered likewise.) */
sb_status sb_state_writes_apply(sb_state *state, const sb_state_writes *writes, sb_error *error);

/** A contiguous tensor on the host with the elements of `source`, a part of a variable: for a whole variable on the
 * host, the variable itself. (Entered, with its queue as well.) */
sb_status sb_state_read(sb_state *state, sb_tensor *source, sb_tensor **host, sb_error *error);
/** The variable's slot as a view in which its axis has an extent of 1. (Entered.) */
sb_status sb_state_slot_view(const sb_held_variable *variable, int64_t slot, sb_tensor **view, sb_error *error);
/** INVALID_ARGUMENT unless there are slots and each variable that has some has this one. */
sb_status sb_state_check_slot(const sb_state *state, int64_t slot, sb_error *error);
/** Enters the state's device, if it has one. */
sb_status sb_state_enter_queue(sb_state *state, sb_error *error);
/** Waits for it and leaves it. Returns `status`, or when that is SB_OK what went wrong here. */
sb_status sb_state_leave_queue(sb_state *state, sb_status status, sb_error *error);

/** As sb_state_restore and sb_state_restore_slot, from memory; `name` is what errors call it. */
sb_status sb_state_restore_memory(sb_state *state, int64_t slot, const void *bytes, size_t size, const char *name,
                                  sb_error *error);

#endif
