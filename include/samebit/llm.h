/* Language models: checkpoints, tokenizers, sequences of tokens, logits, sampling.
 *
 *     sb_llm_load("Llama-3.2-1B", NULL, &llm, &error);
 *     sb_llm_session_create(llm, NULL, &session, &error);
 *     sb_llm_generation generation = SB_LLM_GENERATION_DEFAULT;
 *     generation.limit = 20;
 *     generation.on_token = print_token;
 *     sb_llm_generate(session, prompt_count, prompt, &generation, NULL, &error);
 *
 * A logit's bits are a function of the checkpoint, the dtype, the tokens before it and the declared context (where a rule
 * for positions goes by that). They do not depend on the pieces in which tokens were handed over, the number of threads, the
 * instruction set or the device. docs/llm.md says more. */
#ifndef SAMEBIT_LLM_H
#define SAMEBIT_LLM_H

#include <samebit/digest.h>
#include <samebit/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- models ---- */

typedef struct sb_llm sb_llm;

/** How a checkpoint is loaded. Start from SB_LLM_OPTIONS_DEFAULT. */
typedef struct sb_llm_options {
    size_t struct_bytes; /**< sizeof(sb_llm_options): lets the struct grow */
    /** Of weights, activations and cache: SB_F32, SB_F16 or SB_BF16; SB_DTYPE_NONE: that of most of the checkpoint's
     * matrices, and bf16 where they are quantised. */
    sb_dtype dtype;
    /** The most positions that a sequence may have, for which its cache has room; 0: what the checkpoint declares, or 4096
     * where that is more. */
    int64_t context;
    const sb_model_options *model; /**< NULL: the defaults */
    /** The model can give and verify receipts: its files are digested, and final hidden states come to the host beside
     * logits. Changes no bit. */
    bool receipts;
} sb_llm_options;

#define SB_LLM_OPTIONS_DEFAULT                                                                                         \
    { sizeof(sb_llm_options), SB_DTYPE_NONE, 0, NULL, false }

/** Loads a checkpoint: a folder with config.json and safetensors files, or a GGUF file (of a split one the first).
 *
 * Files are mapped, and must not be changed while the model is in use. Every extent, dtype and place in them is checked
 * against the configuration before anything runs. `options` may be NULL. The caller releases the model. Errors: IO;
 * INVALID_FILE, with file, tensor and byte offset; UNSUPPORTED for families, formats and settings that are not known, with
 * those that are; INVALID_ARGUMENT for the options; those of sb_builder_build. */
SB_API SB_MUST_CHECK sb_status sb_llm_load(const char *path, const sb_llm_options *options, sb_llm **llm,
                                           sb_error *error);
/** Drops the caller's reference; sessions keep a model alive. NULL is allowed. */
SB_API void sb_llm_release(sb_llm *llm);

/** What a language model is. Pointers are the model's. */
typedef struct sb_llm_description {
    const char *family; /**< "Llama", "Gemma 3", … */
    const char *format; /**< "safetensors" or "GGUF" */
    sb_dtype dtype;     /**< that it is computed in */
    int64_t layers, hidden, heads, key_heads, head_width, intermediate, vocabulary;
    int64_t window;             /**< keys that layers with a window see; 0: none has one */
    int64_t windowed_layers;    /**< how many have */
    int64_t declared_positions; /**< the longest context that the checkpoint declares */
    int64_t context;            /**< the longest that this model was loaded for */
    int64_t parameters;         /**< numbers in all tensors of the checkpoint */
    int64_t weight_bytes;       /**< that they take in its files */
    int64_t cache_bytes;        /**< that the cache of one sequence takes */
    int64_t begin;              /**< the token that texts begin with; -1: none is named */
    int stop_count;
    const int64_t *stops; /**< tokens that end a text */
} sb_llm_description;

SB_API const sb_llm_description *sb_llm_describe(const sb_llm *llm);
/** The model with the entry graph "step", for whoever wants to look at it. Borrowed. */
SB_API sb_model *sb_llm_model(const sb_llm *llm);

