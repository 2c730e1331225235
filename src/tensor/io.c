#include <invar/io.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "tensor/npy.h"
#include "tensor/npz.h"

typedef enum format { FORMAT_NPY, FORMAT_NPZ } format;

static iv_status find_format(const char *path, format *found, iv_error *error) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return iv_fail(error, IV_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    char magic[6] = {0};
    errno = 0;
    size_t got = fread(magic, 1, sizeof magic, file);
    int number = ferror(file) ? errno : 0;
    fclose(file);
    if (number != 0)
        return iv_fail(error, IV_ERROR_IO, "cannot read %s: %s", path, strerror(number));
    *found = got >= 4 && memcmp(magic, "PK", 2) == 0 ? FORMAT_NPZ : FORMAT_NPY;
    if (*found == FORMAT_NPZ || (got == 6 && memcmp(magic, "\x93NUMPY", 6) == 0))
        return IV_OK;
    return iv_fail(error, IV_ERROR_INVALID_FILE,
                   "%s is neither a .npy nor a .npz file: save it with numpy.save or numpy.savez",
                   path);
}

static iv_status fail_missing(const iv_npz *npz, const char *path, const char *name,
                              iv_error *error) {
    char names[1024] = "";
    size_t used = 0;
    for (int i = 0; i < iv_npz_count(npz) && used < sizeof names - 4; i++) {
        int wanted = snprintf(names + used, sizeof names - used, i == 0 ? "%s" : ", %s",
                              iv_npz_name(npz, i));
        used += wanted > 0 ? (size_t)wanted : 0;
    }
    if (used >= sizeof names)
        memcpy(names + sizeof names - 4, "...", 4);
    if (name != NULL)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "%s has no array %s; it has: %s", path,
                       name, names);
    return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "%s has %d arrays: name one of them: %s", path,
                   iv_npz_count(npz), names);
}

iv_status iv_tensor_load(const char *path, const char *name, iv_tensor **tensor, iv_error *error) {
    format found;
    IV_TRY(find_format(path, &found, error));
    if (found == FORMAT_NPY && name != NULL)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "%s is a .npy file, whose only array has no name: %s cannot be picked", path,
                       name);
    if (found == FORMAT_NPY)
        return iv_npy_read_file(path, tensor, error);
    iv_npz *npz;
    IV_TRY(iv_npz_open(path, &npz, error));
    int index = name != NULL ? iv_npz_find(npz, name) : iv_npz_count(npz) == 1 ? 0 : -1;
    iv_status status =
        index < 0 ? fail_missing(npz, path, name, error) : iv_npz_read(npz, index, tensor, error);
    iv_npz_close(npz);
    return status;
}

void iv_tensors_free(int count, char **names, iv_tensor **tensors) {
    for (int i = 0; i < count; i++) {
        if (names != NULL)
            iv_free(names[i]);
        if (tensors != NULL)
            iv_tensor_release(tensors[i]);
    }
    iv_free(names);
    iv_free(tensors);
}

/* Fills zeroed arrays; the caller frees them when this fails. */
static iv_status load_all(const char *path, iv_npz *npz, char **names, iv_tensor **tensors,
                          iv_error *error) {
    int count = npz == NULL ? 1 : iv_npz_count(npz);
    for (int i = 0; i < count; i++) {
        const char *name = npz == NULL ? "" : iv_npz_name(npz, i);
        names[i] = iv_duplicate_string(name);
        if (names[i] == NULL)
            return iv_fail_memory(error, strlen(name) + 1);
        IV_TRY(npz == NULL ? iv_npy_read_file(path, &tensors[i], error)
                           : iv_npz_read(npz, i, &tensors[i], error));
    }
    return IV_OK;
}

iv_status iv_tensors_load(const char *path, int *count, char ***names, iv_tensor ***tensors,
                          iv_error *error) {
    format found;
    iv_npz *npz = NULL;
    IV_TRY(find_format(path, &found, error));
    if (found == FORMAT_NPZ)
        IV_TRY(iv_npz_open(path, &npz, error));
    int loaded = npz == NULL ? 1 : iv_npz_count(npz);
    char **name_list = iv_allocate_array((size_t)loaded, sizeof *name_list);
    iv_tensor **tensor_list = iv_allocate_array((size_t)loaded, sizeof *tensor_list);
    iv_status status = name_list == NULL || tensor_list == NULL
                           ? iv_fail_memory(error, (size_t)loaded * sizeof *tensor_list)
                           : load_all(path, npz, name_list, tensor_list, error);
    iv_npz_close(npz);
    if (status != IV_OK) {
        iv_tensors_free(loaded, name_list, tensor_list);
        return status;
    }
    *count = loaded;
    *names = name_list;
    *tensors = tensor_list;
    return IV_OK;
}

iv_status iv_tensor_save(const char *path, iv_tensor *tensor, iv_error *error) {
    return iv_npy_write_file(path, tensor, error);
}

iv_status iv_tensors_save(const char *path, int count, const char *const *names,
                          iv_tensor *const *tensors, iv_error *error) {
    return iv_npz_write(path, count, names, tensors, error);
}
