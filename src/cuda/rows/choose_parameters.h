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

/* The first of some tokens by logit, and with noise; the first odd one. */
typedef struct sb_choose_found {
    uint64_t first, drawn;
    float logit; /* of the token drawn */
    int32_t odd;
} sb_choose_found;

/* What a row's parts come to, or some of them. */
typedef struct sb_choose_sum {
    sb_choose_found found;
    int32_t maximum; /* of their pairs */
    int32_t is_lost; /* a later choice has the slot, whose token stays then */
    int64_t units;
} sb_choose_sum;

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

/* By clusters: a row of which tokens are left out has one. */
#define SB_CUDA_CHOOSE_BLOCKS 8
#define SB_CUDA_CHOOSE_CLUSTER_THREAD_BITS 9
#define SB_CUDA_CHOOSE_CLUSTER_THREADS (1 << SB_CUDA_CHOOSE_CLUSTER_THREAD_BITS)
#define SB_CUDA_CHOOSE_CLUSTER_WARPS (SB_CUDA_CHOOSE_CLUSTER_THREADS / 32)
/* Ranges of keys that a pass over all tokens tells apart: one for each thread of the cluster. */
#define SB_CUDA_CHOOSE_SLOT_BITS 12
#define SB_CUDA_CHOOSE_SLOTS (1 << SB_CUDA_CHOOSE_SLOT_BITS)
/* Keys of one range that one block can have: two for each of its threads. */
#define SB_CUDA_CHOOSE_LISTED (2 * SB_CUDA_CHOOSE_CLUSTER_THREADS)
/* Keys that wait for their noise: fewer than threads, and those of another turn. */
#define SB_CUDA_CHOOSE_WAITING ((1 + SB_CUDA_CHOOSE_OWN) * SB_CUDA_CHOOSE_CLUSTER_THREADS)

/* What a block's tokens come to, by ranges. Units are below 2^40. */
typedef struct sb_cuda_choose_slots {
    uint32_t counts[SB_CUDA_CHOOSE_SLOTS], low[SB_CUDA_CHOOSE_SLOTS], high[SB_CUDA_CHOOSE_SLOTS];
} sb_cuda_choose_slots;

/* A block's keys, once the range in which the search ends is known. */
typedef struct sb_cuda_choose_lists {
    uint64_t waiting[SB_CUDA_CHOOSE_WAITING], listed[SB_CUDA_CHOOSE_LISTED];
} sb_cuda_choose_lists;

/* The shared memory of a block. */
typedef struct sb_cuda_choose_memory {
    union {
        sb_cuda_choose_slots slots;
        sb_cuda_choose_lists lists;
    } now;
    uint64_t gathered[SB_CUDA_CHOOSE_LISTED]; /* the first block's: keys of all blocks' lists */
    /* Of each block, in all of them. */
    uint64_t totals[SB_CUDA_CHOOSE_BLOCKS], lights[SB_CUDA_CHOOSE_BLOCKS], drawn[SB_CUDA_CHOOSE_BLOCKS];
    /* Where the search goes on, in all blocks: the sum in front, and a range << 32 | the tokens that it has. */
    uint64_t before, range;
    uint64_t least;
    uint32_t waiting, listed, gathered_count, place;
    /* For sums and maxima over the block. */
    sb_choose_sum of_warps[SB_CUDA_CHOOSE_CLUSTER_WARPS];
    int64_t sums[SB_CUDA_CHOOSE_CLUSTER_WARPS];
    uint64_t keys[SB_CUDA_CHOOSE_CLUSTER_WARPS];
    int32_t numbers[SB_CUDA_CHOOSE_CLUSTER_WARPS];
} sb_cuda_choose_memory;

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
