/* Plans: a program for one binding of its symbols: concrete facts, chosen kernels, and where each value lies in memory. */
#ifndef IV_RUNTIME_PLAN_H
#define IV_RUNTIME_PLAN_H

#include "runtime/program.h"

typedef enum iv_step_mode {
    IV_STEP_SKIP,   /* every output is a constant already */
    IV_STEP_STATIC, /* all shapes are known: kernel and memory are chosen */
    IV_STEP_DYNAMIC /* the data decide a shape: inferred again when the inputs are there */
} iv_step_mode;

typedef struct iv_planned_step {
    iv_step_mode mode;
    const iv_kernel *kernel; /* with IV_STEP_STATIC; NULL: reference evaluation */
    void *state;
    int in_place;            /* the input whose memory the kernel lets output 0 take over, or -1 */
} iv_planned_step;

typedef struct iv_plan {
    iv_scope *scope;         /* of the facts */
    iv_fact *facts;          /* one per value */
    int64_t *offsets;        /* one per value: bytes into the arena, or -1 */
    iv_planned_step *steps;  /* one per step of the program */
    bool *copied;            /* one per value: a view by its operator, but in some run a copy, which has its own place */
    bool outdated;           /* `copied` has changed since the memory was planned */
    size_t arena_bytes;
    struct iv_plan *next;
} iv_plan;

/** Plans for inputs like these (kinds, dtypes and extents matter, elements do not). */
iv_status iv_plan_create(iv_program *program, const iv_value *inputs, iv_plan **plan, iv_error *error);
void iv_plan_destroy(iv_plan *plan, const iv_program *program);
/** Whether the plan was made for inputs like these. */
bool iv_plan_fits(const iv_plan *plan, const iv_program *program, const iv_value *inputs);

#endif
