/* States: variables that outlive runs, with their storage.
 *
 * A state belongs to a model and holds the variables that the model was built with and, for a model from any ONNX
 * file, pairs of an input and an output of which the output is what the input is in the next run. Sessions bind a
 * state (sb_session_options.state): a run reads version i of its variables and leaves version i + 1 in the same
 * bytes. Several sessions, of one entry graph or several, may bind one state; their runs, and the functions below,
 * come one after the other. A session on the state's device queues its runs (sb_session_enqueue), one behind the other;
 * runs of other sessions, and the functions, wait until the device has done those.
 *
 * All functions may be called from any thread. While a run or another function works on the state, they wait, except in
 * the thread that does so itself (in an observer, say), where they fail with INVALID_ARGUMENT.
 *
 * A run that fails before it has changed a variable leaves the state as it was. One that fails later leaves it *torn*:
 * runs and functions then fail with the status and the reason of that run, until sb_state_reset, sb_state_restore or
 * sb_state_copy gives all variables contents again. On a device, updates are in its queue before it is known whether it
 * finds the run's data wrong: such a fault tears the state if the run updates any of it (one that only appends: if others
 * are queued behind it). Runs that were queued behind the one that tore the state fail with its number and reason when
 * they are waited for, even if the state has been made whole by then. */
#ifndef SAMEBIT_STATE_H
#define SAMEBIT_STATE_H

#include <samebit/capacity.h>
#include <samebit/device.h>
#include <samebit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sb_state sb_state;

/** An input and an output of an entry graph that are one variable, which goes by the input's name. */
typedef struct sb_state_pair {
    const char *input, *output;
    int slot_axis; /**< the axis of slots (sequences, or streams, that begin and end apart from each other); -1: none */
    sb_tensor *initial; /**< what it begins with, on the host, repeated by numpy's rule; NULL: zeros */
} sb_state_pair;

/** How a state is made. Start from SB_STATE_OPTIONS_DEFAULT. */
typedef struct sb_state_options {
    size_t struct_bytes; /**< sizeof(sb_state_options): lets the struct grow */
    sb_device *device;   /**< where the variables live, their home, which the state keeps in use; NULL: the host */
    const char *entry;   /**< the entry graph whose inputs and outputs are paired; NULL: the first */
    int pair_count;
    const sb_state_pair *pairs;
    int symbol_count; /**< how many symbolic extents get a value; every extent of a variable needs one */
    const char *const *symbols;
    const int64_t *symbol_values;
    /** The most bytes of the host that the variables may take; 0: as in sb_session_options. */
    int64_t memory_limit;
    /** Symbols whose extents runs may change, such as the length of a cache to which each run appends: variables have
     * room for the capacity, and begin with the extent that `symbols` gives (0 where it gives none). Sessions that bind
     * the state plan these symbols by their capacities. */
    int capacity_count;
    const sb_capacity *capacities;
} sb_state_options;

#define SB_STATE_OPTIONS_DEFAULT                                                                                       \
    { sizeof(sb_state_options), NULL, NULL, 0, NULL, 0, NULL, NULL, 0, 0, NULL }

/** Creates a state with the initial contents, which keeps the model alive. `options` may be NULL. The caller releases
 * it; sessions keep it alive as well. Errors: INVALID_ARGUMENT (no such entry graph, input, output or symbol; a name
 * twice; nothing to hold; a capacity below the extent that it begins with); SHAPE where input and output do not agree in
 * dtype and extents, or an initial tensor does not fit; UNSUPPORTED for text, and for pairs that grow with each run along
 * an extent without a capacity; OUT_OF_MEMORY, DEVICE. */
SB_API SB_MUST_CHECK sb_status sb_state_create(sb_model *model, const sb_state_options *options, sb_state **state,
                                               sb_error *error);
/** Drops the caller's reference. NULL is allowed. */
SB_API void sb_state_release(sb_state *state);

/** A variable of a state. Pointers are the state's. */
typedef struct sb_state_variable {
    const char *name;
    sb_dtype dtype;
    int rank;
    const int64_t *dims; /**< as they are now: runs change those that have a capacity */
    int slot_axis;       /**< -1: none */
    int64_t slots;       /**< the extent of that axis; 0: none */
    bool on_device;      /**< where its home is */
    /** How often it has been changed since it was created or reset; restoring and copying bring theirs. A run that is
     * queued counts from when somebody has waited for it, or for the state. */
    int64_t version;
} sb_state_variable;

