/* The steps of sb_linear_logp on the CPU. */
#ifndef SB_CPU_LOGP_LOGP_CPU_H
#define SB_CPU_LOGP_LOGP_CPU_H

#include "cpu/contraction/engine.h"
#include "kernel/logp/logp_steps.h"

/* Rows of a chunk, one table for each instruction set. */
typedef struct sb_logp_kernels {
    /** The pair of up to SB_LOGP_BLOCK columns, at least one. */
    sb_logp_pair (*reduce)(const float *logits, int64_t count, sb_logp_scale scale);
    /** Gradients of `count` logits of which none is the target's, or of the target's alone. */
    void (*differentiate)(const float *logits, int64_t count, sb_logp_scale scale, sb_logp_weight weight, int is_target,
                          int32_t is_bf16, uint16_t *gradients);
} sb_logp_kernels;

/** The table of a resolved instruction set. */
const sb_logp_kernels *sb_logp_kernels_for(sb_isa isa);

/* On all threads of an engine on the CPU; always SB_OK. */
extern const sb_logp_steps sb_logp_cpu_steps;

#endif
