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

/* A hostile archive can list 65,535 or, with zip64, more members in little space; nobody saves so many arrays. */
#define MOST_MEMBERS 1000000

typedef struct member {
    char *name; /* without ".npy" */
    uint64_t size;
} member;

struct sb_npz {
    zip_t *archive;
    int count;
    member *members;
    char *path; /* for reports */
};

static sb_status fail_zip(sb_error *error, zip_error_t *reason, const char *path) {
    int code = zip_error_code_zip(reason);
    sb_status status = SB_ERROR_INVALID_FILE;
    if (code == ZIP_ER_MEMORY)
        status = SB_ERROR_OUT_OF_MEMORY;
    else if (zip_error_system_type(reason) == ZIP_ET_SYS || code == ZIP_ER_NOENT)
        status = SB_ERROR_IO;
    /* The text belongs to the error that is asked, and libzip does not free it with every owner of
     * one: ask a copy. */
    zip_error_t copy;
    zip_error_init(&copy);
    zip_error_set(&copy, code, zip_error_code_system(reason));
    sb_fail(error, status, "%s: %s", path, zip_error_strerror(&copy));
    zip_error_fini(&copy);
    return status;
}

/* ---- reading ---- */

static sb_status check_method(const zip_stat_t *info, const char *path, sb_error *error) {
    const zip_uint64_t needed =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((info->valid & needed) != needed)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%s: a member lacks name, size or method", path);
    if (info->encryption_method != ZIP_EM_NONE)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "%s: member %s is encrypted", path, info->name);
    if (info->comp_method != ZIP_CM_STORE && info->comp_method != ZIP_CM_DEFLATE)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "%s: member %s is compressed by method %d: save it with numpy.savez or "
                       "savez_compressed",
                       path, info->name, info->comp_method);
    bool stored = info->comp_method == ZIP_CM_STORE;
    if (stored ? info->size != info->comp_size : info->size / DEFLATE_RATIO > info->comp_size + DEFLATE_REST)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "%s: member %s claims %llu bytes, but %llu packed ones cannot hold them", path, info->name,
                       (unsigned long long)info->size, (unsigned long long)info->comp_size);
    return SB_OK;
}

static sb_status list_member(sb_npz *npz, int index, uint64_t archive_size, sb_error *error) {
    zip_stat_t info;
    zip_stat_init(&info);
    if (zip_stat_index(npz->archive, (zip_uint64_t)index, 0, &info) != 0)
        return fail_zip(error, zip_get_error(npz->archive), npz->path);
    SB_TRY(check_method(&info, npz->path, error));
    if (info.comp_size > archive_size)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%s: member %s claims more bytes than the file has", npz->path,
                       info.name);
    size_t length = strlen(info.name);
    if (length < 4 || strcmp(info.name + length - 4, ".npy") != 0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "%s: member %s is not an array: its name does not end in .npy",
                       npz->path, info.name);
    npz->members[index] = (member){sb_duplicate_string(info.name), info.size};
    if (npz->members[index].name == NULL)
        return sb_fail_memory(error, length + 1);
    npz->members[index].name[length - 4] = '\0';
    return SB_OK;
}

