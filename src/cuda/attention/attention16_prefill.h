/* Attention of many rows by warpgroups, 128 at a time: for keys that lie side by side or on pages, without a mask. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_PREFILL_H
#define SB_CUDA_ATTENTION_ATTENTION16_PREFILL_H

#include "cuda/attention/attention.h"

/** Why it cannot compute what tensor cores can (attention16.c), in words of static storage; NULL: it can. */
const char *sb_cuda_attention16_refuses_prefill(const sb_cuda_attention_call *made);
/** Rows that a tile of it has room for. */
int sb_cuda_attention16_prefill_rows(const sb_attention_work *a);
/** Computes the output. Errors: as for launches and workspaces; OUT_OF_MEMORY where there are 2^28 tiles. */
sb_status sb_cuda_attention16_prefill_run(sb_call *call, const sb_cuda_attention_call *made);

#endif
