/* What the kernels of iv_linear_logp take, and the shapes of their blocks. */
#ifndef IV_CUDA_KERNELS_LOGP_PARAMETERS_H
#define IV_CUDA_KERNELS_LOGP_PARAMETERS_H

#include "gemm/logp_tasks.h"

/* iv_logp_reduce_blocks and the kernels of single elements, whose blocks may be of any multiple
 * of 32. */
#define IV_LOGP_THREADS 128
/* iv_logp_merge_pairs: pairs of neighbouring rows fill the 32 bytes that memory gives at once,
 * twice. */
#define IV_LOGP_MERGE_THREADS 256
#define IV_LOGP_MERGE_ROWS 8
#define IV_LOGP_MERGE_SLICES (IV_LOGP_MERGE_THREADS / IV_LOGP_MERGE_ROWS)
/* Columns that a thread of iv_logp_differentiate_chunk takes. */
#define IV_LOGP_GROUP 8

#endif
