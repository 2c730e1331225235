/* Webs of element-wise nodes with more values at once than web.cu has registers for. */
#include "cuda/kernels/web.cuh"

#define IV_TAIL_NAME evaluate_large
#define IV_TAIL_WIDTH IV_CUDA_WEB_WIDTH
#define IV_TAIL_HEAVY 1
#define IV_TAIL_REGISTERS IV_CUDA_TAIL_REGISTERS
#define IV_TAIL_CONTEXT web_group
#define IV_TAIL_LOAD web_load
#define IV_TAIL_BEGIN web_load_begin
#define IV_TAIL_END web_load_end
#include "cuda/kernels/tail_evaluator.cuh"

WEB_KERNEL(iv_cuda_web_large, evaluate_large, 2)
