/* Verifying receipts: one pass over the prompt and the receipt's own tokens gives every hidden state and all logits again. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/allocation.h"
#include "base/workers.h"
#include "llm/choose.h"
#include "llm/llm.h"
#include "llm/receipt.h"
#include "numerics/scalar.h"

#define DEFAULT_CHUNK 512
/* The most logits of one run: 64 MiB. */
#define MOST_LOGITS ((int64_t)16 << 20)

/* What one step came to. */
typedef struct row_check {
    sb_status status; /* of looking at it */
    unsigned char state[SB_DIGEST_BYTES];
    int64_t token; /* -1: none can be chosen, for the reason below */
    float logp;
    char why[160];
} row_check;

typedef struct verifying {
    sb_llm_session *session;
    const sb_llm_receipt *receipt;
    const sb_llm_verification *options;
    sb_llm_verdict *verdict;
    sb_workers *workers;
    int64_t *sequence;             /* the prompt and behind it the new tokens */
    int64_t *steps, step_count;    /* that are to be checked, ascending */
    int64_t wanted[DEFAULT_CHUNK]; /* of the present run: rows */
    int64_t done, now;             /* steps that have been checked; those of the present run */
    row_check checks[DEFAULT_CHUNK];
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    sb_llm_constraint *constraint; /* the receipt's; NULL: none */
    sb_chooser chooser;
    int64_t taken;      /* steps whose tokens the chooser has */
    int64_t impossible; /* the first step whose token cannot come by the constraint; -1: none so far */
    bool sealed;        /* behind all of them nothing can come */
} verifying;

const char *sb_llm_difference_name(sb_llm_difference what) {
    static const char *const names[] = {"weights", "configuration", "tokenizer", "settings", "state",
                                        "token",   "logp",          "end",       "digest"};
    return (unsigned)what < sizeof names / sizeof *names ? names[what] : "unknown";
}

static void note(sb_llm_verdict *verdict, sb_llm_difference what, int64_t step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void note(sb_llm_verdict *verdict, sb_llm_difference what, int64_t step, const char *format, ...) {
    if (verdict->count == SB_LLM_FINDINGS)
        return;
    sb_llm_finding *finding = &verdict->findings[verdict->count++];
    *finding = (sb_llm_finding){.what = what, .step = step};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->message, sizeof finding->message, format, arguments);
    va_end(arguments);
}

/* ---- what is known before a run ---- */

static bool is_same(const unsigned char *left, const unsigned char *right) {
    return memcmp(left, right, SB_DIGEST_BYTES) == 0;
}

static void compare_files(const verifying *v) {
    const sb_llm_fingerprint *have = &v->session->llm->fingerprint, *want = &v->receipt->fingerprint;
    if (!is_same(have->weights, want->weights))
        note(v->verdict, SB_LLM_DIFFERENT_WEIGHTS, -1, "the checkpoint's tensors are not those of the receipt");
    if (!is_same(have->configuration, want->configuration))
        note(v->verdict, SB_LLM_DIFFERENT_CONFIGURATION, -1,
             "the checkpoint's configuration is not that of the receipt");
    if (have->has_tokenizer != want->has_tokenizer || !is_same(have->tokenizer, want->tokenizer))
        note(v->verdict, SB_LLM_DIFFERENT_TOKENIZER, -1, "the tokenizer's files are %s",
             !have->has_tokenizer   ? "not there"
             : !want->has_tokenizer ? "there, which the receipt knows nothing of"
                                    : "not those of the receipt");
}

static sb_status compare_settings(const verifying *v, sb_error *error) {
    unsigned char bytes[SB_DIGEST_BYTES];
    SB_TRY(sb_receipt_settings(v->receipt, bytes, error));
    if (!is_same(bytes, v->receipt->settings))
        note(v->verdict, SB_LLM_DIFFERENT_SETTINGS, -1,
             "digests of files, prompt, sampling or limits were changed in the receipt: its digest of them is of "
             "others");
    return SB_OK;
}

static bool is_stop(const verifying *v, int64_t token) {
    const sb_llm_config *config = &v->session->llm->config;
    bool found = false;
    for (int i = 0; i < config->stop_count; i++)
        found = found || config->stops[i] == token;
    return found && !v->receipt->ignore_stops;
}

