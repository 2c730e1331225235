/* What the kernels of Scatter, ScatterElements and ScatterND share with their definitions. */
#ifndef SB_OPS_SCATTER_H
#define SB_OPS_SCATTER_H

#include "graph/op.h"
#include "ops/scatter_values.h"

typedef struct sb_scatter_params {
    int64_t axis;
    sb_scatter_how how;
} sb_scatter_params;

/** Checks that the extents of data, indices and updates fit each other, for ScatterElements along
 * `axis` and for ScatterND. SHAPE when not. */
sb_status sb_scatter_check_elements(const sb_call *call, const sb_tensor *data, const sb_tensor *picks,
                                    const sb_tensor *updates, int axis);
sb_status sb_scatter_check_tuples(const sb_call *call, const sb_tensor *data, const sb_tensor *picks,
                                  const sb_tensor *updates);

#endif
