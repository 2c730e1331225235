#include "cpu/recurrent_cells.h"

#include "base/isa.h"

extern const iv_recurrent_cells iv_recurrent_cells_scalar;
#if IV_HAS_X86_KERNELS
extern const iv_recurrent_cells iv_recurrent_cells_avx2, iv_recurrent_cells_avx512;
#endif

const iv_recurrent_cells *iv_recurrent_cells_for(iv_isa isa) {
#if IV_HAS_X86_KERNELS
    if (isa == IV_ISA_AVX512)
        return &iv_recurrent_cells_avx512;
    if (isa == IV_ISA_AVX2)
        return &iv_recurrent_cells_avx2;
#endif
    return &iv_recurrent_cells_scalar;
}
