/* Embeddings: the final hidden states of a text's tokens, or one of all. */
#include <string.h>

#include "base/allocation.h"
#include "llm/generating.h"
#include "numerics/convert.h"

typedef struct embedding {
    sb_llm_session *session;
    const sb_llm_embedding *about;
    int64_t count;
    const int64_t *tokens;
    int64_t hidden, rows; /* rows: that are looked at */
    float *states;        /* rows or, pooled, one */
    double *sums;         /* of the mean */
    int64_t done;         /* rows so far */
} embedding;

/* Which place the row has that is looked at as number `i`. */
static int64_t place_of(const embedding *e, int64_t i) {
    if (e->about->pooling == SB_LLM_POOL_LAST)
        return e->count - 1;
    return e->about->wanted != NULL ? e->about->wanted[i] : i;
}

static float widen(sb_dtype dtype, const void *data, int64_t i) {
    if (dtype == SB_F32)
        return ((const float *)data)[i];
    uint16_t bits = ((const uint16_t *)data)[i];
    return dtype == SB_F16 ? sb_f16_to_f32(bits) : sb_bf16_to_f32(bits);
}

/* In the order of the rows. */
static void take_row(embedding *e, const sb_tensor *hidden, int64_t row) {
    sb_dtype dtype = sb_tensor_dtype(hidden);
    const void *data = sb_tensor_data(hidden);
    for (int64_t i = 0; i < e->hidden; i++) {
        float number = widen(dtype, data, row * e->hidden + i);
        if (e->sums != NULL)
            e->sums[i] += (double)number;
        else
            e->states[e->done * e->hidden + i] = number;
    }
    e->done++;
}

static sb_status run_piece(embedding *e, int64_t first, int64_t count, sb_error *error) {
    int64_t wanted[SB_LLM_MOST_CHUNK], now = 0;
    sb_tensor *hidden;
    while (e->done + now < e->rows && place_of(e, e->done + now) < first + count) {
        wanted[now] = place_of(e, e->done + now) - first;
        now++;
    }
    const sb_llm_step_part part = {e->session->sequence, count, e->tokens + first, now, wanted};
    SB_TRY(sb_llm_batch_look(e->session->batch, 1, &part, &hidden, error));
    for (int64_t row = 0; row < now; row++)
        take_row(e, hidden, row);
    sb_tensor_release(hidden);
    return SB_OK;
}

static sb_status run_all(embedding *e, sb_error *error) {
    int64_t length = sb_llm_session_length(e->session);
    int64_t chunk = sb_llm_batch_chunk(e->session->batch, e->about->chunk);
    sb_status status = SB_OK;
    for (int64_t first = 0; first < e->count && status == SB_OK; first += chunk)
        status = run_piece(e, first, e->count - first < chunk ? e->count - first : chunk, error);
    if (status != SB_OK) {
        sb_status trimmed = sb_llm_session_trim(e->session, length, NULL); /* always possible: it was as long */
        return trimmed == SB_OK ? status : trimmed;
    }
    for (int64_t i = 0; i < e->hidden && e->sums != NULL; i++)
        e->states[i] = (float)(e->sums[i] / (double)e->rows);
    return SB_OK;
}

static sb_status check(const embedding *e, sb_error *error) {
    const sb_llm_embedding *about = e->about;
    const sb_llm_description *model = &e->session->llm->description;
    int64_t length = sb_llm_session_length(e->session);
    if (about->struct_bytes != sizeof *about || about->chunk < 0 || (unsigned)about->pooling > SB_LLM_POOL_MEAN)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_llm_embedding: struct_bytes is not set, chunk (%lld) is negative, or there is no pooling %d",
                       (long long)about->chunk, (int)about->pooling);
    if (!e->session->llm->hidden_states)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "embeddings need a model that was loaded with sb_llm_options.hidden_states");
    if (e->count < 1)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "there are no tokens");
    if (e->count > model->context - length)
        return sb_fail(error, SB_ERROR_LIMIT,
                       "%lld tokens behind %lld are more than the context of %lld: load the model with a longer one",
                       (long long)e->count, (long long)length, (long long)model->context);
    if (about->wanted == NULL)
        return SB_OK;
    if (about->pooling == SB_LLM_POOL_LAST || about->wanted_count < 1 || about->wanted_count > e->count)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "%lld of %lld tokens are wanted: at least one of them is, each once, and none are named for the "
                       "last one alone",
                       (long long)about->wanted_count, (long long)e->count);
    for (int64_t i = 0; i < about->wanted_count; i++) {
        if (about->wanted[i] < 0 || about->wanted[i] >= e->count || (i > 0 && about->wanted[i] <= about->wanted[i - 1]))
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "the state of token %lld of %lld is wanted, as number %lld: places ascend from 0",
                           (long long)about->wanted[i], (long long)e->count, (long long)i);
    }
    return SB_OK;
}

sb_status sb_llm_embed(sb_llm_session *session, int64_t count, const int64_t *tokens, const sb_llm_embedding *about,
                       sb_tensor **states, sb_error *error) {
    const sb_llm_embedding standard = SB_LLM_EMBEDDING_DEFAULT;
    embedding e = {.session = session,
                   .about = about != NULL ? about : &standard,
                   .count = count,
                   .tokens = tokens,
                   .hidden = session->llm->config.hidden};
    SB_TRY(check(&e, error));
    sb_llm_pooling pooling = e.about->pooling;
    e.rows = pooling == SB_LLM_POOL_LAST ? 1 : e.about->wanted != NULL ? e.about->wanted_count : count;
    const int64_t dims[] = {pooling == SB_LLM_POOL_NONE ? e.rows : 1, e.hidden};
    sb_tensor *made;
    if (pooling == SB_LLM_POOL_MEAN && (e.sums = sb_allocate_array((size_t)e.hidden, sizeof *e.sums)) == NULL)
        return sb_fail_memory(error, (size_t)e.hidden * sizeof *e.sums);
    sb_status status = sb_tensor_create(SB_F32, 2, dims, &made, error);
    if (status == SB_OK) {
        e.states = sb_tensor_mutable_data(made);
        status = run_all(&e, error);
        if (status == SB_OK)
            *states = made;
        else
            sb_tensor_release(made);
    }
    sb_free(e.sums);
    return status;
}
