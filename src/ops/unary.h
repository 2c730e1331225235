/* What faster kernels need to know of the element-wise operators of one input. */
#ifndef IV_OPS_UNARY_H
#define IV_OPS_UNARY_H

#include "graph/op.h"

/* node->params of the operators in the family `unary`: the a and b of unary_formulas.h. */
typedef struct iv_unary_params {
    float a, b;
    bool by_tanh; /* Gelu: the approximation */
} iv_unary_params;

#endif
