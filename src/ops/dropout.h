/* What Dropout and faster kernels share. */
#ifndef SB_OPS_DROPOUT_H
#define SB_OPS_DROPOUT_H

#include "graph/op.h"

/* node->params of Dropout. */
typedef struct sb_dropout_params {
    float ratio; /* before operator set 12 */
    int64_t seed;
} sb_dropout_params;

/** The ratio in force in a call whose inputs 1 and 2 lie on the host: 0 unless training. */
sb_status sb_dropout_ratio(const sb_call *call, double *ratio);

#endif
