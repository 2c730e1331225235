/* A table from names to numbers. Names are texts, or any bytes where the functions for spans are used. */
#ifndef SB_BASE_NAMES_H
#define SB_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sb_name_entry {
    const char *name; /* borrowed; NULL in a free slot */
    size_t bytes;
    uint64_t hash;
    int32_t number;
} sb_name_entry;

typedef struct sb_names {
    size_t count, capacity; /* capacity is 0 or a power of two */
    sb_name_entry *entries;
} sb_names;

/** The number stored for `name`, which may be changed until the next insertion or removal; NULL when there is none. */
int32_t *sb_names_find(const sb_names *names, const char *name);
/** Stores a number under a name that is not in the table yet. The text is borrowed. False when
 * memory ran out. */
bool sb_names_put(sb_names *names, const char *name, int32_t number);
/** The same for names of `bytes` bytes, which need no NUL behind them. */
int32_t *sb_names_find_span(const sb_names *names, const char *name, size_t bytes);
bool sb_names_put_span(sb_names *names, const char *name, size_t bytes, int32_t number);
/** Takes out all names whose numbers are `least` or more; their texts must still be there. */
void sb_names_remove_from(sb_names *names, int32_t least);
/** Frees the table, not the texts. */
void sb_names_clear(sb_names *names);

#endif
