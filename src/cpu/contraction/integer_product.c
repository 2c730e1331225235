#include "cpu/contraction/integer_product.h"

const sb_integer_kernels *sb_integer_kernels_of(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (sb_isa_adds_products(isa))
        return isa == SB_ISA_AVX512 ? &sb_integer_kernels_avx512 : &sb_integer_kernels_avx2;
#endif
    (void)isa;
    return NULL;
}
