#define _GNU_SOURCE /* memfd_create */
#include "standard_input.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH "/dev/stdin"

/* What standard input is; NULL while nobody has asked for it. */
static const char *taken_as;

static int system_failure(const char *what) {
    fprintf(stderr, "samebit: standard input: cannot %s: %s\n", what, strerror(errno));
    return EXIT_FAILED;
}

static bool copy_all(int target) {
    static char buffer[1 << 16];
    for (;;) {
        ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
        if (count == 0 || (count < 0 && errno != EINTR))
            return count == 0;
        for (ssize_t done = 0; done < count;) {
            ssize_t written = write(target, buffer + done, (size_t)(count - done));
            if (written < 0 && errno != EINTR)
                return false;
            done += written > 0 ? written : 0;
        }
    }
}

/* Puts a file in the place of a pipe, since models are mapped and archives read from their ends. */
static int make_seekable(void) {
    struct stat status;
    if (fstat(STDIN_FILENO, &status) != 0)
        return system_failure("be read");
    if (S_ISREG(status.st_mode) && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
        return EXIT_RIGHT;
    if (isatty(STDIN_FILENO))
        return usage_error("- is standard input, which is a terminal: pipe a file into it");
    int copy = memfd_create("standard input", 0);
    if (copy < 0)
        return system_failure("be kept");
    int code = copy_all(copy) ? EXIT_RIGHT : system_failure("be read");
    if (code == EXIT_RIGHT && dup2(copy, STDIN_FILENO) < 0)
        code = system_failure("be kept");
    close(copy);
    return code;
}

static int take(const char *as, bool again) {
    if (taken_as != NULL && (!again || strcmp(taken_as, as) != 0))
        return usage_error("- is standard input, which is %s already: give a file", taken_as);
    int code = taken_as == NULL ? make_seekable() : EXIT_RIGHT;
    taken_as = as;
    return code;
}

/* Messages name the file where there is one. */
static int report_model(const sb_error *error) {
    sb_error named = {.status = error->status};
    snprintf(named.message, sizeof named.message, "standard input: %.2000s", error->message);
    return report(&named);
}

int load_model_file(const char *path, const sb_model_options *options, sb_model **model) {
    sb_error error;
    if (strcmp(path, "-") != 0)
        return sb_model_load(path, options, model, &error) == SB_OK ? EXIT_RIGHT : report(&error);
    int code = take("the model", true);
    struct stat status;
    if (code != EXIT_RIGHT)
        return code;
    if (fstat(STDIN_FILENO, &status) != 0)
        return system_failure("be read");
    size_t size = (size_t)status.st_size;
    void *bytes = size > 0 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0) : NULL;
    if (bytes == MAP_FAILED)
        return system_failure("be mapped");
    if (sb_model_load_memory(bytes != NULL ? bytes : "", size, options, model, &error) != SB_OK)
        code = report_model(&error);
    if (bytes != NULL)
        munmap(bytes, size);
    return code;
}

int find_array_file(const char **path) {
    if (strcmp(*path, "-") != 0)
        return EXIT_RIGHT;
    *path = PATH;
    return take("an input", false);
}

bool is_archive(const char *path) {
    char first[2];
    size_t length = strlen(path);
    if (strcmp(path, PATH) == 0)
        return pread(STDIN_FILENO, first, sizeof first, 0) == sizeof first && memcmp(first, "PK", 2) == 0;
    return length >= 4 && strcmp(path + length - 4, ".npz") == 0;
}