SB_API int sb_state_variable_count(const sb_state *state);
/** The index of the variable of that name, or -1. */
SB_API int sb_state_variable_index(const sb_state *state, const char *name);
/** Describes variable `index`, which must be in range. Waits for nobody:
 * a run in progress may be about to change the version. */
SB_API void sb_state_describe(sb_state *state, int index, sb_state_variable *variable);

/* ---- contents ---- */

/** A copy of a variable on the host, which the caller releases. INVALID_ARGUMENT when there is no such index. */
SB_API SB_MUST_CHECK sb_status sb_state_get(sb_state *state, int index, sb_tensor **tensor, sb_error *error);
/** Gives a variable the elements of `tensor`, on the host, of the same dtype and extents (SHAPE), those that a capacity
 * bounds as they are now included. */
SB_API SB_MUST_CHECK sb_status sb_state_set(sb_state *state, int index, sb_tensor *tensor, sb_error *error);
/** Gives all variables their initial contents, extents and version 0. */
SB_API SB_MUST_CHECK sb_status sb_state_reset(sb_state *state, sb_error *error);
/** Gives all variables of `target` the contents and versions of `source`, a state of the same model with the same
 * variables, of whichever home. */
SB_API SB_MUST_CHECK sb_status sb_state_copy(sb_state *target, sb_state *source, sb_error *error);

/* ---- extents with a capacity ---- */

/** What an extent is now, or will be behind the runs that are queued; waits for nobody. INVALID_ARGUMENT when the state has no capacity for that symbol. */
SB_API SB_MUST_CHECK sb_status sb_state_extent(sb_state *state, const char *symbol, int64_t *extent, sb_error *error);
/** Makes an extent smaller: of each variable along it, the rows behind are forgotten; the others stay as they are, which
 * takes no copy. INVALID_ARGUMENT when there is no such symbol, or `extent` is negative or more than it is now. */
SB_API SB_MUST_CHECK sb_status sb_state_trim(sb_state *state, const char *symbol, int64_t extent, sb_error *error);

/* ---- slots: of all variables that have an axis of slots; INVALID_ARGUMENT where one has no such slot, or none has
 * slots. The work is that of one slot, whatever their number. ---- */

SB_API SB_MUST_CHECK sb_status sb_state_reset_slot(sb_state *state, int64_t slot, sb_error *error);
/** Copies slot `from` over slot `to`. */
SB_API SB_MUST_CHECK sb_status sb_state_copy_slot(sb_state *state, int64_t from, int64_t to, sb_error *error);

/* ---- files ---- */

/** Writes contents and versions to a file, whole or not at all, with the digest of the model and the version of the
 * numerics. Errors: IO, OUT_OF_MEMORY, DEVICE. */
SB_API SB_MUST_CHECK sb_status sb_state_save(sb_state *state, const char *path, sb_error *error);
/** Reads what sb_state_save wrote, for a state of the same model, loaded with passes or without, on whichever side, in
 * whichever process. On failure nothing has changed (a device that fails excepted). The file must not be changed
 * meanwhile. Errors: IO; INVALID_FILE, with the byte offset; UNSUPPORTED for another version of the format or of the
 * numerics; INVALID_ARGUMENT for another model; SHAPE for other variables. */
SB_API SB_MUST_CHECK sb_status sb_state_restore(sb_state *state, const char *path, sb_error *error);
/** The same for one slot, which may be restored as any slot of any state of the model. */
SB_API SB_MUST_CHECK sb_status sb_state_save_slot(sb_state *state, int64_t slot, const char *path, sb_error *error);
SB_API SB_MUST_CHECK sb_status sb_state_restore_slot(sb_state *state, int64_t slot, const char *path, sb_error *error);

/* ---- counting ---- */

/** What runs have done with a state since it was created. */
typedef struct sb_state_counters {
    int64_t runs;             /**< that succeeded */
    int64_t updates;          /**< of variables */
    int64_t updates_in_place; /**< of those: written by the node that made them where the variable lies */
    int64_t copies;           /**< of versions: from where they were made, for readers on the other side, for outputs */
    int64_t bytes_copied;
    /** Of what kernels make of versions ahead, such as packed weights: once for a version, however many runs read it. */
    int64_t derivations;
    int64_t derived_bytes; /**< what all of these take now, where the variables live */
} sb_state_counters;

/** Counts, with the runs that are queued: waits for them, except in the thread that a run of the state is calling (in an
 * observer, say). */
SB_API void sb_state_count(sb_state *state, sb_state_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
