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
    bool hidden_states; /**< final hidden states come to the host beside logits, for sb_llm_embed. Changes no bit */
} sb_llm_options;

#define SB_LLM_OPTIONS_DEFAULT                                                                                         \
    { sizeof(sb_llm_options), SB_DTYPE_NONE, 0, NULL, false, false }

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
/** The model with the entry graph "step", for whoever wants to look at it. Borrowed, until weights are replaced. */
SB_API sb_model *sb_llm_model(const sb_llm *llm);

/** A tensor of the checkpoint by its name there, and what is to be in its place. */
typedef struct sb_llm_weight {
    const char *name;
    sb_tensor *tensor; /**< on the host, of any strides; borrowed, its elements are copied */
} sb_llm_weight;

/** Replaces weights, all or none: from here on the model computes what a checkpoint with these tensors computes, and its receipts are
 * those of such a one. Tensors that are not named stay as they are.
 *
 * Nobody else may be in a call with the model, or with anything made of it, and no queue may have requests that run. Sessions and
 * batches stay; their next run makes its program, with weights packed anew, and an empty cache first, for which it needs memory beside
 * the old one. What sequences hold is of the old weights: a run behind it is INVALID_ARGUMENT until sb_llm_session_trim or
 * sb_llm_sequence_trim to 0. Queues forget by themselves what they kept. Takes the time of loading the model.
 *
 * Errors: INVALID_ARGUMENT for a name that the checkpoint has not, or that is there twice, another dtype than the file's, or a tensor on a
 * device; SHAPE; UNSUPPORTED for tensors that are quantised in the file; those of sb_builder_build. On failure nothing has changed. */
SB_API SB_MUST_CHECK sb_status sb_llm_replace_weights(sb_llm *llm, int64_t count, const sb_llm_weight *weights,
                                                      sb_error *error);

/* ---- one sequence ---- */

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

/* ---- many sequences ----
 *
 * A batch has sequences over one cache of pages, of 16 positions each. A step takes new tokens of any of them in one run: a
 * prompt, a piece of one or a single token each. No bit of a logit depends on what else is in the step, on which pages a
 * sequence has, or on whether others have them too. A batch and its sequences are for one thread at a time. */

typedef struct sb_llm_batch sb_llm_batch;
typedef struct sb_llm_sequence sb_llm_sequence;

/** Positions on a page. */
#define SB_LLM_PAGE_POSITIONS 16

/** How a batch is made. Start from SB_LLM_BATCH_OPTIONS_DEFAULT. */
typedef struct sb_llm_batch_options {
    size_t struct_bytes; /**< sizeof(sb_llm_batch_options): lets the struct grow */
    int64_t pages;       /**< that all sequences share; 0: those of eight sequences of the whole context */
    /** NULL: the defaults. `entry`, `state` and capacities have to be left as they are. */
    const sb_session_options *session;
} sb_llm_batch_options;

#define SB_LLM_BATCH_OPTIONS_DEFAULT                                                                                   \
    { sizeof(sb_llm_batch_options), 0, NULL }

/** Creates a batch without sequences, which keeps the model alive. `options` may be NULL. The caller releases it. Errors:
 * INVALID_ARGUMENT; those of sb_state_create and sb_session_create. */
SB_API SB_MUST_CHECK sb_status sb_llm_batch_create(sb_llm *llm, const sb_llm_batch_options *options,
                                                   sb_llm_batch **batch, sb_error *error);
/** Drops the caller's reference; sequences keep a batch alive. NULL is allowed. */
SB_API void sb_llm_batch_release(sb_llm_batch *batch);
/** Ends the run in progress, or the next one: sb_session_interrupt. From any thread. */
SB_API void sb_llm_batch_interrupt(sb_llm_batch *batch);

/** How many pages there are, and how many are free. */
SB_API int64_t sb_llm_batch_pages(const sb_llm_batch *batch);
SB_API int64_t sb_llm_batch_free_pages(const sb_llm_batch *batch);

/** Creates an empty sequence. The caller releases it. */
SB_API SB_MUST_CHECK sb_status sb_llm_sequence_create(sb_llm_batch *batch, sb_llm_sequence **sequence, sb_error *error);
/** Creates a sequence with the first `length` positions of another one (INVALID_ARGUMENT where that has fewer). Both have the
 * same pages until one of them writes there, which is then given a copy. The caller releases it. */
