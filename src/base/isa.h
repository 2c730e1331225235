#ifndef SB_BASE_ISA_H
#define SB_BASE_ISA_H

#include <samebit/isa.h>

#include <stdbool.h>

/* Names of what a source compiled once per instruction set exports: SB_ISA_NAME(sb_gemm) is sb_gemm_avx2 there. */
#define SB_ISA_PASTE2(name, isa) name##_##isa
#define SB_ISA_PASTE(name, isa) SB_ISA_PASTE2(name, isa)
#define SB_ISA_NAME(name) SB_ISA_PASTE(name, SB_ISA)

/* Whether kernels for x86's vector instruction sets are in this build. */
#if defined(__x86_64__)
#define SB_HAS_X86_KERNELS 1
#else
#define SB_HAS_X86_KERNELS 0
#endif

/** Whether this processor adds up products of 8- and 16-bit integers in one instruction of that set's vectors (VNNI), which not every
 * one of the set does. Thread-safe. */
bool sb_isa_adds_products(sb_isa isa);

/** Whether this processor, which has AVX-512, adds up products of bf16 in one instruction. Thread-safe. */
bool sb_isa_multiplies_bf16(void);

#endif
