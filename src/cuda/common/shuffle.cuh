/* Values from other threads of a warp. Every thread of the warp has to come here, as at a barrier:
 * tests run these as barriers. `width` is a power of 2 up to 32 that cuts warps into segments. */
#ifndef SB_CUDA_COMMON_SHUFFLE_CUH
#define SB_CUDA_COMMON_SHUFFLE_CUH

#include "cuda/common/kernel.cuh"

/* sb_cuda_shuffle_down_<suffix>: the value of the thread `distance` further on in the segment, one's
 * own where there is none. sb_cuda_shuffle_first_<suffix>: that of the segment's first thread.
 * sb_cuda_shuffle_exchange_<suffix>: that of the thread whose number differs in the bits of `distance`, of a segment of
 * more threads than that.
 * sb_cuda_shuffle_from_<suffix>: that of thread `lane` of the warp, each thread from whichever it asks for. */
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
    }                                                                                                                  \
    SB_CUDA_FUNCTION type sb_cuda_shuffle_from_##suffix(type value, int lane) {                                        \
        return (type)__shfl_sync(0xffffffffu, (held)value, lane);                                                      \
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
    }                                                                                                                  \
    SB_CUDA_FUNCTION type sb_cuda_shuffle_from_##suffix(type value, int lane) {                                        \
        host_exchange(&value, sizeof value, threadIdx.x / 32 * 32 + (unsigned)lane);                                   \
        return value;                                                                                                  \
    }
#endif
SB_CUDA_DEFINE_SHUFFLE(f32, float, float)
SB_CUDA_DEFINE_SHUFFLE(f64, double, double)
SB_CUDA_DEFINE_SHUFFLE(u64, uint64_t, unsigned long long)
SB_CUDA_DEFINE_SHUFFLE(s32, int32_t, int)

/* The largest and the smallest value of the warp's threads, which all of them get. */
#if defined(__CUDACC__)
#define SB_CUDA_DEFINE_OVER_WARP(name, suffix, type, instruction, BETTER)                                              \
    SB_CUDA_FUNCTION type sb_cuda_##name##_##suffix(type value) {                                                      \
        type all;                                                                                                      \
        asm volatile("redux.sync." instruction " %0, %1, 0xffffffff;" : "=r"(all) : "r"(value));                       \
        return all;                                                                                                    \
    }
#else
#define SB_CUDA_DEFINE_OVER_WARP(name, suffix, type, instruction, BETTER)                                              \
    SB_CUDA_FUNCTION type sb_cuda_##name##_##suffix(type value) {                                                      \
        for (int distance = 1; distance < 32; distance *= 2) {                                                         \
            const type other = (type)sb_cuda_shuffle_exchange_s32((int32_t)value, distance);                           \
            value = other BETTER value ? other : value;                                                                \
        }                                                                                                              \
        return value;                                                                                                  \
    }
#endif
SB_CUDA_DEFINE_OVER_WARP(largest, u32, uint32_t, "max.u32", >)
SB_CUDA_DEFINE_OVER_WARP(largest, s32, int32_t, "max.s32", >)
SB_CUDA_DEFINE_OVER_WARP(smallest, s32, int32_t, "min.s32", <)

/* The first of the warp's threads for which `is` holds; -1: for none. */
SB_CUDA_FUNCTION int sb_cuda_first_lane(bool is) {
#if defined(__CUDACC__)
    return __ffs((int)__ballot_sync(0xffffffffu, is)) - 1;
#else
    int32_t first = is ? (int32_t)threadIdx.x % 32 : 32;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int32_t other = sb_cuda_shuffle_exchange_s32(first, distance);
        first = other < first ? other : first;
    }
    return first < 32 ? first : -1;
#endif
}

/* The sum of a value over the warp's threads up to one's own. */
SB_CUDA_FUNCTION int64_t sb_cuda_sum_so_far_s64(int64_t value, int lane) {
    SB_CUDA_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
        const int64_t before =
            (int64_t)sb_cuda_shuffle_from_u64((uint64_t)value, lane >= distance ? lane - distance : lane);
        value += lane >= distance ? before : 0;
    }
    return value;
}

/* The least of them. */
SB_CUDA_FUNCTION int64_t sb_cuda_least_so_far_s64(int64_t value, int lane) {
    SB_CUDA_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
        const int64_t before =
            (int64_t)sb_cuda_shuffle_from_u64((uint64_t)value, lane >= distance ? lane - distance : lane);
        value = before < value ? before : value;
    }
    return value;
}

/* One of the warp's threads' values, for all. */
SB_CUDA_FUNCTION int64_t sb_cuda_tell_s64(int64_t value, int lane) {
    return (int64_t)sb_cuda_shuffle_from_u64((uint64_t)value, lane);
}

#endif
