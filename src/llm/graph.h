/* The graph of a language model, from its family's description. */
#ifndef SB_LLM_GRAPH_H
#define SB_LLM_GRAPH_H

#include <samebit/builder.h>

#include "llm/config.h"

/* Inputs of the entry graph "step", in this order, and its output. `rows` are new tokens of one sequence, at the positions
 * behind those that its cache has; of `wanted` of them there are logits. */
enum {
    SB_LLM_TOKENS,    /* s64 [1, rows] */
    SB_LLM_POSITIONS, /* s64 [1, rows]: of each token in its sequence */
    SB_LLM_START,     /* s64 [1]: where the cache gets the first */
    SB_LLM_LENGTH,    /* s64 [1]: how many positions it has then: start + rows */
    SB_LLM_WANTED,    /* s64 [wanted]: which rows */
    SB_LLM_INPUTS
};
enum {
    SB_LLM_LOGITS, /* f32 [1, wanted, vocabulary] */
    SB_LLM_HIDDEN, /* [1, wanted, hidden] of the model's type: what the head reads. Only with sb_llm_plan.receipts */
    SB_LLM_OUTPUTS
};

typedef struct sb_llm_plan {
    const sb_checkpoint *checkpoint;
    const sb_llm_config *config;
    sb_dtype dtype;  /* of weights, activations and cache: f32, f16 or bf16 */
    int64_t context; /* positions of the cache */
    bool receipts;   /* hidden states are an output */
} sb_llm_plan;

/** Builds "step" with variables for the cache. Every weight is read and checked. Errors: those of llm/weights.h and of the
 * builder. */
sb_status sb_llm_build(const sb_llm_plan *plan, sb_builder *builder, sb_error *error);

#endif
