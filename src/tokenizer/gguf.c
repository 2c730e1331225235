/* Tokenizers of GGUF files: the metadata names one of two kinds, and lists tokens with their types.
 *
 * "gpt2" is byte-level BPE: merges stand in the file, and which expression cuts words is a name of which the table below
 * knows some. "llama" is sentencepiece's BPE: of neighbours that are a token together, those of the best score are merged
 * first. What tokenizer.json would say besides is what the models' own files say. */
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "tokenizer/unicode.h"

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER = 4 };

#define ADVICE "take the model's tokenizer.json"

/* ---- how words are cut ---- */

#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define MARK_BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define BEHIND "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define WORDS_OF_CASE(end) MARK_BEFORE UPPER "*" LOWER "+" end "|" MARK_BEFORE UPPER "+" LOWER "*" end

typedef struct cutting {
    const char *name;
    const char *expression; /* NULL: that of `words` */
    sb_words words;
    bool digits;        /* each by itself, before the expression is looked for */
    bool ignore_merges; /* a word that is a token is that token */
    bool begin;         /* texts begin with the token for that, unless the file says otherwise */
    bool composed;      /* texts are brought into the normal form C before */
} cutting;

static const cutting cuttings[] = {
    {.name = "gpt-2", .words = SB_WORDS_GPT2},
    {.name = "phi-2", .words = SB_WORDS_GPT2},
    {.name = "mpt", .words = SB_WORDS_GPT2},
    {.name = "smollm", .words = SB_WORDS_GPT2, .digits = true},
    {.name = "starcoder", .words = SB_WORDS_GPT2, .digits = true},
    {.name = "refact", .words = SB_WORDS_GPT2, .digits = true},
    {.name = "command-r", .words = SB_WORDS_GPT2, .digits = true},
    {.name = "llama-bpe", .words = SB_WORDS_LLAMA3, .ignore_merges = true, .begin = true},
    {.name = "llama3", .words = SB_WORDS_LLAMA3, .ignore_merges = true, .begin = true},
    {.name = "llama-v3", .words = SB_WORDS_LLAMA3, .ignore_merges = true, .begin = true},
    {.name = "qwen2", .words = SB_WORDS_QWEN2, .composed = true},
    {.name = "deepseek-r1-qwen", .words = SB_WORDS_QWEN2},
    {.name = "tekken", .expression = WORDS_OF_CASE("") "|\\p{N}" BEHIND, .ignore_merges = true, .begin = true},
    {.name = "gpt-4o", .expression = WORDS_OF_CASE(CONTRACTION) "|\\p{N}{1,3}" BEHIND},
};

static sb_span span_of(sb_gguf_text text) {
    return (sb_span){text.data, text.bytes};
}

static sb_status find_cutting(sb_gguf_text pre, const cutting **found, sb_error *error) {
    char known[512] = "";
    for (size_t i = 0; i < sizeof cuttings / sizeof *cuttings; i++) {
        size_t length = strlen(known);
        if (pre.data != NULL && sb_span_equal(span_of(pre), sb_span_of(cuttings[i].name))) {
            *found = &cuttings[i];
            return SB_OK;
        }
        snprintf(known + length, sizeof known - length, "%s%s", i != 0 ? ", " : "", cuttings[i].name);
    }
    if (pre.data == NULL)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "no tokenizer.ggml.pre says how words are cut, and a guess might be wrong: " ADVICE);
    return sb_fail(error, SB_ERROR_UNSUPPORTED,
                   "tokenizer.ggml.pre is %.*s; known are %s. Where it is none of them, " ADVICE,
                   (int)(pre.bytes < 80 ? pre.bytes : 80), pre.data, known);
}

