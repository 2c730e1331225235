/* Scoring: what a model makes of tokens that are given. */
#include "llm/score.h"

#include <string.h>

#include "base/allocation.h"
#include "base/workers.h"
#include "llm/sample.h"

#define MOST_CHUNK 512
#define MOST_LOGITS ((int64_t)1 << 25) /* 128 MiB */

/* ---- rows of logits ---- */

typedef struct scored_rows {
    const float *logits;
    const int64_t *targets;
    int64_t vocabulary, top;
    float *logps, *top_logps;
    int64_t *top_tokens;
    uint64_t *heaps; /* `top` keys for each row */
} scored_rows;

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

/* The first `top` tokens of a row. Keys are all different and above 0, which stands for a place that nobody has yet. */
static void find_top(const scored_rows *rows, int64_t row, const sb_llm_logp_row *sums) {
    const float *logits = rows->logits + row * rows->vocabulary;
    uint64_t *heap = rows->heaps + row * rows->top;
    memset(heap, 0, (size_t)rows->top * sizeof *heap);
    for (int64_t token = 0; token < rows->vocabulary; token++) {
        uint64_t key = sb_sample_key(logits[token], token);
        if (key > heap[0])
            replace_least(heap, rows->top, key);
    }
    for (int64_t left = rows->top; left > 0; left--) { /* the least is the last */
        int64_t token = sb_sample_token(heap[0]), place = row * rows->top + left - 1;
        rows->top_tokens[place] = token;
        rows->top_logps[place] = sb_llm_logp_in(sums, logits, rows->vocabulary, token);
        replace_least(heap, left - 1, heap[left - 1]);
    }
}

static void score_rows(void *context, int64_t first, int64_t end) {
    const scored_rows *rows = context;
    for (int64_t row = first; row < end; row++) {
        const float *logits = rows->logits + row * rows->vocabulary;
        sb_llm_logp_row sums = sb_llm_logp_row_of(logits, rows->vocabulary);
        rows->logps[row] = sb_llm_logp_in(&sums, logits, rows->vocabulary, rows->targets[row]);
        if (rows->top > 0)
            find_top(rows, row, &sums);
    }
}

sb_status sb_llm_score_rows(sb_llm_session *session, int64_t count, const float *logits, const int64_t *targets,
                            float *logps, int64_t top, int64_t *top_tokens, float *top_logps, sb_error *error) {
    scored_rows rows = {.logits = logits,
                        .targets = targets,
                        .vocabulary = session->llm->config.vocabulary,
                        .top = top,
                        .logps = logps,
                        .top_logps = top_logps,
                        .top_tokens = top_tokens};
    if (session->scorers == NULL)
        SB_TRY(sb_workers_create(session->threads, &session->scorers, error));
    if (top > 0 && count > 0) {
        size_t bytes = (size_t)count * (size_t)top * sizeof *rows.heaps; /* at most 512 times the vocabulary */
        rows.heaps = sb_allocate(bytes);
        if (rows.heaps == NULL)
            return sb_fail_memory(error, bytes);
    }
    sb_workers_run(session->scorers, count, 1, score_rows, &rows);
    sb_free(rows.heaps);
    return SB_OK;
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
    sb_status status = SB_OK;
    if (wanted_count > 0) {
        int64_t target = first + wanted[0] + 1, row = target - about->first;
        bool has_top = about->top > 0;
        status =
            sb_llm_score_rows(s->session, wanted_count, sb_tensor_data(logits), s->tokens + target, about->logps + row,
                              about->top, has_top ? about->top_tokens + row * about->top : NULL,
                              has_top ? about->top_logps + row * about->top : NULL, error);
    }
    sb_tensor_release(logits);
    return status;
}

static sb_status check_scoring(const scoring *s, sb_error *error) {
    const sb_llm_scoring *about = s->about;
    const sb_llm_description *model = &s->session->llm->description;
    int64_t length = s->session->length;
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
    int64_t length = session->length;
    SB_TRY(check_scoring(&s, error));
    int64_t chunk = sb_llm_score_chunk(session->llm->config.vocabulary, about->chunk);
    if (about->first == 0)
        leave_first(about);
    for (int64_t first = 0; first < count; first += chunk) {
        int64_t piece = count - first < chunk ? count - first : chunk;
        sb_status status = score_piece(&s, first, piece, error);
        if (status != SB_OK) {
            session->length = length;
            return status;
        }
    }
    return SB_OK;
}
