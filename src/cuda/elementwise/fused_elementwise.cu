/* Fused bodies of element-wise nodes: a thread computes four neighbours of the output. One kernel for programs of light
 * steps, one for those with elementary functions; what needs more registers is in fused_elementwise_large.cu. */
#include "cuda/elementwise/fused_elementwise.cuh"

#define SB_EVALUATOR_NAME evaluate_light
#define SB_EVALUATOR_WIDTH SB_CUDA_FUSED_WIDTH
#define SB_EVALUATOR_HEAVY 0
#define SB_EVALUATOR_REGISTERS SB_CUDA_FUSED_REGISTERS
#define SB_EVALUATOR_CONTEXT fused_group
#define SB_EVALUATOR_LOAD fused_load
#define SB_EVALUATOR_BEGIN fused_load_begin
#define SB_EVALUATOR_END fused_load_end
#include "cuda/contraction/epilogue_evaluator.cuh"

#define SB_EVALUATOR_NAME evaluate_heavy
#define SB_EVALUATOR_WIDTH SB_CUDA_FUSED_WIDTH
#define SB_EVALUATOR_HEAVY 1
#define SB_EVALUATOR_REGISTERS SB_CUDA_FUSED_REGISTERS
#define SB_EVALUATOR_CONTEXT fused_group
#define SB_EVALUATOR_LOAD fused_load
#define SB_EVALUATOR_BEGIN fused_load_begin
#define SB_EVALUATOR_END fused_load_end
#include "cuda/contraction/epilogue_evaluator.cuh"

FUSED_KERNEL(sb_cuda_fused_light, evaluate_light, 4)
FUSED_KERNEL(sb_cuda_fused_heavy, evaluate_heavy, 3)
