/* Opening a tokenizer: where its file is, and which format that has. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/allocation.h"
#include "base/file.h"
#include "tokenizer/tokenizer.h"

/* The largest published ones have 40 MB. */
#define MOST_FILE_BYTES ((size_t)1 << 30)

static sb_status open_bytes(sb_span bytes, const char *name, sb_tokenizer **tokenizer, sb_error *error) {
    sb_tokenizer *made = sb_tokenizer_new();
    if (made == NULL)
        return sb_fail_memory(error, sizeof *made);
    sb_status status = sb_tokenizer_read_json(made, bytes, error);
    if (status == SB_OK) {
        *tokenizer = made;
        return SB_OK;
    }
    sb_tokenizer_release(made);
    return status == SB_ERROR_OUT_OF_MEMORY ? status : sb_fail_within(error, status, "%s: ", name);
}

sb_status sb_tokenizer_open_memory(const void *bytes, size_t size, const char *name, sb_tokenizer **tokenizer,
                                   sb_error *error) {
    return open_bytes((sb_span){bytes, size}, name != NULL ? name : "tokenizer.json", tokenizer, error);
}

static sb_status open_file(const char *path, sb_tokenizer **tokenizer, sb_error *error) {
    void *bytes;
    size_t size;
    SB_TRY(sb_file_read(path, MOST_FILE_BYTES, &bytes, &size, error));
    sb_status status = open_bytes((sb_span){bytes, size}, path, tokenizer, error);
    sb_free(bytes);
    return status;
}

sb_status sb_tokenizer_open(const char *path, sb_tokenizer **tokenizer, sb_error *error) {
    static const char name[] = "tokenizer.json";
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return open_file(path, tokenizer, error);
    size_t bytes = strlen(path) + sizeof name + 1;
    char *inside = sb_allocate(bytes);
    if (inside == NULL)
        return sb_fail_memory(error, bytes);
    snprintf(inside, bytes, "%s/%s", path, name);
    sb_status status = open_file(inside, tokenizer, error);
    sb_free(inside);
    return status;
}
