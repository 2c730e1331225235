#include "cpu/pool_rows.h"

#include "base/isa.h"

extern const iv_pool_kernels iv_pool_kernels_scalar;
#if IV_HAS_X86_KERNELS
extern const iv_pool_kernels iv_pool_kernels_avx2, iv_pool_kernels_avx512;
#endif

const iv_pool_kernels *iv_pool_kernels_for(iv_isa isa) {
#if IV_HAS_X86_KERNELS
    if (isa == IV_ISA_AVX512)
        return &iv_pool_kernels_avx512;
    if (isa == IV_ISA_AVX2)
        return &iv_pool_kernels_avx2;
#endif
    return &iv_pool_kernels_scalar;
}
