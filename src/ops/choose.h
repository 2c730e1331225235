/* What the kernels of ChooseTokens share with its definition: inputs, outputs, and what fits. */
#ifndef SB_OPS_CHOOSE_H
#define SB_OPS_CHOOSE_H

#include "graph/op.h"
#include "numerics/choose.h"

enum { SB_CHOOSE_SLOTS, SB_CHOOSE_LOGITS, SB_CHOOSE_INTEGERS, SB_CHOOSE_REALS, SB_CHOOSE_INPUTS };

/* Outputs: the slots, as the input of the same number, and what was chosen. */
enum { SB_CHOOSE_CHOSEN = 1, SB_CHOOSE_OUTPUTS };

/** Whether the extents of ChooseTokens' inputs fit each other, wherever they lie. Errors: SHAPE. */
sb_status sb_choose_check(const sb_call *call);

#endif
