/* What the models share: their tables, the memory of words, and words without parts. */
#include "tokenizer/token_model.h"

#include <string.h>

#include "base/allocation.h"

bool sb_numbers_add(sb_numbers *numbers, int64_t number) {
    if (numbers->count == numbers->capacity &&
        !sb_grow((void **)&numbers->items, &numbers->capacity, numbers->count + 1, sizeof *numbers->items))
        return false;
    numbers->items[numbers->count++] = number;
    return true;
}

/* Puts a token's text into the trie. */
static sb_status add_to_trie(sb_token_model *model, int32_t token, uint32_t *nodes, sb_error *error) {
    sb_span text = model->vocabulary.tokens[token];
    sb_pair_entry *edge = NULL;
    uint32_t node = 0;
    for (size_t at = 0; at < text.bytes; at++) {
        edge = sb_pairs_find(&model->trie, node, (unsigned char)text.data[at]);
        if (edge == NULL) {
            if (!sb_pairs_put(&model->trie, node, (unsigned char)text.data[at], (*nodes)++, 0))
                return sb_fail_memory(error, sizeof *edge);
            edge = sb_pairs_find(&model->trie, node, (unsigned char)text.data[at]);
        }
        node = edge->first;
    }
    edge->second = (uint32_t)token + 1;
    return SB_OK;
}

/* Of two tokens with one text, the first. */
static sb_status make_trie(sb_token_model *model, sb_error *error) {
    uint32_t nodes = 1;
    for (size_t i = 0; i < model->vocabulary.count; i++) {
        sb_span token = model->vocabulary.tokens[i];
        if (token.bytes != 0 && sb_vocabulary_find(&model->vocabulary, token.data, token.bytes) == (int32_t)i)
            SB_TRY(add_to_trie(model, (int32_t)i, &nodes, error));
    }
    return SB_OK;
}

sb_status sb_token_model_finish(sb_token_model *model, sb_error *error) {
    if (model->unknown >= 0 && !sb_vocabulary_has(&model->vocabulary, model->unknown))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the unknown token, %d, is none of the vocabulary",
                       (int)model->unknown);
    for (size_t i = 0; i < model->vocabulary.count; i++) {
        if (model->vocabulary.tokens[i].bytes > model->longest)
            model->longest = model->vocabulary.tokens[i].bytes;
    }
    if (model->kind != SB_MODEL_WORD && model->longest > SB_MOST_TOKEN_BYTES && model->kind != SB_MODEL_BPE)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "a token has %zu bytes: at most %d are supported", model->longest,
                       SB_MOST_TOKEN_BYTES);
    if (model->byte_fallback)
        sb_vocabulary_bytes(&model->vocabulary, model->byte_tokens);
    if (model->kind == SB_MODEL_BPE)
        sb_bpe_finish(model);
    if (model->kind == SB_MODEL_UNIGRAM)
        sb_unigram_finish(model);
    return model->kind == SB_MODEL_UNIGRAM || model->kind == SB_MODEL_WORDPIECE ? make_trie(model, error) : SB_OK;
}

void sb_token_model_clear(sb_token_model *model) {
    sb_vocabulary_clear(&model->vocabulary);
    sb_pairs_clear(&model->merges);
    sb_vocabulary_clear(&model->characters);
    sb_pairs_clear(&model->trie);
    sb_free(model->scores);
    sb_free(model->prefix);
    sb_free(model->suffix);
    *model = (sb_token_model){0};
}

/* ---- words that were met ---- */

#define REMEMBERED_BYTES 30
#define REMEMBERED_TOKENS 7

/* A cache line: a word and its tokens. A new word takes the place of another with the same slot. */
typedef struct sb_word_memory {
    uint8_t bytes; /* 0: free */
    uint8_t count;
    char text[REMEMBERED_BYTES];
    int32_t tokens[REMEMBERED_TOKENS + 1];
} sb_word_memory;

void sb_token_work_remember(sb_token_work *work, size_t bytes) {
    size_t slots = 64;
    while (slots < bytes / 16 && slots < 16384)
        slots *= 2;
    work->words = sb_allocate_array(slots, sizeof *work->words);
    work->word_slots = work->words != NULL ? slots : 0; /* without memory for it, nothing is remembered */
}

void sb_token_work_clear(sb_token_work *work) {
    sb_free(work->symbols);
    sb_free(work->heap);
    sb_free(work->words);
    sb_free(work->places);
    sb_text_clear(&work->text);
    *work = (sb_token_work){0};
}

static sb_word_memory *find_word(const sb_token_work *work, sb_span piece) {
    uint64_t hash = piece.bytes;
    for (size_t i = 0; i < piece.bytes; i++)
        hash = (hash ^ (unsigned char)piece.data[i]) * UINT64_C(0x100000001b3);
    return &work->words[(size_t)sb_pairs_mix(hash) & (work->word_slots - 1)];
}

/* ---- encoding ---- */

static sb_status encode_word(const sb_token_model *model, sb_span piece, sb_numbers *numbers, sb_error *error) {
    int32_t number = sb_vocabulary_find(&model->vocabulary, piece.data, piece.bytes);
    if (number < 0)
        number = model->unknown;
    if (number < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "\"%.*s\" is no token, and the tokenizer has none for unknown words",
                       (int)(piece.bytes < 80 ? piece.bytes : 80), piece.data);
    return sb_numbers_add(numbers, number) ? SB_OK : sb_fail_memory(error, sizeof number);
}

static sb_status encode_by(const sb_token_model *model, sb_token_work *work, sb_span piece, sb_numbers *numbers,
                           sb_error *error) {
    switch (model->kind) {
    case SB_MODEL_BPE:
        return sb_bpe_encode(model, work, piece, numbers, error);
    case SB_MODEL_UNIGRAM:
        return sb_unigram_encode(model, work, piece, numbers, error);
    case SB_MODEL_WORDPIECE:
        return sb_wordpiece_encode(model, piece, numbers, error);
    default:
        return encode_word(model, piece, numbers, error);
    }
}

sb_status sb_token_model_encode(const sb_token_model *model, sb_token_work *work, sb_span piece, sb_numbers *numbers,
                                sb_error *error) {
    if (piece.bytes == 0)
        return SB_OK;
    if (work->words == NULL || piece.bytes > REMEMBERED_BYTES)
        return encode_by(model, work, piece, numbers, error);
    sb_word_memory *word = find_word(work, piece);
    if (word->bytes == piece.bytes && memcmp(word->text, piece.data, piece.bytes) == 0) {
        for (int i = 0; i < word->count; i++) {
            if (!sb_numbers_add(numbers, word->tokens[i]))
                return sb_fail_memory(error, sizeof(int64_t));
        }
        return SB_OK;
    }
    size_t before = numbers->count;
    SB_TRY(encode_by(model, work, piece, numbers, error));
    size_t count = numbers->count - before;
    if (count <= REMEMBERED_TOKENS) {
        word->bytes = (uint8_t)piece.bytes;
        word->count = (uint8_t)count;
        memcpy(word->text, piece.data, piece.bytes);
        for (size_t i = 0; i < count; i++)
            word->tokens[i] = (int32_t)numbers->items[before + i];
    }
    return SB_OK;
}
