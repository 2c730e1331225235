/* Files that appear whole or not at all. */
#ifndef CLI_WHOLE_FILE_H
#define CLI_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct whole_file {
    FILE *stream; /* to write to */
    char *path;
    /* The file being written, in the same folder; NULL for a device or pipe, which is written to directly. */
    char *temporary;
} whole_file;

/** Begins the file `path`. False after printing what is wrong; then there is nothing to end. */
bool begin_file(const char *path, whole_file *file);

/** Gives the file its name if `keep` and everything could be written; otherwise nothing of it
 * stays. False after printing what is wrong (not when `keep` is false). */
bool end_file(whole_file *file, bool keep);

#endif
