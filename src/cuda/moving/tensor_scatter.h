/* Writing into caches on a device, for kernels that do so besides other things. */
#ifndef SB_CUDA_MOVING_TENSOR_SCATTER_H
#define SB_CUDA_MOVING_TENSOR_SCATTER_H

#include "cuda/common/elements.h"
#include "cuda/moving/tensor_scatter_parameters.h"
#include "ops/paged.h"

/** Gives `output` the cache's elements, which lie there already where it has taken over the cache's place. */
sb_status sb_cuda_scatter_start(sb_call *call, const sb_tensor *cache, sb_tensor *output);

/** Fills parameters from a described call of PagedScatter, and names what the work reads and writes. */
void sb_cuda_paged_scatter_fill(sb_call *call, const sb_pages *pages, sb_tensor *output, sb_cuda_work *work,
                                sb_cuda_paged_scatter *parameters);

#endif
