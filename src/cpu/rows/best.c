#include "cpu/rows/best.h"

#include "base/isa.h"

extern const sb_best_kernels sb_best_kernels_scalar;
#if SB_HAS_X86_KERNELS
extern const sb_best_kernels sb_best_kernels_avx2, sb_best_kernels_avx512;
#endif

const sb_best_kernels *sb_best_kernels_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_best_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_best_kernels_avx2;
#endif
    (void)isa;
    return &sb_best_kernels_scalar;
}

sb_dtype sb_best_dtype(sb_dtype dtype) {
    switch (dtype) {
    case SB_F32:
    case SB_F16:
    case SB_BF16:
        return SB_F32;
    case SB_S8:
    case SB_U8:
    case SB_S16:
    case SB_U16:
    case SB_S32:
        return SB_S32;
    default:
        return SB_DTYPE_NONE;
    }
}
