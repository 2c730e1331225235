/* What the kernels of ChooseTokens and PendingTokens take, for the host and for devices. */
#ifndef SB_CUDA_ROWS_CHOOSE_PARAMETERS_H
#define SB_CUDA_ROWS_CHOOSE_PARAMETERS_H

#include "numerics/choose.h"

/* Tokens that a block looks at, one for each thread: eight blocks of a log-probability. */
#define SB_CUDA_CHOOSE_TOKENS 1024
#define SB_CUDA_CHOOSE_PAIRS (SB_CUDA_CHOOSE_TOKENS / SB_LOGP_BLOCK)

/* What a block's tokens come to. */
typedef struct sb_cuda_choose_part {
    uint64_t first; /* key of the first by logits */
    uint64_t drawn; /* … with noise; 0: none can be chosen */
    int64_t odd;    /* the first token whose logit is NaN or infinite; the vocabulary's size: none */
    sb_logp_pair pairs[SB_CUDA_CHOOSE_PAIRS];
} sb_cuda_choose_part;

/* ChooseTokens: `parts` blocks for each choice. The last one that finishes chooses, or another kernel behind. */
typedef struct sb_cuda_choose {
    const float *logits;
    int64_t rows, vocabulary, choices, parts;
    const int64_t *integers;
    const float *reals;
    int64_t *slots;
    int64_t slot_count, slot_step;
    double *chosen;
    sb_cuda_choose_part *part; /* [choices][parts] */
    float *noisy;              /* [choices][vocabulary]: of choices that leave tokens out, sb_choose_noisy of each */
    uint32_t *arrived;         /* [choices], zeros between launches; NULL: another kernel chooses */
} sb_cuda_choose;

typedef struct sb_cuda_pending {
    const int64_t *tokens, *slots;
    int64_t count, slot_count, slot_step;
    int64_t *to;
} sb_cuda_pending;

#endif
