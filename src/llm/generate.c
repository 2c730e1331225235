/* Generating with one sequence: step after step of it alone. On a device steps choose their tokens themselves, once the prompt has been read,
 * and the host gives the next one before it has seen what the one before has chosen. */
#include "llm/generating.h"
#include "llm/score.h"

/* Steps that the device has: while it does one, the next is there. */
#define MOST_AHEAD 2

static void release_outputs(sb_tensor *outputs[SB_LLM_OUTPUTS]) {
    for (int i = 0; i < SB_LLM_OUTPUTS; i++)
        sb_tensor_release(outputs[i]);
}

static sb_status step(sb_llm_session *session, sb_generating *g, sb_error *error) {
    sb_llm_step_part part = {.sequence = session->sequence};
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    sb_generating_next(g, SB_LLM_CHUNK, &part);
    SB_TRY(sb_llm_batch_run(session->batch, 1, &part, outputs, error));
    sb_status status = sb_generating_take(g, &part, outputs, 0, error);
    release_outputs(outputs);
    return status;
}

/* ---- steps ahead of what is known ---- */

/* Steps on their way, the oldest first. */
typedef struct flight {
    sb_llm_session *session;
    int64_t length; /* of the sequence, as far as its tokens are known */
    int count;
    uint64_t runs[MOST_AHEAD];
    sb_status status; /* of the one behind them, which could not be given; it counts when its turn comes */
    sb_error error;
} flight;

/* Gives the step that chooses the token behind those on their way: its own one is the last that is known, or waits on the device. */
static void give(flight *f, const sb_generating *g) {
    static const int64_t row = 0;
    const sb_llm_choice choice = {.part = 0, .row = 0, .by = sb_generating_settings(g, f->count)};
    const sb_llm_ahead ahead = {.count = 1, .choices = &choice, .logits = sb_generating_wants_logits(g)};
    const sb_llm_step_part part = {f->session->sequence, 1, f->count == 0 ? &g->next : NULL, 1, &row};
    f->status = sb_llm_batch_enqueue(f->session->batch, 1, &part, &ahead, &f->runs[f->count], &f->error);
    f->count += f->status == SB_OK;
}

static sb_status collect(flight *f, sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error) {
    uint64_t run = f->runs[0];
    f->count--;
    for (int i = 0; i < f->count; i++)
        f->runs[i] = f->runs[i + 1];
    return sb_llm_batch_collect(f->session->batch, run, outputs, error);
}

/* Waits for the oldest step, and tells of its token; whoever hears of it finds the sequence as long as it is without those ahead. */
static sb_status take(flight *f, sb_generating *g, sb_error *error) {
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    sb_llm_sequence *sequence = f->session->sequence;
    SB_TRY(collect(f, outputs, error));
    int64_t ahead = sequence->length;
    sequence->length = ++f->length;
    sb_status status = sb_generating_take_chosen(g, outputs, 0, error);
    sequence->length = ahead;
    release_outputs(outputs);
    return status;
}

/* Steps that nobody needs any more, whatever became of them. */
static void drop(flight *f) {
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    while (f->count > 0) {
        if (collect(f, outputs, NULL) == SB_OK)
            release_outputs(outputs);
    }
}

static sb_status fly(sb_llm_session *session, sb_generating *g, sb_error *error) {
    flight f = {.session = session, .length = sb_llm_session_length(session)};
    int depth = session->batch->options.queue_depth, most = depth < MOST_AHEAD ? depth : MOST_AHEAD;
    sb_status status = SB_OK;
    while (status == SB_OK && !g->ended) {
        while (f.status == SB_OK && f.count < most && sb_generating_may_go_on(g, f.count))
            give(&f, g);
        status = f.count > 0 ? take(&f, g, error) : sb_fail(error, f.status, "%s", f.error.message);
    }
    drop(&f);
    if (status != SB_OK)
        sb_llm_batch_mend(session->batch);
    sb_status trimmed = sb_llm_session_trim(session, f.length, NULL); /* always possible: it is as long */
    return status == SB_OK ? trimmed : status;
}

static sb_status go_on(sb_llm_session *session, sb_generating *g, sb_error *error) {
    bool is_new = g->done == g->count;
    if (is_new && sb_llm_batch_has_device(session->batch) && sb_generating_is_plain(g))
        return fly(session, g, error);
    return step(session, g, error);
}

sb_status sb_llm_generate(sb_llm_session *session, int64_t count, const int64_t *tokens,
                          const sb_llm_generation *generation, sb_llm_result *result, sb_error *error) {
    sb_generating g;
    sb_llm_result made;
    sb_status status =
        sb_generating_begin(&g, session->llm, generation, sb_llm_session_length(session), count, tokens, error);
    if (status == SB_OK && generation->score_prompt)
        status = sb_llm_session_scorers(session, &g.scorers, error);
    while (status == SB_OK && !g.ended)
        status = go_on(session, &g, error);
    if (status == SB_OK)
        status = sb_generating_finish(&g, &made, error);
    if (status == SB_OK && result != NULL)
        *result = made;
    sb_generating_clear(&g);
    return status;
}