static sb_status add_cutting(sb_splitter *splitter, const cutting *cutting, sb_error *error) {
    sb_split_step *step;
    if (cutting->digits) {
        step = sb_splitter_add(splitter, SB_SPLIT_PATTERN);
        if (step == NULL)
            return sb_fail_memory(error, sizeof *step);
        step->pattern = (sb_pattern){.kind = SB_PATTERN_CHARACTER, .is_member = sb_is_number};
        step->behavior = SB_SPLIT_ISOLATED;
    }
    step = sb_splitter_add(splitter, SB_SPLIT_BYTE_LEVEL);
    if (step == NULL)
        return sb_fail_memory(error, sizeof *step);
    step->cut = true;
    step->behavior = SB_SPLIT_ISOLATED;
    if (cutting->expression != NULL)
        return sb_pattern_regex(&step->pattern, cutting->expression, strlen(cutting->expression), error);
    step->pattern = sb_pattern_of_words(cutting->words);
    return SB_OK;
}

/* ---- tokens ---- */

static int32_t type_of(const sb_gguf_tokenizer *file, size_t token) {
    return file->types != NULL ? file->types[token] : TYPE_NORMAL;
}

/* Tokens of types that are found in a text before anything else. */
static sb_status add_found(sb_tokenizer *tokenizer, const sb_gguf_tokenizer *file, size_t i, sb_error *error) {
    int32_t type = type_of(file, i);
    bool special = type == TYPE_CONTROL || type == TYPE_UNKNOWN;
    if ((!special && type != TYPE_USER) || file->tokens[i].bytes == 0)
        return SB_OK;
    return sb_added_tokens_add(&tokenizer->added,
                               (sb_added_token){.number = (int32_t)i,
                                                .text = (char *)(uintptr_t)file->tokens[i].data,
                                                .bytes = file->tokens[i].bytes,
                                                .special = special},
                               error);
}

static sb_status add_tokens(sb_tokenizer *tokenizer, const sb_gguf_tokenizer *file, sb_error *error) {
    for (size_t i = 0; i < file->token_count; i++) {
        sb_span text = span_of(file->tokens[i]);
        size_t bad;
        bool unfinished;
        if (sb_utf8_valid(text.data, text.bytes, &bad, &unfinished) != text.bytes)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "token %zu is not UTF-8", i);
        SB_TRY(sb_vocabulary_add(&tokenizer->model.vocabulary, (int64_t)i, text, error));
        SB_TRY(add_found(tokenizer, file, i, error));
    }
    return SB_OK;
}

static sb_status add_end(const sb_gguf_tokenizer *file, sb_numbers *numbers, const char *key, int said, bool otherwise,
                         int64_t token, sb_error *error) {
    bool exists = token >= 0 && (uint64_t)token < file->token_count;
    if (said == 1 && !exists)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "tokenizer.ggml.add_%s_token is true, and tokenizer.ggml.%s_token_id is none of %zu tokens", key,
                       key, file->token_count);
    if (!exists || !(said == 1 || (said < 0 && otherwise)))
        return SB_OK;
    return sb_numbers_add(numbers, token) ? SB_OK : sb_fail_memory(error, sizeof token);
}

/* ---- the two kinds ---- */

