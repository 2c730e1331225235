/* Generating behind one sequence: step after step of it alone. */
#include "llm/generating.h"
#include "llm/score.h"

static sb_status step(sb_llm_session *session, sb_generating *g, sb_error *error) {
    sb_llm_step_part part = {.sequence = session->sequence};
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    sb_generating_next(g, SB_LLM_CHUNK, &part);
    SB_TRY(sb_llm_batch_run(session->batch, 1, &part, outputs, error));
    sb_status status = sb_generating_take(g, &part, outputs, 0, error);
    for (int i = 0; i < SB_LLM_OUTPUTS; i++)
        sb_tensor_release(outputs[i]);
    return status;
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
        status = step(session, &g, error);
    if (status == SB_OK)
        status = sb_generating_finish(&g, &made, error);
    if (status == SB_OK && result != NULL)
        *result = made;
    sb_generating_clear(&g);
    return status;
}
