#include "cpu/recurrent/recurrent_cells.h"

#include "base/isa.h"

extern const sb_recurrent_cells sb_recurrent_cells_scalar;
#if SB_HAS_X86_KERNELS
extern const sb_recurrent_cells sb_recurrent_cells_avx2, sb_recurrent_cells_avx512;
#endif

const sb_recurrent_cells *sb_recurrent_cells_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_recurrent_cells_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_recurrent_cells_avx2;
#endif
    return &sb_recurrent_cells_scalar;
}
