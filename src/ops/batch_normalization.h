/* Batch normalisation's arithmetic, shared by its reference evaluation and by kernels that fold it into what comes before. */
#ifndef IV_OPS_BATCH_NORMALIZATION_H
#define IV_OPS_BATCH_NORMALIZATION_H

#include "graph/graph.h"
#include "numerics/scalar.h"

/* The factors of y = fma(x, a, b): a = scale / sqrt(variance + epsilon), b = bias - mean a; every operation rounds once. */
static inline void iv_batch_normalization_factors(float scale, float bias, float mean,
                                                  float variance, float epsilon, float *a,
                                                  float *b) {
    *a = iv_div_f32(scale, iv_sqrt_f32(variance + epsilon));
    *b = bias - mean * *a;
}

/* The node's epsilon; its attributes were checked when the node was made. */
static inline float iv_batch_normalization_epsilon(const iv_node *node) {
    const iv_attribute *attribute = iv_attributes_find(&node->attributes, "epsilon");
    return attribute != NULL ? attribute->floats[0] : 1e-5f;
}

#endif