/* ---- sequences ---- */

/** One sequence: its cache and how many positions that has. For one thread at a time. */
typedef struct sb_llm_session sb_llm_session;

/** Creates an empty sequence, which keeps the model alive. Of `options` (NULL: the defaults) `entry`, `state` and
 * capacities have to be left as they are: INVALID_ARGUMENT. The caller destroys it. */
SB_API SB_MUST_CHECK sb_status sb_llm_session_create(sb_llm *llm, const sb_session_options *options,
                                                     sb_llm_session **session, sb_error *error);
SB_API void sb_llm_session_destroy(sb_llm_session *session);
/** Ends the run in progress, or the next one: sb_session_interrupt. */
SB_API void sb_llm_session_interrupt(sb_llm_session *session);
/** Takes back an interrupt that no run has reported yet: sb_session_clear_interrupt. */
SB_API void sb_llm_session_clear_interrupt(sb_llm_session *session);

/** How many positions the sequence has. */
SB_API int64_t sb_llm_session_length(const sb_llm_session *session);
/** Forgets all positions from `length` on, which is at most what there are (INVALID_ARGUMENT). 0 begins anew. */
SB_API SB_MUST_CHECK sb_status sb_llm_session_trim(sb_llm_session *session, int64_t length, sb_error *error);

/** Puts `count` tokens behind the sequence, at least one. Of those whose places in `tokens` are in `wanted`, `*logits` is
 * the f32 tensor [1, wanted_count, vocabulary] (none wanted: no rows), which the caller releases.
 *
 * On failure the sequence is as long as it was. Errors: INVALID_ARGUMENT for tokens and places that do not exist; LIMIT when
 * the context is full; those of sb_session_run. */
SB_API SB_MUST_CHECK sb_status sb_llm_step(sb_llm_session *session, int64_t count, const int64_t *tokens,
                                           int64_t wanted_count, const int64_t *wanted, sb_tensor **logits,
                                           sb_error *error);

/* ---- choosing tokens: docs/numerics.md, section 11 ---- */

/** How a token is chosen. Start from SB_LLM_SAMPLING_DEFAULT, which is greedy. */
typedef struct sb_llm_sampling {
    size_t struct_bytes; /**< sizeof(sb_llm_sampling): lets the struct grow */
    float temperature;   /**< 0: greedy, and nothing below is looked at; else from 2^-20 to 2^20 */
    int64_t top_k;       /**< so many of the largest; 0: all */
    float top_p;         /**< the fewest of the largest whose probabilities are at least this much; 1: all. Above 0 */
    float min_p;         /**< those that have at least this share of the largest one's; 0: all. At most 1 */
    uint64_t seed;
    uint32_t request; /**< which of several requests with one seed */
} sb_llm_sampling;

#define SB_LLM_SAMPLING_DEFAULT                                                                                        \
    { sizeof(sb_llm_sampling), 0, 0, 1, 0, 0, 0 }

/** Chooses the token for `position` from its logits. Errors: INVALID_ARGUMENT for settings out of range, and for logits of
 * which one is NaN or +∞, or none above −∞, with the token; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_sample(const float *logits, int64_t vocabulary, const sb_llm_sampling *sampling,
                                             int64_t position, int64_t *token, sb_error *error);

/** log softmax(logits)[token], as docs/logp.md has it with a temperature of 1. NaN and −∞ as there; NaN for a token that
 * does not exist. */
SB_API float sb_llm_logp(const float *logits, int64_t vocabulary, int64_t token);

/* ---- generating ---- */

/** What a generation was made of and came to: below. */
typedef struct sb_llm_receipt sb_llm_receipt;

