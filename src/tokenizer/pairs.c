#include "tokenizer/pairs.h"

#include "base/allocation.h"

static void insert(sb_pairs *pairs, sb_pair_entry entry) {
    size_t i = (size_t)sb_pairs_mix(entry.key) & (pairs->capacity - 1);
    while (pairs->entries[i].key != 0)
        i = (i + 1) & (pairs->capacity - 1);
    pairs->entries[i] = entry;
}

/* At most half full: most of what is looked up is not there, and the search for it ends at a free slot. */
static bool make_room(sb_pairs *pairs) {
    if (2 * (pairs->count + 1) <= pairs->capacity)
        return true;
    sb_pairs larger = {.count = pairs->count, .capacity = pairs->capacity != 0 ? 2 * pairs->capacity : 64};
    larger.entries = sb_allocate_array(larger.capacity, sizeof *larger.entries);
    if (larger.entries == NULL)
        return false;
    for (size_t i = 0; i < pairs->capacity; i++) {
        if (pairs->entries[i].key != 0)
            insert(&larger, pairs->entries[i]);
    }
    sb_free(pairs->entries);
    *pairs = larger;
    return true;
}

bool sb_pairs_put(sb_pairs *pairs, uint32_t left, uint32_t right, uint32_t first, uint32_t second) {
    sb_pair_entry *there = sb_pairs_find(pairs, left, right);
    if (there != NULL) {
        there->first = first;
        there->second = second;
        return true;
    }
    if (!make_room(pairs))
        return false;
    insert(pairs, (sb_pair_entry){((uint64_t)left << 32 | right) + 1, first, second});
    pairs->count++;
    return true;
}

void sb_pairs_clear(sb_pairs *pairs) {
    sb_free(pairs->entries);
    *pairs = (sb_pairs){0};
}
