#include <string.h>
#include <time.h>

#include "base/allocation.h"
#include "llm/llm.h"
#include "llm/receipt.h"
#include "llm/score.h"

#define DEFAULT_CHUNK 512

/* A generation in progress. */
typedef struct generating {
    sb_llm_session *session;
    const sb_llm_generation *about;
    const sb_llm_config *config;
    sb_digest digest;
    sb_llm_result result;
    sb_llm_receipt *receipt;            /* NULL: nobody wants one */
    sb_tensor *outputs[SB_LLM_OUTPUTS]; /* of the last run */
    double begun;
    bool stopped; /* by the caller */
} generating;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Puts tokens behind the sequence; their outputs take the place of the last ones. */
static sb_status step(generating *g, int64_t count, const int64_t *tokens, int64_t wanted_count, const int64_t *wanted,
                      sb_error *error) {
    for (int i = 0; i < SB_LLM_OUTPUTS; i++) {
        sb_tensor_release(g->outputs[i]);
        g->outputs[i] = NULL;
    }
    return sb_llm_run(g->session, count, tokens, wanted_count, wanted, g->outputs, error);
}

static int64_t last_row(const generating *g) {
    return sb_tensor_dims(g->outputs[SB_LLM_LOGITS])[1] - 1;
}

static const float *logits_of(const generating *g, int64_t row) {
    return (const float *)sb_tensor_data(g->outputs[SB_LLM_LOGITS]) + row * g->config->vocabulary;
}

static bool is_stop(const sb_llm_config *config, int64_t token) {
    for (int i = 0; i < config->stop_count; i++) {
        if (config->stops[i] == token)
            return true;
    }
    return false;
}

/* `logits` NULL: the first token of the prompt. A new token's are those of the last row. */
static sb_status tell(generating *g, int64_t position, int64_t token, bool given, const float *logits, float logp,
                      sb_error *error) {
    int64_t vocabulary = g->config->vocabulary;
    sb_llm_token what = {.position = position,
                         .token = token,
                         .given = given,
                         .stops = !given && !g->about->ignore_stops && is_stop(g->config, token),
                         .has_logp = logits != NULL,
                         .logits = logits};
    sb_tensor *row;
    sb_digest_add_integer(&g->digest, token);
    if (logits != NULL) {
        what.logp = logp;
        SB_TRY(sb_tensor_wrap(SB_F32, 1, &vocabulary, NULL, (void *)(uintptr_t)logits, NULL, NULL, &row, error));
        sb_digest_add_tensor(&g->digest, row);
        sb_tensor_release(row);
    }
    if (g->receipt != NULL && !given)
        SB_TRY(sb_receipt_add(g->receipt, token, what.logp, g->outputs[SB_LLM_HIDDEN], last_row(g), error));
    return g->about->on_token != NULL ? g->about->on_token(g->about->context, &what, &g->stopped, error) : SB_OK;
}

/* ---- the prompt ---- */

/* Logits of the piece's tokens, by which the next ones are scored. */
static sb_status score_piece(generating *g, int64_t first, int64_t count, const int64_t *tokens, int64_t all,
                             int64_t begin, sb_error *error) {
    float logps[DEFAULT_CHUNK];
    int64_t scored = first + count < all ? count : count - 1;
    const sb_llm_scored_rows rows = {.count = scored,
                                     .vocabulary = g->config->vocabulary,
                                     .logits = logits_of(g, 0),
                                     .targets = tokens + first + 1,
                                     .logps = logps};
    sb_workers *workers;
    SB_TRY(sb_llm_session_scorers(g->session, &workers, error));
    SB_TRY(sb_llm_score_rows(workers, &rows, error));
    for (int64_t i = 0; i < count && !g->stopped; i++) {
        if (first == 0 && i == 0)
            SB_TRY(tell(g, begin, tokens[0], true, NULL, 0, error));
        if (i < scored)
            SB_TRY(tell(g, begin + first + i + 1, tokens[first + i + 1], true, logits_of(g, i), logps[i], error));
    }
    return SB_OK;
}

/* Wants all rows when they are to be scored, else the prompt's last. */
static int64_t choose_rows(const generating *g, int64_t count, bool is_last, int64_t rows[]) {
    if (!g->about->score_prompt) {
        rows[0] = count - 1;
        return is_last ? 1 : 0;
    }
    for (int64_t i = 0; i < count; i++)
        rows[i] = i;
    return count;
}

/* Runs the prompt; the outputs have the last token's in their last row. */
static sb_status run_prompt(generating *g, int64_t count, const int64_t *tokens, sb_error *error) {
    int64_t rows[DEFAULT_CHUNK], begin = g->session->length;
    int64_t chunk = g->about->chunk > 0 && g->about->chunk < DEFAULT_CHUNK ? g->about->chunk : DEFAULT_CHUNK;
    if (g->about->score_prompt)
        chunk = sb_llm_score_chunk(g->config->vocabulary, g->about->chunk);
    for (int64_t first = 0; first < count && !g->stopped;) {
        int64_t piece = count - first < chunk ? count - first : chunk;
        bool is_last = first + piece == count;
        int64_t wanted = choose_rows(g, piece, is_last, rows);
        SB_TRY(step(g, piece, tokens + first, wanted, rows, error));
        if (g->about->score_prompt)
            SB_TRY(score_piece(g, first, piece, tokens, count, begin, error));
        first += piece;
    }
    return SB_OK;
}

