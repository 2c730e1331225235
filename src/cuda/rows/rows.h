/* Rows of tensors for kernels, and how many threads take them. */
#ifndef SB_CUDA_ROWS_ROWS_H
#define SB_CUDA_ROWS_ROWS_H

#include "cuda/common/call.h"
#include "cuda/rows/rows_parameters.h"

/** Describes the rows of `tensors` (SB_CUDA_ROW_OUT and so on; NULL where there is none): `dims` of
 * `rank` dimensions, of which those in the bit set `inner` are the row. Each tensor has `rank`
 * dimensions, whose strides count; its own extents do not, so a stride of 0 repeats it. */
void sb_cuda_rows_fill(sb_cuda_rows *rows, int rank, const int64_t *dims, uint32_t inner,
                       const sb_tensor *const *tensors);

/** Lets the rows, which are those of the call's input `input` with the dimensions `inner`, end at its used extents, and
 * notes these as read. Where an outer dimension that is not the first is used partly, all rows are taken. */
void sb_cuda_rows_bound(sb_cuda_rows *rows, sb_cuda_work *work, const sb_call *call, int input, uint32_t inner);
/** `bounded` of kernels that call sb_cuda_rows_bound, whose rows are the axes of input 0 that their rule bounds: whether
 * a row's used elements are its first ones. Other inputs broadcast to input 0. */
bool sb_cuda_rows_bounded(const sb_kernel_query *query, int input, int axis);

/** A borrowed view of a packed tensor with `rank` dimensions, the extents of `dims` but for those in the bit set
 * `gone`, which have stride 0: what a reduction writes, with or without its dimensions. */
void sb_cuda_rows_reduced(const sb_tensor *packed, int rank, const int64_t *dims, uint32_t gone, sb_tensor *view);

/** A borrowed view of `tensor`, broadcast by numpy's rule to `rank` dimensions: strides of 0 where
 * it repeats. SHAPE, naming input `index`, where it does not fit. */
sb_status sb_cuda_rows_broadcast(const sb_call *call, int index, const sb_tensor *tensor, int rank, const int64_t *dims,
                                 sb_tensor *view);

/** Whether the rows are short enough for teams (SB_CUDA_TEAM_LENGTH). */
bool sb_cuda_rows_are_short(const sb_cuda_rows *rows);

/* A kernel for rows in registers. */
typedef struct sb_cuda_row_vector {
    int team, groups; /* row_vectors_parameters.h */
} sb_cuda_row_vector;

/** Whether rows of `dtype` can be read eight elements at a time: it must have 16 bits, and rows be side by side, start at 16
 * bytes, and have a multiple of eight elements. */
bool sb_cuda_rows_are_vectors(const sb_cuda_rows *rows, sb_dtype dtype);
/** Whether rows of `dtype`, which may be f32 too, can be read and written so, and scale and bias are the same for all rows. */
bool sb_cuda_rows_take_vectors(const sb_cuda_rows *rows, sb_dtype dtype);
/** The kernel for such rows in registers; false where there is none, as for rows of more than 2,048 elements. */
bool sb_cuda_rows_vector(const sb_cuda_rows *rows, sb_dtype dtype, sb_cuda_row_vector *vector);
/** Sets the work's blocks and threads for that kernel. */
void sb_cuda_rows_grid_vector(const sb_call *call, const sb_cuda_rows *rows, sb_cuda_row_vector vector,
                              sb_cuda_work *work);

/** Sets the work's blocks and threads, and the team, for kernels of short rows; or for those of
 * long ones, where each of `items` gets a block (0 of either: no blocks). */
void sb_cuda_rows_grid_short(const sb_call *call, sb_cuda_rows *rows, sb_cuda_work *work);
void sb_cuda_rows_grid_long(const sb_call *call, const sb_cuda_rows *rows, int64_t items, sb_cuda_work *work);

#endif
