#include "tensor/npz.h"

#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "base/allocation.h"
#include "tensor/npy.h"

/* Deflate packs at most 258 bytes into 2 bits, so a member that claims more than 1032 bytes per
 * packed byte (and a rest) lies. */
#define DEFLATE_RATIO 1032
#define DEFLATE_REST 2048

/* A hostile archive can list 65,535 or, with zip64, more members in little space; nobody saves so
 * many arrays. */
#define MOST_MEMBERS 1000000

typedef struct member {
    char *name; /* without ".npy" */
    uint64_t size;
} member;

struct iv_npz {
    zip_t *archive;
    int count;
    member *members;
    char *path; /* for reports */
};

static iv_status fail_zip(iv_error *error, zip_error_t *reason, const char *path) {
    int code = zip_error_code_zip(reason);
    iv_status status = IV_ERROR_INVALID_FILE;
    if (code == ZIP_ER_MEMORY)
        status = IV_ERROR_OUT_OF_MEMORY;
    else if (zip_error_system_type(reason) == ZIP_ET_SYS || code == ZIP_ER_NOENT)
        status = IV_ERROR_IO;
    /* The text belongs to the error that is asked, and libzip does not free it with every owner of
     * one: ask a copy. */
    zip_error_t copy;
    zip_error_init(&copy);
    zip_error_set(&copy, code, zip_error_code_system(reason));
    iv_fail(error, status, "%s: %s", path, zip_error_strerror(&copy));
    zip_error_fini(&copy);
    return status;
}

/* ---- reading ---- */

static iv_status check_method(const zip_stat_t *info, const char *path, iv_error *error) {
    const zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((info->valid & needed) != needed)
        return iv_fail(error, IV_ERROR_INVALID_FILE, "%s: a member lacks name, size or method",
                       path);
    if (info->encryption_method != ZIP_EM_NONE)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "%s: member %s is encrypted", path, info->name);
    if (info->comp_method != ZIP_CM_STORE && info->comp_method != ZIP_CM_DEFLATE)
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "%s: member %s is compressed by method %d: save it with numpy.savez or "
                       "savez_compressed",
                       path, info->name, info->comp_method);
    bool stored = info->comp_method == ZIP_CM_STORE;
    if (stored ? info->size != info->comp_size
               : info->size / DEFLATE_RATIO > info->comp_size + DEFLATE_REST)
        return iv_fail(error, IV_ERROR_INVALID_FILE,
                       "%s: member %s claims %llu bytes, but %llu packed ones cannot hold them",
                       path, info->name, (unsigned long long)info->size,
                       (unsigned long long)info->comp_size);
    return IV_OK;
}

static iv_status list_member(iv_npz *npz, int index, uint64_t archive_size, iv_error *error) {
    zip_stat_t info;
    zip_stat_init(&info);
    if (zip_stat_index(npz->archive, (zip_uint64_t)index, 0, &info) != 0)
        return fail_zip(error, zip_get_error(npz->archive), npz->path);
    IV_TRY(check_method(&info, npz->path, error));
    if (info.comp_size > archive_size)
        return iv_fail(error, IV_ERROR_INVALID_FILE,
                       "%s: member %s claims more bytes than the file has", npz->path, info.name);
    size_t length = strlen(info.name);
    if (length < 4 || strcmp(info.name + length - 4, ".npy") != 0)
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "%s: member %s is not an array: its name does not end in .npy", npz->path,
                       info.name);
    npz->members[index] = (member){iv_duplicate_string(info.name), info.size};
    if (npz->members[index].name == NULL)
        return iv_fail_memory(error, length + 1);
    npz->members[index].name[length - 4] = '\0';
    return IV_OK;
}

