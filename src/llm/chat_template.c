/* Chat templates of checkpoints, with what the transformers package gives a template besides its arguments: the texts of
 * special tokens, and tools, documents and add_generation_prompt even where nobody named them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/allocation.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "template/template.h"

/* tokenizer_config.json lists added tokens: the largest known has 3 MB. */
#define CONFIG_BYTES ((size_t)64 << 20)
#define TEMPLATE_BYTES ((size_t)1 << 20)

struct sb_chat_template {
    sb_jinja_template *parsed;
    json_t *standard; /* variables that hold where the caller names no others */
};

/* ---- making ---- */

void sb_chat_template_free(sb_chat_template *chat_template) {
    if (chat_template == NULL)
        return;
    sb_jinja_free(chat_template->parsed);
    json_decref(chat_template->standard);
    sb_free(chat_template);
}

sb_status sb_chat_template_create(const char *source, size_t bytes, sb_chat_template **result, sb_error *error) {
    sb_chat_template *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->standard = json_pack("{s:n,s:n,s:b}", "tools", "documents", "add_generation_prompt", 0);
    sb_status status = fresh->standard != NULL ? SB_OK : sb_fail_memory(error, 1);
    if (status == SB_OK)
        status = sb_jinja_parse(source, bytes, &fresh->parsed, error);
    if (status != SB_OK) {
        sb_chat_template_free(fresh);
        return status;
    }
    *result = fresh;
    return SB_OK;
}

/* That, with the file in messages, and the texts of tokens. */
static sb_status create_of(const char *path, const char *source, size_t bytes, const json_t *tokens,
                           sb_chat_template **result, sb_error *error) {
    sb_status status = sb_chat_template_create(source, bytes, result, error);
    if (status != SB_OK)
        return sb_fail_within(error, status, "%.300s: ", path);
    if (json_object_update((*result)->standard, (json_t *)(uintptr_t)tokens) == 0)
        return SB_OK;
    sb_chat_template_free(*result);
    return sb_fail_memory(error, 1);
}

static sb_status fail_without(const char *path, sb_error *error) {
    return sb_fail(
        error, SB_ERROR_UNSUPPORTED,
        "%.300s has no chat template: its model was not trained on conversations, or give a template of your own",
        path);
}

/* ---- folders ---- */

static bool find_file(const char *folder, const char *name, char path[4096]) {
    struct stat info;
    int length = snprintf(path, 4096, "%s/%s", folder, name);
    return length > 0 && length < 4096 && stat(path, &info) == 0;
}

/* The texts of special tokens: each is a text, or an object with "content". */
static sb_status tokens_of_config(const json_t *config, json_t *tokens, sb_error *error) {
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *text = json_object_get(config, names[i]);
        if (json_is_object(text))
            text = json_object_get(text, "content");
        if (json_is_string(text) && json_object_set(tokens, names[i], text) != 0)
            return sb_fail_memory(error, 1);
    }
    return SB_OK;
}

/* The template in a configuration: a text, or objects with "name" and "template"; NULL: there is none. */
static const json_t *template_of_config(const json_t *config) {
    const json_t *found = json_object_get(config, "chat_template");
    if (!json_is_array(found))
        return json_is_string(found) ? found : NULL;
    size_t index;
    json_t *named;
    json_array_foreach(found, index, named) {
        const char *name = json_string_value(json_object_get(named, "name"));
        const json_t *text = json_object_get(named, "template");
        if (name != NULL && strcmp(name, "default") == 0 && json_is_string(text))
            return text;
    }
    return NULL;
}

static sb_status load_config(const char *folder, json_t **config, sb_error *error) {
    char path[4096];
    void *bytes;
    size_t size;
    *config = NULL;
    if (!find_file(folder, "tokenizer_config.json", path))
        return SB_OK;
    SB_TRY(sb_file_read(path, CONFIG_BYTES, &bytes, &size, error));
    sb_status status = sb_json_object(path, bytes, size, config, error);
    sb_free(bytes);
    return status;
}

static sb_status create_of_file(const char *path, const json_t *tokens, sb_chat_template **result, sb_error *error) {
    void *bytes;
    size_t size;
    SB_TRY(sb_file_read(path, TEMPLATE_BYTES, &bytes, &size, error));
    sb_status status = create_of(path, bytes, size, tokens, result, error);
    sb_free(bytes);
    return status;
}

