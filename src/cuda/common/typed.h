/* Launching kernels that take groups of a box's elements and learn their types when they run. */
#ifndef SB_CUDA_COMMON_TYPED_H
#define SB_CUDA_COMMON_TYPED_H

#include "cuda/common/call.h"
#include "cuda/elementwise/convert_parameters.h"

/** The type as kernels know it. Not for text. */
sb_cuda_typed sb_cuda_typed_of(sb_dtype dtype);
/** Its name in those of kernels: "b8", "f32". */
const char *sb_cuda_type_name(sb_dtype dtype);

/** As sb_cuda_launch_each, for a kernel that takes groups of `elements` elements. */
sb_status sb_cuda_launch_groups(sb_call *call, sb_cuda_work *work, const char *module, const char *name,
                                const char *suffix, int64_t elements);

/** Converts `from`, broadcast, to `to` on the device, by the rules of Cast; equal types are copied. */
sb_status sb_cuda_call_cast(sb_call *call, sb_tensor *to, const sb_tensor *from);

#endif
