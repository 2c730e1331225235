/* Webs of element-wise nodes: a thread computes four neighbours of the output. One kernel for
 * programs of light steps and few registers, one for all. */
#include "cuda/kernels/web.cuh"

#define IV_TAIL_NAME evaluate_light
#define IV_TAIL_WIDTH IV_CUDA_WEB_WIDTH
#define IV_TAIL_HEAVY 0
#define IV_TAIL_REGISTERS IV_CUDA_WEB_LIGHT_REGISTERS
#define IV_TAIL_CONTEXT web_group
#define IV_TAIL_LOAD web_load
#include "cuda/kernels/tail_evaluator.cuh"

#define IV_TAIL_NAME evaluate_all
#define IV_TAIL_WIDTH IV_CUDA_WEB_WIDTH
#define IV_TAIL_HEAVY 1
#define IV_TAIL_REGISTERS IV_CUDA_TAIL_REGISTERS
#define IV_TAIL_CONTEXT web_group
#define IV_TAIL_LOAD web_load
#include "cuda/kernels/tail_evaluator.cuh"

WEB_KERNEL(iv_cuda_web_light, evaluate_light, 3)
WEB_KERNEL(iv_cuda_web_all, evaluate_all, 2)
