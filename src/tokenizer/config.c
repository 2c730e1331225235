/* tokenizer_config.json, where it stands beside a tokenizer.model: "add_bos_token" and "add_eos_token", and in
 * "added_tokens_decoder" tokens by their number. Without it, texts have the mark that begins them and none behind. */
#include <stdlib.h>

#include "base/allocation.h"
#include "checkpoint/checkpoint.h"
#include "tokenizer/json_parts.h"

/* The number that a key is, or -1. */
static int64_t number_of(const char *key) {
    char *end;
    long long number = strtoll(key, &end, 10);
    return end != key && *end == '\0' && number < SB_MOST_TOKENS ? number : -1;
}

static sb_status add_tokens(sb_tokenizer *tokenizer, json_t *tokens, sb_error *error) {
    const char *key;
    json_t *entry;
    json_object_foreach(tokens, key, entry) {
        int64_t number = number_of(key);
        bool known = sb_added_tokens_find(&tokenizer->added, number) != NULL ||
                     sb_vocabulary_has(&tokenizer->model.vocabulary, number);
        if (!known)
            SB_TRY(sb_json_added_token(tokenizer, number, entry, error));
    }
    return SB_OK;
}

sb_status sb_tokenizer_read_config(sb_tokenizer *tokenizer, sb_span file, sb_error *error) {
    json_t *json;
    SB_TRY(sb_json_object("tokenizer_config.json", file.data, file.bytes, &json, error));
    if (!sb_json_flag(json, "add_bos_token", true))
        tokenizer->before.count = 0;
    int64_t end = sb_tokenizer_find(tokenizer, "</s>", 4);
    sb_status status = SB_OK;
    if (sb_json_flag(json, "add_eos_token", false)) {
        sb_span text = sb_json_text(json, "eos_token");
        end = text.data != NULL ? sb_tokenizer_find(tokenizer, text.data, text.bytes) : end;
        if (end < 0)
            status = sb_fail(error, SB_ERROR_INVALID_FILE,
                             "tokenizer_config.json: \"add_eos_token\" is true, and \"eos_token\" is no token");
        else if (!sb_numbers_add(&tokenizer->after, end))
            status = sb_fail_memory(error, sizeof end);
    }
    if (status == SB_OK)
        status = add_tokens(tokenizer, json_object_get(json, "added_tokens_decoder"), error);
    json_decref(json);
    return status;
}
