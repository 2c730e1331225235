/* WordPiece: from the left, the longest token each time; a word that has none at some place is unknown as a whole. */
#include <string.h>

#include "tokenizer/token_model.h"

/* Goes on from a node of the trie by one byte: the edge, or NULL. */
static const sb_pair_entry *step(const sb_token_model *model, const sb_pair_entry *from, char byte) {
    return sb_pairs_find(&model->trie, from != NULL ? from->first : 0, (unsigned char)byte);
}

/* The longest token at `begin`, behind the prefix where it does not begin the word; *end is where it ends. -1: none. */
static int32_t longest(const sb_token_model *model, sb_span word, size_t begin, size_t *end) {
    const sb_pair_entry *edge = NULL;
    int32_t found = -1;
    for (const char *c = begin != 0 && model->prefix != NULL ? model->prefix : ""; *c != '\0'; c++) {
        edge = step(model, edge, *c);
        if (edge == NULL)
            return -1;
    }
    for (size_t at = begin; at < word.bytes; at++) {
        edge = step(model, edge, word.data[at]);
        if (edge == NULL)
            break;
        if (edge->second != 0) {
            found = (int32_t)edge->second - 1;
            *end = at + 1;
        }
    }
    return found;
}

static size_t count_characters(sb_span word) {
    size_t count = 0;
    for (size_t i = 0; i < word.bytes; i++)
        count += ((unsigned char)word.data[i] & 0xc0) != 0x80;
    return count;
}

sb_status sb_wordpiece_encode(const sb_token_model *model, sb_span piece, sb_numbers *numbers, sb_error *error) {
    size_t before = numbers->count, begin = 0;
    bool known = count_characters(piece) <= model->most_characters;
    while (known && begin < piece.bytes) {
        int32_t token = longest(model, piece, begin, &begin);
        known = token >= 0;
        if (known && !sb_numbers_add(numbers, token))
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
