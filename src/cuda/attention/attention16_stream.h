/* Attention of few rows that share keys, by TMA (attention16_stream.cuh). */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_STREAM_H
#define SB_CUDA_ATTENTION_ATTENTION16_STREAM_H

#include "cuda/attention/attention.h"

/** Why it cannot be computed so, of what tensor cores can compute at all (attention16.c); NULL: it can. */
const char *sb_cuda_attention16_refuses_stream(const sb_cuda_attention_call *made);
/** Launches it over so many blocks of threads: what `p` says, which is `made`'s parameters and how rows are shared out. */
sb_status sb_cuda_attention16_stream_run(sb_call *call, const sb_cuda_attention_call *made, sb_cuda_work *work,
                                         const sb_cuda_attention *p, int width, int64_t blocks);

#endif
