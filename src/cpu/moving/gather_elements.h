/* The kernel of GatherElements, for the table of its family. */
#ifndef SB_CPU_MOVING_GATHER_ELEMENTS_H
#define SB_CPU_MOVING_GATHER_ELEMENTS_H

#include "kernel/kernel.h"

sb_status sb_cpu_gather_elements(sb_call *call);

#endif
