#include "checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/allocation.h"
#include "base/file.h"

/* Configurations and lists of files: the longest known is 2 MB. */
#define JSON_BYTES ((size_t)16 << 20)

/* ---- messages ---- */

static const char *last_path(const sb_checkpoint *checkpoint) {
    return checkpoint->file_count != 0 ? checkpoint->files[checkpoint->file_count - 1].path : checkpoint->path;
}

sb_status sb_checkpoint_fail(const sb_checkpoint *checkpoint, size_t offset, sb_error *error, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s, byte %zu: %s", last_path(checkpoint), offset, text);
}

/* ---- JSON ---- */

sb_status sb_json_object(const char *name, const char *bytes, size_t size, json_t **object, sb_error *error) {
    json_error_t why;
    json_t *parsed = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &why);
    if (parsed == NULL && json_error_code(&why) == json_error_out_of_memory)
        return sb_fail_memory(error, size);
    if (parsed == NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s, byte %d: %s", name, why.position, why.text);
    if (!json_is_object(parsed)) {
        json_decref(parsed);
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s holds no JSON object", name);
    }
    *object = parsed;
    return SB_OK;
}

static sb_status join(const char *folder, const char *name, char **path, sb_error *error) {
    size_t bytes = strlen(folder) + strlen(name) + 2;
    *path = sb_allocate(bytes);
    if (*path == NULL)
        return sb_fail_memory(error, bytes);
    snprintf(*path, bytes, "%s/%s", folder, name);
    return SB_OK;
}

static bool exists(const char *folder, const char *name) {
    char path[4096];
    struct stat info;
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && stat(path, &info) == 0;
}

static sb_status read_object(const char *folder, const char *name, json_t **object, sb_error *error) {
    char *path;
    void *bytes;
    size_t size;
    SB_TRY(join(folder, name, &path, error));
    sb_status status = sb_file_read(path, JSON_BYTES, &bytes, &size, error);
    if (status == SB_OK) {
        status = sb_json_object(path, bytes, size, object, error);
        sb_free(bytes);
    }
    sb_free(path);
    return status;
}

/* ---- files and tensors ---- */

sb_status sb_checkpoint_add_file(sb_checkpoint *checkpoint, const char *path, sb_error *error) {
    if (!sb_grow((void **)&checkpoint->files, &checkpoint->file_capacity, checkpoint->file_count + 1,
                 sizeof *checkpoint->files))
        return sb_fail_memory(error, sizeof *checkpoint->files);
    sb_checkpoint_file file = {.path = sb_duplicate_string(path)};
    if (file.path == NULL)
        return sb_fail_memory(error, strlen(path) + 1);
    sb_status status = sb_shared_mapping_of_file(path, &file.mapping, error);
    if (status != SB_OK) {
        sb_free(file.path);
        return status;
    }
    checkpoint->files[checkpoint->file_count++] = file;
    return SB_OK;
}

sb_status sb_checkpoint_add(sb_checkpoint *checkpoint, const char *name, size_t bytes, size_t *index, sb_error *error) {
    if (!sb_grow((void **)&checkpoint->tensors, &checkpoint->tensor_capacity, checkpoint->tensor_count + 1,
                 sizeof *checkpoint->tensors))
        return sb_fail_memory(error, sizeof *checkpoint->tensors);
    sb_checkpoint_tensor fresh = {.name = sb_allocate(bytes + 1), .file = checkpoint->file_count - 1};
    if (fresh.name == NULL)
        return sb_fail_memory(error, bytes + 1);
    memcpy(fresh.name, name, bytes);
    fresh.name[bytes] = '\0';
    sb_status status = SB_OK;
    if (sb_names_find(&checkpoint->names, fresh.name) != NULL)
        status = sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: there are two tensors '%.200s'", last_path(checkpoint),
                         fresh.name);
    else if (!sb_names_put(&checkpoint->names, fresh.name, (int32_t)checkpoint->tensor_count))
        status = sb_fail_memory(error, sizeof(sb_name_entry));
    if (status != SB_OK) {
        sb_free(fresh.name);
        return status;
    }
    *index = checkpoint->tensor_count;
    checkpoint->tensors[checkpoint->tensor_count++] = fresh;
    return SB_OK;
}

