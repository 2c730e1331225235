/* Loops over logits, compiled once per instruction set: plain ones that the compiler turns into vectors. */
#include "base/isa.h"
#include "cpu/logp/logp_cpu.h"
#include "numerics/logp_block.h"

/* One loop for each format, without a question in it. */
#define DIFFERENTIATE(round)                                                                                           \
    for (int64_t i = 0; i < count; i++)                                                                                \
    gradients[i] = round(sb_logp_gradient(logits[i], scale, weight, is_target))

static void differentiate(const float *restrict logits, int64_t count, sb_logp_scale scale, sb_logp_weight weight,
                          int is_target, int32_t is_bf16, uint16_t *restrict gradients) {
    if (is_bf16)
        DIFFERENTIATE(sb_bf16_from_f32);
    else
        DIFFERENTIATE(sb_f16_from_f32);
}

extern const sb_logp_kernels SB_ISA_NAME(sb_logp_kernels);
const sb_logp_kernels SB_ISA_NAME(sb_logp_kernels) = {sb_logp_reduce_block, differentiate};
