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

/* A tokenizer.model, and the tokenizer_config.json beside it; no data: there is none. */
typedef struct model_files {
    sb_span model, config;
} model_files;

typedef sb_status reader(sb_tokenizer *tokenizer, const void *source, sb_error *error);

static sb_status read_json(sb_tokenizer *tokenizer, const void *source, sb_error *error) {
    return sb_tokenizer_read_json(tokenizer, *(const sb_span *)source, error);
}

static sb_status read_gguf(sb_tokenizer *tokenizer, const void *source, sb_error *error) {
    return sb_tokenizer_read_gguf(tokenizer, source, error);
}

static sb_status read_model(sb_tokenizer *tokenizer, const void *source, sb_error *error) {
    const model_files *files = source;
    SB_TRY(sb_tokenizer_read_sentencepiece(tokenizer, files->model, error));
    return files->config.data != NULL ? sb_tokenizer_read_config(tokenizer, files->config, error) : SB_OK;
}

/* A new tokenizer, filled by `read`; `name` stands before what it reports. */
static sb_status make(reader *read, const void *source, const char *name, sb_tokenizer **tokenizer, sb_error *error) {
    sb_tokenizer *made = sb_tokenizer_new();
    if (made == NULL)
        return sb_fail_memory(error, sizeof *made);
    sb_status status = read(made, source, error);
    if (status == SB_OK)
        status = sb_tokenizer_finish(made, error);
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

static sb_status read_file(const char *path, sb_span *file, sb_error *error) {
    void *bytes;
    SB_TRY(sb_file_read(path, MOST_FILE_BYTES, &bytes, &file->bytes, error));
    file->data = bytes;
    return SB_OK;
}

static void free_file(sb_span file) {
    sb_free((void *)(uintptr_t)file.data);
}

static sb_status open_json(const char *path, sb_tokenizer **tokenizer, sb_error *error) {
    sb_span file;
    SB_TRY(read_file(path, &file, error));
    sb_status status = make(read_json, &file, path, tokenizer, error);
    free_file(file);
    return status;
}

/* `config` may be NULL. */
static sb_status open_model(const char *path, const char *config, sb_tokenizer **tokenizer, sb_error *error) {
    model_files files = {0};
    SB_TRY(read_file(path, &files.model, error));
    sb_status status = config != NULL ? read_file(config, &files.config, error) : SB_OK;
    if (status == SB_OK)
        status = make(read_model, &files, path, tokenizer, error);
    free_file(files.model);
    free_file(files.config);
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

/* "FOLDER/NAME" in fresh memory, NULL where there is no such file; *memory says whether it ran out. */
static char *find_in(const char *folder, const char *name, bool *memory) {
    struct stat info;
    size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = sb_allocate(bytes);
    *memory = *memory && path != NULL;
    if (path == NULL)
        return NULL;
    snprintf(path, bytes, "%s/%s", folder, name);
    if (stat(path, &info) == 0)
        return path;
    sb_free(path);
    return NULL;
}

static sb_status open_folder(const char *folder, sb_tokenizer **tokenizer, sb_error *error) {
    bool memory = true;
    char *json = find_in(folder, "tokenizer.json", &memory), *model = find_in(folder, "tokenizer.model", &memory);
    char *config = find_in(folder, "tokenizer_config.json", &memory);
    sb_status status;
    if (!memory)
        status = sb_fail_memory(error, strlen(folder));
    else if (json != NULL)
        status = open_json(json, tokenizer, error);
    else if (model != NULL)
        status = open_model(model, config, tokenizer, error);
    else
        status = sb_fail(error, SB_ERROR_IO,
                         "%.300s has neither tokenizer.json nor tokenizer.model: of other files (vocab.json and "
                         "merges.txt) transformers makes one, by AutoTokenizer.from_pretrained(…).save_pretrained(…)",
                         folder);
    sb_free(json);
    sb_free(model);
    sb_free(config);
    return status;
}

static bool is_model(const char *path) {
    size_t length = strlen(path), end = strlen(".model");
    return length >= end && strcmp(path + length - end, ".model") == 0;
}

sb_status sb_tokenizer_open(const char *path, sb_tokenizer **tokenizer, sb_error *error) {
    struct stat info;
    if (stat(path, &info) != 0)
        return sb_fail(error, SB_ERROR_IO, "%.300s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return open_folder(path, tokenizer, error);
    if (begins_with(path, "GGUF"))
        return open_gguf(path, tokenizer, error);
    return is_model(path) ? open_model(path, NULL, tokenizer, error) : open_json(path, tokenizer, error);
}