/* A generation of these tokens ends where the receipt says, and nowhere before. */
static void compare_end(const verifying *v) {
    const sb_llm_receipt *receipt = v->receipt;
    int64_t count = receipt->step_count, first = 0;
    while (first < count && !is_stop(v, receipt->steps[first].token))
        first++;
    sb_llm_end end = SB_LLM_END_CALLER; /* who may end it anywhere but at a token that does */
    if (first < count)
        end = SB_LLM_END_STOP;
    else if (count == receipt->limit)
        end = SB_LLM_END_LIMIT;
    else if (count > 0 && receipt->prompt_count + count - 1 == receipt->context)
        end = SB_LLM_END_CONTEXT;
    else if (v->sealed)
        end = SB_LLM_END_COMPLETE;
    if (first + 1 < count)
        note(v->verdict, SB_LLM_DIFFERENT_END, first, "token %lld ends a text, and %lld more are behind it",
             (long long)receipt->steps[first].token, (long long)(count - first - 1));
    else if (end != receipt->end && !(receipt->end == SB_LLM_END_CALLER && end != SB_LLM_END_STOP))
        note(v->verdict, SB_LLM_DIFFERENT_END, -1,
             end == SB_LLM_END_CALLER ? "after %lld tokens nothing ends the generation, and the receipt says '%s'"
                                      : "after %lld tokens another reason ends the generation than '%s'",
             (long long)count, sb_llm_end_name(receipt->end));
}

static sb_status compare_digest(const verifying *v, sb_error *error) {
    unsigned char bytes[SB_DIGEST_BYTES];
    SB_TRY(sb_receipt_digest(v->receipt, bytes, error));
    if (!is_same(bytes, v->receipt->digest))
        note(v->verdict, SB_LLM_DIFFERENT_DIGEST, -1,
             "the receipt was changed after it was made: its digest is not of what it says");
    return SB_OK;
}

/* ---- which steps ---- */

static sb_status draw(uint64_t below, uint64_t *number, sb_error *error) {
    /* Numbers of the last, incomplete turn are drawn again: each is equally likely. */
    do {
        if (getrandom(number, sizeof *number, 0) != (ssize_t)sizeof *number)
            return sb_fail(error, SB_ERROR_IO, "the system gives no random numbers: %s", strerror(errno));
    } while (*number >= UINT64_MAX - UINT64_MAX % below);
    *number %= below;
    return SB_OK;
}

