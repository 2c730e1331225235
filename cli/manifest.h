/* The manifest of conformance cases that are left out, each with its reason. */
#ifndef CLI_MANIFEST_H
#define CLI_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct manifest {
    size_t count;
    struct manifest_line {
        char *name, *reason;
    } * lines;
} manifest;

/** Reads lines of NAME, a tab and the reason; '#' starts a comment line. False after printing what is wrong. */
bool read_manifest(const char *path, manifest *manifest);
/** Adds a line; false when memory runs out. */
bool manifest_add(manifest *manifest, const char *name, const char *reason);
void free_manifest(manifest *manifest);
/** The reason for leaving a case out, or NULL. */
const char *manifest_reason(const manifest *manifest, const char *name);

#endif
