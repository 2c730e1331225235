/* The nodes behind a product of f16 or bf16: which its kernels take, and where what they read lies. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_NODES_H
#define SB_CUDA_CONTRACTION_GEMM16_NODES_H

#include "cuda/contraction/epilogue.h"
#include "cuda/contraction/gemm16_nodes_parameters.h"

/** Whether the plan's nodes are such as gemm16_nodes_parameters.h describes, of `dtype`; says why not, in words for users. */
bool sb_gemm16_nodes_fit(const sb_cuda_epilogue_plan *plan, sb_dtype dtype, char *why);

/** As sb_cuda_epilogue_start for such a plan. */
sb_status sb_gemm16_nodes_start(sb_call *call, const sb_cuda_epilogue_plan *plan, const sb_tensor *y,
                                const sb_cuda_epilogue_role *roles, sb_gemm16_nodes *nodes, sb_cuda_work *work);

#endif
