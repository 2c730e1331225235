/* The inside of a language model. See <samebit/llm.h> for the contract. */
#ifndef SB_LLM_LLM_H
#define SB_LLM_LLM_H

#include <samebit/llm.h>

#include <stdatomic.h>

#include "llm/graph.h"

struct sb_llm {
    atomic_int references;
    sb_checkpoint *checkpoint; /* kept for its metadata; weights are the model's */
    sb_llm_config config;      /* refers to the checkpoint */
    sb_model *model;
    sb_llm_description description;
};

struct sb_llm_session {
    sb_llm *llm;
    sb_state *state;
    sb_session *session;
    int64_t length;
};

#endif
