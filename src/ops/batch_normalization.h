/* Batch normalisation's arithmetic, shared by its reference evaluation and by kernels that fold it into what comes before. */
#ifndef IV_OPS_BATCH_NORMALIZATION_H
#define IV_OPS_BATCH_NORMALIZATION_H

#include "graph/graph.h"
#include "ops/batch_factors_formula.h"

/* node->params of BatchNormalization. */
typedef struct iv_batch_params {
    float epsilon, momentum;
    bool training;
} iv_batch_params;

/* The node's epsilon; its attributes were checked when the node was made. */
static inline float iv_batch_normalization_epsilon(const iv_node *node) {
    const iv_attribute *attribute = iv_attributes_find(&node->attributes, "epsilon");
    return attribute != NULL ? attribute->floats[0] : 1e-5f;
}

#endif
