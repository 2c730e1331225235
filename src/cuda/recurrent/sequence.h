/* How the kernels of RNN, GRU and LSTM (sequence.cuh) cut a node into blocks. */
#ifndef SB_CUDA_RECURRENT_SEQUENCE_H
#define SB_CUDA_RECURRENT_SEQUENCE_H

#include "cuda/common/call.h"
#include "cuda/recurrent/sequence_parameters.h"

typedef struct sb_cuda_sequence_cut {
    int cluster;    /* blocks that share R, through all steps: 1, 2, 4 or 8; 0: a launch for each step */
    bool in_memory; /* blocks have memory of the device in place of shared memory */
    int64_t blocks; /* of a launch */
    char module[32], kernel[48];
} sb_cuda_sequence_cut;

/** Chooses the quickest cut for extents and params of `p`, and fills what says how blocks share the work. Results do not depend on it. */
void sb_cuda_sequence_choose(sb_cuda_device *device, sb_dtype dtype, sb_cuda_sequence *p, sb_cuda_sequence_cut *cut);

/* What a test wants a cut to be like. */
typedef struct sb_cuda_sequence_forced {
    int cluster;    /* as in a cut */
    int64_t tile;   /* batch rows of a block, at most */
    bool general;   /* without what Hopper alone has */
    bool in_memory; /* with a launch for each step */
} sb_cuda_sequence_forced;

/** For tests: from now on cuts are so wherever there is room; NULL: the quickest. */
void sb_cuda_sequence_force(const sb_cuda_sequence_forced *forced);

#endif
