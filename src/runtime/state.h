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
    size_t place_count;
    int64_t **places; /* where variables along it have it, in their tensors */
} sb_held_extent;

/* A run of a session with a state. One that is left to a device waits in the state's list until somebody has found out
 * what has become of it; it must stay where it is until then, and what it points to as well. */
typedef struct sb_state_run {
    struct sb_state_run *next; /* the one behind it in the list */
    const void *session;       /* whose run it is, and in whose queue */
    uint64_t number;           /* of the run; 0: it has none */
    /* Waits until the device has done it, and reports what it found: without the state's turn, from any thread. */
    sb_status (*await)(struct sb_state_run *run, sb_error *error);
    const int64_t *update; /* the variables that it updates, and some that are -1 */
    size_t update_count;
    bool began;       /* whether it has begun to change variables */
    bool resizes;     /* whether it has changed an extent with a capacity … */
    int64_t *extents; /* … of those that were before: room for all of the state's, where the run is left to a device */
    sb_state_counters counters;
    bool is_queued;   /* in the list … */
    bool is_awaited;  /* … and a thread is at it; both under the state's lock */
    sb_error outcome; /* when it no longer is */
} sb_state_run;

struct sb_state {
    atomic_int references;
    sb_model *model;
    int entry; /* of the pairs */
    sb_memory_budget *budget;
    sb_queue *queue; /* for copies; NULL: the home is the host */
    size_t count;
    sb_held_variable *variables;
    const sb_storage **storages; /* by variable: its tensor's, side by side for whoever looks at all of them */
    size_t extent_count;
    sb_held_extent *extents;
    bool derives; /* a kernel has made something of a variable: there is no need to count contents before. (Entered.) */
    pthread_mutex_t lock; /* of what follows, and of versions */
    pthread_cond_t changed;
    bool busy;            /* somebody works on the contents … */
    pthread_t owner;      /* … this thread */
    sb_state_run *oldest; /* of the runs that are left to a device, all of one session … */
    bool is_followed;     /* … and a run that is complete has computed behind the last of them */
    bool torn;
    uint64_t torn_by; /* with `torn`: the number of the run that tore it, or 0 … */
    sb_error reason;  /* … and what became of that */
    sb_state_counters counters;
};

/** In place of a slot: the whole state. */
#define SB_ALL_SLOTS (-1)

sb_state *sb_state_retain(sb_state *state);

/** Whether the tensor's memory is that of a variable. */
bool sb_state_holds(const sb_state *state, const sb_tensor *tensor);

/* Turns and queued runs: state_turns.c. */

/** Waits until nobody works on the contents and makes the thread the one that does, until sb_state_leave. Runs that are
 * left to a device are waited for, unless they are `session`'s, behind which its next one is put. INVALID_ARGUMENT when
 * the thread already works on them. With `whole`, a torn state is refused with the reason. */
sb_status sb_state_enter(sb_state *state, bool whole, const void *session, sb_error *error);
void sb_state_leave(sb_state *state);
/** Puts the run behind those that are left to a device. (Entered, by its session.) */
void sb_state_queue_run(sb_state *state, sb_state_run *run);
/** Waits for a run that was put there, and for those before it. Returns what has become of it; when one before it has
 * torn the state, the reason of that. From any thread, as often as wanted. */
sb_status sb_state_wait_for_run(sb_state *state, sb_state_run *run, sb_error *error);
/** The end of a run that is not left to a device, or that failed before it was: counts it, or tears the state when it
 * has failed too late. `status` and `error` (not NULL) are how it went. Returns `status`, or, when a queued run before it
 * turns out to have torn the state, the reason of that. (Entered, by its session.) */
sb_status sb_state_end_run(sb_state *state, const sb_state_run *run, sb_status status, sb_error *error);
/** Notes that the contents are torn, for the reason `error`; with NULL, that they are whole again. (Entered.) */
void sb_state_set_torn(sb_state *state, const sb_error *error);
/** Takes a torn state for whole: for callers who know that a run that fails leaves all as it was that is ever looked at again. Waits
 * for runs that are left to a device. (Not entered.) */
void sb_state_mend(sb_state *state);

/** The extent of that symbol, or -1 where it has no capacity. */
int sb_state_extent_index(const sb_state *state, const char *symbol);
/** Sets an extent, at most its capacity, for all variables along it. (Entered.) */
void sb_state_set_extent(sb_state *state, size_t extent, int64_t used);
/** The same under the state's lock. */
void sb_state_put_extent(sb_state *state, size_t extent, int64_t used);
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
