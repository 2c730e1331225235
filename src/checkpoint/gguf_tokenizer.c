#include <string.h>

#include "base/allocation.h"
#include "checkpoint/gguf.h"

#define KEY(name) "tokenizer.ggml." name

static sb_status misfit(const char *key, const char *wanted, const sb_gguf_value *value, sb_error *error) {
    return sb_fail(error, SB_ERROR_INVALID_FILE, "metadata %s (byte %zu) is no %s", key, value->offset, wanted);
}

/* The texts of an array; none where the file has no such key. */
static sb_status read_texts(const sb_gguf_metadata *metadata, const char *key, size_t *count, sb_gguf_text **texts,
                            sb_error *error) {
    const sb_gguf_value *value = sb_gguf_find(metadata, key);
    if (value == NULL)
        return SB_OK;
    if (!value->is_array || value->type != SB_GGUF_TEXT)
        return misfit(key, "list of texts", value, error);
    *texts = sb_allocate_array((size_t)value->count, sizeof **texts);
    if (*texts == NULL)
        return sb_fail_memory(error, (size_t)value->count * sizeof **texts);
    const unsigned char *at = value->data;
    for (uint64_t i = 0; i < value->count; i++)
        (*texts)[i] = sb_gguf_next_text(&at);
    *count = (size_t)value->count;
    return SB_OK;
}

static sb_status read_scores(const sb_gguf_metadata *metadata, sb_gguf_tokenizer *tokenizer, sb_error *error) {
    const sb_gguf_value *value = sb_gguf_find(metadata, KEY("scores"));
    if (value == NULL)
        return SB_OK;
    if (!value->is_array || value->type != SB_GGUF_F32 || value->count != tokenizer->token_count)
        return misfit(KEY("scores"), "list of an f32 for each token", value, error);
    tokenizer->scores = sb_allocate_array(tokenizer->token_count, sizeof *tokenizer->scores);
    if (tokenizer->scores == NULL)
        return sb_fail_memory(error, tokenizer->token_count * sizeof *tokenizer->scores);
    memcpy(tokenizer->scores, value->data, tokenizer->token_count * sizeof *tokenizer->scores);
    return SB_OK;
}

static sb_status read_types(const sb_gguf_metadata *metadata, sb_gguf_tokenizer *tokenizer, sb_error *error) {
    const sb_gguf_value *value = sb_gguf_find(metadata, KEY("token_type"));
    int64_t type;
    if (value == NULL)
        return SB_OK;
    if (!value->is_array || value->count != tokenizer->token_count)
        return misfit(KEY("token_type"), "list of a number for each token", value, error);
    tokenizer->types = sb_allocate_array(tokenizer->token_count, sizeof *tokenizer->types);
    if (tokenizer->types == NULL)
        return sb_fail_memory(error, tokenizer->token_count * sizeof *tokenizer->types);
    for (uint64_t i = 0; i < value->count; i++) {
        if (!sb_gguf_integer(value, i, &type))
            return misfit(KEY("token_type"), "list of numbers", value, error);
        tokenizer->types[i] = type >= 0 && type < 100 ? (int32_t)type : 0;
    }
    return SB_OK;
}

/* Bytes, where the file has the key. */
static sb_status read_bytes(const sb_gguf_metadata *metadata, const char *key, sb_gguf_text *bytes, sb_error *error) {
    const sb_gguf_value *value = sb_gguf_find(metadata, key);
    if (value == NULL)
        return SB_OK;
    if (!value->is_array || (value->type != SB_GGUF_U8 && value->type != SB_GGUF_S8))
        return misfit(key, "list of bytes", value, error);
    *bytes = (sb_gguf_text){(const char *)value->data, (size_t)value->count};
    return SB_OK;
}

static void read_id(const sb_gguf_metadata *metadata, const char *key, int64_t *id) {
    *id = -1;
    if (!sb_gguf_integer(sb_gguf_find(metadata, key), 0, id))
        *id = -1;
}

static int read_flag(const sb_gguf_metadata *metadata, const char *key) {
    int64_t flag;
    return sb_gguf_integer(sb_gguf_find(metadata, key), 0, &flag) ? flag != 0 : -1;
}

static sb_status read_lists(const sb_gguf_metadata *metadata, sb_gguf_tokenizer *tokenizer, sb_error *error) {
    SB_TRY(read_texts(metadata, KEY("tokens"), &tokenizer->token_count, &tokenizer->tokens, error));
    SB_TRY(read_scores(metadata, tokenizer, error));
    SB_TRY(read_types(metadata, tokenizer, error));
    SB_TRY(read_bytes(metadata, KEY("precompiled_charsmap"), &tokenizer->charsmap, error));
    return read_texts(metadata, KEY("merges"), &tokenizer->merge_count, &tokenizer->merges, error);
}

sb_status sb_gguf_tokenizer_read(const sb_gguf_metadata *metadata, sb_gguf_tokenizer *tokenizer, sb_error *error) {
    *tokenizer = (sb_gguf_tokenizer){0};
    sb_gguf_string(sb_gguf_find(metadata, KEY("model")), &tokenizer->model);
    sb_gguf_string(sb_gguf_find(metadata, KEY("pre")), &tokenizer->pre);
    sb_gguf_string(sb_gguf_find(metadata, "tokenizer.chat_template"), &tokenizer->chat_template);
    read_id(metadata, KEY("bos_token_id"), &tokenizer->bos);
    read_id(metadata, KEY("eos_token_id"), &tokenizer->eos);
    read_id(metadata, KEY("eot_token_id"), &tokenizer->eot);
    read_id(metadata, KEY("unknown_token_id"), &tokenizer->unknown);
    read_id(metadata, KEY("padding_token_id"), &tokenizer->padding);
    tokenizer->add_bos = read_flag(metadata, KEY("add_bos_token"));
    tokenizer->add_eos = read_flag(metadata, KEY("add_eos_token"));
    tokenizer->add_space_prefix = read_flag(metadata, KEY("add_space_prefix"));
    tokenizer->remove_extra_whitespaces = read_flag(metadata, KEY("remove_extra_whitespaces"));
    sb_status status = read_lists(metadata, tokenizer, error);
    if (status != SB_OK)
        sb_gguf_tokenizer_clear(tokenizer);
    return status;
}

void sb_gguf_tokenizer_clear(sb_gguf_tokenizer *tokenizer) {
    sb_free(tokenizer->tokens);
    sb_free(tokenizer->scores);
    sb_free(tokenizer->types);
    sb_free(tokenizer->merges);
    *tokenizer = (sb_gguf_tokenizer){0};
}
