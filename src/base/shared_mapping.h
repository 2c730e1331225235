/* Files mapped into memory, which tensors over them keep. */
#ifndef SB_BASE_SHARED_MAPPING_H
#define SB_BASE_SHARED_MAPPING_H

#include <stdatomic.h>

#include "base/error.h"

/* A file mapped read-only. Its pages stay in the page cache and are shared between processes. */
typedef struct sb_shared_mapping {
    atomic_int references;
    size_t size;
    const char *data; /* NULL when the file is empty */
} sb_shared_mapping;

/** Maps the regular file that `descriptor` is open on, and closes that in any case; messages call it `name`. The caller
 * has a reference. Errors: IO; OUT_OF_MEMORY. */
sb_status sb_shared_mapping_open(int descriptor, const char *name, sb_shared_mapping **mapping, sb_error *error);
/** The same by its path. */
sb_status sb_shared_mapping_of_file(const char *path, sb_shared_mapping **mapping, sb_error *error);
sb_shared_mapping *sb_shared_mapping_retain(sb_shared_mapping *mapping);
/** Drops a reference to an `sb_shared_mapping`; NULL is allowed. Takes a void pointer for sb_tensor_wrap. */
void sb_shared_mapping_release(void *mapping);

#endif
