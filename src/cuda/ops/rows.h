/* Rows of tensors for kernels, and how many threads take them. */
#ifndef IV_CUDA_OPS_ROWS_H
#define IV_CUDA_OPS_ROWS_H

#include "cuda/call.h"
#include "cuda/kernels/rows_parameters.h"

/** Describes the rows of `tensors` (IV_CUDA_ROW_OUT and so on; NULL where there is none): `dims` of
 * `rank` dimensions, of which those in the bit set `inner` are the row. Each tensor has `rank`
 * dimensions, whose strides count; its own extents do not, so a stride of 0 repeats it. */
void iv_cuda_rows_fill(iv_cuda_rows *rows, int rank, const int64_t *dims, uint32_t inner,
                       const iv_tensor *const *tensors);

/** A borrowed view of a packed tensor with `rank` dimensions, the extents of `dims` but for those
 * in the bit set `gone`, which have stride 0: what a reduction writes, with or without its
 * dimensions.
 */
void iv_cuda_rows_reduced(const iv_tensor *packed, int rank, const int64_t *dims, uint32_t gone,
                          iv_tensor *view);

/** A borrowed view of `tensor`, broadcast by numpy's rule to `rank` dimensions: strides of 0 where
 * it repeats. SHAPE, naming input `index`, where it does not fit. */
iv_status iv_cuda_rows_broadcast(const iv_call *call, int index, const iv_tensor *tensor, int rank,
                                 const int64_t *dims, iv_tensor *view);

/** Whether the rows are short enough for teams (IV_CUDA_TEAM_LENGTH). */
bool iv_cuda_rows_are_short(const iv_cuda_rows *rows);

/** Sets the work's blocks and threads, and the team, for kernels of short rows; or for those of
 * long ones, where each of `items` gets a block (0 of either: no blocks). */
void iv_cuda_rows_grid_short(const iv_call *call, iv_cuda_rows *rows, iv_cuda_work *work);
void iv_cuda_rows_grid_long(const iv_call *call, const iv_cuda_rows *rows, int64_t items,
                            iv_cuda_work *work);

#endif
