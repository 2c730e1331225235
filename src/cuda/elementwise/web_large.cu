/* Webs of element-wise nodes with more values at once than web.cu has registers for. */
#include "cuda/elementwise/web.cuh"

#define SB_TAIL_NAME evaluate_large
#define SB_TAIL_WIDTH SB_CUDA_WEB_WIDTH
#define SB_TAIL_HEAVY 1
#define SB_TAIL_REGISTERS SB_CUDA_TAIL_REGISTERS
#define SB_TAIL_CONTEXT web_group
#define SB_TAIL_LOAD web_load
#define SB_TAIL_BEGIN web_load_begin
#define SB_TAIL_END web_load_end
#include "cuda/contraction/tail_evaluator.cuh"

WEB_KERNEL(sb_cuda_web_large, evaluate_large, 2)
