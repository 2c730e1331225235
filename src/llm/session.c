/* One sequence by itself: a batch whose only page is as long as the context, so that its cache is one piece. */
#include "base/allocation.h"
#include "llm/llm.h"

sb_status sb_llm_session_create(sb_llm *llm, const sb_session_options *options, sb_llm_session **session,
                                sb_error *error) {
    const sb_session_options standard = SB_SESSION_OPTIONS_DEFAULT;
    sb_llm_session *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->llm = llm;
    sb_status status = sb_llm_batch_make(llm, options != NULL ? options : &standard, 1, llm->description.context,
                                         &fresh->batch, error);
    if (status == SB_OK)
        status = sb_llm_sequence_create(fresh->batch, &fresh->sequence, error);
    if (status != SB_OK) {
        sb_llm_session_destroy(fresh);
        return status;
    }
    *session = fresh;
    return SB_OK;
}

void sb_llm_session_destroy(sb_llm_session *session) {
    if (session == NULL)
        return;
    sb_llm_sequence_release(session->sequence);
    sb_llm_batch_release(session->batch);
    sb_free(session);
}

void sb_llm_session_interrupt(sb_llm_session *session) {
    sb_llm_batch_interrupt(session->batch);
}

void sb_llm_session_clear_interrupt(sb_llm_session *session) {
    sb_session_clear_interrupt(session->batch->session);
}

int64_t sb_llm_session_length(const sb_llm_session *session) {
    return sb_llm_sequence_length(session->sequence);
}

sb_status sb_llm_session_trim(sb_llm_session *session, int64_t length, sb_error *error) {
    return sb_llm_sequence_trim(session->sequence, length, error);
}

sb_status sb_llm_run(sb_llm_session *session, int64_t count, const int64_t *tokens, int64_t wanted_count,
                     const int64_t *wanted, sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error) {
    const sb_llm_step_part part = {session->sequence, count, tokens, wanted_count, wanted};
    return sb_llm_batch_run(session->batch, 1, &part, outputs, error);
}

sb_status sb_llm_step(sb_llm_session *session, int64_t count, const int64_t *tokens, int64_t wanted_count,
                      const int64_t *wanted, sb_tensor **logits, sb_error *error) {
    const sb_llm_step_part part = {session->sequence, count, tokens, wanted_count, wanted};
    return sb_llm_batch_step(session->batch, 1, &part, logits, error);
}
