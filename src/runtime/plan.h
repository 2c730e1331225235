/* Plans: a program for one binding of its symbols: concrete facts, chosen kernels, and where each value lies in memory. */
#ifndef IV_RUNTIME_PLAN_H
#define IV_RUNTIME_PLAN_H

#include "runtime/placement.h"
#include "runtime/program.h"

typedef enum iv_step_mode {
    IV_STEP_SKIP,   /* every output is a constant already */
    IV_STEP_STATIC, /* all shapes are known: kernel and memory are chosen */
    IV_STEP_DYNAMIC /* the data decide a shape: inferred again when the inputs are there */
} iv_step_mode;

/* Where memory is. */
typedef enum iv_side {
    IV_HOST,
    IV_DEVICE,
    IV_SIDES
} iv_side;

typedef struct iv_planned_step {
    iv_step_mode mode;
    iv_side side;            /* where a static step runs */
    const iv_kernel *kernel; /* with IV_STEP_STATIC; NULL: reference evaluation */
    void *state;
    int in_place;            /* the input whose memory the kernel lets output 0 take over, or -1 */
    char *why;               /* why a step that could run on a device does not; NULL when it does, or there is none */
} iv_planned_step;

/* A value may lie on both sides: on one because it was made there, on the other as a copy. Arrays "by copy" have an entry for
 * each value and side: see iv_copy_index. */
typedef struct iv_plan {
    iv_scope *scope;         /* of the facts */
    iv_fact *facts;          /* one per value */
    iv_side *sides;          /* one per value: where it is made; a guess for what dynamic steps make */
    int64_t *offsets;        /* by copy: bytes into the side's arena, or -1 */
    iv_planned_step *steps;  /* one per step of the program */
    bool *copied;            /* one per value: a view by its operator, but in some run a copy, which has its own place */
    bool outdated;           /* `copied` has changed since the memory was planned */
    bool host_outputs;       /* whether the graph's outputs are wanted on the host, or wherever they are made */
    iv_tensor **constants;   /* one per value: constants on the device, NULL until they are needed there; NULL without a device */
    size_t arena_bytes[IV_SIDES];
    size_t segment_count;    /* of steps that a device is given at once: runtime/replay.h */
    struct iv_segment *segments;
    struct iv_segment **segment_of; /* one per step; NULL where it belongs to none. NULL without a device */
    struct iv_plan *next;
} iv_plan;

static inline size_t iv_copy_index(const iv_program *program, iv_side side, iv_value_id value) {
    return (size_t)side * program->graph->value_count + (size_t)value;
}

/** Plans for inputs like these (kinds, dtypes, extents and sides matter, elements do not). */
iv_status iv_plan_create(iv_program *program, const iv_placement *placement, bool host_outputs,
                         const iv_value *inputs, iv_plan **plan, iv_error *error);
void iv_plan_destroy(iv_plan *plan, const iv_program *program);
/** Whether the plan was made for inputs like these. */
bool iv_plan_fits(const iv_plan *plan, const iv_program *program, bool host_outputs, const iv_value *inputs);

/** Keeps a copy of the reason why a step does not run on the device; NULL for none. */
iv_status iv_plan_explain(iv_planned_step *step, const char *why, iv_error *error);

/** The side on which a value lies. */
static inline iv_side iv_value_side(iv_value value) {
    return value.kind == IV_KIND_TENSOR && iv_tensor_on_device(value.tensor) ? IV_DEVICE : IV_HOST;
}

/** The side on which a step of `kernel` that runs on `side` reads its input `input`. */
static inline iv_side iv_input_side(const iv_kernel *kernel, iv_side side, int input) {
    return side == IV_DEVICE && (input >= 64 || (kernel->host_inputs >> input & 1) == 0) ? IV_DEVICE : IV_HOST;
}

#endif
