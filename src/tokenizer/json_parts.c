/* Normalisers, pre-tokenizers, post-processors and decoders of a tokenizer.json. */
#include "tokenizer/json_parts.h"

#include <string.h>

#include <openssl/evp.h>

#include "base/allocation.h"
#include "tokenizer/unicode.h"

/* ---- members ---- */

static sb_span span_of_json(const json_t *json) {
    return json_is_string(json) ? (sb_span){json_string_value(json), json_string_length(json)} : (sb_span){0};
}

sb_span sb_json_text(const json_t *json, const char *name) {
    return span_of_json(json_object_get(json, name));
}

bool sb_json_flag(const json_t *json, const char *name, bool otherwise) {
    const json_t *value = json_object_get(json, name);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

bool sb_json_is(sb_span text, const char *name) {
    return text.data != NULL && sb_span_equal(text, sb_span_of(name));
}

static sb_status copy_span(sb_span text, char **copy, sb_error *error) {
    *copy = sb_allocate(text.bytes + 1);
    if (*copy == NULL)
        return sb_fail_memory(error, text.bytes + 1);
    if (text.bytes != 0)
        memcpy(*copy, text.data, text.bytes);
    (*copy)[text.bytes] = '\0';
    return SB_OK;
}

sb_status sb_json_copy(const json_t *json, const char *name, char **copy, sb_error *error) {
    sb_span text = sb_json_text(json, name);
    *copy = NULL;
    if (text.bytes == 0)
        return SB_OK;
    if (memchr(text.data, '\0', text.bytes) != NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "\"%s\" has a NUL in its text", name);
    return copy_span(text, copy, error);
}

/* A member that has to be there, and may be empty. */
static sb_status copy_content(const json_t *json, const char *name, char **content, size_t *bytes, sb_error *error) {
    sb_span text = sb_json_text(json, name);
    if (text.data == NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "it has no text \"%s\"", name);
    *bytes = text.bytes;
    return copy_span(text, content, error);
}

sb_status sb_json_pattern(const json_t *json, sb_pattern *pattern, sb_error *error) {
    sb_span literal = sb_json_text(json, "String"), expression = sb_json_text(json, "Regex");
    if (literal.data != NULL)
        return sb_pattern_literal(pattern, literal.data, literal.bytes, error);
    if (expression.data != NULL)
        return sb_pattern_regex(pattern, expression.data, expression.bytes, error);
    return sb_fail(error, SB_ERROR_INVALID_FILE, "a pattern is neither {\"String\": …} nor {\"Regex\": …}");
}

static sb_status unknown_part(const char *what, sb_span type, const char *known, sb_error *error) {
    if (type.data == NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the %s has no \"type\"", what);
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "the %s %.*s is not supported: those that are, are %s", what,
                   (int)(type.bytes < 80 ? type.bytes : 80), type.data, known);
}

static sb_status no_step(sb_error *error) {
    return sb_fail_memory(error, sizeof(sb_normal_step));
}

/* ---- normalisers ---- */

/* Standard base64 with its padding, and nothing else. */
static sb_status decode_base64(sb_span text, char **bytes, size_t *count, sb_error *error) {
    size_t padding = 0;
    while (padding < 2 && padding < text.bytes && text.data[text.bytes - 1 - padding] == '=')
        padding++;
    bool right = text.bytes % 4 == 0 && text.bytes < INT32_MAX;
    for (size_t i = 0; right && i < text.bytes - padding; i++) {
        char c = text.data[i];
        right = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
    }
    if (!right)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "\"precompiled_charsmap\" is not base64");
    *bytes = sb_allocate(text.bytes + 1);
    if (*bytes == NULL)
        return sb_fail_memory(error, text.bytes);
    int decoded = EVP_DecodeBlock((unsigned char *)*bytes, (const unsigned char *)text.data, (int)text.bytes);
    if (decoded < (int)padding)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "\"precompiled_charsmap\" is not base64");
    *count = (size_t)decoded - padding;
    return SB_OK;
}

static sb_status read_charsmap(sb_normalizer *normalizer, const json_t *json, sb_error *error) {
    sb_span text = sb_json_text(json, "precompiled_charsmap");
    if (text.bytes == 0)
        return SB_OK; /* no table: no character changes */
    sb_normal_step *step = sb_normalizer_add(normalizer, SB_NORMAL_CHARSMAP);
    if (step == NULL)
        return no_step(error);
    SB_TRY(decode_base64(text, &step->content, &step->content_bytes, error));
    return sb_charsmap_check((sb_span){step->content, step->content_bytes}, error);
}

