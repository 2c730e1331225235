/* Files next to a model that hold its larger tensors, mapped into memory. */
#ifndef IV_ONNX_EXTERNAL_H
#define IV_ONNX_EXTERNAL_H

#include <stdatomic.h>

#include "base/error.h"

/* A file mapped read-only. Its pages stay in the page cache and are shared between processes. */
typedef struct iv_shared_mapping {
    atomic_int references;
    size_t size;
    const char *data; /* NULL when the file is empty */
} iv_shared_mapping;

iv_shared_mapping *iv_shared_mapping_retain(iv_shared_mapping *mapping);
/** Drops a reference to an `iv_shared_mapping`; NULL is allowed. Takes a void pointer for
 * iv_tensor_wrap.
 */
void iv_shared_mapping_release(void *mapping);

/* The external files of one model, each mapped once. */
typedef struct iv_external {
    int folder;       /* a descriptor of the folder; -1: not opened yet */
    const char *path; /* of the folder; NULL: none is allowed */
    size_t count, capacity;
    struct iv_external_file {
        char *location;
        iv_shared_mapping *mapping;
    } * files;
    size_t copied, mapped; /* bytes copied out of, and bytes in, all the files */
} iv_external;

void iv_external_begin(iv_external *external, const char *folder);
void iv_external_end(iv_external *external);

/** The mapping of the file that the model calls `location`: a relative path that stays inside the
 * model's folder, symbolic links included. Borrowed from `external`. */
iv_status iv_external_map(iv_external *external, const char *location, iv_shared_mapping **mapping,
                          iv_error *error);

#endif
