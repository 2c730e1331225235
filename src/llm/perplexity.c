/* Perplexity: how well a model foretells a text, over windows of it (docs/llm.md). */
#include <math.h>
#include <string.h>

#include "base/allocation.h"
#include "llm/receipt.h"
#include "llm/score.h"
#include "numerics/exp_log_f64.h"
#include "runtime/digest.h"

#define USUAL_WINDOW 512

/* A window: tokens of the text behind the beginning token, if there is one, and which of its tokens count. */
typedef struct text_window {
    int64_t first, count; /* of the text */
    int64_t scored_from;  /* in the window, with the beginning token: from here to its end */
} text_window;

typedef struct measuring {
    sb_llm_session *session;
    sb_llm_perplexity how; /* with the defaults filled in */
    int64_t count;         /* of the text's tokens */
    const int64_t *tokens;
    int64_t leading; /* 1 with a beginning token, else 0 */
    int64_t *ids;    /* a window's */
    float *logps;
    double sum, squares;
    sb_digest digest;
    sb_llm_perplexity_result *result;
} measuring;

/* ---- how the text is cut ---- */

/* Of full windows the first ends where it is full, or with the text; each other one `stride` tokens behind the one before. Each is
 * as long as may be and counts what no window before has counted. Without a beginning token nothing foretells the first one. */
static int64_t count_full(const measuring *m) {
    int64_t first_end = m->how.window - m->leading;
    if (m->count + m->leading < 2)
        return 0;
    return m->count <= first_end ? 1 : 1 + (m->count - first_end + m->how.stride - 1) / m->how.stride;
}

static text_window full_window(const measuring *m, int64_t index) {
    int64_t most = m->how.window - m->leading;
    int64_t counted = index == 0 ? 1 - m->leading : most + (index - 1) * m->how.stride;
    int64_t end = most + index * m->how.stride;
    end = end < m->count ? end : m->count;
    int64_t first = end > most ? end - most : 0;
    return (text_window){first, end - first, m->leading + counted - first};
}

/* llama.cpp cuts the text with its beginning token into windows one behind the other, puts that token in the place of the first of
 * each, and counts what stands behind the middle. What is left over at the end is left out. */
static int64_t count_llama(const measuring *m) {
    return (m->count + m->leading) / m->how.window;
}

static text_window llama_window(const measuring *m, int64_t index) {
    int64_t first = index * m->how.window;
    return (text_window){first, m->how.window - m->leading, m->how.window / 2 + 1};
}

static text_window window_at(const measuring *m, int64_t index) {
    return m->how.windows == SB_LLM_WINDOWS_FULL ? full_window(m, index) : llama_window(m, index);
}

/* ---- a window ---- */

/* The token's part of all that is told. */
static void count_token(measuring *m, int64_t token, float logp) {
    double loss = -(double)logp;
    m->sum += loss;
    m->squares += loss * loss;
    m->result->scored++;
    sb_digest_add_integer(&m->digest, token);
    sb_digest_add_integer(&m->digest, (int64_t)sb_bits_from_f32(logp == logp ? logp : sb_nan_f32()));
}

static void sum_up(measuring *m) {
    sb_llm_perplexity_result *result = m->result;
    double scored = (double)result->scored;
    result->mean = m->sum / scored;
    result->perplexity = sb_exp_f64(result->mean);
    double variance = (m->squares - m->sum * result->mean) / (scored - 1); /* 0 / 0 for a single token */
    result->error = result->perplexity * sqrt((variance < 0 ? 0 : variance) / scored);
}

