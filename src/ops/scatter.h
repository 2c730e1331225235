/* What the kernels of Scatter, ScatterElements and ScatterND share with their definitions. */
#ifndef IV_OPS_SCATTER_H
#define IV_OPS_SCATTER_H

#include "graph/op.h"
#include "ops/scatter_values.h"

typedef struct iv_scatter_params {
    int64_t axis;
    iv_scatter_how how;
} iv_scatter_params;

/** Checks that the extents of data, indices and updates fit each other, for ScatterElements along
 * `axis` and for ScatterND. SHAPE when not. */
iv_status iv_scatter_check_elements(const iv_call *call, const iv_tensor *data,
                                    const iv_tensor *picks, const iv_tensor *updates, int axis);
iv_status iv_scatter_check_tuples(const iv_call *call, const iv_tensor *data,
                                  const iv_tensor *picks, const iv_tensor *updates);

#endif
