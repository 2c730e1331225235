/* The extents of a step's inputs, which are what a plan and its recording on a device are made for. */
#ifndef SB_LLM_STEP_EXTENTS_H
#define SB_LLM_STEP_EXTENTS_H

#include "llm/llm.h"

/* A step on its way. */
typedef struct sb_llm_stepping {
    int count;
    const sb_llm_step_part *parts;
    const sb_llm_ahead *ahead; /* NULL: the caller waits for it */
    bool scored;               /* logits are computed */
    bool padded;               /* it may have more rows than are needed */
} sb_llm_stepping;

/* What parts need is `used`, and comes first; rows behind those are of a sequence that is nobody's. */
typedef struct sb_llm_step_extents {
    int64_t rows, wanted, scored, sequences, columns, choices;
    int64_t settings; /* columns of a choice's settings: those that leave tokens out are kernels more */
    struct {
        int64_t rows, wanted, choices;
    } used;
} sb_llm_step_extents;

sb_llm_step_extents sb_llm_step_extents_of(const sb_llm_stepping *s);

#endif
