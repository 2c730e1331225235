#include "tokenizer/tokenizer.h"

#include <string.h>

#include "base/allocation.h"
#include "tokenizer/unicode.h"

sb_tokenizer *sb_tokenizer_new(void) {
    sb_tokenizer *tokenizer = sb_allocate_array(1, sizeof *tokenizer);
    if (tokenizer != NULL)
        tokenizer->model.unknown = -1;
    return tokenizer;
}

void sb_tokenizer_release(sb_tokenizer *tokenizer) {
    if (tokenizer == NULL)
        return;
    sb_added_tokens_clear(&tokenizer->added);
    sb_normalizer_clear(&tokenizer->normalizer);
    sb_splitter_clear(&tokenizer->splitter);
    sb_token_model_clear(&tokenizer->model);
    sb_free(tokenizer->before.items);
    sb_free(tokenizer->after.items);
    sb_decoder_clear(&tokenizer->decoder);
    sb_token_trie_free(atomic_load(&tokenizer->trie));
    sb_free(tokenizer);
}

/* Special tokens come first: of two with one text, such a one is found. */
static sb_status make_searches(sb_tokenizer *tokenizer, bool special, sb_text *normalized, sb_text *spare,
                               sb_error *error) {
    sb_added_tokens *added = &tokenizer->added;
    for (size_t i = 0; i < added->count; i++) {
        const sb_added_token *token = &added->items[i];
        sb_span text = {token->text, token->bytes};
        if (token->special != special)
            continue;
        if (token->normalized) {
            SB_TRY(sb_normalize(&tokenizer->normalizer, text, normalized, spare, error));
            text = (sb_span){normalized->data, normalized->bytes};
        }
        SB_TRY(sb_added_search_put(token->normalized ? &added->in_normalized : &added->in_raw, i, text, error));
    }
    return SB_OK;
}

sb_status sb_tokenizer_finish(sb_tokenizer *tokenizer, sb_error *error) {
    sb_text normalized = {0}, spare = {0};
    sb_status status = sb_token_model_finish(&tokenizer->model, error);
    if (status == SB_OK)
        status = sb_decoder_finish(&tokenizer->decoder, error);
    if (status == SB_OK)
        status = make_searches(tokenizer, true, &normalized, &spare, error);
    if (status == SB_OK)
        status = make_searches(tokenizer, false, &normalized, &spare, error);
    sb_text_clear(&normalized);
    sb_text_clear(&spare);
    return status;
}

/* ---- encoding ---- */

typedef struct encoding {
    const sb_tokenizer *tokenizer;
    bool special; /* special tokens are looked for */
    sb_text normalized, spare;
    sb_split_work split;
    sb_token_work work;
    sb_numbers numbers;
    sb_error *error;
} encoding;

/* Text without any added token. */
static sb_status encode_plain(encoding *e, sb_span text, bool first) {
    if (text.bytes == 0)
        return SB_OK;
    SB_TRY(sb_split(&e->tokenizer->splitter, text, first, &e->split, e->error));
    for (size_t i = 0; i < e->split.pieces.count; i++) {
        const sb_piece *piece = &e->split.pieces.items[i];
        sb_span span = {e->split.text.data + piece->begin, piece->end - piece->begin};
        SB_TRY(sb_token_model_encode(&e->tokenizer->model, &e->work, span, &e->numbers, e->error));
    }
    return SB_OK;
}

/* Text in which the tokens of a search are found; `rest` gets what lies between them. */
static sb_status encode_around(encoding *e, const sb_added_search *search, sb_span text, bool first,
                               sb_status (*rest)(encoding *, sb_span, bool)) {
    size_t done = 0, at = 0, begin, end;
    const sb_added_token *token;
    while (sb_added_search_next(&e->tokenizer->added, search, text, e->special, done, &at, &begin, &end, &token)) {
        if (begin > done)
            SB_TRY(rest(e, (sb_span){text.data + done, begin - done}, first && done == 0));
        if (!sb_numbers_add(&e->numbers, token->number))
            return sb_fail_memory(e->error, sizeof(int64_t));
        done = end;
    }
    return done < text.bytes ? rest(e, (sb_span){text.data + done, text.bytes - done}, first && done == 0) : SB_OK;
}

