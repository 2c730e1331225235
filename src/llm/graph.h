/* The graph of a language model, from its family's description. */
#ifndef SB_LLM_GRAPH_H
#define SB_LLM_GRAPH_H

#include <samebit/builder.h>

#include "llm/config.h"
#include "numerics/choose.h"

/* Inputs of the entry graph "step", in this order, and its outputs. `rows` are new tokens of several sequences, one sequence
 * behind the other, at the positions behind those that each has in the cache; of `wanted` of them there are logits or, where hidden states
 * are asked for, those, and logits of `scored` of them. How they lie there: ops/pages.h. Tokens that are chosen wait in the
 * variable "next", on the page that has the row which they were chosen behind, for a step that takes them from there. */
enum {
    SB_LLM_TOKENS,    /* s64 [1, rows]; -1 - page: the one that waits there */
    SB_LLM_POSITIONS, /* s64 [1, rows]: of each token in its sequence */
    SB_LLM_STARTS,    /* s64 [sequences]: the position of each one's first row */
    SB_LLM_LENGTHS,   /* s64 [sequences]: how many positions each has then: start + its rows */
    SB_LLM_BEGINS,    /* s64 [sequences]: which row its first one is */
    SB_LLM_TABLE,     /* s64 [sequences, columns]: its pages */
    SB_LLM_WANTED,    /* s64 [wanted]: which rows */
    SB_LLM_CHOICES, /* s64 [choices, SB_CHOOSE_INTEGER_COLUMNS]: tokens to choose, of the scored rows, each for a page's slot … */
    SB_LLM_SETTINGS, /* f32 [choices, SB_CHOOSE_REAL_COLUMNS or 1]: … and by what: ops/choose.c */
    SB_LLM_SCORED,   /* s64 [scored]: which of those the head looks at; only with sb_llm_plan.receipts, else all */
    SB_LLM_INPUTS
};

/* What the cache's extents are called, which a state gives numbers: pages, and positions on each. */
#define SB_LLM_PAGES_SYMBOL "pages"
#define SB_LLM_PAGE_SYMBOL "page"

enum {
    SB_LLM_LOGITS, /* f32 [1, scored, vocabulary] */
    SB_LLM_CHOSEN, /* f64 [choices, 2]: tokens and their log-probabilities */
    SB_LLM_HIDDEN, /* [1, wanted, hidden] of the model's type: what the head reads. Only with sb_llm_plan.receipts */
    SB_LLM_OUTPUTS
};

typedef struct sb_llm_plan {
    const sb_checkpoint *checkpoint;
    const sb_llm_config *config;
    sb_dtype dtype;  /* of weights, activations and cache: f32, f16 or bf16 */
    int64_t context; /* the most positions of a sequence */
    bool receipts;   /* hidden states are an output */
} sb_llm_plan;

/** Builds "step" with variables for the cache. Every weight is read and checked. Errors: those of llm/weights.h and of the
 * builder. */
sb_status sb_llm_build(const sb_llm_plan *plan, sb_builder *builder, sb_error *error);

#endif
