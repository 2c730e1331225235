/* Unigram: the cut of a piece into tokens whose scores have the greatest sum, by Viterbi's algorithm; sums are f64,
 * from the left, and of equal ones the first that is found stays. A character that begins no token of its own length
 * may be unknown, at a price. */
#include <string.h>

#include "base/allocation.h"
#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

/* The best cut of what ends at a place: its last token. */
typedef struct sb_unigram_place {
    double score;
    size_t begin; /* SIZE_MAX: nothing ends here */
    int32_t token;
} sb_unigram_place;

void sb_unigram_finish(sb_token_model *model) {
    double least = 0.0;
    for (size_t i = 0; i < model->vocabulary.count; i++) {
        if (model->scores[i] < least || i == 0)
            least = model->scores[i];
    }
    model->unknown_score = least - 10.0;
}

static void consider(sb_unigram_place *place, double score, size_t begin, int32_t token) {
    if (place->begin == SIZE_MAX || score > place->score)
        *place = (sb_unigram_place){score, begin, token};
}

/* Goes forward over all cuts. */
static sb_status find_places(const sb_token_model *model, sb_token_work *work, sb_span piece, sb_error *error) {
    for (size_t at = 0; at <= piece.bytes; at++)
        work->places[at] = (sb_unigram_place){.begin = SIZE_MAX};
    work->places[0].score = 0.0;
    for (size_t at = 0, bytes; at < piece.bytes; at += bytes) {
        double score = work->places[at].score;
        bool whole = false;
        uint32_t node = 0;
        bytes = sb_point_bytes(piece.data[at]);
        for (size_t end = at; end < piece.bytes;) {
            const sb_pair_entry *edge = sb_pairs_find(&model->trie, node, (unsigned char)piece.data[end++]);
            if (edge == NULL)
                break;
            node = edge->first;
            if (edge->second != 0)
                consider(&work->places[end], model->scores[edge->second - 1] + score, at, (int32_t)edge->second - 1);
            whole = whole || (edge->second != 0 && end - at == bytes);
        }
        if (!whole && model->unknown < 0)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "the character \"%.*s\" is in no token, and the tokenizer has none for unknown ones",
                           (int)bytes, piece.data + at);
        if (!whole)
            consider(&work->places[at + bytes], model->unknown_score + score, at, model->unknown);
    }
    return SB_OK;
}

/* A part that the best cut has: a token, or what is unknown, by its bytes where they have tokens. */
static sb_status add_part(const sb_token_model *model, sb_span part, sb_numbers *numbers, sb_error *error) {
    int32_t token = sb_vocabulary_find(&model->vocabulary, part.data, part.bytes);
    bool bytes = token < 0 && model->byte_fallback, added = true;
    for (size_t i = 0; bytes && i < part.bytes; i++)
        bytes = model->byte_tokens[(unsigned char)part.data[i]] >= 0;
    for (size_t i = 0; bytes && added && i < part.bytes; i++)
        added = sb_numbers_add(numbers, model->byte_tokens[(unsigned char)part.data[i]]);
    if (!bytes)
        added = sb_numbers_add(numbers, token >= 0 ? token : model->unknown);
    return added ? SB_OK : sb_fail_memory(error, sizeof token);
}

sb_status sb_unigram_encode(const sb_token_model *model, sb_token_work *work, sb_span piece, sb_numbers *numbers,
                            sb_error *error) {
    if (piece.bytes + 1 > work->place_capacity &&
        !sb_grow((void **)&work->places, &work->place_capacity, piece.bytes + 1, sizeof *work->places))
        return sb_fail_memory(error, (piece.bytes + 1) * sizeof *work->places);
    SB_TRY(find_places(model, work, piece, error));
    /* Backward: each place now gets where its part ends, in the field that says where it begins. */
    size_t end = piece.bytes, next = SIZE_MAX;
    while (end != 0) {
        size_t begin = work->places[end].begin, from = begin;
        if (model->fuse_unknown && work->places[end].token == model->unknown) {
            while (from != 0 && work->places[from].token == model->unknown)
                from = work->places[from].begin;
        }
        work->places[end].begin = next;
        next = end;
        end = from;
    }
    for (size_t begin = 0; next != SIZE_MAX; next = work->places[next].begin) {
        SB_TRY(add_part(model, (sb_span){piece.data + begin, next - begin}, numbers, error));
        begin = next;
    }
    return SB_OK;
}
