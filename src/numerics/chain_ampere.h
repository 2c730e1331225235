/* The chain of 16-bit products as the tensor cores of compute capability 8.0 to 8.9 add up (mma.sync with f32 accumulation, on
 * NVIDIA Ampere and Ada): not the contract, which is chain.h, but what a machine of those generations computes quickly.
 *
 * It differs from Hopper's in two numbers: a group of 16 k is two steps of 8 k, one after the other, and the terms of a step are
 * aligned to 24 bits below the largest exponent. The numbers are those of the published models: M. Fasi, N. J. Higham,
 * M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330 (2021); P. Xie, Y. Wang,
 * F. Yang, M. Yang, "MMA-Sim: bit-accurate reference model of tensor cores and matrix cores", arXiv:2511.10909. Neither says
 * which exponent a step's largest is at least; Hopper's, -133, is taken here too. It shows only in sums that are subnormal, or
 * nearly so. */
#ifndef IV_NUMERICS_CHAIN_AMPERE_H
#define IV_NUMERICS_CHAIN_AMPERE_H

#include "chain.h"

#define IV_CHAIN16_AMPERE_STEP 8
#define IV_CHAIN16_AMPERE_ALIGNMENT_BITS 24

/* 8 products and the accumulator. */
static IV_HD float iv_chain16_ampere_eight(const uint16_t *a, const uint16_t *b, float accumulator, iv_chain16_format format) {
    int32_t products[IV_CHAIN16_AMPERE_STEP];
    int32_t shifts[IV_CHAIN16_AMPERE_STEP];
    int classes = iv_chain16_class_of_accumulator(accumulator);
    uint32_t bits = iv_bits_from_f32(accumulator);
    int32_t stored = (int32_t)((bits >> 23) & 0xffu);
    int32_t significand = (int32_t)(bits & 0x007fffffu) | (stored != 0 ? 0x00800000 : 0);
    int32_t exponent = (stored != 0 ? stored : 1) - 127;
    int32_t largest = iv_chain16_raise(IV_CHAIN16_EXPONENT_FLOOR, significand, exponent);
    for (int k = 0; k < IV_CHAIN16_AMPERE_STEP; k++) {
        iv_chain16_part left = iv_chain16_unpack(a[k], format);
        iv_chain16_part right = iv_chain16_unpack(b[k], format);
        classes |= iv_chain16_class_of_product(a[k], b[k], format);
        products[k] = left.significand * right.significand;
        shifts[k] = left.exponent + right.exponent;
        largest = iv_chain16_raise(largest, products[k], shifts[k]);
    }
    if (classes != 0) {
        return iv_chain16_special(classes);
    }
    int32_t signed_significand = (bits >> 31) != 0 ? -significand : significand;
    int64_t sum = iv_chain16_align(signed_significand, exponent - largest + IV_CHAIN16_AMPERE_ALIGNMENT_BITS - 23);
    for (int k = 0; k < IV_CHAIN16_AMPERE_STEP; k++) {
        sum += iv_chain16_align(products[k], shifts[k] - largest + IV_CHAIN16_AMPERE_ALIGNMENT_BITS - 2 * format.fraction_bits);
    }
    /* Counted in units of 2^(largest - 24), where Hopper's are of 2^(largest - 25). */
    return iv_chain16_truncate(sum, largest + IV_CHAIN16_ALIGNMENT_BITS - IV_CHAIN16_AMPERE_ALIGNMENT_BITS);
}

/* A group of 16. */
static IV_HD float iv_chain16_ampere_step(const uint16_t a[IV_CHAIN16_GROUP], const uint16_t b[IV_CHAIN16_GROUP],
                                          float accumulator, iv_chain16_format format) {
    accumulator = iv_chain16_ampere_eight(a, b, accumulator, format);
    return iv_chain16_ampere_eight(a + IV_CHAIN16_AMPERE_STEP, b + IV_CHAIN16_AMPERE_STEP, accumulator, format);
}

static IV_HD float iv_chain16_ampere_step_bf16(const uint16_t a[IV_CHAIN16_GROUP], const uint16_t b[IV_CHAIN16_GROUP],
                                               float accumulator) {
    return iv_chain16_ampere_step(a, b, accumulator, iv_chain16_format_bf16());
}

static IV_HD float iv_chain16_ampere_step_f16(const uint16_t a[IV_CHAIN16_GROUP], const uint16_t b[IV_CHAIN16_GROUP],
                                              float accumulator) {
    return iv_chain16_ampere_step(a, b, accumulator, iv_chain16_format_f16());
}

/* The whole chain over `count` pairs, as iv_chain16. */
static IV_HD float iv_chain16_ampere(const uint16_t *a, int64_t a_stride, const uint16_t *b, int64_t b_stride, int64_t count,
                                     float accumulator, iv_chain16_format format) {
    for (int64_t start = 0; start < count; start += IV_CHAIN16_GROUP) {
        uint16_t left[IV_CHAIN16_GROUP];
        uint16_t right[IV_CHAIN16_GROUP];
        for (int k = 0; k < IV_CHAIN16_GROUP; k++) {
            int64_t index = start + k;
            left[k] = index < count ? a[index * a_stride] : (uint16_t)0;
            right[k] = index < count ? b[index * b_stride] : (uint16_t)0;
        }
        accumulator = iv_chain16_ampere_step(left, right, accumulator, format);
    }
    return accumulator;
}

#endif
