/* A generation in progress, between the steps that it takes part in: which tokens it puts behind its sequence next, and what
 * becomes of the logits. Who runs the steps is another matter: generate.c for one sequence, queue.c for many. */
#ifndef SB_LLM_GENERATING_H
#define SB_LLM_GENERATING_H

#include "llm/choose.h"
#include "llm/llm.h"
#include "llm/receipt.h"

/* The most tokens of a prompt in one run. */
#define SB_LLM_CHUNK 512

typedef struct sb_generating {
    const sb_llm *llm;
    sb_llm_generation about;
    int64_t begin, count;  /* the prompt's first position, and its tokens */
    const int64_t *tokens; /* the caller's */
    int64_t done;          /* of the prompt: how many are behind the sequence */
    int64_t next;          /* once the prompt is: the token that goes behind it */
    bool ended, stopped;   /* stopped: by the caller */
    sb_digest digest;
    sb_chooser chooser;
    sb_llm_result result;
    sb_llm_receipt *receipt; /* NULL: nobody wants one */
    double begun;
    sb_workers *scorers;        /* score the prompt's rows; NULL: the caller's thread does */
    int64_t rows[SB_LLM_CHUNK]; /* wanted ones of the part */
} sb_generating;

/** Begins one behind a sequence of `begin` positions. Clear it, also on failure. Errors: those of sb_llm_generate's
 * arguments; OUT_OF_MEMORY. */
sb_status sb_generating_begin(sb_generating *g, const sb_llm *llm, const sb_llm_generation *about, int64_t begin,
                              int64_t count, const int64_t *tokens, sb_error *error);
/** What it puts behind its sequence next: at most `most` tokens, at least one. `part->sequence` stays. */
void sb_generating_next(sb_generating *g, int64_t most, sb_llm_step_part *part);
/** Takes the outputs of a step in which `part` was, whose rows begin at row `row`: tells of tokens, and chooses the next, or
 * ends. Errors: those of sb_llm_sample and the caller's function. */
sb_status sb_generating_take(sb_generating *g, const sb_llm_step_part *part, sb_tensor *const outputs[SB_LLM_OUTPUTS],
                             int64_t row, sb_error *error);
/** Whether a device may choose its tokens, from the first one behind the prompt on: nothing is done to logits before. */
bool sb_generating_is_plain(const sb_generating *g);
/** Whether logits of new tokens are wanted on the host all the same. */
bool sb_generating_wants_logits(const sb_generating *g);
/** Whether, once `ahead` more tokens have been chosen behind those that it has, another can be, as far as numbers tell. */
bool sb_generating_may_go_on(const sb_generating *g, int64_t ahead);
/** By what that token is chosen. */
sb_choose_settings sb_generating_settings(const sb_generating *g, int64_t ahead);
/** Takes the outputs of a step that has chosen the next token, whose row is `row`: tells of it, or ends. Errors: as for
 * sb_generating_take. */
sb_status sb_generating_take_chosen(sb_generating *g, sb_tensor *const outputs[SB_LLM_OUTPUTS], int64_t row,
                                    sb_error *error);
/** What came of one that has ended, and its receipt, which goes to the caller. Errors: OUT_OF_MEMORY. */
sb_status sb_generating_finish(sb_generating *g, sb_llm_result *result, sb_error *error);
/** Lets go of what it holds. */
void sb_generating_clear(sb_generating *g);

#endif
