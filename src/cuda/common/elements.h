/* Launching kernels that take one thread for each element. */
#ifndef SB_CUDA_COMMON_ELEMENTS_H
#define SB_CUDA_COMMON_ELEMENTS_H

#include "cuda/common/call.h"

/** Launches kernel "<name>_<suffix>" of `module` (the name alone without a suffix) with a thread
 * for each of `elements` elements, or for several a grid apart. `work` has the parameters and
 * ranges; no elements are nothing to do. */
sb_status sb_cuda_launch_each(sb_call *call, sb_cuda_work *work, const char *module, const char *name,
                              const char *suffix, int64_t elements);

/** The suffix of kernels that only move bits: "8", "16", "32" or "64". */
const char *sb_cuda_size_suffix(sb_dtype dtype);

/** For kernels that take whatever node has their operator. */
bool sb_cuda_supports_all(const sb_kernel_query *query, char *why);

/** Writes `bits` to each element of a contiguous tensor on the device. */
sb_status sb_cuda_call_fill(sb_call *call, sb_tensor *to, uint64_t bits);

/** Inputs that several kernels need packed: input `index` as a contiguous tensor with `call`'s
 * workspace behind it, NULL where omitted. The caller releases it. */
sb_status sb_cuda_call_packed(sb_call *call, int index, sb_tensor **tensor);

#endif
