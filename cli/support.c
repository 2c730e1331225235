#include "support.h"

#include <stdlib.h>
#include <string.h>

int report(const sb_error *error) {
    fprintf(stderr, "samebit: %s: ", sb_status_name(error->status));
    /* Messages quote names from files: none of them may steer the terminal. */
    for (const char *at = error->message; *at != '\0'; at++)
        fputc((unsigned char)*at < ' ' && *at != '\n' ? '?' : *at, stderr);
    fputc('\n', stderr);
    return error->status == SB_ERROR_INTERRUPTED ? EXIT_INTERRUPTED : EXIT_FAILED;
}

int out_of_memory(void) {
    fputs("samebit: out of memory\n", stderr);
    return EXIT_FAILED;
}

static bool read_memory_limit(const arguments *arguments, int64_t *limit) {
    const char *text = option_value(arguments, "memory-limit");
    long long bytes = 0;
    if (text != NULL && !parse_bytes(text, &bytes)) {
        usage_error("--memory-limit takes a number of bytes, such as 500M or 2G, not %s", text);
        return false;
    }
    *limit = bytes;
    return true;
}

bool read_model_options(const arguments *arguments, sb_model_options *options) {
    *options = (sb_model_options)SB_MODEL_OPTIONS_DEFAULT;
    options->passes = !has_option(arguments, "no-passes");
    options->reference_only = has_option(arguments, "reference-evaluation");
    options->unrelated_symbols = option_value(arguments, "unrelated");
    if (!read_memory_limit(arguments, &options->memory_limit))
        return false;
    const char *isa = option_value(arguments, "isa");
    if (isa == NULL)
        return true;
    for (int i = SB_ISA_BEST; i <= SB_ISA_AVX512; i++) {
        if (strcmp(isa, sb_isa_name((sb_isa)i)) == 0) {
            options->isa = (sb_isa)i;
            return true;
        }
    }
    usage_error("--isa takes scalar, avx2, avx512 or best, not %s", isa);
    return false;
}

bool read_session_options(const arguments *arguments, sb_session_options *options) {
    *options = (sb_session_options)SB_SESSION_OPTIONS_DEFAULT;
    long long count = 0, iterations = 0;
    if (!read_count(arguments, "threads", 0, 1024, &count) ||
        !read_count(arguments, "iteration-limit", 1, INT64_MAX, &iterations) ||
        !read_memory_limit(arguments, &options->memory_limit))
        return false;
    options->threads = (int)count;
    options->iteration_limit = iterations;
    const char *device = option_value(arguments, "device");
    options->device_if_quicker = device != NULL && strcmp(device, "auto") == 0;
    return true;
}

bool read_count(const arguments *arguments, const char *name, long long least, long long most, long long *value) {
    const char *text = option_value(arguments, name);
    if (text == NULL)
        return true;
    if (!parse_integer(text, least, most, value)) {
        usage_error("--%s takes a number from %lld to %lld, not %s", name, least, most, text);
        return false;
    }
    return true;
}

char *join_path(const char *folder, const char *name) {
    size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = malloc(bytes);
    if (path != NULL)
        snprintf(path, bytes, "%s/%s", folder, name);
    return path;
}
