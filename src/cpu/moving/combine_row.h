/* Combining a row of updates with what is there, for scatters: one function per instruction set. */
#ifndef SB_CPU_MOVING_COMBINE_ROW_H
#define SB_CPU_MOVING_COMBINE_ROW_H

#include <stdint.h>

#include "base/isa.h"
#include "ops/scatter_values.h"

/** sb_scatter_combine of each of `count` elements side by side of f32, f16 or bf16; not for SB_SCATTER_SET. */
typedef void sb_combine_row(sb_scatter_how how, sb_dtype dtype, int64_t count, void *to, const void *from);

extern sb_combine_row sb_combine_row_scalar;
#if SB_HAS_X86_KERNELS
extern sb_combine_row sb_combine_row_avx2, sb_combine_row_avx512;
#endif

static inline sb_combine_row *sb_combine_row_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_combine_row_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_combine_row_avx2;
#endif
    (void)isa;
    return sb_combine_row_scalar;
}

#endif
