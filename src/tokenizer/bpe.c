/* Byte pair encoding: of the neighbours that may be merged, those with the least rank are, the first of them first,
 * until none are left.
 *
 * Symbols are linked in both directions, and candidates wait in a heap; one that no longer fits what stands at its
 * place when it comes up is left out. So n symbols take O(n log n). A candidate is known by its place and by what it
 * makes, not by its two parts: where another pair has come to its place that makes the same token, it counts for
 * that, with its own rank. That is what the `tokenizers` library does, too. */
#include <string.h>

#include "base/allocation.h"
#include "tokenizer/token_model.h"
#include "tokenizer/unicode.h"

typedef struct sb_bpe_symbol {
    int32_t id;             /* -1: a byte or character that nothing can be merged with */
    int32_t previous, next; /* -1: none */
    bool gone;
} sb_bpe_symbol;

typedef struct sb_bpe_candidate {
    uint32_t rank;
    int32_t place;
    uint32_t merged;
} sb_bpe_candidate;

/* ---- making ---- */

sb_status sb_bpe_add_merge(sb_token_model *model, sb_span left, sb_span right, size_t rank, sb_text *whole,
                           sb_error *error) {
    size_t skip = model->prefix != NULL ? strlen(model->prefix) : 0;
    skip = skip < right.bytes ? skip : right.bytes;
    whole->bytes = 0;
    if (!sb_text_append(whole, left.data, left.bytes) || !sb_text_append(whole, right.data + skip, right.bytes - skip))
        return sb_fail_memory(error, left.bytes + right.bytes);
    int32_t a = sb_vocabulary_find(&model->vocabulary, left.data, left.bytes);
    int32_t b = sb_vocabulary_find(&model->vocabulary, right.data, right.bytes);
    int32_t merged = sb_vocabulary_find(&model->vocabulary, whole->data, whole->bytes);
    if (a < 0 || b < 0 || merged < 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "merge %zu (\"%.*s\", \"%.*s\"): one of its parts, or the whole, is no token", rank,
                       (int)(left.bytes < 80 ? left.bytes : 80), left.data, (int)(right.bytes < 80 ? right.bytes : 80),
                       right.data);
    return sb_pairs_put(&model->merges, (uint32_t)a, (uint32_t)b, (uint32_t)rank, (uint32_t)merged)
               ? SB_OK
               : sb_fail_memory(error, sizeof(sb_pair_entry));
}

/* The symbol of a character that is part of tokens and none itself; -1: it is no such one. */
static int32_t character_symbol(const sb_token_model *model, sb_span text) {
    int32_t character = sb_vocabulary_find(&model->characters, text.data, text.bytes);
    return character >= 0 ? (int32_t)model->vocabulary.count + character : -1;
}

void sb_bpe_finish(sb_token_model *model) {
    for (uint32_t point = 0; point < 0x800; point++) {
        char text[4];
        size_t bytes = sb_point_write(point, text);
        int32_t symbol = sb_vocabulary_find(&model->vocabulary, text, bytes);
        model->short_symbols[point] = symbol >= 0 ? symbol : character_symbol(model, (sb_span){text, bytes});
    }
}

/* The symbol of a text: a token that takes part, or a character. -1 where there is none. */
static int32_t symbol_of(const sb_token_model *model, const bool *mergeable, sb_span text) {
    int32_t number = sb_vocabulary_find(&model->vocabulary, text.data, text.bytes);
    return number >= 0 && mergeable[number] ? number : character_symbol(model, text);
}

/* Numbers the characters of a token that are no tokens themselves. */
static sb_status add_characters(sb_token_model *model, const bool *mergeable, sb_span token, sb_error *error) {
    for (size_t at = 0; at < token.bytes;) {
        size_t bytes = sb_point_bytes(token.data[at]);
        sb_span character = {token.data + at, bytes};
        if (symbol_of(model, mergeable, character) < 0)
            SB_TRY(sb_vocabulary_add(&model->characters, (int64_t)model->characters.count, character, error));
        at += bytes;
    }
    return SB_OK;
}

static sb_status add_merges(sb_token_model *model, const bool *mergeable, int32_t whole, uint32_t rank,
                            sb_error *error) {
    sb_span token = model->vocabulary.tokens[whole];
    for (size_t at = sb_point_bytes(token.data[0]); at < token.bytes; at += sb_point_bytes(token.data[at])) {
        int32_t left = symbol_of(model, mergeable, (sb_span){token.data, at});
        int32_t right = left < 0 ? -1 : symbol_of(model, mergeable, (sb_span){token.data + at, token.bytes - at});
        if (right >= 0 && !sb_pairs_put(&model->merges, (uint32_t)left, (uint32_t)right, rank, (uint32_t)whole))
            return sb_fail_memory(error, sizeof(sb_pair_entry));
    }
    return SB_OK;
}