static void read_bert(sb_normal_step *step, const json_t *json) {
    step->clean_text = sb_json_flag(json, "clean_text", true);
    step->chinese = sb_json_flag(json, "handle_chinese_chars", true);
    step->lowercase = sb_json_flag(json, "lowercase", true);
    step->strip_accents = sb_json_flag(json, "strip_accents", step->lowercase);
}

/* What a normaliser has besides its type. */
static sb_status fill_normalizer(sb_normal_step *step, sb_span type, const json_t *json, sb_error *error) {
    switch (step->kind) {
    case SB_NORMAL_FORM:
        step->compatible = type.bytes == 4;
        step->compose = type.data[type.bytes - 1] == 'C';
        return SB_OK;
    case SB_NORMAL_STRIP:
        step->left = sb_json_flag(json, "strip_left", true);
        step->right = sb_json_flag(json, "strip_right", true);
        return SB_OK;
    case SB_NORMAL_BERT:
        read_bert(step, json);
        return SB_OK;
    case SB_NORMAL_PREPEND:
        return copy_content(json, "prepend", &step->content, &step->content_bytes, error);
    case SB_NORMAL_REPLACE:
        SB_TRY(sb_json_pattern(json_object_get(json, "pattern"), &step->pattern, error));
        return copy_content(json, "content", &step->content, &step->content_bytes, error);
    default:
        return SB_OK;
    }
}

sb_status sb_json_normalizer(sb_normalizer *normalizer, const json_t *json, int depth, sb_error *error) {
    static const struct {
        const char *type;
        sb_normal_kind kind;
    } kinds[] = {{"NFC", SB_NORMAL_FORM},
                 {"NFD", SB_NORMAL_FORM},
                 {"NFKC", SB_NORMAL_FORM},
                 {"NFKD", SB_NORMAL_FORM},
                 {"Lowercase", SB_NORMAL_LOWERCASE},
                 {"StripAccents", SB_NORMAL_STRIP_ACCENTS},
                 {"Replace", SB_NORMAL_REPLACE},
                 {"Prepend", SB_NORMAL_PREPEND},
                 {"Strip", SB_NORMAL_STRIP},
                 {"BertNormalizer", SB_NORMAL_BERT},
                 {"Nmt", SB_NORMAL_NMT},
                 {"ByteLevel", SB_NORMAL_BYTES}};
    sb_span type = sb_json_text(json, "type");
    if (json == NULL || json_is_null(json))
        return SB_OK;
    if (sb_json_is(type, "Sequence"))
        SB_JSON_SEQUENCE(sb_json_normalizer, normalizer, json, "normalizers", depth, error);
    if (sb_json_is(type, "Precompiled"))
        return read_charsmap(normalizer, json, error);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!sb_json_is(type, kinds[i].type))
            continue;
        sb_normal_step *step = sb_normalizer_add(normalizer, kinds[i].kind);
        return step != NULL ? fill_normalizer(step, type, json, error) : no_step(error);
    }
    return unknown_part("normalizer", type,
                        "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Replace, Prepend, Strip, BertNormalizer, Nmt, "
                        "ByteLevel, Precompiled and Sequence",
                        error);
}

/* ---- pre-tokenizers ---- */

