/* Programs: a graph made ready to run. Immutable but for the kernels' states, which are prepared once, under a lock. */
#ifndef IV_RUNTIME_PROGRAM_H
#define IV_RUNTIME_PROGRAM_H

#include <pthread.h>

#include "cuda/lane.h"
#include "runtime/backend.h"

typedef struct iv_program iv_program;

/* The graph's constants on a device, one per value, NULL until somebody wants it there. */
typedef struct iv_program_constants {
    const iv_cuda_device *device;
    iv_tensor **tensors;
    struct iv_program_constants *next;
} iv_program_constants;

/* What a kernel prepared for a node. */
typedef struct iv_kernel_state {
    const iv_kernel *kernel;
    void *state;
    struct iv_kernel_state *next;
} iv_kernel_state;

typedef struct iv_step {
    const iv_node *node;
    iv_kernel_state *states;   /* guarded by the program's lock */
    size_t graph_count;
    iv_program **graphs;       /* programs of the node's own graphs */
    size_t release_count;
    iv_value_id *releases;     /* the values that nobody needs after this step */
} iv_step;

struct iv_program {
    const iv_graph *graph;
    iv_isa isa;
    bool reference_only;
    size_t step_count;
    iv_step *steps;
    iv_program_constants *constants; /* guarded by the lock */
    pthread_mutex_t lock;
};

/** Prepares `graph`, which must outlive the program. */
iv_status iv_program_create(const iv_graph *graph, iv_isa isa, bool reference_only,
                            iv_program **program, iv_error *error);
void iv_program_destroy(iv_program *program);

/** The program of one of the step's graphs. */
const iv_program *iv_step_program(const iv_step *step, const iv_graph *graph);

/** Chooses the kernel for a step from concrete facts, and prepares its state: *kernel NULL means reference evaluation.
 * *in_place is the input whose memory output 0 may take over, or -1. May be called from several threads. */
iv_status iv_program_choose(iv_program *program, size_t step, const iv_fact *const *inputs,
                            const iv_fact *outputs, const iv_kernel **kernel, void **state,
                            int *in_place, iv_error *error);

/** What `kernel` prepares for a step, once: see iv_kernel. May be called from several threads. */
iv_status iv_program_prepare(iv_program *program, size_t step, const iv_kernel *kernel, const iv_fact *const *inputs,
                             const iv_fact *outputs, void **state, iv_error *error);

/** The graph's constant `value` on the lane's device, uploaded when it is first wanted there: retained for the caller. May be
 * called from several threads, each with a lane of its own, between iv_cuda_enter and iv_cuda_leave. */
iv_status iv_program_constant(iv_program *program, iv_value_id value, iv_lane *lane, iv_tensor **constant,
                              iv_error *error);

#endif
