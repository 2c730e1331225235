/* Webs of element-wise nodes: a thread computes four neighbours of the output. One kernel for
 * programs of light steps, one for those with elementary functions; what needs more registers is in
 * web_large.cu. */
#include "cuda/elementwise/web.cuh"

#define SB_EVALUATOR_NAME evaluate_light
#define SB_EVALUATOR_WIDTH SB_CUDA_WEB_WIDTH
#define SB_EVALUATOR_HEAVY 0
#define SB_EVALUATOR_REGISTERS SB_CUDA_WEB_REGISTERS
#define SB_EVALUATOR_CONTEXT web_group
#define SB_EVALUATOR_LOAD web_load
#define SB_EVALUATOR_BEGIN web_load_begin
#define SB_EVALUATOR_END web_load_end
#include "cuda/contraction/epilogue_evaluator.cuh"

#define SB_EVALUATOR_NAME evaluate_heavy
#define SB_EVALUATOR_WIDTH SB_CUDA_WEB_WIDTH
#define SB_EVALUATOR_HEAVY 1
#define SB_EVALUATOR_REGISTERS SB_CUDA_WEB_REGISTERS
#define SB_EVALUATOR_CONTEXT web_group
#define SB_EVALUATOR_LOAD web_load
#define SB_EVALUATOR_BEGIN web_load_begin
#define SB_EVALUATOR_END web_load_end
#include "cuda/contraction/epilogue_evaluator.cuh"

WEB_KERNEL(sb_cuda_web_light, evaluate_light, 4)
WEB_KERNEL(sb_cuda_web_heavy, evaluate_heavy, 3)
