/* The attributes of the losses, for their definition and for kernels. */
#ifndef IV_OPS_LOSSES_H
#define IV_OPS_LOSSES_H

#include "graph/op.h"

typedef enum iv_loss_reduction { IV_LOSS_NONE, IV_LOSS_SUM, IV_LOSS_MEAN } iv_loss_reduction;

typedef struct iv_loss_params {
    iv_loss_reduction reduction;
    bool ignores;
    int64_t ignored;
} iv_loss_params;

#endif
