/* Webs of element-wise nodes with more values at once than web.cu has registers for. */
#include "cuda/elementwise/web.cuh"

#define SB_EVALUATOR_NAME evaluate_large
#define SB_EVALUATOR_WIDTH SB_CUDA_WEB_WIDTH
#define SB_EVALUATOR_HEAVY 1
#define SB_EVALUATOR_REGISTERS SB_CUDA_EPILOGUE_REGISTERS
#define SB_EVALUATOR_CONTEXT web_group
#define SB_EVALUATOR_LOAD web_load
#define SB_EVALUATOR_BEGIN web_load_begin
#define SB_EVALUATOR_END web_load_end
#include "cuda/contraction/epilogue_evaluator.cuh"

WEB_KERNEL(sb_cuda_web_large, evaluate_large, 2)
