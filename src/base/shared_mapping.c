#include "base/shared_mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/allocation.h"

sb_status sb_shared_mapping_open(int descriptor, const char *name, sb_shared_mapping **mapping, sb_error *error) {
    sb_shared_mapping *fresh = sb_allocate(sizeof *fresh);
    if (fresh == NULL) {
        close(descriptor);
        return sb_fail_memory(error, sizeof *fresh);
    }
    *fresh = (sb_shared_mapping){.references = 1};
    struct stat about;
    sb_status status = SB_OK;
    if (fstat(descriptor, &about) != 0)
        status = sb_fail(error, SB_ERROR_IO, "%.300s: %s", name, strerror(errno));
    else if (!S_ISREG(about.st_mode))
        status = sb_fail(error, SB_ERROR_IO, "%.300s is not a regular file", name);
    else if (about.st_size > 0) {
        fresh->size = (size_t)about.st_size;
        void *data = mmap(NULL, fresh->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED)
            status = sb_fail(error, SB_ERROR_IO, "%.300s: cannot be mapped: %s", name, strerror(errno));
        else
            fresh->data = data;
    }
    close(descriptor);
    if (status != SB_OK) {
        sb_free(fresh);
        return status;
    }
    *mapping = fresh;
    return SB_OK;
}

sb_status sb_shared_mapping_of_file(const char *path, sb_shared_mapping **mapping, sb_error *error) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return sb_fail(error, SB_ERROR_IO, "cannot open %.300s: %s", path, strerror(errno));
    return sb_shared_mapping_open(descriptor, path, mapping, error);
}

sb_shared_mapping *sb_shared_mapping_retain(sb_shared_mapping *mapping) {
    atomic_fetch_add_explicit(&mapping->references, 1, memory_order_relaxed);
    return mapping;
}

void sb_shared_mapping_release(void *context) {
    sb_shared_mapping *mapping = context;
    if (mapping == NULL || atomic_fetch_sub_explicit(&mapping->references, 1, memory_order_acq_rel) != 1)
        return;
    if (mapping->data != NULL)
        munmap((void *)mapping->data, mapping->size);
    sb_free(mapping);
}
