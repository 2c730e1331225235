/* The chain of 16-bit products as the tensor cores of compute capability 8.0 to 8.9 add up (mma.sync with f32 accumulation, on
 * NVIDIA Ampere and Ada): not the contract, which is chain.h, but what a machine of those generations computes quickly.
 *
 * It differs from Hopper's in two numbers: a group of 16 k is two steps of 8 k, one after the other, and the terms of a step are
 * aligned to 24 bits below the largest exponent. The numbers are those of the published models: M. Fasi, N. J. Higham,
 * M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330 (2021); P. Xie, Y. Wang,
 * F. Yang, M. Yang, "MMA-Sim: bit-accurate reference model of tensor cores and matrix cores", arXiv:2511.10909. Neither says
 * which exponent a step's largest is at least; Hopper's, -133, is taken here too. It shows only in sums that are subnormal, or
 * nearly so. */
#ifndef SB_NUMERICS_CHAIN_AMPERE_H
#define SB_NUMERICS_CHAIN_AMPERE_H

#include "chain.h"

/* A format as these tensor cores add it up: what sb_chain16 and sb_chain16_step take. */
static SB_HD_HOT sb_chain16_format sb_chain16_ampere(sb_chain16_format format) {
    format.step = 8;
    format.alignment_bits = 24;
    return format;
}

static SB_HD float sb_chain16_ampere_step_bf16(const uint16_t a[SB_CHAIN16_GROUP], const uint16_t b[SB_CHAIN16_GROUP],
                                               float accumulator) {
    return sb_chain16_step(a, b, accumulator, sb_chain16_ampere(sb_chain16_format_bf16()));
}

static SB_HD float sb_chain16_ampere_step_f16(const uint16_t a[SB_CHAIN16_GROUP], const uint16_t b[SB_CHAIN16_GROUP],
                                              float accumulator) {
    return sb_chain16_step(a, b, accumulator, sb_chain16_ampere(sb_chain16_format_f16()));
}

#endif
