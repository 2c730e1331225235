/* Attention of f16 and bf16 by tensor cores, for widths of heads up to 128.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16.cuh"

#define TILES(name, half, width)                                                                                       \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention16_##name##_##width, sb_cuda_attention, p, TILE_THREADS, 2) {        \
        sb_attention16_block<half, width, false>(p);                                                                   \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention16_##name##_##width##_masked, sb_cuda_attention, p, TILE_THREADS,    \
                                 2) {                                                                                  \
        sb_attention16_block<half, width, true>(p);                                                                    \
    }
#define FOLD(name, half)                                                                                               \
    SB_CUDA_KERNEL(sb_cuda_attention16_fold_##name, sb_cuda_attention, p) {                                            \
        sb_attention16_fold_rows<half>(p);                                                                             \
    }
#define ALL(name, half)                                                                                                \
    TILES(name, half, 64)                                                                                              \
    TILES(name, half, 128)                                                                                             \
    FOLD(name, half)

#if !defined(SB_MODULE_f16)
ALL(bf16, SB_CUDA_BF16)
#endif
#if !defined(SB_MODULE_bf16)
ALL(f16, SB_CUDA_F16)
#endif
