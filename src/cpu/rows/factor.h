/* Scale and bias of normalisations. */
#ifndef SB_CPU_ROWS_FACTOR_H
#define SB_CPU_ROWS_FACTOR_H

#include "graph/op.h"

/** Input `index` of f32, f16 or bf16 as gapless f32 in the call's workspace, row-major; NULL where it is left out. */
sb_status sb_load_factor(sb_call *call, int index, const float **factor);

#endif
