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

/* How many rows of 16 bits are computed where there is a choice; the bits are the same. */
typedef enum sb_cuda_attention_choice {
    SB_CUDA_ATTENTION_QUICKEST,
    SB_CUDA_ATTENTION_TILES, /* 64 or 16 rows at a time by single blocks: attention16_tile.cuh, attention16_decode.cuh */
    SB_CUDA_ATTENTION_WARPGROUPS, /* 128 rows at a time, of what that can compute: attention16_prefill.cuh */
    SB_CUDA_ATTENTION_CLUSTERS, /* up to 8 rows by clusters of blocks, of what that can compute: attention16_few.cuh */
    SB_CUDA_ATTENTION_STREAMS,  /* 8 rows at a time by TMA, of what that can compute: attention16_stream.cuh */
} sb_cuda_attention_choice;

/** Has a device compute attention so from now on. Any thread may call it. */
void sb_cuda_attention_choose(sb_cuda_device *device, sb_cuda_attention_choice choice);
/** The same by name, "quickest", "tiles", "warpgroups", "clusters" or "streams". Errors: INVALID_ARGUMENT for another name. */
sb_status sb_cuda_attention_choose_by_name(sb_cuda_device *device, const char *name, sb_error *error);

/** Fills in `parameters` and `work` from `attention` and the call's inputs. */
void sb_cuda_attention_describe(sb_call *call, sb_cuda_attention_call *made);
/** Adds outputs: y, and the scores or probabilities; NULL is allowed. */
void sb_cuda_attention_yields(sb_cuda_attention_call *made, const sb_tensor *y, const sb_tensor *scores);

/** Computes what `attention` wants. Errors: as for launches and workspaces. */
sb_status sb_cuda_attention_run(sb_call *call, sb_cuda_attention_call *made);
/** The output by tensor cores, if `*given`; else call->way says why not. Errors: as above. */
sb_status sb_cuda_attention16_run(sb_call *call, sb_cuda_attention_call *made, bool *given);

#endif
