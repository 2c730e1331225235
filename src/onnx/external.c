#include "onnx/external.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/allocation.h"

/* ---- files inside the folder ---- */

void sb_external_begin(sb_external *external, const char *folder) {
    *external = (sb_external){.folder = -1, .path = folder};
}

void sb_external_end(sb_external *external) {
    for (size_t i = 0; i < external->count; i++) {
        sb_free(external->files[i].location);
        sb_shared_mapping_release(external->files[i].mapping);
    }
    sb_free(external->files);
    if (external->folder >= 0)
        close(external->folder);
    *external = (sb_external){.folder = -1};
}

/* For a kernel without openat2: one component after the other, following no symbolic link at all. */
static int open_by_components(int folder, const char *location) {
    char part[256];
    int at = dup(folder);
    while (at >= 0) {
        size_t length = strcspn(location, "/");
        bool last = location[length] == '\0';
        if (length >= sizeof part) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, location, length);
        part[length] = '\0';
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
        int next = openat(at, length != 0 ? part : ".", flags);
        int reason = errno;
        close(at);
        errno = reason;
        if (last)
            return next;
        at = next;
        location += length + 1;
    }
    return -1;
}

/* The kernel itself sees to it that the path, with the symbolic links in it, never leaves the folder. */
static int open_beneath(int folder, const char *location) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long descriptor = syscall(SYS_openat2, folder, location, &how, sizeof how);
    if (descriptor >= 0 || (errno != ENOSYS && errno != EPERM))
        return (int)descriptor;
    return open_by_components(folder, location);
}

static bool stays_below(const char *location) {
    if (location[0] == '/' || location[0] == '\0')
        return false;
    for (const char *part = location;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.')
            return false;
        part += length;
        if (*part == '\0')
            return true;
    }
}

static sb_status open_location(sb_external *external, const char *location, sb_shared_mapping **mapping,
                               sb_error *error) {
    if (external->path == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "its data are in the file %.300s, but the model comes from memory: load it "
                       "from its file",
                       location);
    if (!stays_below(location))
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "its data are said to be in %.300s, which may lie outside the model's folder", location);
    if (external->folder < 0)
        external->folder = open(external->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (external->folder < 0)
        return sb_fail(error, SB_ERROR_IO, "folder %.300s: %s", external->path, strerror(errno));
    int descriptor = open_beneath(external->folder, location);
    if (descriptor < 0 && (errno == EXDEV || errno == ELOOP))
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "its data are in %.300s, where a link leads out of the model's folder", location);
    if (descriptor < 0)
        return sb_fail(error, SB_ERROR_IO, "%.300s in folder %.300s: %s", location, external->path, strerror(errno));
    return sb_shared_mapping_open(descriptor, location, mapping, error);
}

sb_status sb_external_map(sb_external *external, const char *location, sb_shared_mapping **mapping, sb_error *error) {
    /* From the end: tensors of one file usually follow each other. */
    for (size_t i = external->count; i > 0; i--) {
        if (strcmp(external->files[i - 1].location, location) == 0) {
            *mapping = external->files[i - 1].mapping;
            return SB_OK;
        }
    }
    if (!sb_grow((void **)&external->files, &external->capacity, external->count + 1, sizeof *external->files))
        return sb_fail_memory(error, sizeof *external->files);
    struct sb_external_file file = {.location = sb_duplicate_string(location)};
    if (file.location == NULL)
        return sb_fail_memory(error, strlen(location) + 1);
    sb_status status = open_location(external, location, &file.mapping, error);
    if (status != SB_OK) {
        sb_free(file.location);
        return status;
    }
    external->mapped += file.mapping->size;
    external->files[external->count++] = file;
    *mapping = file.mapping;
    return SB_OK;
}
