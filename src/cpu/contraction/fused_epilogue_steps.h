/* The nodes behind a contraction as steps that its kernel applies in registers. */
#ifndef SB_CPU_CONTRACTION_FUSED_EPILOGUE_STEPS_H
#define SB_CPU_CONTRACTION_FUSED_EPILOGUE_STEPS_H

#include "cpu/contraction/fused_epilogue.h"

/** Appends the program to `epilogue` as plain steps: sums, differences and products with scalars, columns or matrices,
 * quotients by scalars, batch normalisation, Relu, Clip and hard swish in f32, each on the result of the one before. False, with nothing appended, when it has
 * anything else; then the program itself must run. */
bool sb_fused_epilogue_steps(const sb_fused_epilogue *fused, sb_epilogue *epilogue);

#endif
