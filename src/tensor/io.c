#include <samebit/io.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "tensor/npy.h"
#include "tensor/npz.h"

typedef enum format { FORMAT_NPY, FORMAT_NPZ } format;

static sb_status find_format(const char *path, format *found, sb_error *error) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return sb_fail(error, SB_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    char magic[6] = {0};
    errno = 0;
    size_t got = fread(magic, 1, sizeof magic, file);
    int number = ferror(file) ? errno : 0;
    fclose(file);
    if (number != 0)
        return sb_fail(error, SB_ERROR_IO, "cannot read %s: %s", path, strerror(number));
    *found = got >= 4 && memcmp(magic, "PK", 2) == 0 ? FORMAT_NPZ : FORMAT_NPY;
    if (*found == FORMAT_NPZ || (got == 6 && memcmp(magic, "\x93NUMPY", 6) == 0))
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_FILE,
                   "%s is neither a .npy nor a .npz file: save it with numpy.save or numpy.savez", path);
}

static sb_status fail_missing(const sb_npz *npz, const char *path, const char *name, sb_error *error) {
    char names[1024] = "";
    size_t used = 0;
    for (int i = 0; i < sb_npz_count(npz) && used < sizeof names - 4; i++) {
        int wanted = snprintf(names + used, sizeof names - used, i == 0 ? "%s" : ", %s", sb_npz_name(npz, i));
        used += wanted > 0 ? (size_t)wanted : 0;
    }
    if (used >= sizeof names)
        memcpy(names + sizeof names - 4, "...", 4);
    if (name != NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%s has no array %s; it has: %s", path, name, names);
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%s has %d arrays: name one of them: %s", path, sb_npz_count(npz),
                   names);
}

sb_status sb_tensor_load(const char *path, const char *name, sb_tensor **tensor, sb_error *error) {
    format found;
    SB_TRY(find_format(path, &found, error));
    if (found == FORMAT_NPY && name != NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "%s is a .npy file, whose only array has no name: %s cannot be picked", path, name);
    if (found == FORMAT_NPY)
        return sb_npy_read_file(path, tensor, error);
    sb_npz *npz;
    SB_TRY(sb_npz_open(path, &npz, error));
    int index = name != NULL ? sb_npz_find(npz, name) : sb_npz_count(npz) == 1 ? 0 : -1;
    sb_status status = index < 0 ? fail_missing(npz, path, name, error) : sb_npz_read(npz, index, tensor, error);
    sb_npz_close(npz);
    return status;
}

void sb_tensors_free(int count, char **names, sb_tensor **tensors) {
    for (int i = 0; i < count; i++) {
        if (names != NULL)
            sb_free(names[i]);
        if (tensors != NULL)
            sb_tensor_release(tensors[i]);
    }
    sb_free(names);
    sb_free(tensors);
}

/* Fills zeroed arrays; the caller frees them when this fails. */
static sb_status load_all(const char *path, sb_npz *npz, char **names, sb_tensor **tensors, sb_error *error) {
    int count = npz == NULL ? 1 : sb_npz_count(npz);
    for (int i = 0; i < count; i++) {
        const char *name = npz == NULL ? "" : sb_npz_name(npz, i);
        names[i] = sb_duplicate_string(name);
        if (names[i] == NULL)
            return sb_fail_memory(error, strlen(name) + 1);
        SB_TRY(npz == NULL ? sb_npy_read_file(path, &tensors[i], error) : sb_npz_read(npz, i, &tensors[i], error));
    }
    return SB_OK;
}

sb_status sb_tensors_load(const char *path, int *count, char ***names, sb_tensor ***tensors, sb_error *error) {
    format found;
    sb_npz *npz = NULL;
    SB_TRY(find_format(path, &found, error));
    if (found == FORMAT_NPZ)
        SB_TRY(sb_npz_open(path, &npz, error));
    int loaded = npz == NULL ? 1 : sb_npz_count(npz);
    char **name_list = sb_allocate_array((size_t)loaded, sizeof *name_list);
    sb_tensor **tensor_list = sb_allocate_array((size_t)loaded, sizeof *tensor_list);
    sb_status status = name_list == NULL || tensor_list == NULL
                           ? sb_fail_memory(error, (size_t)loaded * sizeof *tensor_list)
                           : load_all(path, npz, name_list, tensor_list, error);
    sb_npz_close(npz);
    if (status != SB_OK) {
        sb_tensors_free(loaded, name_list, tensor_list);
        return status;
    }
    *count = loaded;
    *names = name_list;
    *tensors = tensor_list;
    return SB_OK;
}

sb_status sb_tensor_save(const char *path, sb_tensor *tensor, sb_error *error) {
    return sb_npy_write_file(path, tensor, error);
}

sb_status sb_tensors_save(const char *path, int count, const char *const *names, sb_tensor *const *tensors,
                          sb_error *error) {
    return sb_npz_write(path, count, names, tensors, error);
}
