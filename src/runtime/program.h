/* Programs: a graph made ready to run. Immutable but for the kernels' states, which are prepared once, under a lock. */
#ifndef SB_RUNTIME_PROGRAM_H
#define SB_RUNTIME_PROGRAM_H

#include <pthread.h>

#include "kernel/kernel.h"

typedef struct sb_program sb_program;

/* The graph's constants on a device, one per value, NULL until somebody wants it there. */
typedef struct sb_program_constants {
    const void *device; /* sb_queue.device */
    sb_tensor **tensors;
    bool *gaps; /* of each value: rows begin at multiples of 16 bytes, where it is put there from now on */
    struct sb_program_constants *next;
} sb_program_constants;

/* What a kernel prepared for a node, and what it derived of a constant there. */
typedef struct sb_kernel_state {
    const sb_kernel *kernel;
    const void *device; /* sb_queue.device; NULL: for the host */
    void *state;
    /* NULL: nothing. Steps that read a constant in the same form share it. */
    sb_storage *derived;
    sb_value_id constant; /* that it was made of */
    uint64_t layout;      /* of the form: see sb_derived_form */
    struct sb_kernel_state *next;
} sb_kernel_state;

/* The same for who launches the kernel: for sb_call.state and sb_call.derived; the program's. */
typedef struct sb_prepared {
    void *state;
    const void *derived;
} sb_prepared;

typedef struct sb_step {
    const sb_node *node;
    sb_kernel_state *states; /* guarded by the program's lock, and so are the next three */
    /* Whose derived form has the elements of the constant `gone`, which have been let go; NULL: there are none such. */
    const sb_kernel_state *holder;
    sb_value_id gone;
    bool reads_elements; /* some plan's kernel, or the definition, reads constants as they are */
    size_t graph_count;
    sb_program **graphs; /* programs of the node's own graphs */
    size_t release_count;
    sb_value_id *releases; /* the values that nobody needs after this step */
} sb_step;

struct sb_program {
    const sb_graph *graph;
    sb_isa isa;
    bool reference_only;
    size_t step_count;
    sb_step *steps;
    size_t enter_count, leave_count;
    /* The values with which a run begins: the graph's inputs and, behind them, its reads of variables. */
    sb_value_id *enter;
    sb_value_id *leave; /* the values that a run hands over: outputs and, behind them, updates of variables */
    sb_program_constants *constants; /* guarded by the lock */
    bool keeps_elements;             /* of all constants; guarded by the lock */
    pthread_mutex_t lock;
};

/** Prepares `graph`, which must outlive the program. */
sb_status sb_program_create(const sb_graph *graph, sb_isa isa, bool reference_only, sb_program **program,
                            sb_error *error);
void sb_program_destroy(sb_program *program);

/** The program of one of the step's graphs. */
const sb_program *sb_step_program(const sb_step *step, const sb_graph *graph);

/** Chooses the kernel for a step from concrete facts, and prepares it: *kernel NULL means reference evaluation.
 * `open`: those of outputs need not be, as only the data decide extents. *in_place is the input whose memory output 0 may take over, or -1. May be called from several threads. */
sb_status sb_program_choose(sb_program *program, size_t step, bool open, const sb_fact *const *inputs,
                            const sb_fact *outputs, const sb_kernel **kernel, sb_prepared *prepared, int *in_place,
                            sb_error *error);

/** What `kernel` prepares for a step and derives of the graph's constants, once for each device: see sb_kernel. `queue` is
 * the device's, entered, and waited for where something is derived there; NULL for the host. May be called from several
 * threads, each with a queue of its own. */
sb_status sb_program_prepare(sb_program *program, size_t step, sb_queue *queue, const sb_kernel *kernel,
                             const sb_fact *const *inputs, const sb_fact *outputs, sb_prepared *prepared,
                             sb_error *error);

/** Says that the step's constants are read as they are, not as what its kernel on the host derives: their elements come
 * back if they have been let go, and stay. May be called from several threads. Errors: OUT_OF_MEMORY. */
sb_status sb_program_read_elements(sb_program *program, size_t step, sb_error *error);

/** The same for all steps, those of nodes' own graphs too, for who shows or digests constants. May be called from several
 * threads. Errors: OUT_OF_MEMORY. */
sb_status sb_program_keep_elements(sb_program *program, sb_error *error);

/** Lets go of what kernels have prepared for the step. */
void sb_step_destroy_states(sb_step *step);

/** The graph's constant `value` on the queue's device, uploaded when it is first wanted there: retained for the caller.
 * May be called from several threads, each with a queue of its own, between sb_queue_enter and sb_queue_leave. */
sb_status sb_program_constant(sb_program *program, sb_value_id value, sb_queue *queue, sb_tensor **constant,
                              sb_error *error);

#endif
