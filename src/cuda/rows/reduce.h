/* Reductions of rows, for operators of other names as well. */
#ifndef SB_CUDA_ROWS_REDUCE_H
#define SB_CUDA_ROWS_REDUCE_H

#include "cuda/rows/rows.h"

typedef struct sb_cuda_reduce {
    const char *module, *kernel; /* sb_cuda_reduce_{team,block,parts}_<kernel>_<dtype> */
    sb_cuda_finish finish;
    sb_cuda_integer_reduction integer;
    bool wide;           /* integers are computed in f64 */
    bool long_only;      /* there is no kernel for teams */
    bool bounded;        /* `in` has the dimensions of the call's input 0, and rows end at its used extents */
    float exponent;      /* of powers */
    const char *highest; /* of exponentials: each row's largest element */
} sb_cuda_reduce;

/** Reduces the dimensions in the bit set `axes` of `in` (any strides) to `out` (packed, the same
 * dtype, with or without those dimensions). */
sb_status sb_cuda_reduce_rows(sb_call *call, const sb_cuda_reduce *how, const sb_tensor *out, const sb_tensor *in,
                              uint32_t axes);

#endif