SB_API SB_MUST_CHECK sb_status sb_llm_sequence_fork(const sb_llm_sequence *from, int64_t length,
                                                    sb_llm_sequence **sequence, sb_error *error);
/** Lets go of the sequence and of its pages. NULL is allowed. */
SB_API void sb_llm_sequence_release(sb_llm_sequence *sequence);

/** How many positions the sequence has. */
SB_API int64_t sb_llm_sequence_length(const sb_llm_sequence *sequence);
/** Forgets all positions from `length` on, which is at most what there are (INVALID_ARGUMENT), and lets go of pages behind. */
SB_API SB_MUST_CHECK sb_status sb_llm_sequence_trim(sb_llm_sequence *sequence, int64_t length, sb_error *error);
/** Sees to it that steps can put `count` tokens behind the sequence: takes pages for them. On failure nothing was taken.
 * Errors: LIMIT when too few are free, or the context is too short; those of sb_state_copy_slot. */
SB_API SB_MUST_CHECK sb_status sb_llm_sequence_reserve(sb_llm_sequence *sequence, int64_t count, sb_error *error);

/** What a step puts behind a sequence. */
typedef struct sb_llm_step_part {
    sb_llm_sequence *sequence;
    int64_t count; /**< at least 1 */
    const int64_t *tokens;
    int64_t wanted_count;
    const int64_t *wanted; /**< places in `tokens` of those whose logits are wanted */
} sb_llm_step_part;

/** Puts tokens behind sequences of the batch, each of which is in one part at most. `*logits` is the f32 tensor [1, all that are
 * wanted, vocabulary], one part's rows behind the other's, which the caller releases.
 *
 * On failure all sequences are as long as they were. Errors: INVALID_ARGUMENT for tokens and places that do not exist, and
 * sequences of another batch; LIMIT when a context is full, or too few pages are free, with the part; those of
 * sb_session_run. */
SB_API SB_MUST_CHECK sb_status sb_llm_batch_step(sb_llm_batch *batch, int count, const sb_llm_step_part *parts,
                                                 sb_tensor **logits, sb_error *error);

/* ---- choosing tokens: docs/numerics.md, section 11 ---- */

/** What is added to a token's logit. */
typedef struct sb_llm_logit_bias {
    int64_t token;
    float bias; /**< finite, or -infinity for a token that is never chosen */
} sb_llm_logit_bias;

/** How a token is chosen. Start from SB_LLM_SAMPLING_DEFAULT, which is greedy. */
typedef struct sb_llm_sampling {
    size_t struct_bytes; /**< sizeof(sb_llm_sampling): lets the struct grow */
    float temperature;   /**< 0: greedy, and nothing below is looked at up to `request`; else from 2^-20 to 2^20 */
    int64_t top_k;       /**< so many of the largest; 0: all */
    float top_p;         /**< the fewest of the largest whose probabilities are at least this much; 1: all. Above 0 */
    float min_p;         /**< those that have at least this share of the largest one's; 0: all. At most 1 */
    uint64_t seed;
    uint32_t request; /**< which of several requests with one seed */
    /* What changes logits before all that, and is done by sb_llm_generate and sb_llm_adjust: */
    float
        repetition_penalty; /**< of tokens in the prompt and new ones: logits above 0 are divided by it, others multiplied; 1: none.
                                   From 2^-20 to 2^20 */
    float presence_penalty;  /**< is taken from the logits of new tokens; within 2^20 */
    float frequency_penalty; /**< likewise, as many times as a token is among the new ones */
    int64_t bias_count;
    const sb_llm_logit_bias *biases; /**< each token at most once, ascending */
} sb_llm_sampling;

#define SB_LLM_SAMPLING_DEFAULT                                                                                        \
    { sizeof(sb_llm_sampling), 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, NULL }

