#include "cpu/rows/reduce_rows.h"

#include "base/isa.h"

const sb_reduce_kernels *sb_reduce_kernels_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_reduce_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_reduce_kernels_avx2;
#endif
    (void)isa;
    return &sb_reduce_kernels_scalar;
}
