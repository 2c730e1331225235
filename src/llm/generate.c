/* Generating with one sequence: step after step of it alone. On a device steps choose their tokens themselves, and the host gives the next
 * one before it has seen what the one before has chosen. */
#include "llm/generating.h"
#include "llm/score.h"

/* Steps that the device has: while it does one, the next is there. */
#define MOST_AHEAD 2

typedef struct departure {
    sb_llm_flight flight;
    sb_llm_step_part part;
    bool chooses; /* its next token */
} departure;

/* Steps on their way, the oldest first. */
typedef struct flying {
    sb_llm_session *session;
    int64_t length; /* of the sequence, as far as steps have been taken */
    int first, count;
    departure steps[MOST_AHEAD];
    sb_status status; /* of the one behind them, which could not be given; it counts when its turn comes */
    sb_error error;
} flying;

/* (Logits of a prompt that is scored are many: one step has them at a time.) */
static int most_ahead(const flying *f, const sb_generating *g) {
    int depth = f->session->batch->options.queue_depth;
    bool waits = !sb_llm_batch_has_device(f->session->batch) || g->about.score_prompt;
    return waits || depth < MOST_AHEAD ? 1 : MOST_AHEAD;
}

static void give(flying *f, sb_generating *g) {
    departure *d = &f->steps[(f->first + f->count) % MOST_AHEAD];
    sb_llm_batch *batch = f->session->batch;
    d->part.sequence = f->session->sequence;
    sb_generating_next(g, sb_llm_batch_chunk(batch, g->about.chunk), &d->part);
    d->chooses = sb_llm_batch_has_device(batch) && sb_generating_may_choose(g, &d->part);
    const sb_llm_choice choice = {.part = 0, .row = d->part.wanted_count - 1, .by = sb_generating_settings(g)};
    const sb_llm_ahead ahead = {
        .count = d->chooses ? 1 : 0, .choices = &choice, .logits = sb_generating_wants_logits(g, &d->part, d->chooses)};
    f->status = sb_llm_batch_enqueue(batch, 1, &d->part, &ahead, &d->flight, &f->error);
    if (f->status != SB_OK)
        return;
    f->count++;
    sb_generating_gave(g, &d->part, d->chooses);
}

static departure *oldest(flying *f) {
    departure *d = &f->steps[f->first];
    f->first = (f->first + 1) % MOST_AHEAD;
    f->count--;
    return d;
}

static void release_outputs(sb_tensor *outputs[SB_LLM_OUTPUTS]) {
    for (int i = 0; i < SB_LLM_OUTPUTS; i++)
        sb_tensor_release(outputs[i]);
}

/* Waits for the oldest step, and tells of what it gave; whoever hears of it finds the sequence as long as it is without those ahead. */
static sb_status take(flying *f, sb_generating *g, sb_error *error) {
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    sb_llm_sequence *sequence = f->session->sequence;
    departure *d = oldest(f);
    SB_TRY(sb_llm_batch_collect(f->session->batch, &d->flight, outputs, error));
    int64_t ahead = sequence->length;
    sequence->length = f->length += d->part.count;
    const sb_generated from = {
        .outputs = outputs, .workers = sb_llm_batch_workers(f->session->batch), .choice = d->chooses ? 0 : -1};
    sb_status status = sb_generating_take(g, &d->part, &from, error);
    sb_generating_digest(g);
    sequence->length = ahead;
    release_outputs(outputs);
    return status;
}

/* Steps that nobody needs any more, whatever became of them. */
static void drop(flying *f) {
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    while (f->count > 0) {
        if (sb_llm_batch_collect(f->session->batch, &oldest(f)->flight, outputs, NULL) == SB_OK)
            release_outputs(outputs);
    }
}

static sb_status run(sb_llm_session *session, sb_generating *g, sb_error *error) {
    flying f = {.session = session, .length = sb_llm_session_length(session)};
    int most = most_ahead(&f, g);
    sb_status status = SB_OK;
    while (status == SB_OK && !g->ended) {
        while (f.status == SB_OK && f.count < most && sb_generating_has_next(g))
            give(&f, g);
        status = f.count > 0 ? take(&f, g, error) : sb_fail(error, f.status, "%s", f.error.message);
    }
    drop(&f);
    if (status != SB_OK)
        sb_llm_batch_mend(session->batch);
    sb_status trimmed = sb_llm_session_trim(session, f.length, NULL); /* always possible: it is as long */
    return status == SB_OK ? trimmed : status;
}

sb_status sb_llm_generate(sb_llm_session *session, int64_t count, const int64_t *tokens,
                          const sb_llm_generation *generation, sb_llm_result *result, sb_error *error) {
    sb_generating g;
    sb_llm_result made;
    sb_status status =
        sb_generating_begin(&g, session->llm, generation, sb_llm_session_length(session), count, tokens, error);
    if (status == SB_OK)
        status = run(session, &g, error);
    if (status == SB_OK)
        status = sb_generating_finish(&g, &made, error);
    if (status == SB_OK && result != NULL)
        *result = made;
    sb_generating_clear(&g);
    return status;
}
