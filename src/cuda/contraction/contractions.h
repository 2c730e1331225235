/* What MatMul, Gemm and Conv have in common: alone, or with element-wise nodes behind them. */
#ifndef SB_CUDA_CONTRACTION_CONTRACTIONS_H
#define SB_CUDA_CONTRACTION_CONTRACTIONS_H

#include "cuda/contraction/epilogue.h"
#include "kernel/contraction/contraction_node.h"

/** Whether the contraction and the nodes behind it have a kernel, as far as dtypes decide that;
 * says why not. Only those of f32 have nodes behind. */
bool sb_cuda_contraction_supports(const sb_kernel_query *query, const sb_contraction_node *contraction, char *why);

/** The state of such a kernel: an sb_cuda_epilogue_plan, NULL where nothing is behind. */
sb_status sb_cuda_contraction_prepare(const sb_kernel_query *query, void **state, sb_error *error);
void sb_cuda_contraction_release(void *state);

#endif
