/* Batch normalisation's arithmetic, shared by its reference evaluation and by kernels that
 * fold it into what comes before. */
#ifndef SB_OPS_BATCH_NORMALIZATION_H
#define SB_OPS_BATCH_NORMALIZATION_H

#include "graph/graph.h"
#include "ops/batch_factors_formula.h"

/* node->params of BatchNormalization. */
typedef struct sb_batch_params {
    float epsilon, momentum;
    bool training;
} sb_batch_params;

/* The node's epsilon; its attributes were checked when the node was made. */
static inline float sb_batch_normalization_epsilon(const sb_node *node) {
    const sb_attribute *attribute = sb_attributes_find(&node->attributes, "epsilon");
    return attribute != NULL ? attribute->floats[0] : 1e-5f;
}

#endif
