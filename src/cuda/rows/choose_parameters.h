/* What the kernels of ChooseTokens and PendingTokens take, for the host and for devices. */
#ifndef SB_CUDA_ROWS_CHOOSE_PARAMETERS_H
#define SB_CUDA_ROWS_CHOOSE_PARAMETERS_H

#include "numerics/choose.h"

/* Tokens that a block looks at, four for each thread: eight blocks of a log-probability, one for each warp. */
#define SB_CUDA_CHOOSE_TOKENS 1024
#define SB_CUDA_CHOOSE_OWN 4
#define SB_CUDA_CHOOSE_THREADS (SB_CUDA_CHOOSE_TOKENS / SB_CUDA_CHOOSE_OWN)
#define SB_CUDA_CHOOSE_PAIRS (SB_CUDA_CHOOSE_TOKENS / SB_LOGP_BLOCK)

/* What a block's tokens come to, without their log-probability's pairs. */
typedef struct sb_cuda_choose_part {
    uint64_t first; /* key of the first by logits */
    uint64_t drawn; /* … with noise; 0: none can be chosen, or none is drawn */
    float logit;    /* of the token drawn */
    int32_t odd;    /* the first token whose logit is NaN or infinite; the vocabulary's size: none */
} sb_cuda_choose_part;

/* What a search for the least key that is kept is for, in this order. */
enum {
    SB_CHOOSE_BY_NUMBER, /* top_k */
    SB_CHOOSE_BY_WEIGHT, /* top_p, and before min_p */
    SB_CHOOSE_FOUND,
    SB_CHOOSE_NO_SEARCH /* of a row that keeps all tokens, or from which none can be chosen */
};

/* How far it is: keys begin as `prefix` does, but for their lowest `end` bits. */
typedef struct sb_choose_search {
    uint64_t least; /* by goals before */
    uint64_t prefix;
    int64_t before; /* the sum of all tokens in front of those in play */
    double enough;  /* units: a part of all that there are */
    int32_t end, goal;
} sb_choose_search;

/* Bits of a key that a launch over all tokens finds, and how many launches there are: three for each goal. */
#define SB_CUDA_CHOOSE_BITS 11
#define SB_CUDA_CHOOSE_RANGES (1 << SB_CUDA_CHOOSE_BITS)
#define SB_CUDA_CHOOSE_STEPS 6

/* A row of which tokens are left out, between launches. */
typedef struct sb_cuda_choose_row {
    int64_t sums[SB_CUDA_CHOOSE_RANGES]; /* zeros between steps, like the counts */
    uint32_t counts[SB_CUDA_CHOOSE_RANGES];
    sb_choose_search search;
    uint64_t light, drawn;        /* keys: the largest that min_p leaves out; of the first by noise */
    int64_t logit_maximum, units; /* for log-probabilities */
    float heaviest;               /* the largest logit, divided by the temperature … */
    int32_t maximum;              /* … and the exponent that weights are relative to */
} sb_cuda_choose_row;

/* ChooseTokens: `parts` blocks for each choice. The last one that finishes chooses, or another kernel behind. */
typedef struct sb_cuda_choose {
    const float *logits;
    int64_t rows, vocabulary, choices, parts;
    sb_logp_scale scale; /* of log-probabilities */
    const int64_t *integers;
    const float *reals;
    int64_t real_columns;
    int64_t *slots;
    int64_t slot_count, slot_step;
    double *chosen;
    sb_cuda_choose_part *part; /* [choices][parts] */
    sb_logp_pair *pairs; /* [choices][parts][SB_CUDA_CHOOSE_PAIRS]: of blocks without columns, what adds nothing */
    float *noisy;        /* [choices][vocabulary]: where choices leave tokens out, sb_choose_noisy of each; else NULL */
    sb_cuda_choose_row *row; /* [choices]; NULL: where tokens are left out, one block does all of it */
    uint32_t *arrived;       /* [choices], zeros between launches; NULL: another kernel chooses */
    int64_t step;            /* of the search: which launch */
} sb_cuda_choose;

typedef struct sb_cuda_pending {
    const int64_t *tokens, *slots;
    int64_t count, slot_count, slot_step;
    int64_t *to;
} sb_cuda_pending;

#endif
