/* Attention of few rows that share keys, by TMA (attention16_stream.cuh). */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_STREAM_H
#define SB_CUDA_ATTENTION_ATTENTION16_STREAM_H

#include "cuda/attention/attention.h"

/** Why it cannot compute what tensor cores can (attention16.c), in words of static storage; NULL: it can. */
const char *sb_cuda_attention16_refuses_stream(const sb_cuda_attention_call *made);

/** Whether there are words enough in which the splits of the launch that `p` describes count themselves, so that it can fold them itself. */
bool sb_cuda_attention16_stream_has_words(const sb_call *call, const sb_cuda_attention_call *made,
                                          const sb_cuda_attention *p);

/** Launches `blocks` blocks of threads for heads of up to `width`: what `p` says, which is made's parameters and how rows are shared out.
 * Errors: as for launches. */
sb_status sb_cuda_attention16_stream_run(sb_call *call, const sb_cuda_attention_call *made, sb_cuda_work *work,
                                         const sb_cuda_attention *p, int width, int64_t blocks, bool folds);

#endif
