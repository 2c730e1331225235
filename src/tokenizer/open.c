/* Opening a tokenizer: where its file is, and which format that has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/allocation.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "tokenizer/tokenizer.h"

/* The largest published ones have 40 MB. */
#define MOST_FILE_BYTES ((size_t)1 << 30)

typedef sb_status reader(sb_tokenizer *tokenizer, const void *source, sb_error *error);

static sb_status read_json(sb_tokenizer *tokenizer, const void *source, sb_error *error) {
    return sb_tokenizer_read_json(tokenizer, *(const sb_span *)source, error);
}

static sb_status read_gguf(sb_tokenizer *tokenizer, const void *source, sb_error *error) {
    return sb_tokenizer_read_gguf(tokenizer, source, error);
}

/* A new tokenizer, filled by `read`; `name` stands before what it reports. */
static sb_status make(reader *read, const void *source, const char *name, sb_tokenizer **tokenizer, sb_error *error) {
    sb_tokenizer *made = sb_tokenizer_new();
    if (made == NULL)
        return sb_fail_memory(error, sizeof *made);
    sb_status status = read(made, source, error);
    if (status == SB_OK) {
        *tokenizer = made;
        return SB_OK;
    }
    sb_tokenizer_release(made);
    return status == SB_ERROR_OUT_OF_MEMORY ? status : sb_fail_within(error, status, "%.300s: ", name);
}

sb_status sb_tokenizer_open_memory(const void *bytes, size_t size, const char *name, sb_tokenizer **tokenizer,
                                   sb_error *error) {
    return make(read_json, &(sb_span){bytes, size}, name != NULL ? name : "tokenizer.json", tokenizer, error);
}

static sb_status open_json(const char *path, sb_tokenizer **tokenizer, sb_error *error) {
    void *bytes;
    size_t size;
    SB_TRY(sb_file_read(path, MOST_FILE_BYTES, &bytes, &size, error));
    sb_status status = sb_tokenizer_open_memory(bytes, size, path, tokenizer, error);
    sb_free(bytes);
    return status;
}

static sb_status open_gguf(const char *path, sb_tokenizer **tokenizer, sb_error *error) {
    sb_checkpoint *checkpoint;
    sb_gguf_tokenizer about;
    SB_TRY(sb_checkpoint_open(path, &checkpoint, error));
    sb_status status = sb_gguf_tokenizer_read(&checkpoint->gguf, &about, error);
    if (status != SB_OK && status != SB_ERROR_OUT_OF_MEMORY)
        status = sb_fail_within(error, status, "%.300s: ", path);
    if (status == SB_OK) {
        status = make(read_gguf, &about, path, tokenizer, error);
        sb_gguf_tokenizer_clear(&about);
    }
    sb_checkpoint_close(checkpoint);
    return status;
}

static bool begins_with(const char *path, const char *magic) {
    char first[8] = "";
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    size_t bytes = fread(first, 1, strlen(magic), file);
    fclose(file);
    return bytes == strlen(magic) && memcmp(first, magic, bytes) == 0;
}

static sb_status open_folder(const char *folder, sb_tokenizer **tokenizer, sb_error *error) {
    static const char name[] = "tokenizer.json";
    size_t bytes = strlen(folder) + sizeof name + 1;
    char *inside = sb_allocate(bytes);
    if (inside == NULL)
        return sb_fail_memory(error, bytes);
    snprintf(inside, bytes, "%s/%s", folder, name);
    struct stat info;
    sb_status status =
        stat(inside, &info) == 0
            ? open_json(inside, tokenizer, error)
            : sb_fail(error, SB_ERROR_IO,
                      "%.300s has no tokenizer.json: of other files (tokenizer.model, vocab.json and merges.txt) "
                      "transformers makes one, by AutoTokenizer.from_pretrained(…).save_pretrained(…)",
                      folder);
    sb_free(inside);
    return status;
}

sb_status sb_tokenizer_open(const char *path, sb_tokenizer **tokenizer, sb_error *error) {
    struct stat info;
    if (stat(path, &info) != 0)
        return sb_fail(error, SB_ERROR_IO, "%.300s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return open_folder(path, tokenizer, error);
    return begins_with(path, "GGUF") ? open_gguf(path, tokenizer, error) : open_json(path, tokenizer, error);
}
