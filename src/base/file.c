#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/allocation.h"

static sb_status fail_io(sb_error *error, const char *what, const char *path, int number) {
    return sb_fail(error, number == ENOMEM ? SB_ERROR_OUT_OF_MEMORY : SB_ERROR_IO, "cannot %s %s: %s", what, path,
                   strerror(number));
}

static sb_status fail_limit(sb_error *error, const char *path, size_t limit) {
    return sb_fail(error, SB_ERROR_INVALID_FILE, "%s has more than the %zu bytes that are allowed here", path, limit);
}

/* ---- reading ---- */

static sb_status open_for_reading(const char *path, int *descriptor, struct stat *info, sb_error *error) {
    *descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (*descriptor < 0)
        return fail_io(error, "open", path, errno);
    if (fstat(*descriptor, info) == 0 && !S_ISDIR(info->st_mode))
        return SB_OK;
    int number = S_ISDIR(info->st_mode) ? EISDIR : errno;
    close(*descriptor);
    return fail_io(error, "read", path, number);
}

/* Reads until `room` bytes are there or the file ends. */
static bool read_fully(int descriptor, char *bytes, size_t room, size_t *got) {
    *got = 0;
    while (*got < room) {
        ssize_t piece = read(descriptor, bytes + *got, room - *got);
        if (piece < 0 && errno == EINTR)
            continue;
        if (piece < 0)
            return false;
        if (piece == 0)
            break;
        *got += (size_t)piece;
    }
    return true;
}

/* The size that the file system tells is a hint: pipes have none, and files may grow meanwhile. */
static sb_status read_descriptor(int descriptor, const char *path, size_t hint, size_t limit, void **bytes,
                                 size_t *size, sb_error *error) {
    size_t capacity = hint + 2, used = 0;
    void *buffer = sb_allocate(capacity);
    sb_status status = buffer == NULL ? sb_fail_memory(error, capacity) : SB_OK;
    while (status == SB_OK) {
        size_t got = 0, room = capacity - 1 - used;
        if (!read_fully(descriptor, (char *)buffer + used, room, &got))
            status = fail_io(error, "read", path, errno);
        else if (used + got > limit)
            status = fail_limit(error, path, limit);
        else if (got == room && !sb_grow(&buffer, &capacity, capacity + 1, 1))
            status = sb_fail_memory(error, 2 * capacity);
        used += got;
        if (got < room)
            break;
    }
    if (status != SB_OK) {
        sb_free(buffer);
        return status;
    }
    ((char *)buffer)[used] = '\0';
    *bytes = buffer;
    *size = used;
    return SB_OK;
}

sb_status sb_file_read(const char *path, size_t limit, void **bytes, size_t *size, sb_error *error) {
    int descriptor;
    struct stat info = {0};
    SB_TRY(open_for_reading(path, &descriptor, &info, error));
    size_t hint = S_ISREG(info.st_mode) ? (size_t)info.st_size : 4096;
    sb_status status = S_ISREG(info.st_mode) && hint > limit
                           ? fail_limit(error, path, limit)
                           : read_descriptor(descriptor, path, hint, limit, bytes, size, error);
    close(descriptor);
    return status;
}

sb_status sb_file_map(const char *path, sb_mapping *mapping, sb_error *error) {
    int descriptor;
    struct stat info = {0};
    SB_TRY(open_for_reading(path, &descriptor, &info, error));
    sb_status status = SB_OK;
    if (!S_ISREG(info.st_mode)) {
        status = sb_fail(error, SB_ERROR_IO, "cannot map %s: it is not a regular file", path);
    } else if (info.st_size == 0) {
        *mapping = (sb_mapping){"", 0};
    } else {
        void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes == MAP_FAILED)
            status = fail_io(error, "map", path, errno);
        else
            *mapping = (sb_mapping){bytes, (size_t)info.st_size};
    }
    close(descriptor);
    return status;
}

void sb_file_unmap(sb_mapping *mapping) {
    if (mapping->size != 0)
        munmap((void *)(uintptr_t)mapping->bytes, mapping->size);
    *mapping = (sb_mapping){NULL, 0};
}

/* ---- writing ---- */

static void free_names(sb_replacement *replacement) {
    sb_free(replacement->path);
    sb_free(replacement->temporary);
    *replacement = (sb_replacement){NULL, NULL};
}

sb_status sb_replacement_begin(const char *path, sb_replacement *replacement, sb_error *error) {
    static atomic_uint serial;
    size_t room = strlen(path) + 64;
    *replacement = (sb_replacement){sb_duplicate_string(path), sb_allocate(room)};
    if (replacement->path == NULL || replacement->temporary == NULL) {
        free_names(replacement);
        return sb_fail_memory(error, room);
    }
    /* Another process, or an earlier one that was killed, may have left a file of the same name:
     * take the next. */
    int descriptor = -1;
    for (int attempt = 0; descriptor < 0 && attempt < 1000; attempt++) {
        snprintf(replacement->temporary, room, "%s.%ld-%u.partial", path, (long)getpid(), atomic_fetch_add(&serial, 1));
        descriptor = open(replacement->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno != EEXIST)
            break;
    }
    if (descriptor < 0) {
        sb_status status = fail_io(error, "create", replacement->temporary, errno);
        free_names(replacement);
        return status;
    }
    close(descriptor);
    return SB_OK;
}

/* Makes the new name last through a power failure. A folder that cannot be opened for it (some
 * network file systems) leaves that to the system: the file itself is whole either way. */
static void flush_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t bytes = slash == NULL ? 1 : (size_t)(slash - path) + 1;
    char *folder = sb_allocate(bytes + 1);
    if (folder == NULL)
        return;
    memcpy(folder, slash == NULL ? "." : path, bytes);
    folder[bytes] = '\0';
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
    sb_free(folder);
}

sb_status sb_replacement_commit(sb_replacement *replacement, sb_error *error) {
    int descriptor = open(replacement->temporary, O_RDONLY | O_CLOEXEC);
    bool flushed = descriptor >= 0 && fsync(descriptor) == 0;
    int number = errno;
    if (descriptor >= 0)
        close(descriptor);
    if (flushed && rename(replacement->temporary, replacement->path) == 0) {
        flush_folder(replacement->path);
        free_names(replacement);
        return SB_OK;
    }
    sb_status status = fail_io(error, "write", replacement->path, flushed ? errno : number);
    sb_replacement_abandon(replacement);
    return status;
}

void sb_replacement_abandon(sb_replacement *replacement) {
    unlink(replacement->temporary);
    free_names(replacement);
}

static bool write_fully(int descriptor, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t piece = write(descriptor, bytes, size);
        if (piece < 0 && errno == EINTR)
            continue;
        if (piece < 0)
            return false;
        bytes += piece;
        size -= (size_t)piece;
    }
    return true;
}

sb_status sb_file_write_whole(const char *path, int count, const sb_file_part *parts, sb_error *error) {
    sb_replacement replacement;
    SB_TRY(sb_replacement_begin(path, &replacement, error));
    int descriptor = open(replacement.temporary, O_WRONLY | O_CLOEXEC);
    bool written = descriptor >= 0;
    for (int i = 0; i < count && written; i++)
        written = write_fully(descriptor, parts[i].bytes, parts[i].size);
    int number = errno;
    if (descriptor >= 0 && close(descriptor) != 0 && written) {
        number = errno;
        written = false;
    }
    if (written)
        return sb_replacement_commit(&replacement, error);
    sb_status status = fail_io(error, "write", path, number);
    sb_replacement_abandon(&replacement);
    return status;
}
