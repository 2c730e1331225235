/* What Dropout and faster kernels share. */
#ifndef IV_OPS_DROPOUT_H
#define IV_OPS_DROPOUT_H

#include "graph/op.h"

/* node->params of Dropout. */
typedef struct iv_dropout_params {
    float ratio; /* before operator set 12 */
    int64_t seed;
} iv_dropout_params;

/** The ratio in force in a call whose inputs 1 and 2 lie on the host: 0 unless training. */
iv_status iv_dropout_ratio(const iv_call *call, double *ratio);

#endif
