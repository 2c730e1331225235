/* Repeatable random numbers for tests: splitmix64. */
#ifndef SB_TESTS_RANDOM_H
#define SB_TESTS_RANDOM_H

#include <stdint.h>

typedef struct random_source {
    uint64_t state;
} random_source;

static inline uint64_t random_bits(random_source *source) {
    uint64_t bits = source->state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* An integer in [least, most]; the tiny bias does not matter here. */
static inline int64_t random_between(random_source *source, int64_t least, int64_t most) {
    return least + (int64_t)(random_bits(source) % (uint64_t)(most - least + 1));
}

#endif
