#ifndef IV_BASE_ISA_H
#define IV_BASE_ISA_H

#include <invar/isa.h>

/* Names of what a source compiled once per instruction set exports: IV_ISA_NAME(iv_gemm) is iv_gemm_avx2 there. */
#define IV_ISA_PASTE2(name, isa) name##_##isa
#define IV_ISA_PASTE(name, isa) IV_ISA_PASTE2(name, isa)
#define IV_ISA_NAME(name) IV_ISA_PASTE(name, IV_ISA)

/* Whether kernels for x86's vector instruction sets are in this build. */
#if defined(__x86_64__)
#define IV_HAS_X86_KERNELS 1
#else
#define IV_HAS_X86_KERNELS 0
#endif

#endif
