#include "llm/fingerprint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/allocation.h"
#include "base/file.h"
#include "base/workers.h"

/* The longest tokenizers known are 35 MB. */
#define FILE_BYTES ((size_t)1 << 30)

static const char *const configuration_files[] = {"config.json", "generation_config.json", NULL};
/* By name. */
static const char *const tokenizer_files[] = {
    "added_tokens.json", "chat_template.jinja", "chat_template.json",    "merges.txt", "special_tokens_map.json",
    "tokenizer.json",    "tokenizer.model",     "tokenizer_config.json", "vocab.json", NULL};

/* ---- weights ---- */

typedef struct tensor_digests {
    const sb_checkpoint *checkpoint;
    const sb_checkpoint_tensor **order; /* by name */
    unsigned char (*bytes)[SB_DIGEST_BYTES];
    sb_status *status;
} tensor_digests;

static int by_name(const void *left, const void *right) {
    const sb_checkpoint_tensor *a = *(const sb_checkpoint_tensor *const *)left,
                               *b = *(const sb_checkpoint_tensor *const *)right;
    return strcmp(a->name, b->name);
}

static void digest_tensors(void *context, int64_t begin, int64_t end) {
    const tensor_digests *all = context;
    for (int64_t i = begin; i < end; i++) {
        const sb_checkpoint_tensor *tensor = all->order[i];
        sb_digest digest;
        all->status[i] = sb_digest_begin(&digest, NULL);
        if (all->status[i] != SB_OK)
            continue;
        if (tensor->bytes != 0)
            sb_digest_add_bytes(&digest, sb_checkpoint_data(all->checkpoint, tensor), tensor->bytes);
        all->status[i] = sb_digest_end(&digest, all->bytes[i], NULL);
    }
}

static sb_status combine_tensors(const tensor_digests *all, unsigned char weights[SB_DIGEST_BYTES], sb_error *error) {
    sb_digest digest;
    SB_TRY(sb_digest_begin(&digest, error));
    for (size_t i = 0; i < all->checkpoint->tensor_count; i++) {
        const sb_checkpoint_tensor *tensor = all->order[i];
        digest.failed = digest.failed || all->status[i] != SB_OK;
        sb_digest_add_text(&digest, tensor->name);
        sb_digest_add_text(&digest, tensor->format->name);
        sb_digest_add_integer(&digest, tensor->rank);
        for (int d = 0; d < tensor->rank; d++)
            sb_digest_add_integer(&digest, tensor->dims[d]);
        sb_digest_add_bytes(&digest, all->bytes[i], SB_DIGEST_BYTES);
    }
    return sb_digest_end(&digest, weights, error);
}

static sb_status digest_weights(const sb_checkpoint *checkpoint, unsigned char weights[SB_DIGEST_BYTES],
                                sb_error *error) {
    size_t count = checkpoint->tensor_count, each = sizeof(void *) + SB_DIGEST_BYTES + sizeof(sb_status);
    tensor_digests all = {.checkpoint = checkpoint};
    sb_workers *workers;
    SB_TRY(sb_workers_create(0, &workers, error));
    char *memory = sb_allocate_array(count, each);
    if (memory == NULL) {
        sb_workers_destroy(workers);
        return sb_fail_memory(error, count * each);
    }
    all.order = (const sb_checkpoint_tensor **)(void *)memory;
    all.bytes = (unsigned char(*)[SB_DIGEST_BYTES])(void *)(memory + count * sizeof(void *));
    all.status = (sb_status *)(void *)(memory + count * (sizeof(void *) + SB_DIGEST_BYTES));
    for (size_t i = 0; i < count; i++)
        all.order[i] = &checkpoint->tensors[i];
    qsort(memory, count, sizeof *all.order, by_name);
    sb_workers_run(workers, (int64_t)count, 1, digest_tensors, &all);
    sb_status status = combine_tensors(&all, weights, error);
    sb_free(memory);
    sb_workers_destroy(workers);
    return status;
}

/* ---- files ---- */

/* Adds a file of the folder, if it is there. */
static sb_status add_file(const char *folder, const char *name, sb_digest *digest, bool *any, sb_error *error) {
    size_t room = strlen(folder) + strlen(name) + 2, size;
    struct stat info;
    void *bytes;
    char *path = sb_allocate(room);
    if (path == NULL)
        return sb_fail_memory(error, room);
    snprintf(path, room, "%s/%s", folder, name);
    bool is_there = stat(path, &info) == 0 || errno != ENOENT;
    sb_status status = is_there ? sb_file_read(path, FILE_BYTES, &bytes, &size, error) : SB_OK;
    sb_free(path);
    if (status != SB_OK || !is_there)
        return status;
    sb_digest_add_text(digest, name);
    sb_digest_add_integer(digest, (int64_t)size);
    sb_digest_add_bytes(digest, bytes, size);
    sb_free(bytes);
    *any = true;
    return SB_OK;
}

static sb_status digest_files(const char *folder, const char *const *names, unsigned char bytes[SB_DIGEST_BYTES],
                              bool *any, sb_error *error) {
    sb_digest digest;
    unsigned char nothing[SB_DIGEST_BYTES];
    *any = false;
    SB_TRY(sb_digest_begin(&digest, error));
    sb_status status = SB_OK;
    for (int i = 0; names[i] != NULL && status == SB_OK; i++)
        status = add_file(folder, names[i], &digest, any, error);
    sb_status ended = sb_digest_end(&digest, *any ? bytes : nothing, status == SB_OK ? error : NULL);
    return status != SB_OK ? status : ended;
}

/* What stands in front of the tensors of GGUF files. */
static sb_status digest_heads(const sb_checkpoint *checkpoint, unsigned char bytes[SB_DIGEST_BYTES], sb_error *error) {
    sb_digest digest;
    SB_TRY(sb_digest_begin(&digest, error));
    for (size_t f = 0; f < checkpoint->file_count; f++) {
        size_t head = checkpoint->files[f].mapping->size;
        for (size_t i = 0; i < checkpoint->tensor_count; i++) {
            const sb_checkpoint_tensor *tensor = &checkpoint->tensors[i];
            if (tensor->file == f && tensor->offset < head)
                head = tensor->offset;
        }
        sb_digest_add_integer(&digest, (int64_t)head);
        sb_digest_add_bytes(&digest, checkpoint->files[f].mapping->data, head);
    }
    return sb_digest_end(&digest, bytes, error);
}

sb_status sb_llm_fingerprint_of(const sb_checkpoint *checkpoint, sb_llm_fingerprint *fingerprint, sb_error *error) {
    bool any;
    *fingerprint = (sb_llm_fingerprint){.has_tokenizer = false};
    SB_TRY(digest_weights(checkpoint, fingerprint->weights, error));
    if (checkpoint->config == NULL)
        return digest_heads(checkpoint, fingerprint->configuration, error);
    SB_TRY(digest_files(checkpoint->path, configuration_files, fingerprint->configuration, &any, error));
    return digest_files(checkpoint->path, tokenizer_files, fingerprint->tokenizer, &fingerprint->has_tokenizer, error);
}
