/* Turning heads on the host, for kernels that do so besides other things. */
#ifndef SB_CPU_ROWS_ROTARY_H
#define SB_CPU_ROWS_ROTARY_H

#include "ops/rotary.h"

/** Turns all tokens of a checked call, on its workers. */
void sb_cpu_rotary_run(const sb_call *call, const sb_rotary *rotary);

#endif
