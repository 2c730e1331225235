/* ChooseTokens on devices, for tests. */
#ifndef SB_CUDA_ROWS_CHOOSE_H
#define SB_CUDA_ROWS_CHOOSE_H

#include <stdbool.h>

/** Has tokens left out by launches behind each other where clusters would do it, as devices before Hopper do. */
void sb_cuda_choose_force_steps(bool are_forced);

#endif
