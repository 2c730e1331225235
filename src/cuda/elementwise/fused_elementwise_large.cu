/* Fused bodies of element-wise nodes with more values at once than fused_elementwise.cu has registers for. */
#include "cuda/elementwise/fused_elementwise.cuh"

#define SB_EVALUATOR_NAME evaluate_large
#define SB_EVALUATOR_WIDTH SB_CUDA_FUSED_WIDTH
#define SB_EVALUATOR_HEAVY 1
#define SB_EVALUATOR_REGISTERS SB_CUDA_EPILOGUE_REGISTERS
#define SB_EVALUATOR_CONTEXT fused_group
#define SB_EVALUATOR_LOAD fused_load
#define SB_EVALUATOR_BEGIN fused_load_begin
#define SB_EVALUATOR_END fused_load_end
#include "cuda/contraction/epilogue_evaluator.cuh"

FUSED_KERNEL(sb_cuda_fused_large, evaluate_large, 2)
