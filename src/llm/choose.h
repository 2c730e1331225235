/* What is done to logits before a token is chosen from them: penalties, biases, the constraint's mask (docs/numerics.md, section 11). */
#ifndef SB_LLM_CHOOSE_H
#define SB_LLM_CHOOSE_H

#include <samebit/llm.h>

#include "llm/config.h"

/* A text in progress. Zeroed, it can be ended. */
typedef struct sb_chooser {
    const sb_llm_config *config;
    const sb_llm_sampling *sampling;
    sb_llm_constraint_state *state; /* NULL: any text is right */
    float *logits;                  /* a copy to change; NULL where nothing is done to them */
    int64_t *counts;                /* of a token, among the new ones; NULL: without penalties */
    unsigned char *seen;            /* of a token: it is in the prompt or new */
} sb_chooser;

/** Begins behind a prompt. `constraint` may be NULL. Config, sampling and constraint must outlive it. Errors: INVALID_ARGUMENT for biases
 * of tokens that the model has not got; OUT_OF_MEMORY. It is to be ended in either case. */
sb_status sb_chooser_begin(sb_chooser *chooser, const sb_llm_config *config, const sb_llm_sampling *sampling,
                           sb_llm_constraint *constraint, int64_t count, const int64_t *prompt, sb_error *error);
/** The logits to choose from, which are the given ones or the chooser's until the next call. *complete: no token can come, and the text
 * is complete. Errors: UNSUPPORTED where no token can come and it is not; those of sb_llm_constraint_mask. */
sb_status sb_chooser_adjust(sb_chooser *chooser, const float *logits, const float **adjusted, bool *complete,
                            sb_error *error);
/** Puts a token behind the text. Errors: INVALID_ARGUMENT for one that the model has not got; those of sb_llm_constraint_accept. */
sb_status sb_chooser_take(sb_chooser *chooser, int64_t token, sb_error *error);
void sb_chooser_end(sb_chooser *chooser);

/** Whether the settings change logits before they are looked at. */
bool sb_llm_sampling_adjusts(const sb_llm_sampling *sampling);

#endif
