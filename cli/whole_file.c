#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void complain(const char *path, int number) {
    fprintf(stderr, "samebit: cannot write %s: %s\n", path, strerror(number));
}

/* Opens a new file beside `path` and notes its name. */
static int open_beside(const char *path, whole_file *file) {
    size_t room = strlen(path) + 64;
    file->temporary = malloc(room);
    int descriptor = -1;
    errno = ENOMEM;
    for (int attempt = 0; file->temporary != NULL && descriptor < 0 && attempt < 1000; attempt++) {
        snprintf(file->temporary, room, "%s.%ld-%d.partial", path, (long)getpid(), attempt);
        descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno != EEXIST)
            break;
    }
    return descriptor;
}

static void forget(whole_file *file) {
    free(file->path);
    free(file->temporary);
    *file = (whole_file){NULL, NULL, NULL};
}

bool begin_file(const char *path, whole_file *file) {
    struct stat found;
    *file = (whole_file){.path = strdup(path)};
    errno = ENOMEM;
    int descriptor = -1;
    if (file->path != NULL && stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        descriptor = open(path, O_WRONLY | O_CLOEXEC);
    else if (file->path != NULL)
        descriptor = open_beside(path, file);
    if (descriptor >= 0)
        file->stream = fdopen(descriptor, "w");
    if (file->stream != NULL)
        return true;
    complain(path, errno);
    if (descriptor >= 0) {
        close(descriptor);
        if (file->temporary != NULL)
            unlink(file->temporary);
    }
    forget(file);
    return false;
}

bool end_file(whole_file *file, bool keep) {
    errno = EIO;
    bool written = fflush(file->stream) == 0 && ferror(file->stream) == 0;
    if (written && keep && file->temporary != NULL)
        written = fsync(fileno(file->stream)) == 0;
    int number = errno;
    if (fclose(file->stream) != 0 && written) {
        written = false;
        number = errno;
    }
    if (written && keep && file->temporary != NULL && rename(file->temporary, file->path) != 0) {
        written = false;
        number = errno;
    }
    if (file->temporary != NULL && !(written && keep))
        unlink(file->temporary);
    if (keep && !written)
        complain(file->path, number);
    forget(file);
    return written && keep;
}
