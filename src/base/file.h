/* Files: reading whole, mapping, and writing whole or not at all. */
#ifndef SB_BASE_FILE_H
#define SB_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** Reads a file (or pipe) to its end. `*bytes` is the caller's, to free by sb_free; one NUL follows the `*size` bytes.
 * Errors: IO; INVALID_FILE when there are more than `limit` bytes; OUT_OF_MEMORY. */
sb_status sb_file_read(const char *path, size_t limit, void **bytes, size_t *size, sb_error *error);

/** A file's bytes in memory, read-only, loaded as they are touched. A file that shrinks while it is
 * mapped takes the process down on the next touch: map only what its owner leaves alone. */
typedef struct sb_mapping {
    const void *bytes; /* not NULL, also for an empty file */
    size_t size;
} sb_mapping;

/** Maps a regular file. Errors: IO; OUT_OF_MEMORY when the address space has no room. */
sb_status sb_file_map(const char *path, sb_mapping *mapping, sb_error *error);
/** Ends the mapping and zeroes the struct; a zeroed one is allowed. */
void sb_file_unmap(sb_mapping *mapping);

/** A piece of what sb_file_write_whole writes. */
typedef struct sb_file_part {
    const void *bytes;
    size_t size;
} sb_file_part;

/** Writes the parts one behind the other as the file `path`: whole, or not at all. The bytes go to
 * a temporary file in the same folder, reach the disk, and only then take the name (replacing what
 * had it). Errors: IO; OUT_OF_MEMORY. */
sb_status sb_file_write_whole(const char *path, int count, const sb_file_part *parts, sb_error *error);

/** A file in the making, for writers that need a name to write to. */
typedef struct sb_replacement {
    char *path;      /* the final name */
    char *temporary; /* an empty file in the same folder, to write to or to overwrite */
} sb_replacement;

/** Creates the temporary file; end it with one of the next two. On failure nothing is left. */
sb_status sb_replacement_begin(const char *path, sb_replacement *replacement, sb_error *error);
/** Flushes the temporary file to the disk and gives it its final name; on failure removes it. Frees
 * the struct's strings. */
sb_status sb_replacement_commit(sb_replacement *replacement, sb_error *error);
/** Removes the temporary file and frees the struct's strings. */
void sb_replacement_abandon(sb_replacement *replacement);

#endif
