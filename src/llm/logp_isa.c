/* Blocks of logits, compiled once per instruction set. */
#include "base/isa.h"
#include "llm/score.h"
#include "numerics/logp_block.h"

extern sb_llm_reduce_block SB_ISA_NAME(sb_llm_reduce_block);

sb_logp_pair SB_ISA_NAME(sb_llm_reduce_block)(const float *logits, int64_t count, sb_logp_scale scale) {
    return sb_logp_reduce_block(logits, count, scale);
}
