/* The attributes of the losses, for their definition and for kernels. */
#ifndef SB_OPS_LOSSES_H
#define SB_OPS_LOSSES_H

#include "graph/op.h"

typedef enum sb_loss_reduction { SB_LOSS_NONE, SB_LOSS_SUM, SB_LOSS_MEAN } sb_loss_reduction;

typedef struct sb_loss_params {
    sb_loss_reduction reduction;
    bool ignores;
    int64_t ignored;
} sb_loss_params;

#endif