/** A token of the sequence, as sb_llm_generate comes to it. */
typedef struct sb_llm_token {
    int64_t position; /**< in the sequence */
    int64_t token;
    bool given;          /**< it is one of the prompt's (score_prompt) */
    bool stops;          /**< it is one that ends the text; it is not put behind the sequence */
    bool has_logp;       /**< whether `logp` is there: always but for a prompt's first token */
    float logp;          /**< its log-probability under the logits of the position before */
    const float *logits; /**< that it was chosen from, or scored by; vocabulary of them, until the call returns */
} sb_llm_token;

/** What is told of each token. A status other than SB_OK ends the generation with it; *stop = true ends it well. */
typedef sb_status sb_llm_token_function(void *context, const sb_llm_token *token, bool *stop, sb_error *error);

/** What is to be generated. Start from SB_LLM_GENERATION_DEFAULT. */
typedef struct sb_llm_generation {
    size_t struct_bytes; /**< sizeof(sb_llm_generation): lets the struct grow */
    int64_t limit;       /**< the most new tokens */
    int64_t chunk;       /**< the most tokens of the prompt in one run; 0: 512. Changes no bit */
    sb_llm_sampling sampling;
    bool ignore_stops;               /**< goes on behind tokens that end a text */
    bool score_prompt;               /**< on_token is told of the prompt's tokens as well */
    sb_llm_token_function *on_token; /**< NULL: nobody wants to know */
    void *context;
    sb_llm_receipt **receipt; /**< gets a receipt on success, which the caller releases; NULL: nobody wants one */
} sb_llm_generation;

#define SB_LLM_GENERATION_DEFAULT                                                                                      \
    { sizeof(sb_llm_generation), 128, 0, SB_LLM_SAMPLING_DEFAULT, false, false, NULL, NULL, NULL }

/** Why a generation ended. */
typedef enum sb_llm_end {
    SB_LLM_END_LIMIT,   /**< as many tokens as were asked for */
    SB_LLM_END_STOP,    /**< a token that ends texts */
    SB_LLM_END_CONTEXT, /**< the context is full */
    SB_LLM_END_CALLER   /**< on_token said so */
} sb_llm_end;

/** What came of it. */
typedef struct sb_llm_result {
    int64_t prompt_tokens, new_tokens;
    sb_llm_end end;
    double prompt_ns, first_token_ns, decode_ns; /**< up to the prompt's last run; to the first token; from there */
    /** SHA-256 over the tokens told of, and the logits (f32, NaNs canonical) that each came from. */
    char digest[SB_DIGEST_TEXT_BYTES];
} sb_llm_result;

/** Puts the prompt (at least one token) behind the sequence, and then one token after the other. The last new token is not
 * put behind it: it is the first of whatever comes next. `result` may be NULL; it is filled on success. Errors: those of
 * sb_llm_step and sb_llm_sample; INVALID_ARGUMENT for a receipt of a model that was loaded without, or of a sequence that is
 * not empty. */
SB_API SB_MUST_CHECK sb_status sb_llm_generate(sb_llm_session *session, int64_t count, const int64_t *tokens,
                                               const sb_llm_generation *generation, sb_llm_result *result,
                                               sb_error *error);

/* ---- scoring: docs/llm.md ---- */

/** What is wanted of tokens that are given. Start from SB_LLM_SCORING_DEFAULT. Arrays are the caller's; row r of them is of
 * token first + r. */
typedef struct sb_llm_scoring {
    size_t struct_bytes; /**< sizeof(sb_llm_scoring): lets the struct grow */
    int64_t chunk; /**< the most tokens in one run, up to 512; 0: as many as have 128 MiB of logits. Changes no bit */
    int64_t first; /**< the first token that is wanted; those before it only run */
    float *logps;  /**< [count - first]: each token's log-probability under the logits of the position before */
    int64_t top;   /**< how many of the likeliest tokens are wanted beside each; 0: none */
    int64_t *top_tokens; /**< [count - first, top]: in the order of docs/numerics.md, section 11 */
    float *top_logps;    /**< [count - first, top] */
} sb_llm_scoring;

#define SB_LLM_SCORING_DEFAULT                                                                                         \
    { sizeof(sb_llm_scoring), 0, 0, NULL, 0, NULL, NULL }

/** Puts `count` tokens behind the sequence, at least one, and says what the model made of them. Token 0 has no log-probability
 * (NaN), nor likeliest tokens (-1): in front of a sequence is nothing, and the logits of the position before `count` tokens
 * that continue one were those of another call. A row of logits with a NaN has log-probabilities of NaN.
 *
 * On failure the sequence is as long as it was, and the arrays hold anything. Errors: those of sb_llm_step; INVALID_ARGUMENT
 * for settings out of range. */
SB_API SB_MUST_CHECK sb_status sb_llm_score(sb_llm_session *session, int64_t count, const int64_t *tokens,
                                            const sb_llm_scoring *scoring, sb_error *error);

/** How a text is cut into windows, each of which is run by itself: docs/llm.md. */
typedef enum sb_llm_windows {
    SB_LLM_WINDOWS_FULL, /**< every token is scored once, with at least window - stride positions before it where the text
                                  has so many */
    SB_LLM_WINDOWS_LLAMA_CPP /**< llama.cpp's: one behind the other, of each the second half is scored */
} sb_llm_windows;

/** What a perplexity came to; or, while it is computed, of the windows so far. */
typedef struct sb_llm_perplexity_result {
    int64_t windows, of_windows; /**< that were run; that there are */
    int64_t tokens, scored;      /**< of the text; that count */
    double mean; /**< negative log-probability of a token: the sum in f64, in the order of the text, over `scored` */
    double perplexity; /**< e^mean */
    double error;      /**< the perplexity's standard error, as if tokens were independent; NaN for one token */
    /** SHA-256 over the ids of the scored tokens and their log-probabilities, in the order of the text. */
    char digest[SB_DIGEST_TEXT_BYTES];
} sb_llm_perplexity_result;

/** What is told behind each window, without the digest. A status other than SB_OK ends the computation with it. */
typedef sb_status sb_llm_window_function(void *context, const sb_llm_perplexity_result *so_far, sb_error *error);

/** How a perplexity is computed. Start from SB_LLM_PERPLEXITY_DEFAULT. */
typedef struct sb_llm_perplexity {
    size_t struct_bytes; /**< sizeof(sb_llm_perplexity): lets the struct grow */
    sb_llm_windows windows;
    int64_t
        window; /**< the most positions of a window, from 2 to the model's context; 0: 512, or the context where that is less */
    int64_t stride; /**< of full windows, how far the next one's end is, from 1 to window - 1; 0: window / 2 */
    int64_t begin;  /**< the token that stands before each window; -1: none */
    int64_t limit;  /**< run so many windows at most; 0: all */
    int64_t chunk;  /**< as in sb_llm_scoring */
    sb_llm_window_function *on_window; /**< NULL: nobody wants to know */
    void *context;
} sb_llm_perplexity;

#define SB_LLM_PERPLEXITY_DEFAULT                                                                                      \
    { sizeof(sb_llm_perplexity), SB_LLM_WINDOWS_FULL, 0, 0, -1, 0, 0, NULL, NULL }

/** The perplexity of a text, of which `tokens` are those of the text itself, without the one that texts begin with. The
 * session's sequence is forgotten, before and afterwards. Errors: those of sb_llm_score; INVALID_ARGUMENT for a text that has
 * no window. */
SB_API SB_MUST_CHECK sb_status sb_llm_measure_perplexity(sb_llm_session *session, int64_t count, const int64_t *tokens,
                                                         const sb_llm_perplexity *how, sb_llm_perplexity_result *result,
                                                         sb_error *error);

/* ---- tokenizers ----
 *
 * A tokenizer makes token ids of text and text of token ids, the same ones as the library with which its model was trained.
 * Texts are UTF-8 of a given length; none needs a NUL behind it. */

/** A tokenizer. It never changes: any number of threads may use it at once. */
typedef struct sb_tokenizer sb_tokenizer;

/** Opens the tokenizer of a checkpoint: of a folder with tokenizer.json or tokenizer.model, of such a file, or of a GGUF file
 * (of a split one the first). Nothing of the file is needed afterwards.
 *
 * The caller releases it. Errors: IO; INVALID_FILE, which names the part that is wrong; UNSUPPORTED, which names the part
 * that is not known here, and those that are; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tokenizer_open(const char *path, sb_tokenizer **tokenizer, sb_error *error);
/** The same from the bytes of a tokenizer.json, which are not needed afterwards. `name` stands for them in messages; NULL:
 * "tokenizer.json". */
SB_API SB_MUST_CHECK sb_status sb_tokenizer_open_memory(const void *bytes, size_t size, const char *name,
                                                        sb_tokenizer **tokenizer, sb_error *error);
/** Frees it; streams of it must be gone. NULL is allowed. */
SB_API void sb_tokenizer_release(sb_tokenizer *tokenizer);

/** How a text is encoded. Start from SB_ENCODE_DEFAULT. */
typedef struct sb_encode_options {
    size_t struct_bytes; /**< sizeof(sb_encode_options): lets the struct grow */
    bool bare;           /**< without what the tokenizer puts around a text, such as the token that texts begin with */
    bool plain;          /**< special tokens that are written in the text are text too: for what strangers wrote */
} sb_encode_options;

#define SB_ENCODE_DEFAULT                                                                                              \
    { sizeof(sb_encode_options), false, false }

/** Encodes `bytes` bytes of UTF-8. `options` may be NULL. The caller frees `*tokens` by sb_llm_free; it is not NULL where
 * `*count` is 0.
 *
 * Takes O(n log n) of the text's length, but for tokenizers that bring a regular expression of their own, whose matches may
 * each take a fixed number of steps. Errors: INVALID_ARGUMENT for a text that is not UTF-8, with the byte, and for one that
 * the vocabulary cannot say; LIMIT for a match of more steps; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tokenizer_encode(const sb_tokenizer *tokenizer, const char *text, size_t bytes,
                                                   const sb_encode_options *options, int64_t **tokens, size_t *count,
                                                   sb_error *error);

/** Decodes tokens, without the special ones where `skip_special`. Ids that no token has are left out. Bytes that make no
 * character come out as U+FFFD, so that the text is UTF-8. The caller frees `*text` by sb_llm_free; a NUL stands behind its
 * `*bytes` bytes. Errors: LIMIT, as for encoding; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_tokenizer_decode(const sb_tokenizer *tokenizer, const int64_t *tokens, size_t count,
                                                   bool skip_special, char **text, size_t *bytes, sb_error *error);

/** Decoding token by token. What it gives, one behind the other, is what sb_tokenizer_decode gives for all the tokens, and
 * each part of it is whole characters: what the next token can still change waits. For one thread at a time. */
typedef struct sb_decode_stream sb_decode_stream;

/** Begins a stream, which the tokenizer must outlive. The caller destroys it. Errors: OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_decode_stream_create(const sb_tokenizer *tokenizer, bool skip_special,
                                                       sb_decode_stream **stream, sb_error *error);
/** Takes the next token. `*text`, of `*bytes` bytes and possibly none, is the stream's until its next call. Errors: LIMIT;
 * OUT_OF_MEMORY. After either the stream can only be destroyed. */
SB_API SB_MUST_CHECK sb_status sb_decode_stream_push(sb_decode_stream *stream, int64_t token, const char **text,
                                                     size_t *bytes, sb_error *error);
/** Gives what still waits, as sb_decode_stream_push. Afterwards the stream can only be destroyed. */
SB_API SB_MUST_CHECK sb_status sb_decode_stream_finish(sb_decode_stream *stream, const char **text, size_t *bytes,
                                                       sb_error *error);
/** NULL is allowed. */
SB_API void sb_decode_stream_destroy(sb_decode_stream *stream);

/** One more than the highest id of a token. Models may have more rows than that. */
SB_API int64_t sb_tokenizer_vocabulary(const sb_tokenizer *tokenizer);
/** A token as the vocabulary writes it, which is not what it decodes to. The tokenizer's, with a NUL behind its `*bytes`
 * bytes; NULL where no token has this id. */
SB_API const char *sb_tokenizer_token(const sb_tokenizer *tokenizer, int64_t token, size_t *bytes);
/** The id of the token that the vocabulary writes so; -1: there is none. */
SB_API int64_t sb_tokenizer_find(const sb_tokenizer *tokenizer, const char *text, size_t bytes);
/** Whether a token is special: a mark such as <|end|>, which is no part of a text. */
SB_API bool sb_tokenizer_is_special(const sb_tokenizer *tokenizer, int64_t token);

/** Frees what a function of this header says is to be freed by it. NULL is allowed. */
SB_API void sb_llm_free(void *memory);

/* ---- chat templates ---- */

/** What writes a conversation as the text that a model was trained on: a template in the part of Jinja that docs/llm.md
 * describes. It is not changed by being rendered, which any number of threads may do at a time. */
typedef struct sb_chat_template sb_chat_template;

/** A date and a time of day, for templates that write one. */
typedef struct sb_llm_date {
    int year, month, day; /**< 1000 to 9999, from 1, from 1 */
    int hour, minute, second;
} sb_llm_date;

/** Parses a template, `bytes` of UTF-8 that are copied. The caller frees it. Errors: INVALID_FILE for what is no template;
 * UNSUPPORTED, with the name and the line, for a statement, filter or test that is not understood; LIMIT; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_chat_template_create(const char *source, size_t bytes, sb_chat_template **result,
                                                       sb_error *error);
/** The template of a checkpoint: of a folder chat_template.jinja, or "chat_template" in tokenizer_config.json, of several
 * named ones "default"; of a GGUF file tokenizer.chat_template. The caller frees it. Weights are not looked at. Errors: as
 * above; IO; UNSUPPORTED where the checkpoint has none. */
SB_API SB_MUST_CHECK sb_status sb_chat_template_load(const char *path, sb_chat_template **result, sb_error *error);
/** NULL is allowed. */
SB_API void sb_chat_template_free(sb_chat_template *chat_template);

/** Renders. `variables` is `bytes` of JSON, an object whose members are the template's variables: messages,
 * add_generation_prompt, tools, documents, and whatever else it asks for. Texts that name tokens (bos_token, eos_token, …)
 * and are not among them are the checkpoint's, where the template was loaded from one. `date` may be NULL for templates that
 * do not ask for it. `*text` is the caller's, to free by sb_llm_free: `*text_bytes` bytes of UTF-8 and a NUL.
 *
 * Errors: INVALID_ARGUMENT for what is no such JSON, and where the template refuses the conversation or fails on it;
 * UNSUPPORTED for what it does that is not understood; LIMIT where it takes too long or too much; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_chat_template_render(const sb_chat_template *chat_template, const char *variables,
                                                       size_t bytes, const sb_llm_date *date, char **text,
                                                       size_t *text_bytes, sb_error *error);

/* ---- receipts: docs/llm.md ---- */

/** What a receipt says of itself. */
typedef struct sb_llm_receipt_description {
    sb_dtype dtype;  /**< to load the model with */
    int64_t context; /**< likewise */
    int64_t prompt_tokens, new_tokens;
    bool is_signed;
    char digest[SB_DIGEST_TEXT_BYTES]; /**< over all of it but the signature */
} sb_llm_receipt_description;

SB_API sb_llm_receipt_description sb_llm_receipt_describe(const sb_llm_receipt *receipt);
SB_API void sb_llm_receipt_release(sb_llm_receipt *receipt); /**< NULL is allowed */

/** Writes a file, whole or not at all. Errors: IO; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_receipt_save(const sb_llm_receipt *receipt, const char *path, sb_error *error);
/** Reads a file, of which everything is checked that can be without the model; the caller releases the receipt. Errors: IO;
 * INVALID_FILE, with the field; UNSUPPORTED for another version of the numerics; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_receipt_load(const char *path, sb_llm_receipt **receipt, sb_error *error);

/** Whether a PEM file holds a private Ed25519 key without a password, as sb_llm_receipt_sign wants it. Errors: IO;
 * INVALID_FILE; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_key_check(const char *key_path, sb_error *error);
/** Signs the receipt's digest. Errors: as above. */
SB_API SB_MUST_CHECK sb_status sb_llm_receipt_sign(sb_llm_receipt *receipt, const char *key_path, sb_error *error);
/** Whether the receipt is signed by the private half of a public Ed25519 key in a PEM file. Errors: as above. */
SB_API SB_MUST_CHECK sb_status sb_llm_receipt_check_signature(const sb_llm_receipt *receipt, const char *key_path,
                                                              bool *fits, sb_error *error);

/** What may differ from a receipt. */
typedef enum sb_llm_difference {
    SB_LLM_DIFFERENT_WEIGHTS,       /**< the checkpoint's tensors are others */
    SB_LLM_DIFFERENT_CONFIGURATION, /**< its configuration is another */
    SB_LLM_DIFFERENT_TOKENIZER,     /**< its tokenizer's files are others */
    SB_LLM_DIFFERENT_SETTINGS,      /**< the prompt, or how tokens are chosen, was changed in the receipt afterwards */
    SB_LLM_DIFFERENT_STATE,         /**< a step's final hidden state is another one */
    SB_LLM_DIFFERENT_TOKEN,         /**< a step's hidden state is right, and another token is chosen from it */
    SB_LLM_DIFFERENT_LOGP,          /**< its log-probability is another */
    SB_LLM_DIFFERENT_END,           /**< the generation would have ended elsewhere */
    SB_LLM_DIFFERENT_DIGEST         /**< the receipt was changed afterwards: its digest is not of what it says */
} sb_llm_difference;

/** "weights", "configuration", …, "digest". */
SB_API const char *sb_llm_difference_name(sb_llm_difference what);

typedef struct sb_llm_finding {
    sb_llm_difference what;
    int64_t step; /**< which new token, from 0; -1: none */
    char message[256];
} sb_llm_finding;

#define SB_LLM_FINDINGS 8

/** What verifying came to. Without findings, everything that was looked at is as the receipt says. */
typedef struct sb_llm_verdict {
    int count;
    sb_llm_finding
        findings[SB_LLM_FINDINGS]; /**< in the order of sb_llm_difference: of the steps, the first that differs */
    int64_t steps, checked;        /**< that the receipt has; that were computed again and compared */
} sb_llm_verdict;

/** How a receipt is verified. Start from SB_LLM_VERIFICATION_DEFAULT. */
typedef struct sb_llm_verification {
    size_t struct_bytes; /**< sizeof(sb_llm_verification): lets the struct grow */
    int64_t sample;      /**< check so many steps that the system's random source chooses; 0: all */
    int64_t chunk;       /**< the most tokens in one run; 0: 512. Changes no bit */
    int threads;         /**< for choosing tokens again; 0: one per processor */
} sb_llm_verification;

#define SB_LLM_VERIFICATION_DEFAULT                                                                                    \
    { sizeof(sb_llm_verification), 0, 0, 0 }

/** Computes a generation again, by running the prompt and the receipt's tokens in a few pieces, and compares each hidden state,
 * the token that is chosen from its logits, and that one's log-probability. The model was loaded with `receipts` and the
 * receipt's dtype and context, and the sequence is empty, as it is afterwards. A difference is no error: it is in `*verdict`.
 * Errors: INVALID_ARGUMENT for a session that does not fit; those of sb_llm_step. */
SB_API SB_MUST_CHECK sb_status sb_llm_verify(sb_llm_session *session, const sb_llm_receipt *receipt,
                                             const sb_llm_verification *options, sb_llm_verdict *verdict,
                                             sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
