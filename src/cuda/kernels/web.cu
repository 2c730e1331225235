/* Webs of element-wise nodes: a thread computes four neighbours of the output. One kernel for
 * programs of light steps, one for those with elementary functions; what needs more registers is in
 * web_large.cu. */
#include "cuda/kernels/web.cuh"

#define IV_TAIL_NAME evaluate_light
#define IV_TAIL_WIDTH IV_CUDA_WEB_WIDTH
#define IV_TAIL_HEAVY 0
#define IV_TAIL_REGISTERS IV_CUDA_WEB_REGISTERS
#define IV_TAIL_CONTEXT web_group
#define IV_TAIL_LOAD web_load
#define IV_TAIL_BEGIN web_load_begin
#define IV_TAIL_END web_load_end
#include "cuda/kernels/tail_evaluator.cuh"

#define IV_TAIL_NAME evaluate_heavy
#define IV_TAIL_WIDTH IV_CUDA_WEB_WIDTH
#define IV_TAIL_HEAVY 1
#define IV_TAIL_REGISTERS IV_CUDA_WEB_REGISTERS
#define IV_TAIL_CONTEXT web_group
#define IV_TAIL_LOAD web_load
#define IV_TAIL_BEGIN web_load_begin
#define IV_TAIL_END web_load_end
#include "cuda/kernels/tail_evaluator.cuh"

WEB_KERNEL(iv_cuda_web_light, evaluate_light, 4)
WEB_KERNEL(iv_cuda_web_heavy, evaluate_heavy, 3)
