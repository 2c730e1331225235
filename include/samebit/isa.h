/* Instruction sets. Which one computes never changes a result, only the time it takes. */
#ifndef SAMEBIT_ISA_H
#define SAMEBIT_ISA_H

#include <samebit/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sb_isa {
    SB_ISA_BEST = 0,   /**< the best that the processor has */
    SB_ISA_SCALAR = 1, /**< plain C, on every processor */
    SB_ISA_AVX2 = 2,   /**< AVX2, FMA and F16C */
    SB_ISA_AVX512 = 3  /**< AVX-512 F, BW, DQ and VL */
} sb_isa;

/** The best instruction set of this processor: never SB_ISA_BEST. */
SB_API sb_isa sb_isa_detect(void);
/** "scalar", "avx2", "avx512", "best". Never NULL; static storage. */
SB_API const char *sb_isa_name(sb_isa isa);
/** Resolves SB_ISA_BEST, and refuses (UNSUPPORTED) an instruction set that this processor or build lacks. */
SB_API SB_MUST_CHECK sb_status sb_isa_resolve(sb_isa wanted, sb_isa *isa, sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
