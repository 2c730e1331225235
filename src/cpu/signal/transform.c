#include "cpu/signal/transform.h"

#include "base/isa.h"

extern sb_transform sb_transform_scalar, sb_transform_avx2, sb_transform_avx512;

sb_transform *sb_transform_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_transform_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_transform_avx2;
#endif
    (void)isa;
    return sb_transform_scalar;
}