static sb_status read_behavior(const json_t *json, sb_split_behavior otherwise, sb_split_behavior *behavior,
                               sb_error *error) {
    static const char *const names[] = {[SB_SPLIT_REMOVED] = "Removed",
                                        [SB_SPLIT_ISOLATED] = "Isolated",
                                        [SB_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [SB_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
                                        [SB_SPLIT_CONTIGUOUS] = "Contiguous"};
    sb_span text = sb_json_text(json, "behavior");
    *behavior = otherwise;
    if (text.data == NULL)
        return SB_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (sb_json_is(text, names[i])) {
            *behavior = (sb_split_behavior)i;
            return SB_OK;
        }
    }
    return sb_fail(error, SB_ERROR_INVALID_FILE, "a pre-tokenizer has the unknown behavior %.*s",
                   (int)(text.bytes < 80 ? text.bytes : 80), text.data);
}

/* Cuts at every character of a class. */
static sb_status add_class(sb_splitter *splitter, bool (*is_member)(uint32_t), sb_split_behavior behavior,
                           sb_error *error) {
    sb_split_step *step = sb_splitter_add(splitter, SB_SPLIT_PATTERN);
    if (step == NULL)
        return no_step(error);
    step->pattern = (sb_pattern){.kind = SB_PATTERN_CHARACTER, .is_member = is_member};
    step->behavior = behavior;
    return SB_OK;
}

static sb_status read_split(sb_splitter *splitter, const json_t *json, sb_error *error) {
    sb_split_step *step = sb_splitter_add(splitter, SB_SPLIT_PATTERN);
    if (step == NULL)
        return no_step(error);
    step->invert = sb_json_flag(json, "invert", false);
    SB_TRY(read_behavior(json, SB_SPLIT_ISOLATED, &step->behavior, error));
    return sb_json_pattern(json_object_get(json, "pattern"), &step->pattern, error);
}

static sb_status read_byte_level(sb_splitter *splitter, const json_t *json, sb_error *error) {
    sb_split_step *step = sb_splitter_add(splitter, SB_SPLIT_BYTE_LEVEL);
    if (step == NULL)
        return no_step(error);
    step->prefix_space = sb_json_flag(json, "add_prefix_space", true);
    step->cut = sb_json_flag(json, "use_regex", true);
    step->behavior = SB_SPLIT_ISOLATED;
    if (step->cut)
        step->pattern = sb_pattern_of_words(SB_WORDS_GPT2);
    return SB_OK;
}

/* "replacement", one character. */
static sb_status read_sign(const json_t *json, sb_span *sign, sb_error *error) {
    *sign = sb_json_text(json, "replacement");
    if (sign->bytes == 0 || sb_point_bytes(sign->data[0]) != sign->bytes)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "a Metaspace has no \"replacement\" of one character");
    return SB_OK;
}

/* Old files say add_prefix_space, newer ones prepend_scheme. */
static sb_status read_prepend(const json_t *json, sb_prepend *prepend, sb_error *error) {
    sb_span scheme = sb_json_text(json, "prepend_scheme");
    bool space = sb_json_flag(json, "add_prefix_space", true);
    if (scheme.data == NULL)
        *prepend = space ? SB_PREPEND_ALWAYS : SB_PREPEND_NEVER;
    else if (sb_json_is(scheme, "always"))
        *prepend = SB_PREPEND_ALWAYS;
    else if (sb_json_is(scheme, "first"))
        *prepend = SB_PREPEND_FIRST;
    else if (sb_json_is(scheme, "never"))
        *prepend = SB_PREPEND_NEVER;
    else
        return sb_fail(error, SB_ERROR_INVALID_FILE, "a Metaspace has the unknown prepend_scheme %.*s",
                       (int)(scheme.bytes < 80 ? scheme.bytes : 80), scheme.data);
    if (!space && *prepend != SB_PREPEND_NEVER)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "a Metaspace has a prepend_scheme that add_prefix_space denies");
    return SB_OK;
}

static sb_status read_metaspace(sb_splitter *splitter, const json_t *json, sb_error *error) {
    sb_span sign;
    sb_split_step *step = sb_splitter_add(splitter, SB_SPLIT_METASPACE);
    if (step == NULL)
        return no_step(error);
    SB_TRY(read_sign(json, &sign, error));
    SB_TRY(read_prepend(json, &step->prepend, error));
    memcpy(step->sign, sign.data, sign.bytes);
    step->sign_bytes = sign.bytes;
    step->cut = sb_json_flag(json, "split", true);
    step->behavior = SB_SPLIT_MERGED_WITH_NEXT;
    return step->cut ? sb_pattern_literal(&step->pattern, sign.data, sign.bytes, error) : SB_OK;
}

static sb_status read_delimiter(sb_splitter *splitter, const json_t *json, sb_error *error) {
    sb_span delimiter = sb_json_text(json, "delimiter");
    sb_split_step *step = sb_splitter_add(splitter, SB_SPLIT_PATTERN);
    if (step == NULL)
        return no_step(error);
    if (delimiter.bytes == 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "a CharDelimiterSplit has no \"delimiter\"");
    return sb_pattern_literal(&step->pattern, delimiter.data, delimiter.bytes, error);
}

static sb_status read_bert_splitter(sb_splitter *splitter, sb_error *error) {
    SB_TRY(add_class(splitter, sb_is_space, SB_SPLIT_REMOVED, error));
    return add_class(splitter, sb_is_punctuation, SB_SPLIT_ISOLATED, error);
}

