/* Writing into caches on the host, for kernels that do so besides other things. */
#ifndef SB_CPU_MOVING_TENSOR_SCATTER_H
#define SB_CPU_MOVING_TENSOR_SCATTER_H

#include "ops/paged.h"

/** Writes the rows of a checked call of PagedScatter into `output`, which may lie where the cache does. Errors: those of
 * sb_call_workspace. */
sb_status sb_cpu_paged_scatter_run(sb_call *call, const sb_pages *pages, sb_tensor *output);

#endif