static int compare_names(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Two members of one name: which is meant is anybody's guess. */
static sb_status check_distinct(int count, const char **names, const char *path, sb_status blame, sb_error *error) {
    qsort(names, (size_t)count, sizeof *names, compare_names);
    for (int i = 1; i < count; i++) {
        if (strcmp(names[i - 1], names[i]) == 0)
            return sb_fail(error, blame, "%s: two arrays are named %s", path, names[i]);
    }
    return SB_OK;
}

static sb_status list_members(sb_npz *npz, uint64_t archive_size, sb_error *error) {
    zip_int64_t count = zip_get_num_entries(npz->archive, 0);
    if (count < 0 || count > MOST_MEMBERS)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%s: the archive lists %lld members", npz->path, (long long)count);
    npz->members = sb_allocate_array((size_t)count, sizeof *npz->members);
    if (npz->members == NULL)
        return sb_fail_memory(error, (size_t)count * sizeof *npz->members);
    npz->count = (int)count;
    for (int i = 0; i < npz->count; i++)
        SB_TRY(list_member(npz, i, archive_size, error));
    const char **names = sb_allocate_array((size_t)count, sizeof *names);
    if (names == NULL)
        return sb_fail_memory(error, (size_t)count * sizeof *names);
    for (int i = 0; i < npz->count; i++)
        names[i] = npz->members[i].name;
    sb_status status = check_distinct(npz->count, names, npz->path, SB_ERROR_INVALID_FILE, error);
    sb_free(names);
    return status;
}

/* Opens the archive that `source` gives; the source is consumed in any case. */
static sb_status open_source(zip_source_t *source, const char *path, sb_npz **npz, sb_error *error) {
    zip_error_t reason;
    zip_error_init(&reason);
    zip_stat_t info;
    zip_stat_init(&info);
    sb_npz *fresh = sb_allocate_array(1, sizeof *fresh);
    char *name = sb_duplicate_string(path);
    if (fresh == NULL || name == NULL) {
        sb_free(fresh);
        sb_free(name);
        zip_source_free(source);
        return sb_fail_memory(error, sizeof *fresh);
    }
    fresh->path = name;
    bool sized = zip_source_stat(source, &info) == 0 && (info.valid & ZIP_STAT_SIZE) != 0;
    sb_status status;
    if (sized && info.size == 0) {
        /* libzip takes a file of no bytes for an archive without members. */
        status = sb_fail(error, SB_ERROR_INVALID_FILE, "%s: the file is empty", path);
        zip_source_free(source);
    } else if (!sized || (fresh->archive = zip_open_from_source(source, ZIP_RDONLY, &reason)) == NULL) {
        status = fail_zip(error, sized ? &reason : zip_source_error(source), path);
        zip_source_free(source);
    } else {
        status = list_members(fresh, info.size, error);
    }
    zip_error_fini(&reason);
    if (status == SB_OK)
        *npz = fresh;
    else
        sb_npz_close(fresh);
    return status;
}

sb_status sb_npz_open(const char *path, sb_npz **npz, sb_error *error) {
    zip_error_t reason;
    zip_error_init(&reason);
    zip_source_t *source = zip_source_file_create(path, 0, -1, &reason);
    sb_status status = source == NULL ? fail_zip(error, &reason, path) : open_source(source, path, npz, error);
    zip_error_fini(&reason);
    return status;
}

sb_status sb_npz_open_memory(const void *bytes, size_t size, sb_npz **npz, sb_error *error) {
    zip_error_t reason;
    zip_error_init(&reason);
    zip_source_t *source = zip_source_buffer_create(bytes, size, 0, &reason);
    sb_status status =
        source == NULL ? fail_zip(error, &reason, "archive") : open_source(source, "archive", npz, error);
    zip_error_fini(&reason);
    return status;
}

void sb_npz_close(sb_npz *npz) {
    if (npz == NULL)
        return;
    if (npz->archive != NULL)
        zip_discard(npz->archive);
    for (int i = 0; i < npz->count; i++)
        sb_free(npz->members[i].name);
    sb_free(npz->members);
    sb_free(npz->path);
    sb_free(npz);
}

int sb_npz_count(const sb_npz *npz) {
    return npz->count;
}

const char *sb_npz_name(const sb_npz *npz, int index) {
    return npz->members[index].name;
}

int sb_npz_find(const sb_npz *npz, const char *name) {
    for (int i = 0; i < npz->count; i++) {
        if (strcmp(npz->members[i].name, name) == 0)
            return i;
    }
    return -1;
}

static sb_status read_member(void *context, void *into, size_t bytes, sb_error *error) {
    zip_file_t *file = context;
    for (size_t got = 0; got < bytes;) {
        zip_int64_t piece = zip_fread(file, (char *)into + got, bytes - got);
        if (piece < 0)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "%s", zip_error_strerror(zip_file_get_error(file)));
        if (piece == 0)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "the packed bytes end too early");
        got += (size_t)piece;
    }
    return SB_OK;
}

/* The end must come where the directory said; libzip compares the checksum when it gets there. */
static sb_status check_end(zip_file_t *file, sb_error *error) {
    char extra;
    zip_int64_t piece = zip_fread(file, &extra, 1);
    if (piece < 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "%s", zip_error_strerror(zip_file_get_error(file)));
    return piece == 0 ? SB_OK : sb_fail(error, SB_ERROR_INVALID_FILE, "more bytes are packed than the archive lists");
}

sb_status sb_npz_read(sb_npz *npz, int index, sb_tensor **tensor, sb_error *error) {
    if (index < 0 || index >= npz->count)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%s: there is no array %d of %d", npz->path, index,
                       npz->count);
    const member *wanted = &npz->members[index];
    zip_file_t *file = zip_fopen_index(npz->archive, (zip_uint64_t)index, 0);
    if (file == NULL) {
        sb_status status = fail_zip(error, zip_get_error(npz->archive), npz->path);
        return sb_fail_within(error, status, "%s.npy: ", wanted->name);
    }
    sb_tensor *fresh = NULL;
    sb_status status = sb_npy_read_from(&(sb_npy_source){read_member, file, wanted->size}, &fresh, error);
    if (status == SB_OK)
        status = check_end(file, error);
    zip_fclose(file);
    if (status != SB_OK) {
        sb_tensor_release(fresh);
        return sb_fail_within(error, status, "%s: %s.npy: ", npz->path, wanted->name);
    }
    *tensor = fresh;
    return SB_OK;
}

