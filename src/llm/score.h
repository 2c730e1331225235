/* Log-probabilities of given tokens (docs/numerics.md, sections 9 and 11). */
#ifndef SB_LLM_SCORE_H
#define SB_LLM_SCORE_H

#include "llm/llm.h"
#include "numerics/logp.h"

/** The pair of up to SB_LOGP_BLOCK logits, at least one; its sum is NaN where one of them is. */
typedef sb_logp_pair sb_llm_reduce_block(const float *logits, int64_t count, sb_logp_scale scale);
/** The function of an instruction set. */
sb_llm_reduce_block *sb_llm_reduce_block_for(sb_isa isa);

/** What all log-probabilities of a row of logits have in common. */
typedef struct sb_llm_logp_row {
    sb_logp_pair pair; /* a sum of NaN: the row has none */
    int64_t units;
} sb_llm_logp_row;

/** Adds up a row. */
sb_llm_logp_row sb_llm_logp_row_of(const float *logits, int64_t vocabulary);
/** sb_llm_logp of a row that has been added up. */
float sb_llm_logp_in(const sb_llm_logp_row *row, const float *logits, int64_t vocabulary, int64_t token);

/** How many tokens run at a time where each one's logits are wanted: `asked`, or, where that is 0, as many as have 128 MiB of
 * logits; at most 512, at least one. */
int64_t sb_llm_score_chunk(int64_t vocabulary, int64_t asked);

/** Rows of logits to score, and what comes of them. */
typedef struct sb_llm_scored_rows {
    int64_t count, vocabulary;
    const float *logits;    /* [count, vocabulary] */
    const int64_t *targets; /* [count] */
    float *logps;           /* [count]: each row's of its target */
    int64_t top;            /* 0: the next two are not looked at */
    int64_t *top_tokens;    /* [count, top]: each row's first tokens in the order of section 11 */
    float *top_logps;       /* [count, top] */
} sb_llm_scored_rows;

/** Scores rows on the threads of `workers`; NULL: on the caller's alone. */
void sb_llm_score_rows(sb_workers *workers, const sb_llm_scored_rows *rows);

#endif