/* A number that is the greater, the less the score: the bits of a float in order. */
static uint32_t rank_of_score(float score) {
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return (bits & UINT32_C(0x80000000)) != 0 ? bits : ~bits & UINT32_C(0x7fffffff);
}

sb_status sb_bpe_merges_of_scores(sb_token_model *model, const float *scores, const bool *mergeable, sb_error *error) {
    size_t count = model->vocabulary.count;
    for (size_t i = 0; i < count; i++) {
        sb_span token = model->vocabulary.tokens[i];
        size_t bad;
        bool unfinished;
        if (token.data == NULL || !mergeable[i])
            continue;
        if (token.bytes > SB_MOST_TOKEN_BYTES)
            return sb_fail(error, SB_ERROR_UNSUPPORTED, "token %zu has %zu bytes: at most %d are supported", i,
                           token.bytes, SB_MOST_TOKEN_BYTES);
        if (sb_utf8_valid(token.data, token.bytes, &bad, &unfinished) != token.bytes)
            return sb_fail(error, SB_ERROR_INVALID_FILE, "token %zu is not UTF-8", i);
        if (scores[i] != scores[i])
            return sb_fail(error, SB_ERROR_INVALID_FILE, "token %zu has no number as its score", i);
        SB_TRY(add_characters(model, mergeable, token, error));
    }
    for (size_t i = 0; i < count; i++) {
        if (model->vocabulary.tokens[i].bytes != 0 && mergeable[i])
            SB_TRY(add_merges(model, mergeable, (int32_t)i, rank_of_score(scores[i] + 0.0f), error));
    }
    return SB_OK;
}

/* ---- the heap: least rank, then first place ---- */

static bool before(sb_bpe_candidate a, sb_bpe_candidate b) {
    return a.rank != b.rank ? a.rank < b.rank : a.place < b.place;
}

static bool push(sb_token_work *work, sb_bpe_candidate candidate) {
    if (work->heap_count == work->heap_capacity &&
        !sb_grow((void **)&work->heap, &work->heap_capacity, work->heap_count + 1, sizeof *work->heap))
        return false;
    size_t at = work->heap_count++;
    for (; at != 0 && before(candidate, work->heap[(at - 1) / 2]); at = (at - 1) / 2)
        work->heap[at] = work->heap[(at - 1) / 2];
    work->heap[at] = candidate;
    return true;
}

static sb_bpe_candidate pop(sb_token_work *work) {
    sb_bpe_candidate top = work->heap[0], last = work->heap[--work->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < work->heap_count; at = child) {
        if (child + 1 < work->heap_count && before(work->heap[child + 1], work->heap[child]))
            child++;
        if (!before(work->heap[child], last))
            break;
        work->heap[at] = work->heap[child];
    }
    work->heap[at] = last;
    return top;
}

/* ---- merging ---- */

static const sb_pair_entry *merge_at(const sb_token_model *model, const sb_bpe_symbol *symbols, int32_t place) {
    int32_t next = place >= 0 ? symbols[place].next : -1;
    if (next < 0 || symbols[place].id < 0 || symbols[next].id < 0)
        return NULL;
    return sb_pairs_find(&model->merges, (uint32_t)symbols[place].id, (uint32_t)symbols[next].id);
}

static bool propose(const sb_token_model *model, sb_token_work *work, int32_t place) {
    const sb_pair_entry *merge = merge_at(model, work->symbols, place);
    return merge == NULL || push(work, (sb_bpe_candidate){merge->first, place, merge->second});
}

static bool merge_all(const sb_token_model *model, sb_token_work *work, int32_t count) {
    sb_bpe_symbol *symbols = work->symbols;
    work->heap_count = 0;
    for (int32_t i = 0; i + 1 < count; i++) {
        if (!propose(model, work, i))
            return false;
    }
    while (work->heap_count != 0) {
        sb_bpe_candidate top = pop(work);
        sb_bpe_symbol *symbol = &symbols[top.place];
        const sb_pair_entry *merge = symbol->gone ? NULL : merge_at(model, symbols, top.place);
        if (merge == NULL || merge->second != top.merged)
            continue;
        int32_t next = symbol->next;
        symbols[next].gone = true;
        symbol->id = (int32_t)top.merged;
        symbol->next = symbols[next].next;
        if (symbol->next >= 0)
            symbols[symbol->next].previous = top.place;
        if (!propose(model, work, symbol->previous) || !propose(model, work, top.place))
            return false;
    }
    return true;
}

/* ---- encoding ---- */

static void add_symbol(sb_token_work *work, int32_t *count, int32_t id) {
    work->symbols[*count] = (sb_bpe_symbol){.id = id, .previous = *count - 1, .next = *count + 1};
    ++*count;
}