/** The settings that a checkpoint suggests, for whoever has no others. A folder's generation_config.json: temperature (0 unless
 * do_sample is true, else 1 where none is named), top_k, top_p, min_p and repetition_penalty. A GGUF file's keys general.sampling.: temp,
 * top_k (0 and less: all), top_p, min_p and penalty_repeat. What is not said, and all of it where there is no such file or nothing at
 * `path`, is as SB_LLM_SAMPLING_DEFAULT has it. Of a folder nothing else is looked at.
 * Errors: IO; INVALID_FILE, with the key; UNSUPPORTED: a file that is no GGUF file that can be read; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_suggest_sampling(const char *path, sb_llm_sampling *sampling, sb_error *error);
/** Gives logits the penalties and biases of the settings, where `count` tokens come before, of which the first `prompt_count` are the
 * prompt. sb_llm_sample does not. Errors: INVALID_ARGUMENT for tokens that do not exist; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_adjust(float *logits, int64_t vocabulary, const sb_llm_sampling *sampling,
                                             int64_t prompt_count, int64_t count, const int64_t *tokens,
                                             sb_error *error);
/** Chooses the token for `position` from its logits. Errors: INVALID_ARGUMENT for settings out of range, and for logits of
 * which one is NaN or +∞, or none above −∞, with the token; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_sample(const float *logits, int64_t vocabulary, const sb_llm_sampling *sampling,
                                             int64_t position, int64_t *token, sb_error *error);

/** log softmax(logits)[token], as docs/logp.md has it with a temperature of 1. NaN and −∞ as there; NaN for a token that
 * does not exist. */
SB_API float sb_llm_logp(const float *logits, int64_t vocabulary, int64_t token);

/** The first `count` tokens in the order of section 11 (larger logits first, of equal ones the smaller token), or as many as there are, and
 * how many those are. `logps`, which may be NULL, gets the log-probability of each. NaNs come last. */
SB_API int64_t sb_llm_top(const float *logits, int64_t vocabulary, int64_t count, int64_t *tokens, float *logps);

/* ---- generating ---- */

/** What a generation was made of and came to: below. */
typedef struct sb_llm_receipt sb_llm_receipt;
/** What a text has to be like: below. */
typedef struct sb_llm_constraint sb_llm_constraint;

/** A token of the sequence, as sb_llm_generate comes to it. */
typedef struct sb_llm_token {
    int64_t position; /**< in the sequence */
    int64_t token;
    bool given;    /**< it is one of the prompt's (score_prompt) */
    bool stops;    /**< it is one that ends the text; it is not put behind the sequence */
    bool has_logp; /**< whether `logp` is there: always but for a prompt's first token, and with no_logps */
    float logp;    /**< its log-probability under the logits of the position before */
    const float *
        logits; /**< that it was chosen from, or scored by; vocabulary of them, until the call returns. NULL for a prompt's first
                          * token, and, with no_logits, where a device has chosen it */
} sb_llm_token;

/** What is told of each token. A status other than SB_OK ends the generation with it; *stop = true ends it well. */
typedef sb_status sb_llm_token_function(void *context, const sb_llm_token *token, bool *stop, sb_error *error);

/** What is to be generated. Start from SB_LLM_GENERATION_DEFAULT. */
typedef struct sb_llm_generation {
    size_t struct_bytes; /**< sizeof(sb_llm_generation): lets the struct grow */
    int64_t limit;       /**< the most new tokens */
    int64_t
        chunk; /**< the most tokens of the prompt in one run, up to 2,048; 0: 2,048 on a device, else 512. Changes no bit */
    sb_llm_sampling sampling;
    bool ignore_stops;               /**< goes on behind tokens that end a text */
    bool score_prompt;               /**< on_token is told of the prompt's tokens as well */
    sb_llm_token_function *on_token; /**< NULL: nobody wants to know */
    void *context;
    sb_llm_receipt **receipt;      /**< gets a receipt on success, which the caller releases; NULL: nobody wants one */
    sb_llm_constraint *constraint; /**< the new tokens' text is right by it, if it comes to its end; NULL: any text */
    /** So many of the prompt's first tokens are in the sequence already, and nothing else is: they are not run again. What comes of it
     * is what comes of the whole prompt in an empty sequence. 0: the prompt goes behind whatever there is. */
    int64_t present;
    /** on_token wants no log-probabilities of new tokens: 80 us each of 128,256 where the host chooses. */
    bool no_logps;
    bool no_digest; /**< nobody wants sb_llm_result.digest, which is empty then: 520 us a token of 128,256 */
    /** on_token looks at no logits of new tokens. With no_digest, logits then stay on a device, which chooses by itself and is a token or two
     * ahead of on_token; with penalties, biases or a constraint they come to the host all the same. Changes no bit. */
    bool no_logits;
} sb_llm_generation;