sb_status sb_json_splitter(sb_splitter *splitter, const json_t *json, int depth, sb_error *error) {
    sb_split_behavior behavior;
    sb_span type = sb_json_text(json, "type");
    if (json == NULL || json_is_null(json))
        return SB_OK;
    if (sb_json_is(type, "Sequence"))
        SB_JSON_SEQUENCE(sb_json_splitter, splitter, json, "pretokenizers", depth, error);
    if (sb_json_is(type, "Split"))
        return read_split(splitter, json, error);
    if (sb_json_is(type, "ByteLevel"))
        return read_byte_level(splitter, json, error);
    if (sb_json_is(type, "Metaspace"))
        return read_metaspace(splitter, json, error);
    if (sb_json_is(type, "BertPreTokenizer"))
        return read_bert_splitter(splitter, error);
    if (sb_json_is(type, "Whitespace"))
        return sb_splitter_add(splitter, SB_SPLIT_WORDS) != NULL ? SB_OK : no_step(error);
    if (sb_json_is(type, "WhitespaceSplit"))
        return add_class(splitter, sb_is_space, SB_SPLIT_REMOVED, error);
    if (sb_json_is(type, "Digits"))
        return add_class(splitter, sb_is_number,
                         sb_json_flag(json, "individual_digits", false) ? SB_SPLIT_ISOLATED : SB_SPLIT_CONTIGUOUS,
                         error);
    if (sb_json_is(type, "CharDelimiterSplit"))
        return read_delimiter(splitter, json, error);
    if (sb_json_is(type, "Punctuation")) {
        SB_TRY(read_behavior(json, SB_SPLIT_ISOLATED, &behavior, error));
        return add_class(splitter, sb_is_punctuation, behavior, error);
    }
    return unknown_part("pre_tokenizer", type,
                        "Split, ByteLevel, Metaspace, BertPreTokenizer, Whitespace, WhitespaceSplit, Digits, "
                        "CharDelimiterSplit, Punctuation and Sequence",
                        error);
}

/* ---- post-processors ---- */

static sb_status add_number(sb_numbers *numbers, const json_t *number, sb_error *error) {
    if (!json_is_integer(number) || json_integer_value(number) < 0 || json_integer_value(number) >= SB_MOST_TOKENS)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the post-processor has a token without a number");
    return sb_numbers_add(numbers, (int32_t)json_integer_value(number)) ? SB_OK
                                                                        : sb_fail_memory(error, sizeof(int32_t));
}

/* {"SpecialToken": {"id": …}}, whose numbers stand in "special_tokens". */
static sb_status add_special(sb_numbers *numbers, const json_t *json, sb_span name, sb_error *error) {
    const json_t *tokens = json_object_get(json, "special_tokens");
    const json_t *ids = json_object_get(name.data != NULL ? json_object_get(tokens, name.data) : NULL, "ids");
    if (!json_is_array(ids))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the template names a special token without \"ids\"");
    for (size_t i = 0; i < json_array_size(ids); i++)
        SB_TRY(add_number(numbers, json_array_get(ids, i), error));
    return SB_OK;
}

static sb_status read_template(sb_tokenizer *tokenizer, const json_t *json, sb_error *error) {
    const json_t *parts = json_object_get(json, "single");
    int texts = 0;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i), *special = json_object_get(part, "SpecialToken");
        if (special != NULL)
            SB_TRY(add_special(texts != 0 ? &tokenizer->after : &tokenizer->before, json, sb_json_text(special, "id"),
                               error));
        else
            texts += json_object_get(part, "Sequence") != NULL;
    }
    if (texts != 1)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "the template of single texts has the text %d times, not once",
                       texts);
    return SB_OK;
}

/* ["[CLS]", 101] and ["[SEP]", 102]. */
static sb_status read_ends(sb_tokenizer *tokenizer, const json_t *json, sb_error *error) {
    SB_TRY(add_number(&tokenizer->before, json_array_get(json_object_get(json, "cls"), 1), error));
    return add_number(&tokenizer->after, json_array_get(json_object_get(json, "sep"), 1), error);
}

