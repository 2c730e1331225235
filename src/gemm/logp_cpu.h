/* The steps of iv_linear_logp on the CPU. */
#ifndef IV_GEMM_LOGP_CPU_H
#define IV_GEMM_LOGP_CPU_H

#include "gemm/engine.h"
#include "gemm/logp_tasks.h"

/* Rows of a chunk, one table for each instruction set. */
typedef struct iv_logp_kernels {
    /** The pair of up to IV_LOGP_BLOCK columns, at least one. */
    iv_logp_pair (*reduce)(const float *logits, int64_t count, iv_logp_scale scale);
    /** Gradients of `count` logits of which none is the target's, or of the target's alone. */
    void (*differentiate)(const float *logits, int64_t count, iv_logp_scale scale,
                          iv_logp_weight weight, int is_target, int32_t is_bf16,
                          uint16_t *gradients);
} iv_logp_kernels;

/** The table of a resolved instruction set. */
const iv_logp_kernels *iv_logp_kernels_for(iv_isa isa);

/* Each on all threads of an engine on the CPU. */

void iv_logp_reduce_on_cpu(iv_engine *engine, const iv_logp_reduce *task);
void iv_logp_merge_on_cpu(iv_engine *engine, const iv_logp_merge *task);
void iv_logp_differentiate_on_cpu(iv_engine *engine, const iv_logp_differentiate *task);
void iv_logp_round_on_cpu(iv_engine *engine, const iv_logp_round *task);

#endif