/* ---- new tokens ---- */

static sb_status run_tokens(generating *g, sb_error *error) {
    static const int64_t only = 0;
    while (g->result.new_tokens < g->about->limit && !g->stopped) {
        int64_t token, position = g->session->length;
        const float *last = logits_of(g, last_row(g));
        SB_TRY(sb_llm_sample(last, g->config->vocabulary, &g->about->sampling, position, &token, error));
        SB_TRY(tell(g, position, token, false, last, sb_llm_logp(last, g->config->vocabulary, token), error));
        if (g->result.new_tokens++ == 0)
            g->result.first_token_ns = now_ns() - g->begun;
        if (!g->about->ignore_stops && is_stop(g->config, token)) {
            g->result.end = SB_LLM_END_STOP;
            return SB_OK;
        }
        if (g->result.new_tokens == g->about->limit || g->stopped)
            break;
        if (g->session->length == g->session->llm->description.context) {
            g->result.end = SB_LLM_END_CONTEXT;
            return SB_OK;
        }
        SB_TRY(step(g, 1, &token, 1, &only, error));
    }
    g->result.end = g->stopped ? SB_LLM_END_CALLER : SB_LLM_END_LIMIT;
    return SB_OK;
}

static sb_status run(generating *g, int64_t count, const int64_t *tokens, sb_error *error) {
    sb_status status = run_prompt(g, count, tokens, error);
    g->result.prompt_ns = now_ns() - g->begun;
    g->result.end = SB_LLM_END_CALLER;
    if (status == SB_OK && !g->stopped)
        status = run_tokens(g, error);
    g->result.decode_ns = now_ns() - g->begun - g->result.first_token_ns;
    for (int i = 0; i < SB_LLM_OUTPUTS; i++)
        sb_tensor_release(g->outputs[i]);
    return status;
}

/* ---- receipts ---- */

static sb_status begin_receipt(generating *g, int64_t count, const int64_t *tokens, sb_error *error) {
    const sb_llm *llm = g->session->llm;
    if (!llm->receipts)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a receipt needs a model that was loaded with sb_llm_options.receipts");
    if (g->session->length != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a receipt is of a whole sequence, and this one has %lld positions before the prompt: begin an "
                       "empty one",
                       (long long)g->session->length);
    SB_TRY(sb_receipt_create(count, &g->receipt, error));
    g->receipt->fingerprint = llm->fingerprint;
    g->receipt->dtype = llm->description.dtype;
    g->receipt->context = llm->description.context;
    g->receipt->sampling = g->about->sampling;
    g->receipt->limit = g->about->limit;
    g->receipt->ignore_stops = g->about->ignore_stops;
    memcpy(g->receipt->prompt, tokens, (size_t)count * sizeof *tokens);
    return SB_OK;
}

static sb_status end_receipt(generating *g, sb_error *error) {
    g->receipt->end = g->result.end;
    SB_TRY(sb_receipt_settings(g->receipt, g->receipt->settings, error));
    return sb_receipt_digest(g->receipt, g->receipt->digest, error);
}

/* The generation and what is told of it when it is over. */
static sb_status run_with_receipt(generating *g, int64_t count, const int64_t *tokens, sb_error *error) {
    if (g->about->receipt != NULL)
        SB_TRY(begin_receipt(g, count, tokens, error));
    sb_status status = run(g, count, tokens, error);
    if (status == SB_OK && g->receipt != NULL)
        status = end_receipt(g, error);
    return status;
}

sb_status sb_llm_generate(sb_llm_session *session, int64_t count, const int64_t *tokens,
                          const sb_llm_generation *generation, sb_llm_result *result, sb_error *error) {
    generating g = {.session = session,
                    .about = generation,
                    .config = &session->llm->config,
                    .result = {.prompt_tokens = count},
                    .begun = now_ns()};
    unsigned char digest[SB_DIGEST_BYTES];
    if (generation->struct_bytes != sizeof *generation || generation->limit < 0 || generation->chunk < 0 || count < 1)
        return sb_fail(
            error, SB_ERROR_INVALID_ARGUMENT,
            "a generation needs a prompt of at least one token, and neither limit (%lld) nor chunk (%lld) may "
            "be negative",
            (long long)generation->limit, (long long)generation->chunk);
    SB_TRY(sb_digest_begin(&g.digest, error));
    sb_status status = run_with_receipt(&g, count, tokens, error), ended = sb_digest_end(&g.digest, digest, NULL);
    if (status == SB_OK && ended != SB_OK)
        status = sb_fail_memory(error, sizeof digest);
    if (status != SB_OK) {
        sb_llm_receipt_release(g.receipt);
        return status;
    }
    if (g.receipt != NULL)
        *generation->receipt = g.receipt;
    if (result == NULL)
        return SB_OK;
    *result = g.result;
    sb_hexadecimal(digest, SB_DIGEST_BYTES, result->digest);
    return SB_OK;
}