static int compare_names(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Two members of one name: which is meant is anybody's guess. */
static iv_status check_distinct(int count, const char **names, const char *path, iv_status blame,
                                iv_error *error) {
    qsort(names, (size_t)count, sizeof *names, compare_names);
    for (int i = 1; i < count; i++) {
        if (strcmp(names[i - 1], names[i]) == 0)
            return iv_fail(error, blame, "%s: two arrays are named %s", path, names[i]);
    }
    return IV_OK;
}

static iv_status list_members(iv_npz *npz, uint64_t archive_size, iv_error *error) {
    zip_int64_t count = zip_get_num_entries(npz->archive, 0);
    if (count < 0 || count > MOST_MEMBERS)
        return iv_fail(error, IV_ERROR_INVALID_FILE, "%s: the archive lists %lld members",
                       npz->path, (long long)count);
    npz->members = iv_allocate_array((size_t)count, sizeof *npz->members);
    if (npz->members == NULL)
        return iv_fail_memory(error, (size_t)count * sizeof *npz->members);
    npz->count = (int)count;
    for (int i = 0; i < npz->count; i++)
        IV_TRY(list_member(npz, i, archive_size, error));
    const char **names = iv_allocate_array((size_t)count, sizeof *names);
    if (names == NULL)
        return iv_fail_memory(error, (size_t)count * sizeof *names);
    for (int i = 0; i < npz->count; i++)
        names[i] = npz->members[i].name;
    iv_status status = check_distinct(npz->count, names, npz->path, IV_ERROR_INVALID_FILE, error);
    iv_free(names);
    return status;
}

/* Opens the archive that `source` gives; the source is consumed in any case. */
static iv_status open_source(zip_source_t *source, const char *path, iv_npz **npz,
                             iv_error *error) {
    zip_error_t reason;
    zip_error_init(&reason);
    zip_stat_t info;
    zip_stat_init(&info);
    iv_npz *fresh = iv_allocate_array(1, sizeof *fresh);
    char *name = iv_duplicate_string(path);
    if (fresh == NULL || name == NULL) {
        iv_free(fresh);
        iv_free(name);
        zip_source_free(source);
        return iv_fail_memory(error, sizeof *fresh);
    }
    fresh->path = name;
    bool sized = zip_source_stat(source, &info) == 0 && (info.valid & ZIP_STAT_SIZE) != 0;
    iv_status status;
    if (sized && info.size == 0) {
        /* libzip takes a file of no bytes for an archive without members. */
        status = iv_fail(error, IV_ERROR_INVALID_FILE, "%s: the file is empty", path);
        zip_source_free(source);
    } else if (!sized ||
               (fresh->archive = zip_open_from_source(source, ZIP_RDONLY, &reason)) == NULL) {
        status = fail_zip(error, sized ? &reason : zip_source_error(source), path);
        zip_source_free(source);
    } else {
        status = list_members(fresh, info.size, error);
    }
    zip_error_fini(&reason);
    if (status == IV_OK)
        *npz = fresh;
    else
        iv_npz_close(fresh);
    return status;
}

iv_status iv_npz_open(const char *path, iv_npz **npz, iv_error *error) {
    zip_error_t reason;
    zip_error_init(&reason);
    zip_source_t *source = zip_source_file_create(path, 0, -1, &reason);
    iv_status status =
        source == NULL ? fail_zip(error, &reason, path) : open_source(source, path, npz, error);
    zip_error_fini(&reason);
    return status;
}

iv_status iv_npz_open_memory(const void *bytes, size_t size, iv_npz **npz, iv_error *error) {
    zip_error_t reason;
    zip_error_init(&reason);
    zip_source_t *source = zip_source_buffer_create(bytes, size, 0, &reason);
    iv_status status = source == NULL ? fail_zip(error, &reason, "archive")
                                      : open_source(source, "archive", npz, error);
    zip_error_fini(&reason);
    return status;
}

void iv_npz_close(iv_npz *npz) {
    if (npz == NULL)
        return;
    if (npz->archive != NULL)
        zip_discard(npz->archive);
    for (int i = 0; i < npz->count; i++)
        iv_free(npz->members[i].name);
    iv_free(npz->members);
    iv_free(npz->path);
    iv_free(npz);
}

int iv_npz_count(const iv_npz *npz) {
    return npz->count;
}

const char *iv_npz_name(const iv_npz *npz, int index) {
    return npz->members[index].name;
}

int iv_npz_find(const iv_npz *npz, const char *name) {
    for (int i = 0; i < npz->count; i++) {
        if (strcmp(npz->members[i].name, name) == 0)
            return i;
    }
    return -1;
}

static iv_status read_member(void *context, void *into, size_t bytes, iv_error *error) {
    zip_file_t *file = context;
    for (size_t got = 0; got < bytes;) {
        zip_int64_t piece = zip_fread(file, (char *)into + got, bytes - got);
        if (piece < 0)
            return iv_fail(error, IV_ERROR_INVALID_FILE, "%s",
                           zip_error_strerror(zip_file_get_error(file)));
        if (piece == 0)
            return iv_fail(error, IV_ERROR_INVALID_FILE, "the packed bytes end too early");
        got += (size_t)piece;
    }
    return IV_OK;
}

/* The end must come where the directory said; libzip compares the checksum when it gets there. */
static iv_status check_end(zip_file_t *file, iv_error *error) {
    char extra;
    zip_int64_t piece = zip_fread(file, &extra, 1);
    if (piece < 0)
        return iv_fail(error, IV_ERROR_INVALID_FILE, "%s",
                       zip_error_strerror(zip_file_get_error(file)));
    return piece == 0 ? IV_OK
                      : iv_fail(error, IV_ERROR_INVALID_FILE,
                                "more bytes are packed than the archive lists");
}

iv_status iv_npz_read(iv_npz *npz, int index, iv_tensor **tensor, iv_error *error) {
    if (index < 0 || index >= npz->count)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "%s: there is no array %d of %d",
                       npz->path, index, npz->count);
    const member *wanted = &npz->members[index];
    zip_file_t *file = zip_fopen_index(npz->archive, (zip_uint64_t)index, 0);
    if (file == NULL) {
        iv_status status = fail_zip(error, zip_get_error(npz->archive), npz->path);
        return iv_fail_within(error, status, "%s.npy: ", wanted->name);
    }
    iv_tensor *fresh = NULL;
    iv_status status =
        iv_npy_read_from(&(iv_npy_source){read_member, file, wanted->size}, &fresh, error);
    if (status == IV_OK)
        status = check_end(file, error);
    zip_fclose(file);
    if (status != IV_OK) {
        iv_tensor_release(fresh);
        return iv_fail_within(error, status, "%s: %s.npy: ", npz->path, wanted->name);
    }
    *tensor = fresh;
    return IV_OK;
}