static int ascending(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* Behind a token that the model has not got nothing can be computed; such a token itself was not chosen. */
static int64_t last_step(const verifying *v) {
    int64_t vocabulary = v->session->llm->config.vocabulary, last = 0;
    while (last + 1 < v->receipt->step_count && v->receipt->steps[last].token < vocabulary)
        last++;
    return last;
}

static sb_status choose_steps(verifying *v, sb_error *error) {
    int64_t count = v->receipt->step_count > 0 ? last_step(v) + 1 : 0;
    v->step_count = v->options->sample > 0 && v->options->sample < count ? v->options->sample : count;
    for (int64_t i = 0; i < count; i++)
        v->steps[i] = i;
    for (int64_t i = 0; i < v->step_count && v->step_count < count; i++) {
        uint64_t other;
        SB_TRY(draw((uint64_t)(count - i), &other, error));
        int64_t kept = v->steps[i];
        v->steps[i] = v->steps[i + (int64_t)other];
        v->steps[i + (int64_t)other] = kept;
    }
    qsort(v->steps, (size_t)v->step_count, sizeof *v->steps, ascending);
    return SB_OK;
}

/* ---- running ---- */

/* How many tokens of the sequence run from `first` on, and which of their rows are wanted. */
static int64_t choose_rows(verifying *v, int64_t first) {
    int64_t chunk = v->options->chunk > 0 && v->options->chunk < DEFAULT_CHUNK ? v->options->chunk : DEFAULT_CHUNK;
    int64_t begin = v->receipt->prompt_count - 1, last = begin + v->steps[v->step_count - 1];
    int64_t count = last + 1 - first < chunk ? last + 1 - first : chunk;
    int64_t most = MOST_LOGITS / v->session->llm->config.vocabulary;
    v->now = 0;
    while (v->done + v->now < v->step_count) {
        int64_t row = begin + v->steps[v->done + v->now] - first;
        if (row >= count)
            break;
        if (v->now == (most > 0 ? most : 1))
            return row;
        v->wanted[v->now++] = row;
    }
    return count;
}

static float *logits_of(const verifying *v, int64_t row) {
    return (float *)sb_tensor_mutable_data(v->outputs[SB_LLM_LOGITS]) + row * v->session->llm->config.vocabulary;
}

/* What comes of the logits as they are. */
static void describe_rows(void *context, int64_t first, int64_t end) {
    verifying *v = context;
    for (int64_t i = first; i < end; i++) {
        row_check *check = &v->checks[i];
        int64_t token = v->receipt->steps[v->steps[v->done + i]].token;
        check->status = sb_receipt_state(v->outputs[SB_LLM_HIDDEN], i, check->state, NULL);
        check->logp = sb_receipt_logp(sb_llm_logp(logits_of(v, i), v->session->llm->config.vocabulary, token));
    }
}

/* What is chosen from them when they have been adjusted. */
static void draw_rows(void *context, int64_t first, int64_t end) {
    verifying *v = context;
    const sb_llm_receipt *receipt = v->receipt;
    int64_t vocabulary = v->session->llm->config.vocabulary;
    for (int64_t i = first; i < end; i++) {
        row_check *check = &v->checks[i];
        int64_t step = v->steps[v->done + i];
        const float *logits = logits_of(v, i);
        sb_error error;
        if (check->status != SB_OK)
            continue;
        sb_status chosen =
            sb_llm_sample(logits, vocabulary, &receipt->sampling, receipt->prompt_count + step, &check->token, &error);
        if (chosen == SB_ERROR_INVALID_ARGUMENT) {
            check->token = -1;
            snprintf(check->why, sizeof check->why, "%.150s", error.message);
        } else {
            check->status = chosen;
        }
    }
}

/* Gives the chooser the tokens of all steps before `step`, up to one that cannot come, which becomes `impossible`. */
static sb_status take_steps(verifying *v, int64_t step, sb_error *error) {
    for (; v->taken < step && v->impossible < 0; v->taken++) {
        sb_error own;
        sb_status status = sb_chooser_take(&v->chooser, v->receipt->steps[v->taken].token, &own);
        if (status == SB_ERROR_INVALID_ARGUMENT)
            v->impossible = v->taken;
        else if (status != SB_OK)
            return sb_fail(error, status, "%s", own.message);
    }
    return SB_OK;
}

/* Whether all tokens so far could come; else notes the one that could not. */
static bool compare_possible(const verifying *v) {
    if (v->impossible >= 0)
        note(v->verdict, SB_LLM_DIFFERENT_TOKEN, v->impossible, "token %lld cannot come there by the constraint",
             (long long)v->receipt->steps[v->impossible].token);
    return v->impossible < 0;
}

/* Puts penalties, biases and masks on the rows, one after the other: each is of the tokens before it. Rows behind a token that could
 * not come are left out. */
static sb_status adjust_rows(verifying *v, sb_error *error) {
    size_t bytes = (size_t)v->session->llm->config.vocabulary * sizeof(float);
    if (v->constraint == NULL && !sb_llm_sampling_adjusts(&v->receipt->sampling))
        return SB_OK;
    for (int64_t i = 0; i < v->now; i++) {
        const float *adjusted;
        bool complete;
        SB_TRY(take_steps(v, v->steps[v->done + i], error));
        if (v->impossible >= 0) {
            v->now = i;
            return SB_OK;
        }
        SB_TRY(sb_chooser_adjust(&v->chooser, logits_of(v, i), &adjusted, &complete, error));
        memcpy(logits_of(v, i), adjusted, bytes);
    }
    return SB_OK;
}

/* Whether the step is what the receipt says; else notes what is not. */
static bool compare_step(const verifying *v, int64_t step, const row_check *check) {
    const sb_receipt_step *said = &v->receipt->steps[step];
    char have[2 * SB_DIGEST_BYTES + 1], want[2 * SB_DIGEST_BYTES + 1];
    if (!is_same(check->state, said->state)) {
        sb_hexadecimal(check->state, SB_DIGEST_BYTES, have);
        sb_hexadecimal(said->state, SB_DIGEST_BYTES, want);
        note(v->verdict, SB_LLM_DIFFERENT_STATE, step,
             "its hidden state is another: the digest is %.16s…, and %.16s… in the receipt", have, want);
    } else if (check->token < 0) {
        note(v->verdict, SB_LLM_DIFFERENT_TOKEN, step, "%s", check->why);
    } else if (check->token != said->token) {
        note(v->verdict, SB_LLM_DIFFERENT_TOKEN, step,
             "its hidden state is right, but sampling chooses token %lld, and the receipt has %lld: it was changed, or "
             "the seed or another setting",
             (long long)check->token, (long long)said->token);
    } else if (sb_bits_from_f32(check->logp) != sb_bits_from_f32(said->logp)) {
        note(v->verdict, SB_LLM_DIFFERENT_LOGP, step, "its log-probability is %.9g, and %.9g in the receipt",
             (double)check->logp, (double)said->logp);
    } else {
        return true;
    }
    return false;
}

/* One run, and what came of it. `*same` is whether nothing differs so far. */
static sb_status run_piece(verifying *v, int64_t first, int64_t count, bool *same, sb_error *error) {
    SB_TRY(sb_llm_run(v->session, count, v->sequence + first, v->now, v->wanted, v->outputs, error));
    sb_workers_run(v->workers, v->now, 1, describe_rows, v);
    sb_status status = adjust_rows(v, error);
    if (status == SB_OK)
        sb_workers_run(v->workers, v->now, 1, draw_rows, v);
    for (int i = 0; i < SB_LLM_OUTPUTS; i++)
        sb_tensor_release(v->outputs[i]);
    SB_TRY(status);
    for (int64_t i = 0; i < v->now && *same; i++) {
        if (v->checks[i].status == SB_ERROR_OUT_OF_MEMORY)
            return sb_fail_memory(error, (size_t)v->session->llm->config.vocabulary * sizeof(float));
        if (v->checks[i].status != SB_OK)
            return sb_fail(error, v->checks[i].status, "step %lld could not be compared",
                           (long long)v->steps[v->done + i]);
        v->verdict->checked++;
        *same = compare_step(v, v->steps[v->done + i], &v->checks[i]);
    }
    *same = *same && compare_possible(v);
    v->done += v->now;
    return SB_OK;
}

/* Whether something can come behind the last token. */
static sb_status look_behind(verifying *v, sb_error *error) {
    const float *adjusted;
    int64_t vocabulary = v->session->llm->config.vocabulary, count = v->receipt->step_count;
    bool stopped = count > 0 && is_stop(v, v->receipt->steps[count - 1].token);
    if (v->constraint == NULL)
        return SB_OK;
    SB_TRY(take_steps(v, stopped ? count - 1 : count, error));
    if (!compare_possible(v) || stopped)
        return SB_OK;
    float *logits = sb_allocate_array((size_t)vocabulary, sizeof *logits);
    if (logits == NULL)
        return sb_fail_memory(error, (size_t)vocabulary * sizeof *logits);
    sb_status status = sb_chooser_adjust(&v->chooser, logits, &adjusted, &v->sealed, error);
    sb_free(logits);
    return status;
}

static sb_status run_steps(verifying *v, sb_error *error) {
    const sb_llm_receipt *receipt = v->receipt;
    int64_t vocabulary = v->session->llm->config.vocabulary;
    bool same = true;
    for (int64_t i = 0; i < receipt->prompt_count; i++) {
        v->sequence[i] = receipt->prompt[i];
        if (receipt->prompt[i] >= vocabulary) {
            note(v->verdict, SB_LLM_DIFFERENT_STATE, 0, "token %lld of the prompt is %lld; the model has %lld",
                 (long long)i, (long long)receipt->prompt[i], (long long)vocabulary);
            return SB_OK;
        }
    }
    for (int64_t i = 0; i < receipt->step_count; i++)
        v->sequence[receipt->prompt_count + i] = receipt->steps[i].token;
    SB_TRY(choose_steps(v, error));
    for (int64_t first = 0; v->done < v->step_count && same;) {
        int64_t count = choose_rows(v, first);
        SB_TRY(run_piece(v, first, count, &same, error));
        first += count;
    }
    return same ? look_behind(v, error) : SB_OK;
}

/* ---- the constraint ---- */

/* The receipt's schema with the tokenizer's tokens, which have to be those of the generation. */
static sb_status make_constraint(verifying *v, sb_error *error) {
    unsigned char tokens[SB_DIGEST_BYTES];
    const char *schema = v->receipt->schema;
    if (schema == NULL)
        return SB_OK;
    if (v->options->tokenizer == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the receipt has a constraint, which takes sb_llm_verification.tokenizer to be verified");
    SB_TRY(sb_llm_constraint_create(v->options->tokenizer, schema, strlen(schema), &v->constraint, error));
    SB_TRY(sb_receipt_tokens(v->constraint, tokens, error));
    if (!is_same(tokens, v->receipt->tokens))
        note(v->verdict, SB_LLM_DIFFERENT_TOKENIZER, -1,
             "the tokenizer's tokens have other bytes than those of the receipt");
    return SB_OK;
}

static sb_status begin_choosing(verifying *v, sb_error *error) {
    const sb_llm_receipt *receipt = v->receipt;
    const sb_llm_config *config = &v->session->llm->config;
    int64_t known = 0; /* a prompt of tokens that the model has not got is told of later */
    while (known < receipt->prompt_count && receipt->prompt[known] < config->vocabulary)
        known++;
    return sb_chooser_begin(&v->chooser, config, &receipt->sampling, v->constraint, known, receipt->prompt, error);
}

/* ---- all of it ---- */

static sb_status verify(verifying *v, sb_error *error) {
    compare_files(v);
    SB_TRY(make_constraint(v, error));
    SB_TRY(compare_settings(v, error));
    SB_TRY(begin_choosing(v, error));
    SB_TRY(run_steps(v, error));
    compare_end(v);
    return compare_digest(v, error);
}

static sb_status check_session(const sb_llm_session *session, const sb_llm_receipt *receipt,
                               const sb_llm_verification *options, sb_error *error) {
    const sb_llm_description *about = &session->llm->description;
    if (options->struct_bytes != sizeof *options || options->sample < 0 || options->chunk < 0 || options->threads < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_llm_verification: struct_bytes is not set, or a number is negative");
    if (!session->llm->receipts || sb_llm_session_length(session) != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "verifying needs an empty sequence of a model that was loaded with sb_llm_options.receipts");
    if (about->dtype != receipt->dtype || about->context != receipt->context)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the model was loaded in %s for a context of %lld; the receipt wants %s and %lld",
                       sb_dtype_name(about->dtype), (long long)about->context, sb_dtype_name(receipt->dtype),
                       (long long)receipt->context);
    return SB_OK;
}

sb_status sb_llm_verify(sb_llm_session *session, const sb_llm_receipt *receipt, const sb_llm_verification *options,
                        sb_llm_verdict *verdict, sb_error *error) {
    const sb_llm_verification standard = SB_LLM_VERIFICATION_DEFAULT;
    options = options != NULL ? options : &standard;
    SB_TRY(check_session(session, receipt, options, error));
    size_t tokens = (size_t)(receipt->prompt_count + 2 * receipt->step_count);
    verifying *v = sb_allocate_array(1, sizeof *v);
    int64_t *numbers = sb_allocate_array(tokens, sizeof *numbers);
    sb_workers *workers = NULL;
    sb_status status = v == NULL || numbers == NULL ? sb_fail_memory(error, sizeof *v + tokens * sizeof *numbers)
                                                    : sb_workers_create(options->threads, &workers, error);
    *verdict = (sb_llm_verdict){.steps = receipt->step_count};
    if (status == SB_OK) {
        *v = (verifying){.session = session,
                         .receipt = receipt,
                         .options = options,
                         .verdict = verdict,
                         .workers = workers,
                         .impossible = -1,
                         .sequence = numbers,
                         .steps = numbers + receipt->prompt_count + receipt->step_count};
        status = verify(v, error);
        sb_chooser_end(&v->chooser);
        sb_llm_constraint_release(v->constraint);
        sb_status trimmed = sb_llm_session_trim(session, 0, NULL);
        status = status != SB_OK ? status : trimmed;
    }
    sb_workers_destroy(workers);
    sb_free(numbers);
    sb_free(v);
    return status;
}
