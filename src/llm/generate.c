#include <string.h>
#include <time.h>

#include "llm/llm.h"
#include "runtime/digest.h"

#define DEFAULT_CHUNK 512

/* A generation in progress. */
typedef struct generating {
    sb_llm_session *session;
    const sb_llm_generation *about;
    const sb_llm_config *config;
    sb_digest digest;
    sb_llm_result result;
    double begun;
    bool stopped; /* by the caller */
} generating;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static const float *row_of(const sb_tensor *logits, int64_t row, int64_t vocabulary) {
    return (const float *)sb_tensor_data(logits) + row * vocabulary;
}

static bool is_stop(const sb_llm_config *config, int64_t token) {
    for (int i = 0; i < config->stop_count; i++) {
        if (config->stops[i] == token)
            return true;
    }
    return false;
}

/* `logits` NULL: the first token of the prompt. */
static sb_status tell(generating *g, int64_t position, int64_t token, bool given, const float *logits,
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
        what.logp = sb_llm_logp(logits, vocabulary, token);
        SB_TRY(sb_tensor_wrap(SB_F32, 1, &vocabulary, NULL, (void *)(uintptr_t)logits, NULL, NULL, &row, error));
        sb_digest_add_tensor(&g->digest, row);
        sb_tensor_release(row);
    }
    return g->about->on_token != NULL ? g->about->on_token(g->about->context, &what, &g->stopped, error) : SB_OK;
}

/* ---- the prompt ---- */

/* Logits of the piece's tokens, by which the next ones are scored. `*last` becomes the last row's, of the prompt. */
static sb_status score_piece(generating *g, int64_t first, int64_t count, const int64_t *tokens, int64_t all,
                             const sb_tensor *logits, int64_t begin, sb_error *error) {
    for (int64_t i = 0; i < count && !g->stopped; i++) {
        if (first == 0 && i == 0)
            SB_TRY(tell(g, begin, tokens[0], true, NULL, error));
        if (first + i + 1 < all)
            SB_TRY(tell(g, begin + first + i + 1, tokens[first + i + 1], true, row_of(logits, i, g->config->vocabulary),
                        error));
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

/* Runs the prompt; `*logits` has the last token's in its last row. */
static sb_status run_prompt(generating *g, int64_t count, const int64_t *tokens, sb_tensor **logits, sb_error *error) {
    int64_t rows[DEFAULT_CHUNK], begin = g->session->length;
    int64_t chunk = g->about->chunk > 0 && g->about->chunk < DEFAULT_CHUNK ? g->about->chunk : DEFAULT_CHUNK;
    for (int64_t first = 0; first < count && !g->stopped;) {
        int64_t piece = count - first < chunk ? count - first : chunk;
        bool is_last = first + piece == count;
        int64_t wanted = choose_rows(g, piece, is_last, rows);
        sb_tensor_release(*logits);
        *logits = NULL;
        SB_TRY(sb_llm_step(g->session, piece, tokens + first, wanted, rows, logits, error));
        if (g->about->score_prompt)
            SB_TRY(score_piece(g, first, piece, tokens, count, *logits, begin, error));
        first += piece;
    }
    return SB_OK;
}

/* ---- new tokens ---- */

static sb_status run_tokens(generating *g, sb_tensor **logits, sb_error *error) {
    static const int64_t only = 0;
    while (g->result.new_tokens < g->about->limit && !g->stopped) {
        int64_t token, position = g->session->length, rows = sb_tensor_dims(*logits)[1];
        const float *last = row_of(*logits, rows - 1, g->config->vocabulary);
        SB_TRY(sb_llm_sample(last, g->config->vocabulary, &g->about->sampling, position, &token, error));
        SB_TRY(tell(g, position, token, false, last, error));
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
        sb_tensor_release(*logits);
        *logits = NULL;
        SB_TRY(sb_llm_step(g->session, 1, &token, 1, &only, logits, error));
    }
    g->result.end = g->stopped ? SB_LLM_END_CALLER : SB_LLM_END_LIMIT;
    return SB_OK;
}

static sb_status run(generating *g, int64_t count, const int64_t *tokens, sb_error *error) {
    sb_tensor *logits = NULL;
    sb_status status = run_prompt(g, count, tokens, &logits, error);
    g->result.prompt_ns = now_ns() - g->begun;
    g->result.end = SB_LLM_END_CALLER;
    if (status == SB_OK && !g->stopped)
        status = run_tokens(g, &logits, error);
    g->result.decode_ns = now_ns() - g->begun - g->result.first_token_ns;
    sb_tensor_release(logits);
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
    sb_status status = run(&g, count, tokens, error), ended = sb_digest_end(&g.digest, digest, NULL);
    if (status == SB_OK && ended != SB_OK)
        status = sb_fail_memory(error, sizeof digest);
    if (status != SB_OK || result == NULL)
        return status;
    *result = g.result;
    for (int i = 0; i < SB_DIGEST_BYTES; i++) {
        static const char digits[] = "0123456789abcdef";
        result->digest[2 * i] = digits[digest[i] >> 4];
        result->digest[2 * i + 1] = digits[digest[i] & 15];
    }
    result->digest[2 * SB_DIGEST_BYTES] = '\0';
    return SB_OK;
}