static sb_status encode_raw(encoding *e, sb_span text, bool first) {
    SB_TRY(sb_normalize(&e->tokenizer->normalizer, text, &e->normalized, &e->spare, e->error));
    return encode_around(e, &e->tokenizer->added.in_normalized, (sb_span){e->normalized.data, e->normalized.bytes},
                         first, encode_plain);
}

static sb_status add_all(encoding *e, const sb_numbers *numbers) {
    for (size_t i = 0; i < numbers->count; i++) {
        if (!sb_numbers_add(&e->numbers, numbers->items[i]))
            return sb_fail_memory(e->error, sizeof(int64_t));
    }
    return SB_OK;
}

static sb_status encode(encoding *e, sb_span text, bool bare) {
    size_t bad;
    bool unfinished;
    size_t valid = sb_utf8_valid(text.data, text.bytes, &bad, &unfinished);
    if (valid != text.bytes)
        return sb_fail(e->error, SB_ERROR_INVALID_ARGUMENT, "the text is not UTF-8 at byte %zu", valid);
    sb_token_work_remember(&e->work, text.bytes);
    if (!bare)
        SB_TRY(add_all(e, &e->tokenizer->before));
    SB_TRY(encode_around(e, &e->tokenizer->added.in_raw, text, true, encode_raw));
    return bare ? SB_OK : add_all(e, &e->tokenizer->after);
}

sb_status sb_tokenizer_encode(const sb_tokenizer *tokenizer, const char *text, size_t bytes,
                              const sb_encode_options *options, int64_t **tokens, size_t *count, sb_error *error) {
    static const sb_encode_options standard = SB_ENCODE_DEFAULT;
    if (options == NULL)
        options = &standard;
    if (options->struct_bytes != sizeof *options)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "sb_encode_options: struct_bytes is not set");
    encoding e = {.tokenizer = tokenizer, .special = !options->plain, .error = error};
    sb_status status = encode(&e, (sb_span){text, bytes}, options->bare);
    if (status == SB_OK && e.numbers.items == NULL) {
        e.numbers.items = sb_allocate(0);
        status = e.numbers.items != NULL ? SB_OK : sb_fail_memory(error, 0);
    }
    if (status == SB_OK) {
        *tokens = e.numbers.items;
        *count = e.numbers.count;
    } else
        sb_free(e.numbers.items);
    sb_text_clear(&e.normalized);
    sb_text_clear(&e.spare);
    sb_split_work_clear(&e.split);
    sb_token_work_clear(&e.work);
    return status;
}

/* ---- decoding ---- */

struct sb_decode_stream {
    const sb_tokenizer *tokenizer;
    bool skip_special;
    sb_decoding decoding;
};

/* The text of a token, an added one's first. False: there is no such token. */
static bool token_text(const sb_tokenizer *tokenizer, int64_t number, sb_span *text) {
    const sb_added_token *added = sb_added_tokens_find(&tokenizer->added, number);
    if (added != NULL)
        *text = (sb_span){added->text, added->bytes};
    else if (sb_vocabulary_has(&tokenizer->model.vocabulary, number))
        *text = tokenizer->model.vocabulary.tokens[number];
    else
        return false;
    return true;
}

static sb_status push_token(const sb_tokenizer *tokenizer, bool skip_special, sb_decoding *decoding, int64_t number,
                            sb_error *error) {
    sb_span text;
    if (!token_text(tokenizer, number, &text) || (skip_special && sb_tokenizer_is_special(tokenizer, number)))
        return SB_OK;
    return sb_decoding_push(decoding, text, error);
}

sb_status sb_tokenizer_decode(const sb_tokenizer *tokenizer, const int64_t *tokens, size_t count, bool skip_special,
                              char **text, size_t *bytes, sb_error *error) {
    sb_decoding decoding;
    sb_status status = sb_decoding_begin(&decoding, &tokenizer->decoder, error);
    for (size_t i = 0; i < count && status == SB_OK; i++)
        status = push_token(tokenizer, skip_special, &decoding, tokens[i], error);
    if (status == SB_OK)
        status = sb_decoding_finish(&decoding, error);
    if (status == SB_OK && !sb_text_append(&decoding.out, "", 1))
        status = sb_fail_memory(error, decoding.out.bytes + 1);
    if (status == SB_OK) {
        *text = decoding.out.data;
        *bytes = decoding.out.bytes - 1;
        decoding.out = (sb_text){0};
    }
    sb_decoding_end(&decoding);
    return status;
}