static sb_status load_folder(const char *folder, json_t *tokens, sb_chat_template **result, sb_error *error) {
    char path[4096];
    json_t *config;
    SB_TRY(load_config(folder, &config, error));
    sb_status status = tokens_of_config(config, tokens, error);
    const json_t *text = template_of_config(config);
    if (status == SB_OK && find_file(folder, "chat_template.jinja", path))
        status = create_of_file(path, tokens, result, error);
    else if (status == SB_OK && text != NULL)
        status = create_of(folder, json_string_value(text), json_string_length(text), tokens, result, error);
    else if (status == SB_OK)
        status = fail_without(folder, error);
    json_decref(config);
    return status;
}

/* ---- GGUF files ---- */

/* (A token that is not UTF-8 has no name that a template could write.) */
static sb_status add_token(const sb_gguf_tokenizer *tokenizer, const char *name, int64_t id, json_t *tokens,
                           sb_error *error) {
    if (id < 0 || (uint64_t)id >= tokenizer->token_count)
        return SB_OK;
    sb_gguf_text text = tokenizer->tokens[id];
    json_t *value = json_stringn(text.data, text.bytes);
    return value == NULL || json_object_set_new(tokens, name, value) == 0 ? SB_OK : sb_fail_memory(error, 1);
}

static sb_status create_of_gguf(const sb_checkpoint *checkpoint, json_t *tokens, sb_chat_template **result,
                                sb_error *error) {
    sb_gguf_tokenizer tokenizer;
    SB_TRY(sb_gguf_tokenizer_read(&checkpoint->gguf, &tokenizer, error));
    sb_status status = add_token(&tokenizer, "bos_token", tokenizer.bos, tokens, error);
    if (status == SB_OK)
        status = add_token(&tokenizer, "eos_token", tokenizer.eos, tokens, error);
    if (status == SB_OK)
        status = add_token(&tokenizer, "unk_token", tokenizer.unknown, tokens, error);
    if (status == SB_OK)
        status = add_token(&tokenizer, "pad_token", tokenizer.padding, tokens, error);
    const sb_gguf_text text = tokenizer.chat_template;
    if (status == SB_OK && text.data != NULL)
        status = create_of(checkpoint->path, text.data, text.bytes, tokens, result, error);
    else if (status == SB_OK)
        status = fail_without(checkpoint->path, error);
    sb_gguf_tokenizer_clear(&tokenizer);
    return status;
}

sb_status sb_chat_template_load(const char *path, sb_chat_template **result, sb_error *error) {
    struct stat info;
    sb_checkpoint *checkpoint = NULL;
    if (stat(path, &info) != 0)
        return sb_fail(error, SB_ERROR_IO, "%.300s: %s", path, strerror(errno));
    json_t *tokens = json_object();
    if (tokens == NULL)
        return sb_fail_memory(error, 1);
    sb_status status;
    if (S_ISDIR(info.st_mode)) {
        status = load_folder(path, tokens, result, error);
    } else {
        status = sb_checkpoint_open(path, &checkpoint, error);
        if (status == SB_OK)
            status = create_of_gguf(checkpoint, tokens, result, error);
        sb_checkpoint_close(checkpoint);
    }
    json_decref(tokens);
    return status;
}

/* ---- rendering ---- */

static sb_status parse_variables(const char *variables, size_t bytes, json_t **parsed, sb_error *error) {
    json_error_t why;
    *parsed = json_loadb(variables, bytes, JSON_ALLOW_NUL, &why);
    if (*parsed == NULL && json_error_code(&why) == json_error_out_of_memory)
        return sb_fail_memory(error, bytes);
    if (*parsed == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the template's variables are no JSON, byte %d: %s",
                       why.position, why.text);
    if (json_is_object(*parsed))
        return SB_OK;
    json_decref(*parsed);
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the template's variables have to be an object of JSON");
}

sb_status sb_chat_template_render(const sb_chat_template *chat_template, const char *variables, size_t bytes,
                                  const sb_llm_date *date, char **text, size_t *text_bytes, sb_error *error) {
    json_t *given;
    SB_TRY(parse_variables(variables, bytes, &given, error));
    sb_status status = SB_OK;
    if (json_object_update_missing(given, chat_template->standard) != 0)
        status = sb_fail_memory(error, bytes);
    if (status == SB_OK)
        status = sb_jinja_render(chat_template->parsed, given, date, 0, text, text_bytes, error);
    json_decref(given);
    return status;
}
