#include "llm/choose_row.h"

extern const sb_choose_loops sb_choose_loops_scalar, sb_choose_loops_avx2, sb_choose_loops_avx512;

const sb_choose_loops *sb_choose_loops_best(void) {
#if SB_HAS_X86_KERNELS
    sb_isa isa = sb_isa_detect();
    if (isa == SB_ISA_AVX512)
        return &sb_choose_loops_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_choose_loops_avx2;
#endif
    return &sb_choose_loops_scalar;
}