sb_status sb_json_surroundings(sb_tokenizer *tokenizer, const json_t *json, int depth, sb_error *error) {
    sb_span type = sb_json_text(json, "type");
    if (json == NULL || json_is_null(json) || sb_json_is(type, "ByteLevel")) /* that moves offsets alone */
        return SB_OK;
    if (sb_json_is(type, "Sequence"))
        SB_JSON_SEQUENCE(sb_json_surroundings, tokenizer, json, "processors", depth, error);
    if (tokenizer->before.count + tokenizer->after.count != 0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "two post-processors put tokens around a text");
    if (sb_json_is(type, "TemplateProcessing"))
        return read_template(tokenizer, json, error);
    if (sb_json_is(type, "BertProcessing") || sb_json_is(type, "RobertaProcessing"))
        return read_ends(tokenizer, json, error);
    return unknown_part("post_processor", type,
                        "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence", error);
}

/* ---- decoders ---- */

/* What may be stripped at the end waits, and is looked at again with each token. */
#define MOST_STRIPPED 64

static sb_status read_count(const json_t *json, const char *name, size_t *count, sb_error *error) {
    const json_t *value = json_object_get(json, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "a Strip decoder has no number \"%s\"", name);
    if (json_integer_value(value) > MOST_STRIPPED)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "a Strip decoder strips %lld characters: at most %d are supported",
                       (long long)json_integer_value(value), MOST_STRIPPED);
    *count = (size_t)json_integer_value(value);
    return SB_OK;
}

static sb_status read_metaspace_decoder(sb_decode_step *step, const json_t *json, sb_error *error) {
    sb_span sign;
    sb_prepend prepend;
    SB_TRY(read_sign(json, &sign, error));
    SB_TRY(read_prepend(json, &prepend, error));
    step->first = prepend != SB_PREPEND_NEVER;
    step->content_bytes = sign.bytes;
    return copy_span(sign, &step->content, error);
}

static sb_status read_strip_decoder(sb_decode_step *step, const json_t *json, sb_error *error) {
    SB_TRY(read_count(json, "start", &step->start, error));
    SB_TRY(read_count(json, "stop", &step->stop, error));
    SB_TRY(copy_content(json, "content", &step->content, &step->content_bytes, error));
    if (step->content_bytes == 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "a Strip decoder has no character \"content\"");
    return SB_OK;
}

static sb_status fill_decoder(sb_decode_step *step, const json_t *json, sb_error *error) {
    switch (step->kind) {
    case SB_DECODE_METASPACE:
        return read_metaspace_decoder(step, json, error);
    case SB_DECODE_STRIP:
        return read_strip_decoder(step, json, error);
    case SB_DECODE_BPE:
        return copy_content(json, "suffix", &step->content, &step->content_bytes, error);
    case SB_DECODE_WORDPIECE:
        step->cleanup = sb_json_flag(json, "cleanup", true);
        return copy_content(json, "prefix", &step->content, &step->content_bytes, error);
    case SB_DECODE_REPLACE:
        SB_TRY(sb_json_pattern(json_object_get(json, "pattern"), &step->pattern, error));
        return copy_content(json, "content", &step->content, &step->content_bytes, error);
    default:
        return SB_OK;
    }
}

sb_status sb_json_decoder(sb_decoder *decoder, const json_t *json, int depth, sb_error *error) {
    static const struct {
        const char *type;
        sb_decode_kind kind;
    } kinds[] = {{"ByteLevel", SB_DECODE_BYTE_LEVEL},
                 {"Metaspace", SB_DECODE_METASPACE},
                 {"WordPiece", SB_DECODE_WORDPIECE},
                 {"BPEDecoder", SB_DECODE_BPE},
                 {"Replace", SB_DECODE_REPLACE},
                 {"ByteFallback", SB_DECODE_BYTE_FALLBACK},
                 {"Fuse", SB_DECODE_FUSE},
                 {"Strip", SB_DECODE_STRIP}};
    sb_span type = sb_json_text(json, "type");
    if (json == NULL || json_is_null(json))
        return depth != 0 || sb_decoder_add(decoder, SB_DECODE_SPACES) != NULL ? SB_OK : no_step(error);
    if (sb_json_is(type, "Sequence"))
        SB_JSON_SEQUENCE(sb_json_decoder, decoder, json, "decoders", depth, error);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!sb_json_is(type, kinds[i].type))
            continue;
        sb_decode_step *step = sb_decoder_add(decoder, kinds[i].kind);
        return step != NULL ? fill_decoder(step, json, error) : no_step(error);
    }
    return unknown_part("decoder", type,
                        "ByteLevel, Metaspace, WordPiece, BPEDecoder, Replace, ByteFallback, Fuse, Strip and Sequence",
                        error);
}
