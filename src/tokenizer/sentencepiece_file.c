/* sentencepiece's own files, tokenizer.model: a message of protobuf, from which the lists are taken that a GGUF file would
 * have. */
#include <string.h>

#include "base/allocation.h"
#include "tokenizer/sentencepiece.pb-c.h"
#include "tokenizer/tokenizer.h"

#define ADVICE "take the model's tokenizer.json"

/* The most memory that a file may unpack to: many times what the largest published ones take. */
#define MOST_UNPACKED_BYTES ((size_t)1 << 30)

/* ---- unpacking ---- */

typedef struct budget {
    size_t left;
    bool out_of_memory;
} budget;

static void *allocate(void *context, size_t bytes) {
    budget *budget = context;
    if (bytes > budget->left)
        return NULL;
    budget->left -= bytes;
    void *memory = sb_allocate(bytes);
    budget->out_of_memory = budget->out_of_memory || memory == NULL;
    return memory;
}

static void release(void *context, void *memory) {
    (void)context;
    sb_free(memory);
}

/* ---- lists ---- */

static sb_gguf_text text_of(ProtobufCBinaryData data) {
    return (sb_gguf_text){(const char *)data.data, data.len};
}

/* User-defined tokens are looked for in the text, where a space is a space. `at` is room for the token's bytes. */
static sb_gguf_text with_spaces(ProtobufCBinaryData data, char **at) {
    char *begin = *at;
    for (size_t i = 0; i < data.len; i++) {
        if (data.len - i >= 3 && memcmp(data.data + i, "\xe2\x96\x81", 3) == 0) {
            *(*at)++ = ' ';
            i += 2;
        } else
            *(*at)++ = (char)data.data[i];
    }
    return (sb_gguf_text){begin, (size_t)(*at - begin)};
}

static sb_status check_settings(const SentencepieceFile__Model *model, sb_error *error) {
    const SentencepieceFile__Training *training = model->training;
    const SentencepieceFile__Normalization *normalization = model->normalization;
    if (training == NULL || training->model_type != 2)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "its model is not BPE (trainer_spec.model_type is %d, not 2): " ADVICE,
                       training != NULL ? (int)training->model_type : 1);
    if (training->treat_whitespace_as_suffix)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "it has spaces behind words (treat_whitespace_as_suffix): " ADVICE);
    if (normalization != NULL && !normalization->escape_whitespaces)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "it leaves spaces as they are (escape_whitespaces): " ADVICE);
    return SB_OK;
}

static sb_status fill_lists(sb_gguf_tokenizer *lists, const SentencepieceFile__Model *model, char **spaced,
                            sb_error *error) {
    size_t count = model->n_pieces, bytes = 1;
    for (size_t i = 0; i < count; i++)
        bytes += model->pieces[i]->text.len; /* which lie in the file, one behind the other */
    lists->token_count = count;
    lists->tokens = sb_allocate_array(count, sizeof *lists->tokens);
    lists->scores = sb_allocate_array(count, sizeof *lists->scores);
    lists->types = sb_allocate_array(count, sizeof *lists->types);
    char *at = *spaced = sb_allocate(bytes);
    if (lists->tokens == NULL || lists->scores == NULL || lists->types == NULL || *spaced == NULL)
        return sb_fail_memory(error, bytes);
    for (size_t i = 0; i < count; i++) {
        const SentencepieceFile__Piece *piece = model->pieces[i];
        lists->tokens[i] = piece->type == 4 ? with_spaces(piece->text, &at) : text_of(piece->text);
        lists->scores[i] = piece->score;
        lists->types[i] = piece->type >= 0 && piece->type < 100 ? piece->type : 0;
    }
    return SB_OK;
}

static sb_status fill(sb_tokenizer *tokenizer, const SentencepieceFile__Model *model, sb_error *error) {
    static const char kind[] = "llama";
    const SentencepieceFile__Training *training = model->training;
    const SentencepieceFile__Normalization *normalization = model->normalization;
    SB_TRY(check_settings(model, error));
    sb_gguf_tokenizer lists = {.model = {kind, sizeof kind - 1},
                               .bos = training->begin,
                               .eos = training->end,
                               .eot = -1,
                               .unknown = training->unknown,
                               .padding = -1,
                               .add_bos = -1,
                               .add_eos = -1,
                               .add_space_prefix = normalization == NULL || normalization->add_dummy_prefix,
                               .remove_extra_whitespaces =
                                   normalization == NULL || normalization->remove_extra_whitespaces};
    if (normalization != NULL)
        lists.charsmap = text_of(normalization->precompiled_charsmap);
    char *spaced = NULL;
    sb_status status = fill_lists(&lists, model, &spaced, error);
    if (status == SB_OK)
        status = sb_tokenizer_read_gguf(tokenizer, &lists, error);
    sb_gguf_tokenizer_clear(&lists);
    sb_free(spaced);
    return status;
}

sb_status sb_tokenizer_read_sentencepiece(sb_tokenizer *tokenizer, sb_span file, sb_error *error) {
    budget budget = {.left = MOST_UNPACKED_BYTES};
    ProtobufCAllocator allocator = {allocate, release, &budget};
    SentencepieceFile__Model *model =
        sentencepiece_file__model__unpack(&allocator, file.bytes, (const uint8_t *)file.data);
    if (model == NULL && budget.out_of_memory)
        return sb_fail_memory(error, file.bytes);
    if (model == NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "it is no file of sentencepiece, or a damaged one");
    sb_status status = fill(tokenizer, model, error);
    sentencepiece_file__model__free_unpacked(model, &allocator);
    return status;
}
