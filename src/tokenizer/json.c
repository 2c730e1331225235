/* Hugging Face's tokenizer.json: an object each for the normaliser, the pre-tokenizer, the model, the post-processor
 * and the decoder, which say by "type" what they are. What is not known is refused by its name. */
#include <jansson.h>
#include <string.h>

#include "base/allocation.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/tokenizer.h"

/* ---- added tokens ---- */

sb_status sb_json_added_token(sb_tokenizer *tokenizer, int64_t number, const json_t *json, sb_error *error) {
    sb_span text = sb_json_text(json, "content");
    if (number < 0 || number >= SB_MOST_TOKENS || text.data == NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "an added token has not both a number (\"id\") and a text (\"content\")");
    sb_added_token token = {.number = (int32_t)number, .text = (char *)text.data, .bytes = text.bytes};
    token.special = sb_json_flag(json, "special", false);
    token.single_word = sb_json_flag(json, "single_word", false);
    token.left = sb_json_flag(json, "lstrip", false);
    token.right = sb_json_flag(json, "rstrip", false);
    token.normalized = sb_json_flag(json, "normalized", !token.special);
    int32_t known = sb_vocabulary_find(&tokenizer->model.vocabulary, text.data, text.bytes);
    if (known >= 0 && known != token.number)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "the added token \"%.*s\" has the number %d, and in the vocabulary %d",
                       (int)(text.bytes < 80 ? text.bytes : 80), text.data, (int)token.number, (int)known);
    if (sb_added_tokens_find(&tokenizer->added, token.number) != NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "two added tokens have the number %d", (int)token.number);
    return sb_added_tokens_add(&tokenizer->added, token, error);
}

static sb_status read_added_token(sb_tokenizer *tokenizer, const json_t *json, sb_error *error) {
    const json_t *number = json_object_get(json, "id");
    return sb_json_added_token(tokenizer, json_is_integer(number) ? json_integer_value(number) : -1, json, error);
}

/* ---- models ---- */

static sb_status read_vocabulary(sb_token_model *model, const json_t *json, sb_error *error) {
    const char *key;
    json_t *value, *vocabulary = json_object_get(json, "vocab");
    if (!json_is_object(vocabulary))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the model has no vocabulary (\"vocab\": an object)");
    json_object_foreach(vocabulary, key, value) { /* jansson refuses NUL in keys */
        if (!json_is_integer(value))
            return sb_fail(error, SB_ERROR_INVALID_FILE, "the token \"%.80s\" has no whole number", key);
        SB_TRY(sb_vocabulary_add(&model->vocabulary, json_integer_value(value), sb_span_of(key), error));
    }
    return SB_OK;
}

/* "a b", or ["a", "b"]. */
static bool read_merge(const json_t *merge, sb_span *left, sb_span *right) {
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge), *space = memchr(text, ' ', json_string_length(merge));
        if (space == NULL)
            return false;
        *left = (sb_span){text, (size_t)(space - text)};
        *right = (sb_span){space + 1, json_string_length(merge) - left->bytes - 1};
        return memchr(right->data, ' ', right->bytes) == NULL;
    }
    const json_t *first = json_array_get(merge, 0), *second = json_array_get(merge, 1);
    if (json_array_size(merge) != 2 || !json_is_string(first) || !json_is_string(second))
        return false;
    *left = (sb_span){json_string_value(first), json_string_length(first)};
    *right = (sb_span){json_string_value(second), json_string_length(second)};
    return true;
}

static sb_status add_merge(sb_token_model *model, const json_t *merge, size_t rank, sb_text *whole, sb_error *error) {
    sb_span left, right;
    if (!read_merge(merge, &left, &right))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "merge %zu is not a pair of texts", rank);
    return sb_bpe_add_merge(model, left, right, rank, whole, error);
}

static sb_status read_unknown(sb_token_model *model, const json_t *json, sb_error *error) {
    sb_span text = sb_json_text(json, "unk_token");
    if (text.data == NULL)
        return SB_OK;
    model->unknown = sb_vocabulary_find(&model->vocabulary, text.data, text.bytes);
    return SB_OK; /* one that is no token stands for nothing: files name such a one where every character has a token */
}

static sb_status read_bpe(sb_token_model *model, const json_t *json, sb_error *error) {
    const json_t *merges = json_object_get(json, "merges"), *dropout = json_object_get(json, "dropout");
    sb_text whole = {0};
    sb_status status = SB_OK;
    model->kind = SB_MODEL_BPE;
    if (json_is_number(dropout) && json_number_value(dropout) != 0.0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "the model leaves merges out by chance (\"dropout\"): set it to null");
    SB_TRY(read_vocabulary(model, json, error));
    SB_TRY(read_unknown(model, json, error));
    SB_TRY(sb_json_copy(json, "continuing_subword_prefix", &model->prefix, error));
    SB_TRY(sb_json_copy(json, "end_of_word_suffix", &model->suffix, error));
    model->byte_fallback = sb_json_flag(json, "byte_fallback", false);
    model->fuse_unknown = sb_json_flag(json, "fuse_unk", false);
    model->ignore_merges = sb_json_flag(json, "ignore_merges", false);
    if (!json_is_array(merges))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the model has no merges (\"merges\": an array)");
    for (size_t i = 0; i < json_array_size(merges) && status == SB_OK; i++)
        status = add_merge(model, json_array_get(merges, i), i, &whole, error);
    sb_text_clear(&whole);
    return status;
}

