#include "cpu/normalize.h"

#include "base/isa.h"

extern const iv_row_kernels iv_row_kernels_scalar, iv_row_kernels_avx2, iv_row_kernels_avx512;

const iv_row_kernels *iv_row_kernels_for(iv_isa isa) {
#if IV_HAS_X86_KERNELS
    if (isa == IV_ISA_AVX512)
        return &iv_row_kernels_avx512;
    if (isa == IV_ISA_AVX2)
        return &iv_row_kernels_avx2;
#endif
    (void)isa;
    return &iv_row_kernels_scalar;
}
