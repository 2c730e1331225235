/* Launching kernels that take one thread for each element. */
#ifndef IV_CUDA_OPS_ELEMENTS_H
#define IV_CUDA_OPS_ELEMENTS_H

#include "cuda/call.h"

/** Launches kernel "<name>_<suffix>" of `module` (the name alone without a suffix) with a thread
 * for each of `elements` elements, or for several a grid apart. `work` has the parameters and
 * ranges; no elements are nothing to do. */
iv_status iv_cuda_launch_each(iv_call *call, iv_cuda_work *work, const char *module,
                              const char *name, const char *suffix, int64_t elements);

/** The suffix of kernels that only move bits: "8", "16", "32" or "64". */
const char *iv_cuda_size_suffix(iv_dtype dtype);

/** For kernels that take whatever node has their operator. */
bool iv_cuda_supports_all(const iv_kernel_query *query, char *why);

/** Writes `bits` to each element of a contiguous tensor on the device. */
iv_status iv_cuda_call_fill(iv_call *call, iv_tensor *to, uint64_t bits);

/** Inputs that several kernels need packed: input `index` as a contiguous tensor with `call`'s
 * scratch memory behind it, NULL where omitted. The caller releases it. */
iv_status iv_cuda_call_packed(iv_call *call, int index, iv_tensor **tensor);

#endif
