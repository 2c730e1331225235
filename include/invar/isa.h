/* Instruction sets. Which one computes never changes a result, only the time it takes. */
#ifndef INVAR_ISA_H
#define INVAR_ISA_H

#include <invar/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum iv_isa {
    IV_ISA_BEST = 0,   /**< the best that the processor has */
    IV_ISA_SCALAR = 1, /**< plain C, on every processor */
    IV_ISA_AVX2 = 2,   /**< AVX2, FMA and F16C */
    IV_ISA_AVX512 = 3  /**< AVX-512 F, BW, DQ and VL */
} iv_isa;

/** The best instruction set of this processor: never IV_ISA_BEST. */
IV_API iv_isa iv_isa_detect(void);
/** "scalar", "avx2", "avx512", "best". Never NULL; static storage. */
IV_API const char *iv_isa_name(iv_isa isa);
/** Resolves IV_ISA_BEST, and refuses (UNSUPPORTED) an instruction set that this processor or build lacks. */
IV_API IV_MUST_CHECK iv_status iv_isa_resolve(iv_isa wanted, iv_isa *isa, iv_error *error);

#ifdef __cplusplus
}
#endif
#endif
