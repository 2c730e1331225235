/* Scoring: what a model makes of tokens that are given. */
#include "llm/score.h"

#include <string.h>

#include "base/allocation.h"
#include "base/workers.h"
#include "llm/sample.h"

#define MOST_CHUNK 512
#define MOST_LOGITS ((int64_t)1 << 25) /* 128 MiB */

/* ---- rows of logits ---- */

/* A token's key among those that come first: NaNs come last. Keys are all different and above 0, which stands for a place that
 * nobody has yet. */
static uint64_t top_key(float logit, int64_t token) {
    uint64_t key = sb_choose_key(logit, token);
    return logit != logit ? (uint32_t)key : key;
}

/* Puts `key` in the place of the least of a heap, which is its first, and orders it again. */
static void replace_least(uint64_t *heap, int64_t count, uint64_t key) {
    int64_t at = 0;
    for (int64_t child = 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= key)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

/* The first `count` tokens, all of which there are, in whose room the heap is. */
static void find_top(const float *logits, int64_t vocabulary, int64_t count, int64_t *tokens) {
    uint64_t *heap = (uint64_t *)tokens;
    memset(heap, 0, (size_t)count * sizeof *heap);
    for (int64_t token = 0; token < vocabulary; token++) {
        uint64_t key = top_key(logits[token], token);
        if (key > heap[0])
            replace_least(heap, count, key);
    }
    for (int64_t left = count; left > 0; left--) { /* the least is the last */
        int64_t token = sb_choose_token(heap[0]);
        replace_least(heap, left - 1, heap[left - 1]);
        tokens[left - 1] = token;
    }
}

static void find_top_of(const float *logits, int64_t vocabulary, const sb_llm_logp_row *sums, int64_t count,
                        int64_t *tokens, float *logps) {
    find_top(logits, vocabulary, count, tokens);
    for (int64_t i = 0; i < count; i++)
        logps[i] = sb_llm_logp_in(sums, logits, vocabulary, tokens[i]);
}

int64_t sb_llm_top(const float *logits, int64_t vocabulary, int64_t count, int64_t *tokens, float *logps) {
    count = count < vocabulary ? count : vocabulary;
    if (count <= 0)
        return 0;
    if (logps == NULL) {
        find_top(logits, vocabulary, count, tokens);
        return count;
    }
    sb_llm_logp_row sums = sb_llm_logp_row_of(logits, vocabulary);
    find_top_of(logits, vocabulary, &sums, count, tokens, logps);
    return count;
}

static void score_rows(void *context, int64_t first, int64_t end) {
    const sb_llm_scored_rows *rows = context;
    for (int64_t row = first; row < end; row++) {
        const float *logits = rows->logits + row * rows->vocabulary;
        sb_llm_logp_row sums = sb_llm_logp_row_of(logits, rows->vocabulary);
        rows->logps[row] = sb_llm_logp_in(&sums, logits, rows->vocabulary, rows->targets[row]);
        if (rows->top > 0)
            find_top_of(logits, rows->vocabulary, &sums, rows->top, rows->top_tokens + row * rows->top,
                        rows->top_logps + row * rows->top);
    }
}

void sb_llm_score_rows(sb_workers *workers, const sb_llm_scored_rows *rows) {
    sb_workers_run(workers, rows->count, 1, score_rows, (void *)(uintptr_t)rows);
}

int64_t sb_llm_score_chunk(int64_t vocabulary, int64_t asked) {
    int64_t chunk = asked > 0 ? asked : MOST_LOGITS / vocabulary;
    chunk = chunk < MOST_CHUNK ? chunk : MOST_CHUNK;
    return chunk > 1 ? chunk : 1;
}

/* ---- sequences ---- */

typedef struct scoring {
    sb_llm_session *session;
    const sb_llm_scoring *about;
    int64_t count;
    const int64_t *tokens;
} scoring;

/* The first token's row, where it is asked for: nothing stands before it by which it could be scored. */
static void leave_first(const sb_llm_scoring *about) {
    about->logps[0] = sb_nan_f32();
    for (int64_t i = 0; i < about->top; i++) {
        about->top_tokens[i] = -1;
        about->top_logps[i] = sb_nan_f32();
    }
}

/* Runs `count` tokens from `first` on, and scores those that follow one of them. */
static sb_status score_piece(const scoring *s, int64_t first, int64_t count, sb_error *error) {
    const sb_llm_scoring *about = s->about;
    int64_t wanted[MOST_CHUNK], wanted_count = 0;
    sb_tensor *logits;
    for (int64_t i = 0; i < count; i++) {
        if (first + i + 1 >= about->first && first + i + 1 < s->count)
            wanted[wanted_count++] = i;
    }
    SB_TRY(sb_llm_step(s->session, count, s->tokens + first, wanted_count, wanted, &logits, error));
    if (wanted_count > 0) {
        int64_t target = first + wanted[0] + 1, row = target - about->first;
        const sb_llm_scored_rows rows = {.count = wanted_count,
                                         .vocabulary = s->session->llm->config.vocabulary,
                                         .logits = sb_tensor_data(logits),
                                         .targets = s->tokens + target,
                                         .logps = about->logps + row,
                                         .top = about->top,
                                         .top_tokens = about->top > 0 ? about->top_tokens + row * about->top : NULL,
                                         .top_logps = about->top > 0 ? about->top_logps + row * about->top : NULL};
        sb_llm_score_rows(sb_llm_batch_workers(s->session->batch), &rows);
    }
    sb_tensor_release(logits);
    return SB_OK;
}

static sb_status check_scoring(const scoring *s, sb_error *error) {
    const sb_llm_scoring *about = s->about;
    const sb_llm_description *model = &s->session->llm->description;
    int64_t length = sb_llm_session_length(s->session);
    if (about->struct_bytes != sizeof *about || about->chunk < 0 || about->first < 0 || about->top < 0)
        return sb_fail(
            error, SB_ERROR_INVALID_ARGUMENT,
            "sb_llm_scoring: struct_bytes is not set, or chunk (%lld), first (%lld) or top (%lld) is negative",
            (long long)about->chunk, (long long)about->first, (long long)about->top);
    if (s->count < 1 || about->first > s->count)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "scoring from token %lld of %lld on: there is no such token",
                       (long long)about->first, (long long)s->count);
    if (about->top > model->vocabulary)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the likeliest %lld tokens of %lld are asked for",
                       (long long)about->top, (long long)model->vocabulary);
    if (about->first < s->count &&
        (about->logps == NULL || (about->top > 0 && (about->top_tokens == NULL || about->top_logps == NULL))))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "sb_llm_scoring has no room for what is asked for");
    if (s->count > model->context - length)
        return sb_fail(error, SB_ERROR_LIMIT,
                       "%lld tokens behind %lld are more than the context of %lld: load the model with a longer one",
                       (long long)s->count, (long long)length, (long long)model->context);
    return SB_OK;
}

sb_status sb_llm_score(sb_llm_session *session, int64_t count, const int64_t *tokens, const sb_llm_scoring *about,
                       sb_error *error) {
    const scoring s = {session, about, count, tokens};
    int64_t length = sb_llm_session_length(session);
    SB_TRY(check_scoring(&s, error));
    int64_t chunk = sb_llm_score_chunk(session->llm->config.vocabulary, about->chunk);
    if (about->first == 0)
        leave_first(about);
    for (int64_t first = 0; first < count; first += chunk) {
        int64_t piece = count - first < chunk ? count - first : chunk;
        sb_status status = score_piece(&s, first, piece, error);
        if (status != SB_OK) {
            sb_status trimmed = sb_llm_session_trim(session, length, NULL); /* always possible: it was as long */
            return trimmed == SB_OK ? status : trimmed;
        }
    }
    return SB_OK;
}
