#include "cpu/rows/normalize.h"

#include "base/isa.h"

extern const sb_row_kernels sb_row_kernels_scalar, sb_row_kernels_avx2, sb_row_kernels_avx512;

const sb_row_kernels *sb_row_kernels_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_row_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_row_kernels_avx2;
#endif
    (void)isa;
    return &sb_row_kernels_scalar;
}
