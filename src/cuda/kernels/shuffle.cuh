/* Values from other threads of a warp. Every thread of the block has to come here, as at a barrier:
 * tests run these as barriers. `width` is a power of 2 up to 32 that cuts warps into segments. */
#ifndef IV_CUDA_KERNELS_SHUFFLE_CUH
#define IV_CUDA_KERNELS_SHUFFLE_CUH

#include "cuda/kernels/kernel.cuh"

/* iv_cuda_shuffle_down_<suffix>: the value of the thread `distance` further on in the segment, one's
 * own where there is none. iv_cuda_shuffle_first_<suffix>: that of the segment's first thread. */
#if defined(__CUDACC__)
#define IV_CUDA_DEFINE_SHUFFLE(suffix, type, held)                                                 \
    IV_CUDA_FUNCTION type iv_cuda_shuffle_down_##suffix(type value, int distance, int width) {     \
        return (type)__shfl_down_sync(0xffffffffu, (held)value, distance, width);                  \
    }                                                                                              \
    IV_CUDA_FUNCTION type iv_cuda_shuffle_first_##suffix(type value, int width) {                  \
        return (type)__shfl_sync(0xffffffffu, (held)value, 0, width);                              \
    }
#else
#define IV_CUDA_DEFINE_SHUFFLE(suffix, type, held)                                                 \
    IV_CUDA_FUNCTION type iv_cuda_shuffle_down_##suffix(type value, int distance, int width) {     \
        int thread = (int)threadIdx.x, inside = thread % width + distance < width;                 \
        host_exchange(&value, sizeof value, (unsigned)(inside ? thread + distance : thread));      \
        return value;                                                                              \
    }                                                                                              \
    IV_CUDA_FUNCTION type iv_cuda_shuffle_first_##suffix(type value, int width) {                  \
        host_exchange(&value, sizeof value, threadIdx.x - threadIdx.x % (unsigned)width);          \
        return value;                                                                              \
    }
#endif
IV_CUDA_DEFINE_SHUFFLE(f32, float, float)
IV_CUDA_DEFINE_SHUFFLE(f64, double, double)
IV_CUDA_DEFINE_SHUFFLE(u64, uint64_t, unsigned long long)

#endif