static sb_status read_byte_level(sb_tokenizer *tokenizer, const sb_gguf_tokenizer *file, const cutting *cutting,
                                 sb_error *error) {
    sb_text whole = {0};
    sb_status status = SB_OK;
    tokenizer->model.ignore_merges = cutting->ignore_merges;
    if (file->merge_count == 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the tokenizer has no tokenizer.ggml.merges");
    for (size_t i = 0; i < file->merge_count && status == SB_OK; i++) {
        sb_span text = span_of(file->merges[i]);
        const char *space = text.bytes != 0 ? memchr(text.data, ' ', text.bytes) : NULL;
        size_t left = space != NULL ? (size_t)(space - text.data) : 0;
        if (space == NULL)
            status = sb_fail(error, SB_ERROR_INVALID_FILE, "merge %zu has no space between two texts", i);
        else
            status = sb_bpe_add_merge(&tokenizer->model, (sb_span){text.data, left},
                                      (sb_span){space + 1, text.bytes - left - 1}, i, &whole, error);
    }
    sb_text_clear(&whole);
    SB_TRY(status);
    if (cutting->composed) {
        sb_normal_step *step = sb_normalizer_add(&tokenizer->normalizer, SB_NORMAL_FORM);
        if (step == NULL)
            return sb_fail_memory(error, sizeof *step);
        step->compose = true;
    }
    SB_TRY(add_cutting(&tokenizer->splitter, cutting, error));
    return sb_decoder_add(&tokenizer->decoder, SB_DECODE_BYTE_LEVEL) != NULL
               ? SB_OK
               : sb_fail_memory(error, sizeof(sb_decode_step));
}

static sb_status merge_by_scores(sb_tokenizer *tokenizer, const sb_gguf_tokenizer *file, sb_error *error) {
    if (file->scores == NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the tokenizer has no tokenizer.ggml.scores");
    bool *mergeable = sb_allocate(file->token_count);
    if (mergeable == NULL)
        return sb_fail_memory(error, file->token_count);
    for (size_t i = 0; i < file->token_count; i++)
        mergeable[i] = type_of(file, i) == TYPE_NORMAL;
    sb_status status = sb_bpe_merges_of_scores(&tokenizer->model, file->scores, mergeable, error);
    sb_free(mergeable);
    return status;
}

static sb_status read_sentencepiece(sb_tokenizer *tokenizer, const sb_gguf_tokenizer *file, sb_error *error) {
    sb_token_model *model = &tokenizer->model;
    bool prefix = file->add_space_prefix != 0;
    model->byte_fallback = true;
    model->fuse_unknown = true;
    model->unknown = file->unknown >= 0 && (uint64_t)file->unknown < file->token_count ? (int32_t)file->unknown : -1;
    for (size_t i = 0; i < file->token_count && model->unknown < 0; i++)
        model->unknown = type_of(file, i) == TYPE_UNKNOWN ? (int32_t)i : -1;
    SB_TRY(merge_by_scores(tokenizer, file, error));
    sb_normal_step *step = sb_normalizer_add(&tokenizer->normalizer, SB_NORMAL_SENTENCEPIECE);
    if (step == NULL)
        return sb_fail_memory(error, sizeof *step);
    step->dummy_prefix = prefix;
    step->remove_extra_spaces = file->remove_extra_whitespaces == 1;
    if (file->charsmap.bytes != 0) {
        step->content = sb_allocate(file->charsmap.bytes);
        if (step->content == NULL)
            return sb_fail_memory(error, file->charsmap.bytes);
        memcpy(step->content, file->charsmap.data, file->charsmap.bytes);
        step->content_bytes = file->charsmap.bytes;
        SB_TRY(sb_charsmap_check((sb_span){step->content, step->content_bytes}, error));
    }
    return sb_decoder_add_sentencepiece(&tokenizer->decoder, prefix, error);
}

sb_status sb_tokenizer_read_gguf(sb_tokenizer *tokenizer, const sb_gguf_tokenizer *file, sb_error *error) {
    const cutting *cutting = NULL;
    bool byte_level = file->model.data != NULL && sb_span_equal(span_of(file->model), sb_span_of("gpt2"));
    if (file->model.data == NULL)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "the file has no tokenizer (tokenizer.ggml.model): " ADVICE);
    if (!byte_level && !sb_span_equal(span_of(file->model), sb_span_of("llama")))
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "tokenizer.ggml.model is %.*s, neither gpt2 nor llama: " ADVICE,
                       (int)(file->model.bytes < 80 ? file->model.bytes : 80), file->model.data);
    if (file->token_count == 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the tokenizer has no tokenizer.ggml.tokens");
    if (byte_level)
        SB_TRY(find_cutting(file->pre, &cutting, error));
    tokenizer->model.kind = SB_MODEL_BPE;
    SB_TRY(add_tokens(tokenizer, file, error));
    SB_TRY(byte_level ? read_byte_level(tokenizer, file, cutting, error) : read_sentencepiece(tokenizer, file, error));
    SB_TRY(
        add_end(file, &tokenizer->before, "bos", file->add_bos, byte_level ? cutting->begin : true, file->bos, error));
    return add_end(file, &tokenizer->after, "eos", file->add_eos, false, file->eos, error);
}
