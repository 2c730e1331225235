/* Elements of constants that are read in a derived form alone (packed weights), and so need not be kept beside it. */
#ifndef SB_RUNTIME_PROGRAM_ELEMENTS_H
#define SB_RUNTIME_PROGRAM_ELEMENTS_H

#include "runtime/program.h"

/** Under the program's lock, when `state` of the step has just derived its form of a constant on the host: frees the
 * elements if the kernel can restore them and nobody else reads them. */
void sb_elements_let_go(sb_program *program, size_t step, const sb_kernel_state *state);

/** Under the program's lock: makes the elements of a constant again if they have been let go. They stay from then on.
 * Errors: OUT_OF_MEMORY. */
sb_status sb_elements_bring_back(sb_program *program, sb_value_id value, sb_error *error);

/** The same for the inputs of a step. */
sb_status sb_elements_bring_back_inputs(sb_program *program, size_t step, sb_error *error);

#endif
