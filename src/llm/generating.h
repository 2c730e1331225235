/* A generation in progress, between the steps that it takes part in: which tokens it puts behind its sequence next, and what
 * becomes of the logits. Who runs the steps is another matter: generate.c for one sequence, queue.c for many. */
#ifndef SB_LLM_GENERATING_H
#define SB_LLM_GENERATING_H

#include "llm/choose.h"
#include "llm/llm.h"
#include "llm/receipt.h"

typedef struct sb_generating {
    const sb_llm *llm;
    sb_llm_generation about;
    int64_t begin, count;  /* the prompt's first position, and its tokens */
    const int64_t *tokens; /* the caller's */
    int64_t done;          /* of the prompt: how many are behind the sequence */
    int64_t given;         /* … and how many, with those of steps that are on their way */
    int64_t next;          /* once the prompt is: the token that goes behind it */
    int64_t ahead;         /* tokens behind that, which steps on their way choose */
    bool waits;            /* for a step on its way, behind which the host chooses */
    bool ended, stopped;   /* stopped: by the caller */
    sb_digest digest;
    sb_chooser chooser;
    sb_llm_result result;
    sb_llm_receipt *receipt; /* NULL: nobody wants one */
    double begun;
    const float *undigested;    /* the logits of the token that was told last; NULL: the digest has them */
    int64_t rows[SB_LLM_CHUNK]; /* wanted ones of the part: more than one only of a prompt that is scored */
} sb_generating;

/** Begins one behind a sequence of `begin` positions. Clear it, also on failure. Errors: those of sb_llm_generate's
 * arguments; OUT_OF_MEMORY. */
sb_status sb_generating_begin(sb_generating *g, const sb_llm *llm, const sb_llm_generation *about, int64_t begin,
                              int64_t count, const int64_t *tokens, sb_error *error);
/* ---- steps ----
 *
 * Each step that a generation takes part in is prepared (has_next, next), given, which is told to it (gave), and taken when it is done. The
 * next may be given before that one is taken, as far as has_next says. */

/* What a step gave. */
typedef struct sb_generated {
    sb_tensor *const *outputs;
    sb_workers *workers; /* for loops over rows; NULL: the caller's thread alone */
    int64_t row;         /* of them all, the first that is this generation's */
    int64_t
        choice; /* which of the step's choices is its next token; -1: none, and the host chooses where one comes next */
} sb_generated;

/** Whether there is something to put behind the sequence, behind what steps on their way have put there. */
bool sb_generating_has_next(const sb_generating *g);
/** What that is: at most `most` tokens, at least one; `part->tokens` is NULL for the one that waits on the device. `part->sequence`
 * stays. */
void sb_generating_next(sb_generating *g, int64_t most, sb_llm_step_part *part);
/** Whether a device may choose the token behind that part: nothing is done to logits before, and one may come. */
bool sb_generating_may_choose(const sb_generating *g, const sb_llm_step_part *part);
/** By what it is chosen. */
sb_choose_settings sb_generating_settings(const sb_generating *g);
/** Whether somebody looks at the part's logits on the host, where a device `chooses`, or does not. */
bool sb_generating_wants_logits(const sb_generating *g, const sb_llm_step_part *part, bool chooses);
/** The step with that part is on its way. */
void sb_generating_gave(sb_generating *g, const sb_llm_step_part *part, bool chooses);
/** Takes what the oldest step on its way gave, in which `part` was: tells of tokens, and has the next one, or ends. Errors: those of
 * sb_llm_sample and the caller's function. */
sb_status sb_generating_take(sb_generating *g, const sb_llm_step_part *part, const sb_generated *from, sb_error *error);
/** Brings logits of what was taken into the digest: behind sb_generating_take, and before that step's outputs go. Any thread may do so. */
void sb_generating_digest(sb_generating *g);
/** Whatever is on its way counts for nothing: the generation is where it was when the last step was taken. */
void sb_generating_turn_back(sb_generating *g);
/** Whether a device may choose its tokens. */
bool sb_generating_is_plain(const sb_generating *g);
/** What came of one that has ended, and its receipt, which goes to the caller. Errors: OUT_OF_MEMORY. */
sb_status sb_generating_finish(sb_generating *g, sb_llm_result *result, sb_error *error);
/** Lets go of what it holds. */
void sb_generating_clear(sb_generating *g);

#endif
