/* The kernels of GatherElements and GatherND, for the table of their family. */
#ifndef SB_CPU_MOVING_GATHER_ELEMENTS_H
#define SB_CPU_MOVING_GATHER_ELEMENTS_H

#include "cpu/moving/indices.h"
#include "kernel/kernel.h"

/** Gathers from contiguous `data` along `axis`; `indices` are those of input 1. */
sb_status sb_cpu_gather_elements(sb_call *call, const sb_tensor *data, int axis, const sb_indices *indices);
/** Where the number of indices in a tuple is known. */
sb_status sb_cpu_gather_nd(sb_call *call);

#endif
