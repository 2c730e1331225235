/* Choosing from one row of logits, block after block, in the processor's best instruction set: every step is exact in any order of
 * tokens (docs/numerics.md, section 11). */
#ifndef SB_LLM_CHOOSE_ROW_H
#define SB_LLM_CHOOSE_ROW_H

#include "base/isa.h"
#include "numerics/choose.h"

/* Logits that are looked at together. */
#define SB_CHOOSE_BLOCK 256

/* What a block of logits has: its largest, by the order of its bits, and whether one of them is NaN or +infinity. */
typedef struct sb_choose_block {
    int32_t largest; /* as sb_choose_order has it */
    bool odd;
} sb_choose_block;

/* What there is of each instruction set. */
typedef struct sb_choose_loops {
    /** Looks at up to SB_CHOOSE_BLOCK logits. */
    sb_choose_block (*look)(const float *logits, int count);
    /** noisy[i] = logits[i] · factor plus the noise of token `first` + i; SB_CHOOSE_NEVER where that product is −∞. */
    void (*draw)(const float *logits, int count, float factor, const sb_choose_settings *by, int64_t first,
                 float *noisy);
} sb_choose_loops;

/** Those of the processor's best instruction set. */
const sb_choose_loops *sb_choose_loops_best(void);

#endif
