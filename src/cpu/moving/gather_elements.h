/* The kernels of GatherElements and GatherND, for the table of their family. */
#ifndef SB_CPU_MOVING_GATHER_ELEMENTS_H
#define SB_CPU_MOVING_GATHER_ELEMENTS_H

#include "kernel/kernel.h"

sb_status sb_cpu_gather_elements(sb_call *call);
/** Where the number of indices in a tuple is known. */
sb_status sb_cpu_gather_nd(sb_call *call);

#endif