static sb_status read_unigram(sb_token_model *model, const json_t *json, sb_error *error) {
    const json_t *vocabulary = json_object_get(json, "vocab"), *unknown = json_object_get(json, "unk_id");
    size_t count = json_array_size(vocabulary);
    model->kind = SB_MODEL_UNIGRAM;
    model->fuse_unknown = true;
    model->byte_fallback = sb_json_flag(json, "byte_fallback", false);
    if (!json_is_array(vocabulary) || count == 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "the model has no vocabulary (\"vocab\": an array of texts with their scores)");
    model->scores = sb_allocate_array(count, sizeof *model->scores);
    if (model->scores == NULL)
        return sb_fail_memory(error, count * sizeof *model->scores);
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(vocabulary, i), *text = json_array_get(entry, 0),
                     *score = json_array_get(entry, 1);
        if (!json_is_string(text) || !json_is_number(score))
            return sb_fail(error, SB_ERROR_INVALID_FILE, "token %zu is not a text with its score", i);
        model->scores[i] = json_number_value(score);
        SB_TRY(sb_vocabulary_add(&model->vocabulary, (int64_t)i,
                                 (sb_span){json_string_value(text), json_string_length(text)}, error));
    }
    if (json_is_integer(unknown)) {
        if (json_integer_value(unknown) < 0 || (size_t)json_integer_value(unknown) >= count)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "the unknown token (\"unk_id\") is none of the vocabulary");
        model->unknown = (int32_t)json_integer_value(unknown);
    }
    return SB_OK;
}

static sb_status read_words(sb_token_model *model, const json_t *json, bool parts, sb_error *error) {
    const json_t *most = json_object_get(json, "max_input_chars_per_word");
    model->kind = parts ? SB_MODEL_WORDPIECE : SB_MODEL_WORD;
    SB_TRY(read_vocabulary(model, json, error));
    SB_TRY(read_unknown(model, json, error));
    model->most_characters =
        json_is_integer(most) && json_integer_value(most) >= 0 ? (size_t)json_integer_value(most) : 100;
    return parts ? sb_json_copy(json, "continuing_subword_prefix", &model->prefix, error) : SB_OK;
}

/* Old files do not say which model they have: one with merges is BPE. */
static sb_status read_model(sb_token_model *model, const json_t *json, sb_error *error) {
    sb_span type = sb_json_text(json, "type");
    if (!json_is_object(json))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "there is no model (\"model\": an object)");
    if (type.data == NULL)
        type = sb_span_of(json_object_get(json, "merges") != NULL         ? "BPE"
                          : json_is_array(json_object_get(json, "vocab")) ? "Unigram"
                                                                          : "WordPiece");
    if (sb_json_is(type, "BPE"))
        return read_bpe(model, json, error);
    if (sb_json_is(type, "Unigram"))
        return read_unigram(model, json, error);
    if (sb_json_is(type, "WordPiece") || sb_json_is(type, "WordLevel"))
        return read_words(model, json, sb_json_is(type, "WordPiece"), error);
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "the model %.*s is none of BPE, Unigram, WordPiece and WordLevel",
                   (int)type.bytes, type.data);
}

/* ---- all ---- */

static sb_status read_file(sb_tokenizer *tokenizer, const json_t *json, sb_error *error) {
    const json_t *added = json_object_get(json, "added_tokens");
    SB_TRY(read_model(&tokenizer->model, json_object_get(json, "model"), error));
    SB_TRY(sb_json_normalizer(&tokenizer->normalizer, json_object_get(json, "normalizer"), 0, error));
    SB_TRY(sb_json_splitter(&tokenizer->splitter, json_object_get(json, "pre_tokenizer"), 0, error));
    SB_TRY(sb_json_surroundings(tokenizer, json_object_get(json, "post_processor"), 0, error));
    SB_TRY(sb_json_decoder(&tokenizer->decoder, json_object_get(json, "decoder"), 0, error));
    for (size_t i = 0; i < json_array_size(added); i++)
        SB_TRY(read_added_token(tokenizer, json_array_get(added, i), error));
    return SB_OK;
}

sb_status sb_tokenizer_read_json(sb_tokenizer *tokenizer, sb_span text, sb_error *error) {
    json_error_t problem;
    json_t *json = json_loadb(text.data, text.bytes, JSON_ALLOW_NUL, &problem);
    if (json == NULL)
        return sb_fail(error,
                       json_error_code(&problem) == json_error_out_of_memory ? SB_ERROR_OUT_OF_MEMORY
                                                                             : SB_ERROR_INVALID_FILE,
                       "line %d, column %d: %s", problem.line, problem.column, problem.text);
    sb_status status = json_is_object(json) ? read_file(tokenizer, json, error)
                                            : sb_fail(error, SB_ERROR_INVALID_FILE, "it is not an object with a model");
    json_decref(json);
    return status;
}
