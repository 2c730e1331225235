/* The shared memory that a launch asks for (sb_cuda_work.shared_bytes): `SB_CUDA_DYNAMIC_SHARED(name);` in a kernel's body makes `name` its
 * first byte, at a multiple of 16. */
#ifndef SB_CUDA_COMMON_DYNAMIC_SHARED_CUH
#define SB_CUDA_COMMON_DYNAMIC_SHARED_CUH

#include "cuda/common/kernel.cuh"

#if defined(__CUDACC__)
#define SB_CUDA_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#else
#define SB_CUDA_DYNAMIC_SHARED(name) unsigned char *const name = host_dynamic_shared_memory()
#endif

#endif
