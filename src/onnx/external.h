/* Files next to a model that hold its larger tensors, mapped into memory. */
#ifndef SB_ONNX_EXTERNAL_H
#define SB_ONNX_EXTERNAL_H

#include "base/shared_mapping.h"

/* The external files of one model, each mapped once. */
typedef struct sb_external {
    int folder;       /* a descriptor of the folder; -1: not opened yet */
    const char *path; /* of the folder; NULL: none is allowed */
    size_t count, capacity;
    struct sb_external_file {
        char *location;
        sb_shared_mapping *mapping;
    } * files;
    size_t copied, mapped; /* bytes copied out of, and bytes in, all the files */
} sb_external;

void sb_external_begin(sb_external *external, const char *folder);
void sb_external_end(sb_external *external);

/** The mapping of the file that the model calls `location`: a relative path that stays inside the
 * model's folder, symbolic links included. Borrowed from `external`. */
sb_status sb_external_map(sb_external *external, const char *location, sb_shared_mapping **mapping, sb_error *error);

#endif
