/* Reductions of rows, for operators of other names as well. */
#ifndef IV_CUDA_OPS_REDUCE_H
#define IV_CUDA_OPS_REDUCE_H

#include "cuda/ops/rows.h"

typedef struct iv_cuda_reduce {
    const char *module, *kernel; /* iv_cuda_reduce_{team,block,parts}_<kernel>_<dtype> */
    iv_cuda_finish finish;
    iv_cuda_integer_reduction integer;
    bool wide;           /* integers are computed in f64 */
    bool long_only;      /* there is no kernel for teams */
    float exponent;      /* of powers */
    const char *highest; /* of exponentials: each row's largest element */
} iv_cuda_reduce;

/** Reduces the dimensions in the bit set `axes` of `in` (any strides) to `out` (packed, the same
 * dtype, with or without those dimensions). */
iv_status iv_cuda_reduce_rows(iv_call *call, const iv_cuda_reduce *how, const iv_tensor *out,
                              const iv_tensor *in, uint32_t axes);

#endif
