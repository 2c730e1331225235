/* What the element-wise operators of one input and faster kernels share. */
#ifndef SB_OPS_UNARY_H
#define SB_OPS_UNARY_H

#include "ops/loops.h"
#include "ops/unary_list.h"

/* node->params of the operators in the family `unary`: the a and b of unary_formulas.h. */
typedef struct sb_unary_params {
    float a, b;
    bool by_tanh; /* Gelu: the approximation */
} sb_unary_params;

/* Rows of the tables of loops, and places in sb_ops_unary; Gelu by tanh has loops of its own. */
#define SB_UNARY_ROW(op) SB_UNARY_ROW_##op,
enum { SB_UNARY_OPS(SB_UNARY_ROW) SB_UNARY_ROW_GeluTanh, SB_UNARY_ROWS };

/* Loops over rows: operand 0 is the output, 1 the input; the context is an sb_unary_params. */
SB_DECLARE_LOOPS(sb_unary_loops, SB_UNARY_ROWS)

#endif
