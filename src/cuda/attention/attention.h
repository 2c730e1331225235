/* Attention on a device, once its work has been described (ops/attention.h): what Attention launches. */
#ifndef SB_CUDA_ATTENTION_ATTENTION_H
#define SB_CUDA_ATTENTION_ATTENTION_H

#include "cuda/attention/attention_parameters.h"
#include "cuda/common/call.h"
#include "ops/attention.h"

/* A work on its way to kernels. Inputs and outputs of `attention` are data of the device. */
typedef struct sb_cuda_attention_call {
    sb_attention_work attention;
    sb_cuda_attention parameters;
    sb_cuda_work work; /* with the ranges that every kernel reads */
} sb_cuda_attention_call;

/** Fills in `parameters` and `work` from `attention` and the call's inputs. */
void sb_cuda_attention_describe(sb_call *call, sb_cuda_attention_call *made);
/** Adds outputs: y, and the scores or probabilities; NULL is allowed. */
void sb_cuda_attention_yields(sb_cuda_attention_call *made, const sb_tensor *y, const sb_tensor *scores);

/** Computes what `attention` wants. Errors: as for launches and workspaces. */
sb_status sb_cuda_attention_run(sb_call *call, sb_cuda_attention_call *made);
/** Room for what `splits` splits of `rows` rows of each head come to, where each is computed by itself. */
sb_status sb_cuda_attention_make_room(sb_call *call, sb_cuda_attention_call *made, int64_t rows, int64_t splits);
/** Folds them into the output. Errors: as for launches. */
sb_status sb_cuda_attention_fold(sb_call *call, const sb_cuda_attention_call *made);
/** The output by tensor cores, if `*given`; else call->way says why not. Errors: as above. */
sb_status sb_cuda_attention16_run(sb_call *call, sb_cuda_attention_call *made, bool *given);

#endif
