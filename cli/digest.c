/* samebit digest: fingerprints of tensors in files. */
#include <stdlib.h>

#include "commands.h"
#include "standard_input.h"

const option digest_options[] = {{0}};

/* Prints the digest of each array of a file: "DIGEST  FILE" or "DIGEST  FILE:NAME". */
static int print_digests(const char *path) {
    int count, code = EXIT_RIGHT;
    char **names, digest[SB_DIGEST_TEXT_BYTES];
    sb_tensor **tensors;
    sb_error error;
    const char *file = path;
    if (find_array_file(&file) != EXIT_RIGHT)
        return EXIT_USAGE;
    if (sb_tensors_load(file, &count, &names, &tensors, &error) != SB_OK)
        return report(&error);
    for (int i = 0; i < count && code == EXIT_RIGHT; i++) {
        sb_value value = sb_value_of_tensor(tensors[i]);
        if (sb_digest_values(1, &value, digest, &error) != SB_OK)
            code = report(&error);
        else
            printf("%s  %s%s%s\n", digest, path, names[i][0] != '\0' ? ":" : "", names[i]);
    }
    sb_tensors_free(count, names, tensors);
    return code;
}

int run_digest(const arguments *arguments) {
    int code = EXIT_RIGHT;
    for (int i = 0; i < arguments->positional_count && code == EXIT_RIGHT; i++)
        code = print_digests(arguments->positional[i]);
    return code;
}
