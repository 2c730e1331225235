/* Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3" (SC 2011): 128 bits of counter and 64 bits of key to four 32-bit
 * words. No state: every random number is a function of its key and its place. */
#ifndef SB_NUMERICS_PHILOX_H
#define SB_NUMERICS_PHILOX_H

#include "scalar.h"

typedef struct sb_philox_block {
    uint32_t word[4];
} sb_philox_block;

static SB_HD_HOT sb_philox_block sb_philox_round(sb_philox_block counter, uint32_t key0, uint32_t key1) {
    uint64_t product0 = (uint64_t)0xd2511f53u * counter.word[0];
    uint64_t product1 = (uint64_t)0xcd9e8d57u * counter.word[2];
    sb_philox_block next;
    next.word[0] = (uint32_t)(product1 >> 32) ^ counter.word[1] ^ key0;
    next.word[1] = (uint32_t)product1;
    next.word[2] = (uint32_t)(product0 >> 32) ^ counter.word[3] ^ key1;
    next.word[3] = (uint32_t)product0;
    return next;
}

/* Ten rounds; the key advances by Weyl constants (golden ratio, sqrt(3)-1) between rounds. */
static SB_HD sb_philox_block sb_philox4x32_10(sb_philox_block counter, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        counter = sb_philox_round(counter, key0, key1);
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return counter;
}

/* Uniform in [0, 1): the top 24 bits over 2^24. Every value is a multiple of 2^-24, 0 included, 1 excluded. */
static SB_HD_HOT float sb_uniform_f32(uint32_t word) {
    return (float)(int32_t)(word >> 8) * 5.9604644775390625e-08f;
}

/* Uniform in (0, 1), for logarithms: the top 23 bits plus one half, over 2^23; both ends are
 * excluded and every value is exact. */
static SB_HD_HOT float sb_uniform_open_f32(uint32_t word) {
    return ((float)(int32_t)(word >> 9) + 0.5f) * 1.1920928955078125e-07f;
}

/* Uniform in [0, 1): 53 bits, the high word first. */
static SB_HD_HOT double sb_uniform_f64(uint32_t high, uint32_t low) {
    uint64_t bits = ((uint64_t)high << 32 | low) >> 11;
    return (double)(int64_t)bits * 1.1102230246251565404e-16;
}

#endif