sb_status sb_checkpoint_measure(const sb_checkpoint *checkpoint, sb_checkpoint_tensor *tensor, sb_error *error) {
    const sb_weight_format *format = tensor->format;
    int64_t elements = 0, row = tensor->rank > 0 ? tensor->dims[tensor->rank - 1] : 1;
    /* As tensors count, in the largest type that a weight becomes: an empty one may have extents that overflow. */
    bool fits = sb_count_elements(SB_F32, tensor->rank, tensor->dims, &elements, NULL) == SB_OK;
    if (!fits || __builtin_mul_overflow((size_t)(elements / format->elements), format->bytes, &tensor->bytes))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%.300s: the extents of tensor '%.200s' overflow",
                       last_path(checkpoint), tensor->name);
    if (row % format->elements != 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "%.300s: tensor '%.200s' has rows of %lld elements, which are no blocks of %lld, as %s has them",
                       last_path(checkpoint), tensor->name, (long long)row, (long long)format->elements, format->name);
    tensor->elements = elements;
    return SB_OK;
}

const sb_checkpoint_tensor *sb_checkpoint_find(const sb_checkpoint *checkpoint, const char *name) {
    const int32_t *index = sb_names_find(&checkpoint->names, name);
    if (index == NULL)
        return NULL;
    checkpoint->tensors[*index].used = true;
    return &checkpoint->tensors[*index];
}

const char *sb_checkpoint_data(const sb_checkpoint *checkpoint, const sb_checkpoint_tensor *tensor) {
    if (tensor->bytes == 0)
        return "";
    return tensor->replacement != NULL ? sb_tensor_data(tensor->replacement)
                                       : checkpoint->files[tensor->file].mapping->data + tensor->offset;
}

sb_status sb_checkpoint_read(const sb_checkpoint *checkpoint, const sb_checkpoint_tensor *tensor, sb_dtype dtype,
                             sb_tensor **result, sb_error *error) {
    const sb_checkpoint_file *file = &checkpoint->files[tensor->file];
    const sb_weight_format *format = tensor->format;
    if (format->decode == NULL)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "%.300s: tensor '%.200s' (byte %zu) is of type %s, which weights may not have: convert it to "
                       "BF16, F16 or F32",
                       file->path, tensor->name, tensor->offset, format->name);
    const char *data = sb_checkpoint_data(checkpoint, tensor);
    if (tensor->replacement != NULL && format->dtype == dtype) {
        *result = sb_tensor_retain(tensor->replacement);
        return SB_OK;
    }
    if (format->is_float && format->dtype == dtype && tensor->bytes != 0 &&
        (uintptr_t)data % sb_dtype_size(dtype) == 0) {
        SB_TRY(sb_tensor_wrap(dtype, tensor->rank, tensor->dims, NULL, (void *)(uintptr_t)data,
                              sb_shared_mapping_release, file->mapping, result, error));
        sb_shared_mapping_retain(file->mapping);
        (*result)->storage->mapped = true;
        return SB_OK;
    }
    SB_TRY(sb_tensor_create(dtype, tensor->rank, tensor->dims, result, error));
    (*result)->storage->dispensable = true;
    sb_weight_convert(format, data, tensor->elements / format->elements, dtype, sb_tensor_mutable_data(*result));
    return SB_OK;
}

/* ---- opening ---- */

/* The files that model.safetensors.index.json names, each once, in the order of their names. */
static sb_status read_index(sb_checkpoint *checkpoint, const char *folder, sb_error *error) {
    json_t *index, *map, *file, *seen = NULL;
    const char *tensor;
    SB_TRY(read_object(folder, "model.safetensors.index.json", &index, error));
    map = json_object_get(index, "weight_map");
    sb_status status = json_is_object(map) && json_object_size(map) != 0
                           ? SB_OK
                           : sb_fail(error, SB_ERROR_INVALID_FILE,
                                     "%.300s/model.safetensors.index.json has no object \"weight_map\"", folder);
    if (status == SB_OK && (seen = json_object()) == NULL)
        status = sb_fail_memory(error, 1);
    json_object_foreach(map, tensor, file) {
        const char *name = json_string_value(file);
        if (status != SB_OK || (name != NULL && json_object_get(seen, name) != NULL))
            continue;
        /* A name and nothing more: what lies elsewhere is none of the model's business. */
        if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL || strcmp(name, "..") == 0)
            status = sb_fail(error, SB_ERROR_INVALID_FILE,
                             "%.300s/model.safetensors.index.json: the file of tensor '%.200s' is no name of a file in "
                             "the folder",
                             folder, tensor);
        char *path = NULL;
        if (status == SB_OK && json_object_set_new(seen, name, json_true()) != 0)
            status = sb_fail_memory(error, 1);
        if (status == SB_OK)
            status = join(folder, name, &path, error);
        if (status == SB_OK)
            status = sb_checkpoint_add_file(checkpoint, path, error);
        if (status == SB_OK)
            status = sb_safetensors_read(checkpoint, error);
        sb_free(path);
    }
    json_decref(seen);
    json_decref(index);
    return status;
}

