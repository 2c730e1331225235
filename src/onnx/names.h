/* A table from names to numbers. */
#ifndef IV_ONNX_NAMES_H
#define IV_ONNX_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct iv_name_entry {
    const char *name; /* borrowed; NULL in a free slot */
    uint64_t hash;
    int32_t number;
} iv_name_entry;

typedef struct iv_names {
    size_t count, capacity; /* capacity is 0 or a power of two */
    iv_name_entry *entries;
} iv_names;

/** The number stored for `name`, which may be changed until the next insertion; NULL when there is
 * none. */
int32_t *iv_names_find(const iv_names *names, const char *name);
/** Stores a number under a name that is not in the table yet. The text is borrowed. False when
 * memory ran out. */
bool iv_names_put(iv_names *names, const char *name, int32_t number);
/** Frees the table, not the texts. */
void iv_names_clear(iv_names *names);

#endif
