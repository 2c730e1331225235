/* Values from other threads of a warp. Every thread of the warp has to come here, as at a barrier:
 * tests run these as barriers. `width` is a power of 2 up to 32 that cuts warps into segments. */
#ifndef SB_CUDA_COMMON_SHUFFLE_CUH
#define SB_CUDA_COMMON_SHUFFLE_CUH

#include "cuda/common/kernel.cuh"

/* sb_cuda_shuffle_down_<suffix>: the value of the thread `distance` further on in the segment, one's
 * own where there is none. sb_cuda_shuffle_first_<suffix>: that of the segment's first thread.
 * sb_cuda_shuffle_exchange_<suffix>: that of the thread whose number differs in the bits of `distance`, of a segment of
 * more threads than that. */
#if defined(__CUDACC__)
#define SB_CUDA_DEFINE_SHUFFLE(suffix, type, held)                                                                     \
    SB_CUDA_FUNCTION type sb_cuda_shuffle_down_##suffix(type value, int distance, int width) {                         \
        return (type)__shfl_down_sync(0xffffffffu, (held)value, distance, width);                                      \
    }                                                                                                                  \
    SB_CUDA_FUNCTION type sb_cuda_shuffle_first_##suffix(type value, int width) {                                      \
        return (type)__shfl_sync(0xffffffffu, (held)value, 0, width);                                                  \
    }                                                                                                                  \
    SB_CUDA_FUNCTION type sb_cuda_shuffle_exchange_##suffix(type value, int distance) {                                \
        return (type)__shfl_xor_sync(0xffffffffu, (held)value, distance);                                              \
    }
#else
#define SB_CUDA_DEFINE_SHUFFLE(suffix, type, held)                                                                     \
    SB_CUDA_FUNCTION type sb_cuda_shuffle_down_##suffix(type value, int distance, int width) {                         \
        int thread = (int)threadIdx.x, inside = thread % width + distance < width;                                     \
        host_exchange(&value, sizeof value, (unsigned)(inside ? thread + distance : thread));                          \
        return value;                                                                                                  \
    }                                                                                                                  \
    SB_CUDA_FUNCTION type sb_cuda_shuffle_first_##suffix(type value, int width) {                                      \
        host_exchange(&value, sizeof value, threadIdx.x - threadIdx.x % (unsigned)width);                              \
        return value;                                                                                                  \
    }                                                                                                                  \
    SB_CUDA_FUNCTION type sb_cuda_shuffle_exchange_##suffix(type value, int distance) {                                \
        host_exchange(&value, sizeof value, threadIdx.x ^ (unsigned)distance);                                         \
        return value;                                                                                                  \
    }
#endif
SB_CUDA_DEFINE_SHUFFLE(f32, float, float)
SB_CUDA_DEFINE_SHUFFLE(f64, double, double)
SB_CUDA_DEFINE_SHUFFLE(u64, uint64_t, unsigned long long)

#endif