/* ---- writing ---- */

static iv_status check_names(const char *path, int count, const char *const *names,
                             iv_error *error) {
    for (int i = 0; i < count; i++) {
        if (names[i] == NULL || names[i][0] == '\0')
            return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "%s: array %d has no name", path, i);
    }
    const char **sorted = iv_allocate_array((size_t)count, sizeof *sorted);
    if (sorted == NULL)
        return iv_fail_memory(error, (size_t)count * sizeof *sorted);
    memcpy(sorted, names, (size_t)count * sizeof *sorted);
    iv_status status = check_distinct(count, sorted, path, IV_ERROR_INVALID_ARGUMENT, error);
    iv_free(sorted);
    return status;
}

/* Adds one member, whose bytes stay in the image until the archive is closed. */
static iv_status add_member(zip_t *archive, const char *path, const char *name,
                            const iv_npy_image *image, iv_error *error) {
    size_t room = strlen(name) + 5;
    char *member_name = iv_allocate(room);
    if (member_name == NULL)
        return iv_fail_memory(error, room);
    memcpy(member_name, name, room - 5);
    memcpy(member_name + room - 5, ".npy", 5);
    zip_buffer_fragment_t fragments[2];
    for (int i = 0; i < 2; i++)
        fragments[i] = (zip_buffer_fragment_t){(zip_uint8_t *)(uintptr_t)image->parts[i].bytes,
                                               image->parts[i].size};
    zip_source_t *source =
        zip_source_buffer_fragment(archive, fragments, image->parts[1].size == 0 ? 1 : 2, 0);
    zip_int64_t index =
        source == NULL ? -1 : zip_file_add(archive, member_name, source, ZIP_FL_ENC_UTF_8);
    iv_free(member_name);
    /* 1 January 1980, midnight: the first date that zip knows. */
    if (index >= 0 &&
        zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) == 0 &&
        zip_file_set_dostime(archive, (zip_uint64_t)index, 0, 1 << 5 | 1, 0) == 0)
        return IV_OK;
    iv_status status = fail_zip(error, zip_get_error(archive), path);
    if (index < 0)
        zip_source_free(source);
    return status;
}

/* libzip deletes an archive without members; this is one, as the format defines it. */
static iv_status write_empty(const char *path, iv_error *error) {
    static const char end[22] = "PK\5\6";
    return iv_file_write_whole(path, 1, &(iv_file_part){end, sizeof end}, error);
}

static iv_status write_archive(const char *temporary, const char *path, int count,
                               const char *const *names, const iv_npy_image *images,
                               iv_error *error) {
    int code;
    zip_t *archive = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (archive == NULL) {
        zip_error_t reason;
        zip_error_init_with_code(&reason, code);
        iv_status status = fail_zip(error, &reason, path);
        zip_error_fini(&reason);
        return status;
    }
    iv_status status = IV_OK;
    for (int i = 0; i < count && status == IV_OK; i++)
        status = add_member(archive, path, names[i], &images[i], error);
    if (status == IV_OK && zip_close(archive) == 0)
        return IV_OK;
    if (status == IV_OK)
        status = fail_zip(error, zip_get_error(archive), path);
    zip_discard(archive);
    return status;
}

iv_status iv_npz_write(const char *path, int count, const char *const *names,
                       iv_tensor *const *tensors, iv_error *error) {
    if (count < 0)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "%s: %d arrays cannot be written", path,
                       count);
    if (count == 0)
        return write_empty(path, error);
    IV_TRY(check_names(path, count, names, error));
    iv_npy_image *images = iv_allocate_array((size_t)count, sizeof *images);
    if (images == NULL)
        return iv_fail_memory(error, (size_t)count * sizeof *images);
    iv_status status = IV_OK;
    for (int i = 0; i < count && status == IV_OK; i++) {
        status = iv_npy_image_create(tensors[i], &images[i], error);
        if (status != IV_OK)
            iv_fail_within(error, status, "%s: %s: ", path, names[i]);
    }
    iv_replacement replacement;
    if (status == IV_OK)
        status = iv_replacement_begin(path, &replacement, error);
    if (status == IV_OK) {
        status = write_archive(replacement.temporary, path, count, names, images, error);
        if (status == IV_OK)
            status = iv_replacement_commit(&replacement, error);
        else
            iv_replacement_abandon(&replacement);
    }
    for (int i = 0; i < count; i++)
        iv_npy_image_release(&images[i]);
    iv_free(images);
    return status;
}
