#include "cpu/contraction/deform_rows.h"

#include "base/isa.h"

extern sb_deform_rows sb_deform_rows_scalar;
#if SB_HAS_X86_KERNELS
extern sb_deform_rows sb_deform_rows_avx2, sb_deform_rows_avx512;
#endif

sb_deform_rows *sb_deform_rows_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_deform_rows_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_deform_rows_avx2;
#endif
    (void)isa;
    return sb_deform_rows_scalar;
}
