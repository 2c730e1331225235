/* A table from pairs of numbers to pairs of numbers: merges of two tokens, children of a node. */
#ifndef SB_TOKENIZER_PAIRS_H
#define SB_TOKENIZER_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sb_pair_entry {
    uint64_t key; /* left << 32 | right, plus one; 0 in a free slot */
    uint32_t first, second;
} sb_pair_entry;

/** Zeroed, it is empty. */
typedef struct sb_pairs {
    size_t count, capacity; /* capacity is 0 or a power of two */
    sb_pair_entry *entries;
} sb_pairs;

static inline uint64_t sb_pairs_mix(uint64_t key) {
    key ^= key >> 31;
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 32;
}

/** What is stored for the pair, or NULL. Changing it changes the table. Left is below 2^32 - 1. */
static inline sb_pair_entry *sb_pairs_find(const sb_pairs *pairs, uint32_t left, uint32_t right) {
    if (pairs->capacity == 0)
        return NULL;
    uint64_t key = ((uint64_t)left << 32 | right) + 1;
    for (size_t i = (size_t)sb_pairs_mix(key) & (pairs->capacity - 1);; i = (i + 1) & (pairs->capacity - 1)) {
        if (pairs->entries[i].key == key)
            return &pairs->entries[i];
        if (pairs->entries[i].key == 0)
            return NULL;
    }
}

/** Stores for the pair, in place of what was there. False when memory ran out. */
bool sb_pairs_put(sb_pairs *pairs, uint32_t left, uint32_t right, uint32_t first, uint32_t second);
void sb_pairs_clear(sb_pairs *pairs);

#endif
