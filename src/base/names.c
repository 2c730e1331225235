#include "base/names.h"

#include <string.h>

#include "base/allocation.h"

/* FNV-1a with a final mix. The start value comes from the address of this table of constants, which differs from one
 * run to the next, so that a file cannot bring names that all fall into one slot. */
static uint64_t hash_name(const char *name, size_t bytes) {
    static const char anchor;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ ((uint64_t)(uintptr_t)&anchor << 16);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

/* The slot that holds the name, or the free one where it belongs. */
static sb_name_entry *find_slot(const sb_names *names, const char *name, size_t bytes, uint64_t hash) {
    size_t mask = names->capacity - 1;
    for (size_t i = (size_t)(hash >> 32) & mask;; i = (i + 1) & mask) {
        sb_name_entry *entry = &names->entries[i];
        if (entry->name == NULL ||
            (entry->hash == hash && entry->bytes == bytes && memcmp(entry->name, name, bytes) == 0))
            return entry;
    }
}

int32_t *sb_names_find_span(const sb_names *names, const char *name, size_t bytes) {
    if (names->capacity == 0)
        return NULL;
    sb_name_entry *entry = find_slot(names, name, bytes, hash_name(name, bytes));
    return entry->name != NULL ? &entry->number : NULL;
}

int32_t *sb_names_find(const sb_names *names, const char *name) {
    return sb_names_find_span(names, name, strlen(name));
}

static bool enlarge(sb_names *names) {
    sb_names larger = {.count = names->count, .capacity = names->capacity != 0 ? 2 * names->capacity : 16};
    larger.entries = sb_allocate_array(larger.capacity, sizeof *larger.entries);
    if (larger.entries == NULL)
        return false;
    for (size_t i = 0; i < names->capacity; i++) {
        const sb_name_entry *entry = &names->entries[i];
        if (entry->name != NULL)
            *find_slot(&larger, entry->name, entry->bytes, entry->hash) = *entry;
    }
    sb_free(names->entries);
    *names = larger;
    return true;
}

bool sb_names_put_span(sb_names *names, const char *name, size_t bytes, int32_t number) {
    /* At most two thirds full. */
    if (names->count * 3 >= names->capacity * 2 && !enlarge(names))
        return false;
    uint64_t hash = hash_name(name, bytes);
    *find_slot(names, name, bytes, hash) = (sb_name_entry){name, bytes, hash, number};
    names->count++;
    return true;
}

bool sb_names_put(sb_names *names, const char *name, int32_t number) {
    return sb_names_put_span(names, name, strlen(name), number);
}

/* Empties a slot. What follows it without a gap moves up where its search would otherwise end at the hole. */
static void empty_slot(sb_names *names, size_t hole) {
    size_t mask = names->capacity - 1;
    for (size_t i = (hole + 1) & mask; names->entries[i].name != NULL; i = (i + 1) & mask) {
        size_t home = (size_t)(names->entries[i].hash >> 32) & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* it begins its search behind the hole */
        names->entries[hole] = names->entries[i];
        hole = i;
    }
    names->entries[hole] = (sb_name_entry){0};
    names->count--;
}

void sb_names_remove_from(sb_names *names, int32_t least) {
    for (size_t i = 0; i < names->capacity; i++) {
        while (names->entries[i].name != NULL && names->entries[i].number >= least)
            empty_slot(names, i);
    }
}

void sb_names_clear(sb_names *names) {
    sb_free(names->entries);
    *names = (sb_names){0};
}
