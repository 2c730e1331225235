/* Launching kernels that take groups of a box's elements and learn their types when they run. */
#ifndef IV_CUDA_OPS_TYPED_H
#define IV_CUDA_OPS_TYPED_H

#include "cuda/call.h"
#include "cuda/kernels/convert_parameters.h"

/** The type as kernels know it. Not for text. */
iv_cuda_typed iv_cuda_typed_of(iv_dtype dtype);
/** Its name in those of kernels: "b8", "f32". */
const char *iv_cuda_type_name(iv_dtype dtype);

/** As iv_cuda_launch_each, for a kernel that takes groups of `elements` elements. */
iv_status iv_cuda_launch_groups(iv_call *call, iv_cuda_work *work, const char *module,
                                const char *name, const char *suffix, int64_t elements);

/** Converts `from`, broadcast, to `to` on the device, by the rules of Cast; equal types are copied. */
iv_status iv_cuda_call_cast(iv_call *call, iv_tensor *to, const iv_tensor *from);

#endif