static sb_status run_window(measuring *m, const text_window *window, sb_error *error) {
    sb_llm_scoring scoring = SB_LLM_SCORING_DEFAULT;
    int64_t count = m->leading + window->count;
    if (m->leading != 0)
        m->ids[0] = m->how.begin;
    memcpy(m->ids + m->leading, m->tokens + window->first, (size_t)window->count * sizeof *m->ids);
    scoring.chunk = m->how.chunk;
    scoring.first = window->scored_from;
    scoring.logps = m->logps;
    SB_TRY(sb_llm_session_trim(m->session, 0, error));
    SB_TRY(sb_llm_score(m->session, count, m->ids, &scoring, error));
    for (int64_t i = window->scored_from; i < count; i++)
        count_token(m, m->ids[i], m->logps[i - window->scored_from]);
    m->result->windows++;
    sum_up(m);
    return m->how.on_window != NULL ? m->how.on_window(m->how.context, m->result, error) : SB_OK;
}

/* ---- the whole ---- */

static sb_status settle(measuring *m, sb_error *error) {
    sb_llm_perplexity *how = &m->how;
    int64_t context = m->session->llm->description.context;
    bool full = how->windows == SB_LLM_WINDOWS_FULL;
    if (how->struct_bytes != sizeof *how || (!full && how->windows != SB_LLM_WINDOWS_LLAMA_CPP))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_llm_perplexity: struct_bytes is not set, or there is no such kind of windows");
    if (how->window == 0)
        how->window = context < USUAL_WINDOW ? context : USUAL_WINDOW;
    if (how->window < 2 || how->window > context)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "windows of %lld positions: they may have from 2 to %lld, the model's context",
                       (long long)how->window, (long long)context);
    if (!full && how->stride != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a stride of %lld: llama.cpp's windows stand one behind the other", (long long)how->stride);
    how->stride = how->stride == 0 ? how->window / 2 : how->stride;
    if (how->stride < 1 || how->stride >= how->window || how->limit < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a stride of %lld and at most %lld windows: the stride may be from 1 to %lld, and no limit is 0",
                       (long long)how->stride, (long long)how->limit, (long long)how->window - 1);
    m->leading = how->begin >= 0;
    m->result->of_windows = full ? count_full(m) : count_llama(m);
    if (m->result->of_windows == 0 || (!full && how->window == 2))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a text of %lld tokens has no window of %lld positions in which a token counts: take %s",
                       (long long)m->count, (long long)how->window,
                       how->window > 2 ? "a longer text or shorter windows" : "longer windows");
    if (how->limit > 0 && how->limit < m->result->of_windows)
        m->result->of_windows = how->limit;
    return SB_OK;
}

static sb_status run_windows(measuring *m, sb_error *error) {
    size_t positions = (size_t)m->how.window;
    m->ids = sb_allocate_array(positions, sizeof *m->ids);
    m->logps = sb_allocate_array(positions, sizeof *m->logps);
    sb_status status = m->ids == NULL || m->logps == NULL ? sb_fail_memory(error, positions * sizeof *m->ids) : SB_OK;
    for (int64_t i = 0; i < m->result->of_windows && status == SB_OK; i++) {
        const text_window window = window_at(m, i);
        status = run_window(m, &window, error);
    }
    sb_free(m->ids);
    sb_free(m->logps);
    return status;
}

sb_status sb_llm_measure_perplexity(sb_llm_session *session, int64_t count, const int64_t *tokens,
                                    const sb_llm_perplexity *how, sb_llm_perplexity_result *result, sb_error *error) {
    unsigned char digest[SB_DIGEST_BYTES];
    measuring m = {.session = session, .how = *how, .count = count, .tokens = tokens, .result = result};
    *result = (sb_llm_perplexity_result){.tokens = count};
    SB_TRY(settle(&m, error));
    SB_TRY(sb_digest_begin(&m.digest, error));
    sb_status status = run_windows(&m, error), ended = sb_digest_end(&m.digest, digest, NULL);
    if (status == SB_OK && ended != SB_OK)
        status = sb_fail_memory(error, sizeof digest);
    sb_status trimmed = sb_llm_session_trim(session, 0, NULL); /* always possible */
    if (status != SB_OK || trimmed != SB_OK)
        return status != SB_OK ? status : trimmed;
    sb_hexadecimal(digest, SB_DIGEST_BYTES, result->digest);
    return SB_OK;
}
