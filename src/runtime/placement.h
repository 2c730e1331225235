/* Placement: which steps run on a device. */
#ifndef IV_RUNTIME_PLACEMENT_H
#define IV_RUNTIME_PLACEMENT_H

#include "runtime/program.h"

/* What may be placed where. Immutable while runners use it. */
typedef struct iv_placement {
    iv_lane *lane;         /* the device; NULL: everything runs on the CPU */
    const char *force_cpu; /* parts of names of nodes or operators that stay on the CPU, separated by commas; NULL for none */
} iv_placement;

/** The one gate through which every node goes: *kernel is the device's kernel for the step with these concrete facts, or NULL
 * with the reason in `why` (IV_WHY_BYTES). The facts are those that hold after every input has been brought to where the
 * kernel wants it: a transfer keeps dtype and extents, so inputs from both sides are no reason to refuse. */
iv_status iv_place(const iv_placement *placement, const iv_program *program, size_t step,
                   const iv_fact *const *inputs, const iv_fact *outputs, const iv_kernel **kernel,
                   char *why, iv_error *error);

#endif
