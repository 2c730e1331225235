/* What the kernels of TensorScatter share with its definition. */
#ifndef SB_OPS_TENSOR_SCATTER_H
#define SB_OPS_TENSOR_SCATTER_H

#include "graph/op.h"

typedef struct sb_tensor_scatter_params {
    int64_t axis;
    bool circular;
} sb_tensor_scatter_params;

/** Checks the extents of a call's inputs, wherever they lie, and finds the axis. SHAPE where something does not fit. */
sb_status sb_tensor_scatter_fits(const sb_call *call, int *axis);

/** Checks the extents of a call's inputs, and from which row of axis `*axis` on each sample of the batch is written:
 * `*starts`, one in [0, rows) for each, are the caller's to sb_free. SHAPE where something does not fit, before anything
 * is written. */
sb_status sb_tensor_scatter_check(const sb_call *call, int *axis, int64_t **starts);

/** Writes the checked updates into `output`, whose other elements stay. For text the entries alone. */
void sb_tensor_scatter_write(const sb_call *call, int axis, const int64_t *starts, sb_tensor *output);

#endif
