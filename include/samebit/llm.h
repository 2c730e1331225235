/* Language models: their tokenizers.
 *
 * A tokenizer makes numbers of text and text of numbers, the same as the library with which its model was trained. It is read from what a
 * checkpoint brings: Hugging Face's tokenizer.json. Texts are UTF-8, with their length and without a NUL behind it where none is mentioned. */
#ifndef SAMEBIT_LLM_H
#define SAMEBIT_LLM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samebit/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A tokenizer. It does not change, and any number of threads may use it at once. */
typedef struct sb_tokenizer sb_tokenizer;

/** Opens the tokenizer of `path`: a folder with a tokenizer.json, or such a file. `*tokenizer` is the caller's, to end by
 * sb_tokenizer_release. Errors: IO; INVALID_FILE; UNSUPPORTED, which names the part that Samebit has not; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tokenizer_open(const char *path, sb_tokenizer **tokenizer, sb_error *error);
/** The same for the bytes of a tokenizer.json, which are not needed afterwards; `name` stands for it in messages. */
SB_API SB_MUST_CHECK sb_status sb_tokenizer_open_memory(const void *bytes, size_t size, const char *name, sb_tokenizer **tokenizer,
                                                        sb_error *error);
/** Ends the use of a tokenizer. NULL is allowed. */
SB_API void sb_tokenizer_release(sb_tokenizer *tokenizer);

/** How a text is encoded. Start from SB_ENCODE_DEFAULT. */
typedef struct sb_encode_options {
    size_t struct_bytes; /**< sizeof(sb_encode_options): lets the struct grow */
    bool add_special;    /**< with what the tokenizer puts around a text, such as a token for its beginning */
    bool plain;          /**< special tokens that are written in the text are text: for what a stranger wrote */
} sb_encode_options;

#define SB_ENCODE_DEFAULT                                                                                                  \
    { .struct_bytes = sizeof(sb_encode_options), .add_special = true }

/** Encodes `bytes` bytes of UTF-8. `options` may be NULL. `*tokens` is the caller's, to free by sb_llm_free; it is not NULL where there are
 * none. Takes O(n log n) of the text's length. Errors: INVALID_ARGUMENT, for what is not UTF-8 (which says where) or has no token; LIMIT,
 * where the tokenizer's own expression goes back over the text too often; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tokenizer_encode(const sb_tokenizer *tokenizer, const char *text, size_t bytes,
                                                   const sb_encode_options *options, int32_t **tokens, size_t *count, sb_error *error);

/** Decodes tokens; without the special ones where `skip_special`. A number without a token is nothing. Bytes that make no character are
 * U+FFFD. `*text` is the caller's, to free by sb_llm_free; a NUL follows its `*bytes` bytes. Errors: LIMIT; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tokenizer_decode(const sb_tokenizer *tokenizer, const int32_t *tokens, size_t count, bool skip_special,
                                                   char **text, size_t *bytes, sb_error *error);

/** Decoding token by token. All that it gives, one behind the other, is what sb_tokenizer_decode gives for all tokens, and each part of it
 * consists of whole characters: what the next token can still change waits. One thread at a time. */
typedef struct sb_decode_stream sb_decode_stream;

/** Begins a stream; the tokenizer has to outlive it. End it by sb_decode_stream_destroy. */
SB_API SB_MUST_CHECK sb_status sb_decode_stream_create(const sb_tokenizer *tokenizer, bool skip_special, sb_decode_stream **stream,
                                                       sb_error *error);
/** Takes the next token. `*text` is the stream's until its next call, and may be empty. Errors: LIMIT; OUT_OF_MEMORY, after either of which
 * the stream can only be destroyed. */
SB_API SB_MUST_CHECK sb_status sb_decode_stream_push(sb_decode_stream *stream, int32_t token, const char **text, size_t *bytes,
                                                     sb_error *error);
/** Gives what still waits. No call but to destroy may follow. */
SB_API SB_MUST_CHECK sb_status sb_decode_stream_finish(sb_decode_stream *stream, const char **text, size_t *bytes, sb_error *error);
/** NULL is allowed. */
SB_API void sb_decode_stream_destroy(sb_decode_stream *stream);

/** One more than the highest number of a token. */
SB_API int32_t sb_tokenizer_vocabulary(const sb_tokenizer *tokenizer);
/** A token as the vocabulary writes it, which is not what it decodes to; the tokenizer's, with a NUL behind its `*bytes` bytes. NULL: there
 * is no such token. */
SB_API const char *sb_tokenizer_token(const sb_tokenizer *tokenizer, int32_t token, size_t *bytes);
/** The number of a token that is written so, or -1. */
SB_API int32_t sb_tokenizer_find(const sb_tokenizer *tokenizer, const char *text, size_t bytes);
/** Whether the token is special: a mark such as <|end|>, which is no part of a text. */
SB_API bool sb_tokenizer_is_special(const sb_tokenizer *tokenizer, int32_t token);

/** Frees what a function of this header says is to be freed by it. NULL is allowed. */
SB_API void sb_llm_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif
