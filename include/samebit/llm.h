/* Language models: checkpoints, sequences of tokens, logits, sampling.
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
