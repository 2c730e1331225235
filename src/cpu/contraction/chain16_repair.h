/* The chain's way out of the vector kernels: single lanes through the reference. */
#ifndef SB_CPU_CONTRACTION_CHAIN16_REPAIR_H
#define SB_CPU_CONTRACTION_CHAIN16_REPAIR_H

#include "cpu/contraction/chain16_kernels.h"

/** Replaces `after[column]`, for every set bit of `lanes`, by the reference's step from
 * `before[column]`. Columns that do not exist are left alone. */
void sb_chain16_repair(sb_dtype dtype, const sb_chain16_a *a, const sb_chain16_b *tile, uint64_t lanes,
                       const float *before, float *after);

#endif
