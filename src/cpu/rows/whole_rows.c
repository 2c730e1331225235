#include "cpu/rows/whole_rows.h"

#include "base/isa.h"

extern const sb_whole_row_kernels sb_whole_row_kernels_scalar;
#if SB_HAS_X86_KERNELS
extern const sb_whole_row_kernels sb_whole_row_kernels_avx2, sb_whole_row_kernels_avx512;
#endif

const sb_whole_row_kernels *sb_whole_row_kernels_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_whole_row_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_whole_row_kernels_avx2;
#endif
    (void)isa;
    return &sb_whole_row_kernels_scalar;
}