static sb_status open_folder(sb_checkpoint *checkpoint, const char *folder, sb_error *error) {
    if (!exists(folder, "config.json"))
        return sb_fail(
            error, SB_ERROR_IO,
            "folder %.300s has no config.json: it is no checkpoint (a folder of one as Hugging Face keeps it, "
            "or a GGUF file, is expected)",
            folder);
    SB_TRY(read_object(folder, "config.json", &checkpoint->config, error));
    if (exists(folder, "generation_config.json"))
        SB_TRY(read_object(folder, "generation_config.json", &checkpoint->generation, error));
    if (exists(folder, "model.safetensors.index.json"))
        return read_index(checkpoint, folder, error);
    if (!exists(folder, "model.safetensors"))
        return sb_fail(
            error, SB_ERROR_IO,
            "folder %.300s has neither model.safetensors nor model.safetensors.index.json: convert its weights "
            "to safetensors",
            folder);
    char *path;
    SB_TRY(join(folder, "model.safetensors", &path, error));
    sb_status status = sb_checkpoint_add_file(checkpoint, path, error);
    sb_free(path);
    return status == SB_OK ? sb_safetensors_read(checkpoint, error) : status;
}

/* The other parts of a split file: PREFIX-00001-of-00003.gguf and so on. */
static sb_status open_parts(sb_checkpoint *checkpoint, const char *path, sb_error *error) {
    int64_t part = 0, parts = 1;
    const sb_gguf_value *count = sb_gguf_find(&checkpoint->gguf, "split.count");
    if (count == NULL || !sb_gguf_integer(count, 0, &parts) || parts <= 1)
        return SB_OK;
    sb_gguf_integer(sb_gguf_find(&checkpoint->gguf, "split.no"), 0, &part);
    size_t length = strlen(path);
    char *name = sb_duplicate_string(path), ending[64];
    if (name == NULL)
        return sb_fail_memory(error, length + 1);
    sb_status status = SB_OK;
    int bytes = snprintf(ending, sizeof ending, "-%05lld-of-%05lld.gguf", (long long)part + 1, (long long)parts);
    if (part != 0)
        status =
            sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%.300s is part %lld of %lld of a split file: give the first",
                    path, (long long)part + 1, (long long)parts);
    else if (parts > 99999 || length < (size_t)bytes || strcmp(path + length - (size_t)bytes, ending) != 0)
        status = sb_fail(error, SB_ERROR_INVALID_FILE,
                         "%.300s is the first of %lld parts, which are found by its name: it has to end in %s", path,
                         (long long)parts, ending);
    for (int64_t i = 1; i < parts && status == SB_OK; i++) {
        snprintf(name + length - (size_t)bytes, (size_t)bytes + 1, "-%05lld-of-%05lld.gguf", (long long)i + 1,
                 (long long)parts);
        status = sb_checkpoint_add_file(checkpoint, name, error);
        if (status == SB_OK)
            status = sb_gguf_read(checkpoint, error);
    }
    sb_free(name);
    return status;
}

static sb_status open_file(sb_checkpoint *checkpoint, const char *path, sb_error *error) {
    SB_TRY(sb_checkpoint_add_file(checkpoint, path, error));
    SB_TRY(sb_gguf_read(checkpoint, error));
    return open_parts(checkpoint, path, error);
}

sb_status sb_checkpoint_open(const char *path, sb_checkpoint **checkpoint, sb_error *error) {
    struct stat info;
    if (stat(path, &info) != 0)
        return sb_fail(error, SB_ERROR_IO, "%.300s: %s", path, strerror(errno));
    sb_checkpoint *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->path = sb_duplicate_string(path);
    sb_status status = fresh->path != NULL ? SB_OK : sb_fail_memory(error, strlen(path) + 1);
    if (status == SB_OK)
        status = S_ISDIR(info.st_mode) ? open_folder(fresh, path, error) : open_file(fresh, path, error);
    if (status != SB_OK) {
        sb_checkpoint_close(fresh);
        return status;
    }
    *checkpoint = fresh;
    return SB_OK;
}

void sb_checkpoint_close(sb_checkpoint *checkpoint) {
    if (checkpoint == NULL)
        return;
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        sb_tensor_release(checkpoint->tensors[i].replacement);
        sb_free(checkpoint->tensors[i].name);
    }
    for (size_t i = 0; i < checkpoint->file_count; i++) {
        sb_free(checkpoint->files[i].path);
        sb_shared_mapping_release(checkpoint->files[i].mapping);
    }
    sb_names_clear(&checkpoint->names);
    sb_free(checkpoint->tensors);
    sb_free(checkpoint->files);
    sb_free(checkpoint->gguf.values);
    json_decref(checkpoint->config);
    json_decref(checkpoint->generation);
    sb_free(checkpoint->path);
    sb_free(checkpoint);
}
