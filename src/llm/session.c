#include <string.h>

#include "base/allocation.h"
#include "llm/llm.h"

static sb_status create(sb_llm_session *fresh, const sb_session_options *options, sb_error *error) {
    sb_state_options state = SB_STATE_OPTIONS_DEFAULT;
    sb_session_options own = *options;
    state.device = options->device;
    state.memory_limit = options->memory_limit;
    SB_TRY(sb_state_create(fresh->llm->model, &state, &fresh->state, error));
    own.state = fresh->state;
    own.entry = "step";
    fresh->threads = options->threads;
    return sb_session_create(fresh->llm->model, &own, &fresh->session, error);
}

sb_status sb_llm_session_create(sb_llm *llm, const sb_session_options *options, sb_llm_session **session,
                                sb_error *error) {
    const sb_session_options standard = SB_SESSION_OPTIONS_DEFAULT;
    if (options == NULL)
        options = &standard;
    if (options->entry != NULL || options->state != NULL || options->capacity_count != 0 || options->device_outputs)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a sequence has an entry graph and a state of its own, and its logits come to the host: leave "
                       "entry, state, capacities and device_outputs as they are");
    sb_llm_session *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->llm = llm;
    atomic_fetch_add_explicit(&llm->references, 1, memory_order_relaxed);
    sb_status status = create(fresh, options, error);
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
    sb_workers_destroy(session->scorers);
    sb_session_destroy(session->session);
    sb_state_release(session->state);
    sb_llm_release(session->llm);
    sb_free(session);
}

void sb_llm_session_interrupt(sb_llm_session *session) {
    sb_session_interrupt(session->session);
}

void sb_llm_session_clear_interrupt(sb_llm_session *session) {
    sb_session_clear_interrupt(session->session);
}

int64_t sb_llm_session_length(const sb_llm_session *session) {
    return session->length;
}

/* Rows of the cache behind the length are looked at by nobody, and written again. */
sb_status sb_llm_session_trim(sb_llm_session *session, int64_t length, sb_error *error) {
    if (length < 0 || length > session->length)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the sequence has %lld positions and cannot be cut to %lld",
                       (long long)session->length, (long long)length);
    session->length = length;
    return SB_OK;
}

/* ---- a step ---- */

static sb_status check_step(const sb_llm_session *session, int64_t count, const int64_t *tokens, int64_t wanted_count,
                            const int64_t *wanted, sb_error *error) {
    const sb_llm_description *about = &session->llm->description;
    if (count < 1)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "there are no tokens");
    if (count > about->context - session->length)
        return sb_fail(error, SB_ERROR_LIMIT,
                       "%lld tokens behind %lld are more than the context of %lld: load the model with a longer one",
                       (long long)count, (long long)session->length, (long long)about->context);
    for (int64_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= about->vocabulary)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "token %lld of %lld is %lld; the model has %lld",
                           (long long)i, (long long)count, (long long)tokens[i], (long long)about->vocabulary);
    }
    for (int64_t i = 0; i < wanted_count; i++) {
        if (wanted[i] < 0 || wanted[i] >= count)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "logits are wanted of token %lld of %lld",
                           (long long)wanted[i], (long long)count);
    }
    return SB_OK;
}

static sb_status make_inputs(const sb_llm_session *session, int64_t count, const int64_t *tokens, int64_t wanted_count,
                             const int64_t *wanted, sb_tensor *inputs[SB_LLM_INPUTS], sb_error *error) {
    const int64_t rows[] = {1, count}, one[] = {1}, length = session->length + count;
    SB_TRY(sb_tensor_from_data(SB_S64, 2, rows, tokens, &inputs[SB_LLM_TOKENS], error));
    SB_TRY(sb_tensor_create(SB_S64, 2, rows, &inputs[SB_LLM_POSITIONS], error));
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)sb_tensor_mutable_data(inputs[SB_LLM_POSITIONS]))[i] = session->length + i;
    SB_TRY(sb_tensor_from_data(SB_S64, 1, one, &session->length, &inputs[SB_LLM_START], error));
    SB_TRY(sb_tensor_from_data(SB_S64, 1, one, &length, &inputs[SB_LLM_LENGTH], error));
    return sb_tensor_from_data(SB_S64, 1, &wanted_count, wanted, &inputs[SB_LLM_WANTED], error);
}

sb_status sb_llm_run(sb_llm_session *session, int64_t count, const int64_t *tokens, int64_t wanted_count,
                     const int64_t *wanted, sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error) {
    sb_tensor *inputs[SB_LLM_INPUTS] = {NULL};
    outputs[SB_LLM_LOGITS] = outputs[SB_LLM_HIDDEN] = NULL;
    SB_TRY(check_step(session, count, tokens, wanted_count, wanted, error));
    sb_status status = make_inputs(session, count, tokens, wanted_count, wanted, inputs, error);
    if (status == SB_OK)
        status = sb_session_run_tensors(session->session, inputs, outputs, error);
    for (int i = 0; i < SB_LLM_INPUTS; i++)
        sb_tensor_release(inputs[i]);
    if (status == SB_OK)
        session->length += count;
    return status;
}

sb_status sb_llm_step(sb_llm_session *session, int64_t count, const int64_t *tokens, int64_t wanted_count,
                      const int64_t *wanted, sb_tensor **logits, sb_error *error) {
    sb_tensor *outputs[SB_LLM_OUTPUTS];
    SB_TRY(sb_llm_run(session, count, tokens, wanted_count, wanted, outputs, error));
    sb_tensor_release(outputs[SB_LLM_HIDDEN]);
    *logits = outputs[SB_LLM_LOGITS];
    return SB_OK;
}
