#include "llm/choose.h"

#include <math.h>
#include <string.h>

#include "base/allocation.h"
#include "base/error.h"
#include "constraint/constraint.h"
#include "numerics/scalar.h"

bool sb_llm_sampling_adjusts(const sb_llm_sampling *sampling) {
    return sampling->repetition_penalty != 1 || sampling->presence_penalty != 0 || sampling->frequency_penalty != 0 ||
           sampling->bias_count != 0;
}

static bool has_penalties(const sb_llm_sampling *sampling) {
    return sampling->repetition_penalty != 1 || sampling->presence_penalty != 0 || sampling->frequency_penalty != 0;
}

/* ---- adjusting: each line one operation in f32 ---- */

static float penalised(float logit, const sb_llm_sampling *sampling, bool seen, int64_t count) {
    if (seen && sampling->repetition_penalty != 1)
        logit = logit > 0 ? sb_div_f32(logit, sampling->repetition_penalty) : logit * sampling->repetition_penalty;
    if (count > 0 && sampling->frequency_penalty != 0) {
        float taken = sampling->frequency_penalty * (float)count;
        logit = logit - taken;
    }
    if (count > 0 && sampling->presence_penalty != 0)
        logit = logit - sampling->presence_penalty;
    return logit;
}

static void add_biases(const sb_llm_sampling *sampling, float *logits) {
    for (int64_t i = 0; i < sampling->bias_count; i++)
        logits[sampling->biases[i].token] = logits[sampling->biases[i].token] + sampling->biases[i].bias;
}

static sb_status check_tokens(const sb_llm_sampling *sampling, int64_t vocabulary, int64_t count, const int64_t *tokens,
                              sb_error *error) {
    for (int64_t i = 0; i < sampling->bias_count; i++) {
        if (sampling->biases[i].token < 0 || sampling->biases[i].token >= vocabulary)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "there is a bias for token %lld; the model has %lld",
                           (long long)sampling->biases[i].token, (long long)vocabulary);
    }
    for (int64_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= vocabulary)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "token %lld of %lld is %lld; the model has %lld",
                           (long long)i, (long long)count, (long long)tokens[i], (long long)vocabulary);
    }
    return SB_OK;
}

/* ---- a text in progress ---- */

sb_status sb_chooser_begin(sb_chooser *chooser, const sb_llm_config *config, const sb_llm_sampling *sampling,
                           sb_llm_constraint *constraint, int64_t count, const int64_t *prompt, sb_error *error) {
    size_t vocabulary = (size_t)config->vocabulary;
    *chooser = (sb_chooser){.config = config, .sampling = sampling};
    if (constraint != NULL)
        SB_TRY(sb_llm_constraint_begin(constraint, &chooser->state, error));
    if (constraint == NULL && !sb_llm_sampling_adjusts(sampling))
        return SB_OK;
    SB_TRY(check_tokens(sampling, config->vocabulary, has_penalties(sampling) ? count : 0, prompt, error));
    chooser->logits = sb_allocate(vocabulary * sizeof *chooser->logits);
    if (has_penalties(sampling)) {
        chooser->counts = sb_allocate_array(vocabulary, sizeof *chooser->counts);
        chooser->seen = sb_allocate_array(vocabulary, sizeof *chooser->seen);
    }
    if (chooser->logits == NULL || (has_penalties(sampling) && (chooser->counts == NULL || chooser->seen == NULL)))
        return sb_fail_memory(error, vocabulary * sizeof *chooser->counts);
    for (int64_t i = 0; i < count && chooser->seen != NULL; i++)
        chooser->seen[prompt[i]] = 1;
    return SB_OK;
}

sb_status sb_chooser_adjust(sb_chooser *chooser, const float *logits, const float **adjusted, bool *complete,
                            sb_error *error) {
    const sb_llm_config *config = chooser->config;
    int64_t allowed = 1;
    *complete = false;
    *adjusted = logits;
    if (chooser->logits == NULL)
        return SB_OK;
    memcpy(chooser->logits, logits, (size_t)config->vocabulary * sizeof *logits);
    for (int64_t i = 0; i < config->vocabulary && chooser->counts != NULL; i++)
        chooser->logits[i] = penalised(logits[i], chooser->sampling, chooser->seen[i] != 0, chooser->counts[i]);
    add_biases(chooser->sampling, chooser->logits);
    if (chooser->state != NULL)
        SB_TRY(sb_llm_constraint_mask(chooser->state, chooser->logits, config->vocabulary, config->stop_count,
                                      config->stops, &allowed, error));
    *adjusted = chooser->logits;
    *complete = allowed == 0;
    if (allowed == 0 && !sb_llm_constraint_is_complete(chooser->state))
        return sb_fail(
            error, SB_ERROR_UNSUPPORTED,
            "the schema wants a byte that no token of the vocabulary begins with: take a schema without that "
            "character");
    return SB_OK;
}

sb_status sb_chooser_take(sb_chooser *chooser, int64_t token, sb_error *error) {
    if (token < 0 || token >= chooser->config->vocabulary)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "token %lld; the model has %lld", (long long)token,
                       (long long)chooser->config->vocabulary);
    if (chooser->state != NULL)
        SB_TRY(sb_llm_constraint_accept(chooser->state, token, error));
    if (chooser->counts != NULL) {
        chooser->counts[token]++;
        chooser->seen[token] = 1;
    }
    return SB_OK;
}

void sb_chooser_end(sb_chooser *chooser) {
    sb_llm_constraint_end(chooser->state);
    sb_free(chooser->logits);
    sb_free(chooser->counts);
    sb_free(chooser->seen);
    *chooser = (sb_chooser){0};
}

/* ---- for programs with a loop of their own ---- */

sb_status sb_llm_adjust(float *logits, int64_t vocabulary, const sb_llm_sampling *sampling, int64_t prompt_count,
                        int64_t count, const int64_t *tokens, sb_error *error) {
    const sb_llm_config config = {.vocabulary = vocabulary};
    sb_chooser chooser = {0};
    const float *adjusted;
    bool complete;
    if (sampling->struct_bytes != sizeof *sampling || vocabulary < 1 || prompt_count < 0 || prompt_count > count)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a sequence of %lld tokens of which %lld are the prompt, of %lld", (long long)count,
                       (long long)prompt_count, (long long)vocabulary);
    SB_TRY(check_tokens(sampling, vocabulary, count, tokens, error));
    sb_status status = sb_chooser_begin(&chooser, &config, sampling, NULL, prompt_count, tokens, error);
    for (int64_t i = prompt_count; i < count && status == SB_OK; i++)
        status = sb_chooser_take(&chooser, tokens[i], error);
    if (status == SB_OK)
        status = sb_chooser_adjust(&chooser, logits, &adjusted, &complete, error);
    if (status == SB_OK && adjusted != logits)
        memcpy(logits, adjusted, (size_t)vocabulary * sizeof *logits);
    sb_chooser_end(&chooser);
    return status;
}
