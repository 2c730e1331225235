#include "cpu/windows/pool_rows.h"

#include "base/isa.h"

extern const sb_pool_kernels sb_pool_kernels_scalar;
#if SB_HAS_X86_KERNELS
extern const sb_pool_kernels sb_pool_kernels_avx2, sb_pool_kernels_avx512;
#endif

const sb_pool_kernels *sb_pool_kernels_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_pool_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_pool_kernels_avx2;
#endif
    return &sb_pool_kernels_scalar;
}
