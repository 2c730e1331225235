/* WordPiece: from the left, the longest token each time; a word that has none at some place is unknown as a whole. */
#include <string.h>

#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

/* The longest token at `begin`, behind the prefix where it does not begin the word; *end is where it ends. -1: none. */
static int32_t longest(const sb_token_model *model, sb_token_work *work, sb_span word, size_t begin, size_t *end,
                       bool *memory) {
    size_t prefix = begin != 0 && model->prefix != NULL ? strlen(model->prefix) : 0;
    work->text.bytes = 0;
    size_t rest = word.bytes - begin < model->longest ? word.bytes - begin : model->longest;
    *memory =
        sb_text_append(&work->text, model->prefix, prefix) && sb_text_append(&work->text, word.data + begin, rest);
    if (!*memory)
        return -1;
    for (size_t length = rest; length != 0; length--) {
        if (begin + length < word.bytes && ((unsigned char)word.data[begin + length] & 0xc0) == 0x80)
            continue; /* the middle of a character */
        int32_t token = sb_vocabulary_find(&model->vocabulary, work->text.data, prefix + length);
        if (token >= 0) {
            *end = begin + length;
            return token;
        }
    }
    return -1;
}

static size_t count_characters(sb_span word) {
    size_t count = 0;
    for (size_t i = 0; i < word.bytes; i++)
        count += ((unsigned char)word.data[i] & 0xc0) != 0x80;
    return count;
}

sb_status sb_wordpiece_encode(const sb_token_model *model, sb_token_work *work, sb_span piece, sb_numbers *numbers,
                              sb_error *error) {
    size_t before = numbers->count, begin = 0;
    bool known = count_characters(piece) <= model->most_characters, memory = true;
    while (known && begin < piece.bytes) {
        int32_t token = longest(model, work, piece, begin, &begin, &memory);
        known = token >= 0;
        if (!memory || (known && !sb_numbers_add(numbers, token)))
            return sb_fail_memory(error, piece.bytes);
    }
    if (known)
        return SB_OK;
    numbers->count = before;
    if (model->unknown < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the word \"%.*s\" has no tokens, and the tokenizer has none for unknown words",
                       (int)(piece.bytes < 80 ? piece.bytes : 80), piece.data);
    return sb_numbers_add(numbers, model->unknown) ? SB_OK : sb_fail_memory(error, sizeof(int32_t));
}
