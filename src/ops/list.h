/* The tables of operators and of their rules, one for each family of families.h that has any. */
#ifndef SB_OPS_LIST_H
#define SB_OPS_LIST_H

#include "graph/op.h"
#include "ops/families.h"
#include "rules/axes.h"
#include "rules/cost.h"

#define SB_DECLARE_OPS(name) extern const sb_op sb_ops_##name[];
#define SB_DECLARE_AXES(name) extern const sb_axes_entry sb_axes_##name[];
#define SB_DECLARE_COST(name) extern const sb_cost_entry sb_cost_##name[];
SB_OP_FAMILIES(SB_DECLARE_OPS)
SB_AXES_FAMILIES(SB_DECLARE_AXES)
SB_COST_FAMILIES(SB_DECLARE_COST)
#undef SB_DECLARE_COST
#undef SB_DECLARE_AXES
#undef SB_DECLARE_OPS

#endif