#define SB_LLM_GENERATION_DEFAULT                                                                                      \
    {                                                                                                                  \
        sizeof(sb_llm_generation), 128, 0, SB_LLM_SAMPLING_DEFAULT, false, false, NULL, NULL, NULL, NULL, 0, false,    \
            false, false                                                                                               \
    }

/** Why a generation ended. */
typedef enum sb_llm_end {
    SB_LLM_END_LIMIT,   /**< as many tokens as were asked for */
    SB_LLM_END_STOP,    /**< a token that ends texts */
    SB_LLM_END_CONTEXT, /**< the context is full */
    SB_LLM_END_CALLER,  /**< on_token said so */
    SB_LLM_END_COMPLETE /**< by the constraint nothing can follow, and the model has no token that ends texts */
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
 * not empty, for a constraint with ignore_stops, and where `present` is not the sequence's length, not less than `count`, or beside
 * score_prompt; those of sb_llm_constraint_mask; UNSUPPORTED where no token of the vocabulary goes
 * on as the constraint wants. */
SB_API SB_MUST_CHECK sb_status sb_llm_generate(sb_llm_session *session, int64_t count, const int64_t *tokens,
                                               const sb_llm_generation *generation, sb_llm_result *result,
                                               sb_error *error);

/* ---- generating for many requests ----
 *
 * A queue runs requests over a batch: as many at a time as it is told, in one step each time. Requests join and leave between
 * steps; long prompts are cut into pieces, beside which others go on. What comes of a request is what sb_llm_generate makes of it
 * in an empty session, bit for bit, whatever else is in the queue. A queue is for one thread at a time, the batch's. */

typedef struct sb_llm_queue sb_llm_queue;

/** How a queue runs requests; changes no bit. Start from SB_LLM_QUEUE_OPTIONS_DEFAULT. */
typedef struct sb_llm_queue_options {
    size_t struct_bytes; /**< sizeof(sb_llm_queue_options): lets the struct grow */
    int64_t parallel;    /**< the most requests at a time; 0: 16 */
    /** The most tokens in a step, where requests that are at new tokens leave room; 0: 512, and on a device 2,048 where no request is at new
     * tokens. */
    int64_t rows;
    bool no_sharing; /**< each prompt is run whole, also where another one begins like it */
} sb_llm_queue_options;

#define SB_LLM_QUEUE_OPTIONS_DEFAULT                                                                                   \
    { sizeof(sb_llm_queue_options), 0, 0, false }

/** Told once of each request that ends, behind the tokens of all that were in its last step, unless it fails. `result` is NULL, and `error`
 * says why, unless `status` is SB_OK. May add requests. */
typedef void sb_llm_end_function(void *context, sb_status status, const sb_error *error, const sb_llm_result *result);

/** A request. Start from SB_LLM_REQUEST_DEFAULT. */
typedef struct sb_llm_request {
    size_t struct_bytes; /**< sizeof(sb_llm_request): lets the struct grow */
    int64_t count;       /**< of the prompt's tokens, at least 1 */
    const int64_t *tokens;
    sb_llm_generation generation; /**< its on_token may add requests; a status other than SB_OK ends this one alone */
    sb_llm_end_function *on_end;  /**< is given generation.context; NULL: nobody wants to know */
} sb_llm_request;

#define SB_LLM_REQUEST_DEFAULT                                                                                         \
    { sizeof(sb_llm_request), 0, NULL, SB_LLM_GENERATION_DEFAULT, NULL }

/** Creates a queue, which keeps the batch alive. `options` may be NULL. The caller destroys it. */
SB_API SB_MUST_CHECK sb_status sb_llm_queue_create(sb_llm_batch *batch, const sb_llm_queue_options *options,
                                                   sb_llm_queue **queue, sb_error *error);
/** Requests that have not ended are gone, without a word. NULL is allowed. */
SB_API void sb_llm_queue_destroy(sb_llm_queue *queue);

/** Puts a request behind those that wait; of what it points to the tokens are copied; the constraint, the
 * biases of its sampling, `generation.context` and `generation.receipt` must stay until it has ended.
 *
 * It joins when fewer than `parallel` run and there are pages for its prompt and all of its tokens, so that it never runs
 * out of them because of others. A prompt that begins like that of another one, which runs or has lately ended, takes over
 * the pages of that beginning: so do all samples of one prompt. Errors: INVALID_ARGUMENT for settings and for tokens that do
 * not exist; LIMIT when the context, or all pages of the batch, are too few for it; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_queue_add(sb_llm_queue *queue, const sb_llm_request *request, sb_error *error);

/** A run for all that take part; *more says whether there are requests left. What fails for one request ends it alone, and is
 * told to its on_end. On a device the next run is given before this one is waited for, so that one is on its way when this returns. Errors:
 * those of sb_session_run, after which requests are where they were behind the last run that went well, and can go on. */
SB_API SB_MUST_CHECK sb_status sb_llm_queue_step(sb_llm_queue *queue, bool *more, sb_error *error);
/** Steps until there are none left. */
SB_API SB_MUST_CHECK sb_status sb_llm_queue_run(sb_llm_queue *queue, sb_error *error);

/** What a queue has done so far, and what it has to do. */
typedef struct sb_llm_queue_counters {
    int64_t waiting, running;
    int64_t steps, rows; /**< runs, and tokens in them */
    int64_t shared;      /**< tokens of prompts that another one's pages had already */
} sb_llm_queue_counters;

SB_API sb_llm_queue_counters sb_llm_queue_count(const sb_llm_queue *queue);
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

/** What is made of the final hidden states of a text. */
typedef enum sb_llm_pooling {
    SB_LLM_POOL_NONE, /**< a row for each token */
    SB_LLM_POOL_LAST, /**< the last token's alone */
    SB_LLM_POOL_MEAN  /**< their mean: added in f64 in the order of the text, divided, and rounded to f32 once */
} sb_llm_pooling;

/** What is wanted of a text's hidden states. Start from SB_LLM_EMBEDDING_DEFAULT. */
typedef struct sb_llm_embedding {
    size_t struct_bytes; /**< sizeof(sb_llm_embedding): lets the struct grow */
    sb_llm_pooling pooling;
    int64_t wanted_count;
    const int64_t
        *wanted; /**< ascending places in `tokens` of those that are looked at; NULL: all. Not with SB_LLM_POOL_LAST */
    int64_t chunk; /**< the most tokens in one run, up to 2,048; 0: 2,048 on a device, else 512. Changes no bit */
} sb_llm_embedding;

#define SB_LLM_EMBEDDING_DEFAULT                                                                                       \
    { sizeof(sb_llm_embedding), SB_LLM_POOL_NONE, 0, NULL, 0 }

/** Puts `count` tokens behind the sequence, at least one, and gives their final hidden states: what the head reads, the last norm's
 * result, widened to f32, which changes no number; no logits are computed. `*states` is f32 [rows, hidden], one row where they are
 * pooled; the caller releases it. `about` may be NULL.
 *
 * On failure the sequence is as long as it was. Errors: INVALID_ARGUMENT for a model that was loaded without `hidden_states`, and for
 * places that do not exist or ascend; those of sb_llm_step. */
SB_API SB_MUST_CHECK sb_status sb_llm_embed(sb_llm_session *session, int64_t count, const int64_t *tokens,
                                            const sb_llm_embedding *about, sb_tensor **states, sb_error *error);

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

/* ---- constraints: docs/llm.md ----
 *
 * A constraint lets a model write nothing but texts that are right by a JSON schema: before a token is chosen, the logits of those
 * become -infinity whose bytes cannot go on with the text. sb_llm_generate does so for sb_llm_generation.constraint; programs with a
 * loop of their own call
 *
 *     sb_llm_constraint_mask(state, logits, vocabulary, stop_count, stops, &allowed, &error);
 *     sb_llm_sample(logits, vocabulary, &sampling, position, &token, &error);
 *     sb_llm_constraint_accept(state, token, &error);
 */

/* An sb_llm_constraint is a schema and the tokens of a tokenizer. Any number of threads may use it at once. */

/** A text in progress under a constraint. For one thread at a time. */
typedef struct sb_llm_constraint_state sb_llm_constraint_state;

/** The schema of any JSON object. */
#define SB_LLM_JSON_OBJECT "{\"type\":\"object\"}"

/** Makes a constraint of `bytes` bytes of JSON, which are copied: a schema of draft 2020-12, as far as docs/llm.md lists it. The
 * tokenizer must outlive it; its tokens' bytes are collected with the first constraint. The caller releases it.
 *
 * Errors: INVALID_FILE for what is no schema, and for one that no value is right by; UNSUPPORTED, with the place as a JSON pointer and
 * the keyword, for what is not known, and for tokenizers whose tokens have no bytes of their own (WordPiece); LIMIT for a schema that
 * takes too many states or steps; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_constraint_create(const sb_tokenizer *tokenizer, const char *schema, size_t bytes,
                                                        sb_llm_constraint **constraint, sb_error *error);
/** Drops the caller's reference; texts in progress keep a constraint alive. NULL is allowed. */
SB_API void sb_llm_constraint_release(sb_llm_constraint *constraint);

/** Begins a text, which the caller ends. Errors: OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_constraint_begin(sb_llm_constraint *constraint, sb_llm_constraint_state **state,
                                                       sb_error *error);
/** A text that has come as far, to go on from there in another way. The caller ends it. Errors: OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_llm_constraint_copy(const sb_llm_constraint_state *state,
                                                      sb_llm_constraint_state **copy, sb_error *error);
SB_API void sb_llm_constraint_end(sb_llm_constraint_state *state); /**< NULL is allowed */

/** Gives -infinity to the logits of all tokens that cannot come next, and says how many can. A token can if the text with its bytes is
 * the beginning of one that is right by the schema. One of `stops` can where the text is complete, and nowhere else. So where
 * `*allowed` is 0, the text is complete and nothing can follow, or the vocabulary has no token that goes on. Errors: LIMIT for a text
 * that can be going on in too many ways; OUT_OF_MEMORY. The logits are then as they were. */
SB_API SB_MUST_CHECK sb_status sb_llm_constraint_mask(sb_llm_constraint_state *state, float *logits, int64_t vocabulary,
                                                      int stop_count, const int64_t *stops, int64_t *allowed,
                                                      sb_error *error);
/** Puts a token behind the text. Errors: INVALID_ARGUMENT for one that cannot come next, stops among them; as above. The text is then
 * as it was. */
SB_API SB_MUST_CHECK sb_status sb_llm_constraint_accept(sb_llm_constraint_state *state, int64_t token, sb_error *error);
/** Whether the text is right by the schema as it is. */
SB_API bool sb_llm_constraint_is_complete(const sb_llm_constraint_state *state);

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
    const char *schema;                /**< of the constraint, the receipt's; NULL: it was generated without */
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
    size_t struct_bytes;           /**< sizeof(sb_llm_verification): lets the struct grow */
    int64_t sample;                /**< check so many steps that the system's random source chooses; 0: all */
    int64_t chunk;                 /**< the most tokens in one run; 0: 512. Changes no bit */
    int threads;                   /**< for choosing tokens again; 0: one per processor */
    const sb_tokenizer *tokenizer; /**< for receipts with a constraint: that with which it was made; others need none */
} sb_llm_verification;

#define SB_LLM_VERIFICATION_DEFAULT                                                                                    \
    { sizeof(sb_llm_verification), 0, 0, 0, NULL }

/** Computes a generation again, by running the prompt and the receipt's tokens in a few pieces, and compares each hidden state,
 * the token that is chosen from its logits, and that one's log-probability. The model was loaded with `receipts` and the
 * receipt's dtype and context, and the sequence is empty, as it is afterwards. A difference is no error: it is in `*verdict`.
 * Errors: INVALID_ARGUMENT for a session that does not fit, and for a receipt with a constraint where there is no
 * tokenizer; those of sb_llm_step and sb_llm_constraint_create. */
SB_API SB_MUST_CHECK sb_status sb_llm_verify(sb_llm_session *session, const sb_llm_receipt *receipt,
                                             const sb_llm_verification *options, sb_llm_verdict *verdict,
                                             sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
