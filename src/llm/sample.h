/* Choosing tokens on the host (docs/numerics.md, section 11). What it is made of: numerics/choose.h. */
#ifndef SB_LLM_SAMPLE_H
#define SB_LLM_SAMPLE_H

#include <samebit/llm.h>

#include "numerics/choose.h"

/** Whether the settings are in their ranges. */
bool sb_llm_sampling_fits(const sb_llm_sampling *sampling);
/** What the token at `position` is chosen by, behind penalties and biases. */
sb_choose_settings sb_llm_choose_settings(const sb_llm_sampling *sampling, int64_t position);
/** Fails with what kept a token from being chosen: sb_choose_failed. */
sb_status sb_llm_fail_choice(int64_t failed, const sb_llm_sampling *sampling, sb_error *error);

#endif