sb_status sb_decode_stream_create(const sb_tokenizer *tokenizer, bool skip_special, sb_decode_stream **stream,
                                  sb_error *error) {
    sb_decode_stream *made = sb_allocate_array(1, sizeof *made);
    if (made == NULL)
        return sb_fail_memory(error, sizeof *made);
    made->tokenizer = tokenizer;
    made->skip_special = skip_special;
    sb_status status = sb_decoding_begin(&made->decoding, &tokenizer->decoder, error);
    if (status == SB_OK)
        *stream = made;
    else
        sb_free(made);
    return status;
}

static void show(sb_decode_stream *stream, const char **text, size_t *bytes) {
    *text = stream->decoding.out.bytes != 0 ? stream->decoding.out.data : "";
    *bytes = stream->decoding.out.bytes;
}

sb_status sb_decode_stream_push(sb_decode_stream *stream, int64_t token, const char **text, size_t *bytes,
                                sb_error *error) {
    stream->decoding.out.bytes = 0;
    SB_TRY(push_token(stream->tokenizer, stream->skip_special, &stream->decoding, token, error));
    show(stream, text, bytes);
    return SB_OK;
}

sb_status sb_decode_stream_finish(sb_decode_stream *stream, const char **text, size_t *bytes, sb_error *error) {
    stream->decoding.out.bytes = 0;
    SB_TRY(sb_decoding_finish(&stream->decoding, error));
    show(stream, text, bytes);
    return SB_OK;
}

void sb_decode_stream_destroy(sb_decode_stream *stream) {
    if (stream == NULL)
        return;
    sb_decoding_end(&stream->decoding);
    sb_free(stream);
}

/* ---- asking ---- */

/* Of two threads that make it at once, one throws its own away. */
sb_status sb_tokenizer_trie(const sb_tokenizer *tokenizer, const sb_token_trie **trie, sb_error *error) {
    _Atomic(sb_token_trie *) *place = (_Atomic(sb_token_trie *) *)(uintptr_t)&tokenizer->trie;
    sb_token_trie *found = atomic_load(place), *made;
    if (found == NULL) {
        SB_TRY(sb_token_trie_create(tokenizer, &made, error));
        if (atomic_compare_exchange_strong(place, &found, made))
            found = made;
        else
            sb_token_trie_free(made);
    }
    *trie = found;
    return SB_OK;
}

int64_t sb_tokenizer_vocabulary(const sb_tokenizer *tokenizer) {
    int64_t count = (int64_t)tokenizer->model.vocabulary.count;
    for (size_t i = 0; i < tokenizer->added.count; i++) {
        if (tokenizer->added.items[i].number >= count)
            count = tokenizer->added.items[i].number + 1;
    }
    return count;
}

const char *sb_tokenizer_token(const sb_tokenizer *tokenizer, int64_t token, size_t *bytes) {
    sb_span text;
    if (!token_text(tokenizer, token, &text))
        return NULL;
    *bytes = text.bytes;
    return text.data;
}

int64_t sb_tokenizer_find(const sb_tokenizer *tokenizer, const char *text, size_t bytes) {
    for (size_t i = 0; i < tokenizer->added.count; i++) {
        const sb_added_token *token = &tokenizer->added.items[i];
        if (sb_span_equal((sb_span){token->text, token->bytes}, (sb_span){text, bytes}))
            return token->number;
    }
    return sb_vocabulary_find(&tokenizer->model.vocabulary, text, bytes);
}

bool sb_tokenizer_is_special(const sb_tokenizer *tokenizer, int64_t token) {
    const sb_added_token *added = sb_added_tokens_find(&tokenizer->added, token);
    return added != NULL && added->special;
}

void sb_llm_free(void *memory) {
    sb_free(memory);
}
