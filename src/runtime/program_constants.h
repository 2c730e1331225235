/* Constants of a program on devices, each put there once. All under the program's lock. */
#ifndef SB_RUNTIME_PROGRAM_CONSTANTS_H
#define SB_RUNTIME_PROGRAM_CONSTANTS_H

#include "runtime/program.h"

/** The constant on the queue's device; borrowed. Errors: OUT_OF_MEMORY; DEVICE. */
sb_status sb_constant_on(sb_program *program, sb_value_id value, sb_queue *queue, sb_tensor **constant,
                         sb_error *error);

/** Has the constants among the node's inputs that `kernel` wants so, and all that have the same elements, put on the
 * queue's device with rows that begin at multiples of 16 bytes, where they are not there yet. Errors: OUT_OF_MEMORY. */
sb_status sb_constants_leave_gaps(sb_program *program, const sb_kernel *kernel, const sb_kernel_query *query,
                                  sb_error *error);

/** Lets go of all of them. */
void sb_constants_destroy(sb_program *program);

#endif
