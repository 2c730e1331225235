/* ConvTranspose of f16 and bf16. */
#ifndef SB_CPU_CONTRACTION_CONV_TRANSPOSE16_H
#define SB_CPU_CONTRACTION_CONV_TRANSPOSE16_H

#include "graph/op.h"

/** Computes a call of ConvTranspose of f16 or bf16; the output has its channels innermost in memory. */
sb_status sb_conv_transpose16_run(sb_call *call);

#endif