/* The character with what the tokenizer writes around parts of words. */
static sb_status decorate(const sb_token_model *model, sb_token_work *work, sb_span character, bool first, bool last,
                          sb_span *decorated, sb_error *error) {
    *decorated = character;
    if (model->prefix == NULL && model->suffix == NULL)
        return SB_OK;
    work->text.bytes = 0;
    if ((model->prefix != NULL && !first && !sb_text_append(&work->text, model->prefix, strlen(model->prefix))) ||
        !sb_text_append(&work->text, character.data, character.bytes) ||
        (model->suffix != NULL && last && !sb_text_append(&work->text, model->suffix, strlen(model->suffix))))
        return sb_fail_memory(error, character.bytes);
    *decorated = (sb_span){work->text.data, work->text.bytes};
    return SB_OK;
}

static int32_t find_symbol(const sb_token_model *model, sb_span text) {
    uint32_t point;
    if (text.bytes != 0 && text.bytes <= 2 && sb_point_read(text.data, &point) == text.bytes && point < 0x800)
        return model->short_symbols[point];
    int32_t number = sb_vocabulary_find(&model->vocabulary, text.data, text.bytes);
    return number >= 0 ? number : character_symbol(model, text);
}

static bool has_bytes(const sb_token_model *model, sb_span text) {
    if (!model->byte_fallback)
        return false;
    for (size_t i = 0; i < text.bytes; i++) {
        if (model->byte_tokens[(unsigned char)text.data[i]] < 0)
            return false;
    }
    return true;
}

/* Writes the symbols of a piece; there is room for one per byte, and for what the suffix adds. */
static sb_status write_symbols(const sb_token_model *model, sb_token_work *work, sb_span piece, int32_t *count,
                               sb_error *error) {
    int waiting = 0; /* an unknown character that the next may fuse with */
    *count = 0;
    for (size_t at = 0, bytes; at < piece.bytes; at += bytes) {
        bytes = sb_point_bytes(piece.data[at]);
        sb_span character;
        SB_TRY(decorate(model, work, (sb_span){piece.data + at, bytes}, at == 0, at + bytes == piece.bytes, &character,
                        error));
        int32_t id = find_symbol(model, character);
        if (id >= 0) {
            if (waiting != 0)
                add_symbol(work, count, model->unknown);
            waiting = 0;
            add_symbol(work, count, id);
        } else if (has_bytes(model, character)) {
            for (size_t i = 0; i < character.bytes; i++)
                add_symbol(work, count, model->byte_tokens[(unsigned char)character.data[i]]);
        } else if (model->unknown >= 0) {
            if (waiting != 0 && !model->fuse_unknown)
                add_symbol(work, count, model->unknown);
            waiting = 1;
        }
    }
    if (waiting != 0)
        add_symbol(work, count, model->unknown);
    if (*count != 0)
        work->symbols[*count - 1].next = -1;
    return SB_OK;
}

/* A character that is part of tokens and none itself, unmerged. */
static bool add_unmerged(const sb_token_model *model, int32_t symbol, sb_numbers *numbers) {
    sb_span character = model->characters.tokens[(size_t)symbol - model->vocabulary.count];
    if (!has_bytes(model, character))
        return model->unknown < 0 || sb_numbers_add(numbers, model->unknown);
    for (size_t i = 0; i < character.bytes; i++) {
        if (!sb_numbers_add(numbers, model->byte_tokens[(unsigned char)character.data[i]]))
            return false;
    }
    return true;
}

sb_status sb_bpe_encode(const sb_token_model *model, sb_token_work *work, sb_span piece, sb_numbers *numbers,
                        sb_error *error) {
    int32_t count, whole = model->ignore_merges ? sb_vocabulary_find(&model->vocabulary, piece.data, piece.bytes) : -1;
    if (whole >= 0)
        return sb_numbers_add(numbers, whole) ? SB_OK : sb_fail_memory(error, sizeof whole);
    size_t around =
        (model->prefix != NULL ? strlen(model->prefix) : 0) + (model->suffix != NULL ? strlen(model->suffix) : 0);
    if (piece.bytes > INT32_MAX / 2 / (around + 1))
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "a piece of text without a place to cut it has %zu bytes",
                       piece.bytes);
    size_t room = piece.bytes * (around + 1) + 1;
    if (room > work->symbol_capacity &&
        !sb_grow((void **)&work->symbols, &work->symbol_capacity, room, sizeof *work->symbols))
        return sb_fail_memory(error, room * sizeof *work->symbols);
    SB_TRY(write_symbols(model, work, piece, &count, error));
    if (!merge_all(model, work, count))
        return sb_fail_memory(error, work->heap_capacity * sizeof *work->heap);
    for (int32_t i = 0; i >= 0 && i < count; i = work->symbols[i].next) {
        int32_t id = work->symbols[i].id;
        bool added =
            (size_t)id < model->vocabulary.count ? sb_numbers_add(numbers, id) : add_unmerged(model, id, numbers);
        if (!added)
            return sb_fail_memory(error, sizeof id);
    }
    return SB_OK;
}
