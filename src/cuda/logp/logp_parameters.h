/* What the kernels of sb_linear_logp take, and the shapes of their blocks. */
#ifndef SB_CUDA_LOGP_LOGP_PARAMETERS_H
#define SB_CUDA_LOGP_LOGP_PARAMETERS_H

#include "kernel/logp/logp_tasks.h"

/* sb_logp_reduce_blocks and the kernels of single elements, whose blocks may be of any multiple of 32. */
#define SB_LOGP_THREADS 128
/* sb_logp_merge_pairs: pairs of neighbouring rows fill the 32 bytes that memory gives at once, twice. */
#define SB_LOGP_MERGE_THREADS 256
#define SB_LOGP_MERGE_ROWS 8
#define SB_LOGP_MERGE_SLICES (SB_LOGP_MERGE_THREADS / SB_LOGP_MERGE_ROWS)
/* Columns that a thread of sb_logp_differentiate_chunk takes. */
#define SB_LOGP_GROUP 8

#endif