/* ---- writing ---- */

static sb_status check_names(const char *path, int count, const char *const *names, sb_error *error) {
    for (int i = 0; i < count; i++) {
        if (names[i] == NULL || names[i][0] == '\0')
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%s: array %d has no name", path, i);
    }
    const char **sorted = sb_allocate_array((size_t)count, sizeof *sorted);
    if (sorted == NULL)
        return sb_fail_memory(error, (size_t)count * sizeof *sorted);
    memcpy(sorted, names, (size_t)count * sizeof *sorted);
    sb_status status = check_distinct(count, sorted, path, SB_ERROR_INVALID_ARGUMENT, error);
    sb_free(sorted);
    return status;
}

/* Adds one member, whose bytes stay in the image until the archive is closed. */
static sb_status add_member(zip_t *archive, const char *path, const char *name, const sb_npy_image *image,
                            sb_error *error) {
    size_t room = strlen(name) + 5;
    char *member_name = sb_allocate(room);
    if (member_name == NULL)
        return sb_fail_memory(error, room);
    memcpy(member_name, name, room - 5);
    memcpy(member_name + room - 5, ".npy", 5);
    zip_buffer_fragment_t fragments[2];
    for (int i = 0; i < 2; i++)
        fragments[i] = (zip_buffer_fragment_t){(zip_uint8_t *)(uintptr_t)image->parts[i].bytes, image->parts[i].size};
    zip_source_t *source = zip_source_buffer_fragment(archive, fragments, image->parts[1].size == 0 ? 1 : 2, 0);
    zip_int64_t index = source == NULL ? -1 : zip_file_add(archive, member_name, source, ZIP_FL_ENC_UTF_8);
    sb_free(member_name);
    /* 1 January 1980, midnight: the first date that zip knows. */
    if (index >= 0 && zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) == 0 &&
        zip_file_set_dostime(archive, (zip_uint64_t)index, 0, 1 << 5 | 1, 0) == 0)
        return SB_OK;
    sb_status status = fail_zip(error, zip_get_error(archive), path);
    if (index < 0)
        zip_source_free(source);
    return status;
}

/* libzip deletes an archive without members; this is one, as the format defines it. */
static sb_status write_empty(const char *path, sb_error *error) {
    static const char end[22] = "PK\5\6";
    return sb_file_write_whole(path, 1, &(sb_file_part){end, sizeof end}, error);
}

static sb_status write_archive(const char *temporary, const char *path, int count, const char *const *names,
                               const sb_npy_image *images, sb_error *error) {
    int code;
    zip_t *archive = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (archive == NULL) {
        zip_error_t reason;
        zip_error_init_with_code(&reason, code);
        sb_status status = fail_zip(error, &reason, path);
        zip_error_fini(&reason);
        return status;
    }
    sb_status status = SB_OK;
    for (int i = 0; i < count && status == SB_OK; i++)
        status = add_member(archive, path, names[i], &images[i], error);
    if (status == SB_OK && zip_close(archive) == 0)
        return SB_OK;
    if (status == SB_OK)
        status = fail_zip(error, zip_get_error(archive), path);
    zip_discard(archive);
    return status;
}

sb_status sb_npz_write(const char *path, int count, const char *const *names, sb_tensor *const *tensors,
                       sb_error *error) {
    if (count < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%s: %d arrays cannot be written", path, count);
    if (count == 0)
        return write_empty(path, error);
    SB_TRY(check_names(path, count, names, error));
    sb_npy_image *images = sb_allocate_array((size_t)count, sizeof *images);
    if (images == NULL)
        return sb_fail_memory(error, (size_t)count * sizeof *images);
    sb_status status = SB_OK;
    for (int i = 0; i < count && status == SB_OK; i++) {
        status = sb_npy_image_create(tensors[i], &images[i], error);
        if (status != SB_OK)
            sb_fail_within(error, status, "%s: %s: ", path, names[i]);
    }
    sb_replacement replacement;
    if (status == SB_OK)
        status = sb_replacement_begin(path, &replacement, error);
    if (status == SB_OK) {
        status = write_archive(replacement.temporary, path, count, names, images, error);
        if (status == SB_OK)
            status = sb_replacement_commit(&replacement, error);
        else
            sb_replacement_abandon(&replacement);
    }
    for (int i = 0; i < count; i++)
        sb_npy_image_release(&images[i]);
    sb_free(images);
    return status;
}
