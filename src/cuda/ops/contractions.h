/* What MatMul, Gemm and Conv have in common: alone, or with element-wise nodes behind them. */
#ifndef IV_CUDA_OPS_CONTRACTIONS_H
#define IV_CUDA_OPS_CONTRACTIONS_H

#include "cpu/site.h"
#include "cuda/tail.h"

/** Whether the contraction and the nodes behind it have a kernel, as far as dtypes decide that;
 * says why not. Only those of f32 have nodes behind. */
bool iv_cuda_contraction_supports(const iv_kernel_query *query, const iv_site *site, char *why);

/** The state of such a kernel: an iv_cuda_tail_plan, NULL where nothing is behind. */
iv_status iv_cuda_contraction_prepare(const iv_kernel_query *query, void **state, iv_error *error);
void iv_cuda_contraction_release(void *state);

#endif
