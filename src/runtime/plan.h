/* Plans: a program for one binding of its symbols: concrete facts, chosen kernels,
 * and where each value lies in memory. */
#ifndef SB_RUNTIME_PLAN_H
#define SB_RUNTIME_PLAN_H

#include <samebit/session.h>

#include "runtime/open_extents.h"
#include "runtime/placement.h"
#include "runtime/program.h"

typedef enum sb_step_mode {
    SB_STEP_SKIP,   /* every output is a constant already */
    SB_STEP_STATIC, /* all shapes are known: kernel and memory are chosen */
    SB_STEP_DYNAMIC /* the data decide a shape: inferred again when the inputs are there */
} sb_step_mode;

/* Where memory is. */
typedef enum sb_side { SB_HOST, SB_DEVICE, SB_SIDES } sb_side;

typedef struct sb_planned_step {
    sb_step_mode mode;
    sb_side side;            /* where a static step runs */
    const sb_kernel *kernel; /* with SB_STEP_STATIC; NULL: reference evaluation */
    sb_prepared prepared;
    struct sb_derived_value *derived; /* of a variable, which the kernel takes: runtime/derived.h; NULL: none */
    int in_place;                     /* the input whose memory the kernel lets output 0 take over, or -1 */
    uint64_t lingering;               /* the inputs that stay until the next step has ended, a bit for each */
    char *why;       /* why a step that could run on a device does not; NULL when it does, or there is none */
    sb_call_way way; /* of the kernel, when it last gave its work */
    bool inferred;   /* a dynamic step of which inference told the outputs in the last run: it did not run */
} sb_planned_step;

/* What is known of runs that do what one before them did: runtime/again.h. */
typedef struct sb_again {
    bool asked;                 /* it has been found out, but for the recordings */
    struct sb_segment *segment; /* holds every step that runs, and nothing is brought to it; NULL: not so */
    size_t count;               /* of sb_program::leave, all but next versions … */
    size_t *leaving;            /* … these: indices */
    size_t made_count;
    size_t *made; /* what the segment makes of that: indices in its outputs */
} sb_again;

/* A value may lie on both sides: on one because it was made there, on the other as a copy. Arrays "by copy" have an
 * entry for each value and side: see sb_copy_index. */
typedef struct sb_plan {
    struct sb_state_binding *binding; /* of the program; NULL: none */
    sb_open_extents *open;            /* extents that differ between runs; NULL: none do … */
    sb_estimate estimate;             /* of the plan's run, where it was asked for */
    char *stays;            /* why no step is for the device, though there is one; NULL: each is placed by itself */
    char *exact;            /* … for this reason, although some symbols have capacities; NULL: they have none */
    sb_scope *scope;        /* of the facts */
    sb_fact *facts;         /* one per value */
    sb_side *sides;         /* one per value: where it is made; a guess for what dynamic steps make */
    int64_t *offsets;       /* by copy: bytes into the side's arena, or -1 */
    sb_planned_step *steps; /* one per step of the program */
    bool *copied;           /* one per value: a view by its operator, but in some run a copy, which has its own place */
    bool outdated;          /* `copied` has changed since the memory was planned */
    bool host_outputs;      /* whether the graph's outputs are wanted on the host, or wherever they are made */
    /* One per value: constants on the device, NULL until they are needed there; NULL without a device. */
    sb_tensor **constants;
    size_t arena_bytes[SB_SIDES];
    /* Small inputs on the host that the device reads: their copies lie side by side in its arena, and one copy brings them all
     * when a run begins (runtime/runner_together.c). None, or at least two. */
    size_t together_count;
    sb_value_id *together; /* in the order of their places; room for all that enters */
    sb_tensor *packed;     /* u8, on the host: what is copied */
    /* One per value: the variable's tensor whose bytes the value's step writes, else NULL;
     * borrowed. NULL without a binding. */
    sb_tensor **places;
    bool *appends; /* one per step: a Concat whose place is a variable, behind the rows that are there. As places */
    size_t first_update;  /* the first step that does; as many as there are steps: none */
    bool warm;            /* has run to its end: scratch memory has its size */
    bool derives;         /* a step takes a form of a variable: runtime/derived.h */
    size_t segment_count; /* of steps that a device is given at once: runtime/replay.h */
    struct sb_segment *segments;
    struct sb_segment **segment_of; /* one per step; NULL where it belongs to none. NULL without a device */
    sb_again again;
    struct sb_plan *next;
} sb_plan;

static inline size_t sb_copy_index(const sb_program *program, sb_side side, sb_value_id value) {
    return (size_t)side * program->graph->value_count + (size_t)value;
}

/** Plans for inputs like these (kinds, dtypes, extents and sides matter, elements do not). */
sb_status sb_plan_create(sb_program *program, const sb_placement *placement, bool host_outputs, const sb_value *inputs,
                         sb_plan **plan, sb_error *error);
void sb_plan_destroy(sb_plan *plan, const sb_program *program);
/** Whether the plan was made for inputs like these, and for the capacities that the run in progress needs. */
bool sb_plan_fits(const sb_plan *plan, const sb_program *program, const sb_placement *placement, bool host_outputs,
                  const sb_value *inputs);
/** Whether plans of the program may have open extents: nested graphs' have none. */
bool sb_plans_are_open(const sb_program *program, const sb_placement *placement);
/** Chooses the kernel of a step on the host for the extents that the run in progress has. */
sb_status sb_plan_choose_again(sb_plan *plan, sb_program *program, size_t step, sb_error *error);

/** Keeps a copy of the reason why a step does not run on the device; NULL for none. */
sb_status sb_plan_explain(sb_planned_step *step, const char *why, sb_error *error);

/** The side on which a value lies. */
static inline sb_side sb_value_side(sb_value value) {
    return value.kind == SB_KIND_TENSOR && sb_tensor_on_device(value.tensor) ? SB_DEVICE : SB_HOST;
}

/** The side on which a step of `kernel` that runs on `side` reads its input `input`. */
static inline sb_side sb_input_side(const sb_kernel *kernel, sb_side side, int input) {
    return side == SB_DEVICE && (input >= 64 || (kernel->host_inputs >> input & 1) == 0) ? SB_DEVICE : SB_HOST;
}

#endif
