/* "-" where a model or an array is asked for: standard input, a pipe or a file. */
#ifndef CLI_STANDARD_INPUT_H
#define CLI_STANDARD_INPUT_H

#include "support.h"

/** Loads a model from a file, or from standard input when `path` is "-"; then external data are refused. That may be
 * done again with the same model. Exit codes as in options.h, after printing what is wrong. */
int load_model_file(const char *path, const sb_model_options *options, sb_model **model);

/** Replaces `*path` by one under which it can be opened and read in any order: for "-" that of all that standard input
 * holds, which is read here; other paths stay. Exit codes as above: standard input is one file, and refused where
 * another argument has it. */
int find_array_file(const char **path);

/** Whether the file, which find_array_file gave, is an archive of arrays (.npz): by its name, or for standard input by
 * its first bytes. */
bool is_archive(const char *path);

#endif
