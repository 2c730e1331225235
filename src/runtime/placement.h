/* Placement: which steps run on a device. */
#ifndef SB_RUNTIME_PLACEMENT_H
#define SB_RUNTIME_PLACEMENT_H

#include "runtime/program.h"

/* What may be placed where. Immutable while runners use it. */
typedef struct sb_placement {
    sb_queue *queue; /* of the device; NULL: everything runs on the CPU */
    /* Parts of names of nodes or operators that stay on the CPU, separated by commas; NULL for none. */
    const char *force_cpu;
    bool judges;                      /* a plan is for the device only if that is estimated to be quicker */
    int threads;                      /* that the CPU would have */
    struct sb_capacities *capacities; /* of a program's symbols; NULL: every plan is for exact extents */
    struct sb_state_binding *binding; /* the state whose variables enter and leave runs of a program; NULL: none */
} sb_placement;

/** The one gate through which every node goes: *kernel is the device's kernel for the step with these concrete facts,
 * or NULL with the reason in `why` (SB_WHY_BYTES). Extents of outputs that only the data tell are open: such a kernel finds them out. The facts are those that hold after every input has been brought to
 * where the kernel wants it: a transfer keeps dtype and extents, so inputs from both sides are no reason to refuse. */
sb_status sb_place(const sb_placement *placement, const sb_program *program, size_t step, const sb_fact *const *inputs,
                   const sb_fact *outputs, const sb_kernel **kernel, char *why, sb_error *error);

#endif
