/* Fused bodies of element-wise nodes whose operands all have f16 or bf16, and for which there is no kernel in fixed.cu: a thread
 * computes eight neighbours of the output.
 * A module for each of bf16, f16. */
#include "cuda/common/rehearsal.cuh"
#include "cuda/contraction/epilogue.cuh"
#include "cuda/elementwise/fixed_groups.cuh"

typedef struct fused_operands {
    const sb_cuda_fixed_code *p;
    const fixed_group *group;
    bool rehearses;
} fused_operands;

/* Of a rehearsal any. */
SB_CUDA_FUNCTION sb_cuda_eight find_eight(fused_operands operands, int number) {
    if (operands.rehearses) {
        const sb_cuda_eight none = {{0, 0, 0, 0}};
        return none;
    }
    return fixed_load(&operands.p->inputs[number], operands.group);
}

/* Loading in two steps, the words as they are and then the values in their place, so that several loads may be under way. */
SB_CUDA_FUNCTION void load_begin(fused_operands operands, int number, float *values) {
    const sb_cuda_eight eight = find_eight(operands, number);
    SB_CUDA_UNROLL
    for (int pair = 0; pair < GROUP / 2; pair++)
        values[pair] = sb_bits_to_f32(eight.pairs[pair]);
}

template <int HALF> SB_CUDA_FUNCTION void load_end(float *values) {
    sb_cuda_eight eight;
    SB_CUDA_UNROLL
    for (int pair = 0; pair < GROUP / 2; pair++)
        eight.pairs[pair] = sb_bits_from_f32(values[pair]);
    sb_cuda_widen_eight<HALF>(eight, values);
}

template <int HALF> SB_CUDA_FUNCTION void load(fused_operands operands, int number, float *values) {
    sb_cuda_widen_eight<HALF>(find_eight(operands, number), values);
}

#define LOAD_F16 load<SB_CUDA_F16>
#define LOAD_BF16 load<SB_CUDA_BF16>
#define END_F16(operands, number, values) load_end<SB_CUDA_F16>(values)
#define END_BF16(operands, number, values) load_end<SB_CUDA_BF16>(values)

#define KERNEL(weight, blocks, suffix, HALF)                                                                           \
    SB_CUDA_REHEARSED_KERNEL_BOUNDED(sb_cuda_fused_##weight##_##suffix, sb_cuda_fixed_code, p, SB_CUDA_FIXED_THREADS,  \
                                     blocks) {                                                                         \
        const uint32_t stride = gridDim.x * blockDim.x * GROUP;                                                        \
        uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) * GROUP;                                              \
        bool rehearses = sb_cuda_rehearses();                                                                          \
        SB_CUDA_KEEP_LOOP                                                                                              \
        while (rehearses || index < p->box.elements) {                                                                 \
            const fixed_group group = fixed_find(&p->box, index);                                                      \
            const fused_operands operands = {p, &group, rehearses};                                                    \
            float values[GROUP] = {0};                                                                                 \
            evaluate_##weight##_##suffix(&p->code, operands, values);                                                  \
            if (rehearses) {                                                                                           \
                sb_cuda_end_rehearsal<GROUP>(values);                                                                  \
                rehearses = false;                                                                                     \
                continue;                                                                                              \
            }                                                                                                          \
            fixed_store(&p->box, &group, sb_cuda_round_eight<HALF>(values));                                           \
            index += stride;                                                                                           \
        }                                                                                                              \
    }

/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
#define SB_EVALUATOR_NAME evaluate_light_f16
#define SB_EVALUATOR_WIDTH GROUP
#define SB_EVALUATOR_HEAVY 0
#define SB_EVALUATOR_REGISTERS SB_CUDA_FIXED_REGISTERS
#define SB_EVALUATOR_CONTEXT fused_operands
#define SB_EVALUATOR_LOAD LOAD_F16
#define SB_EVALUATOR_BEGIN load_begin
#define SB_EVALUATOR_END END_F16
#include "cuda/contraction/epilogue_evaluator.cuh"

#define SB_EVALUATOR_NAME evaluate_heavy_f16
#define SB_EVALUATOR_WIDTH GROUP
#define SB_EVALUATOR_HEAVY 1
#define SB_EVALUATOR_REGISTERS SB_CUDA_FIXED_REGISTERS
#define SB_EVALUATOR_CONTEXT fused_operands
#define SB_EVALUATOR_LOAD LOAD_F16
#define SB_EVALUATOR_BEGIN load_begin
#define SB_EVALUATOR_END END_F16
#include "cuda/contraction/epilogue_evaluator.cuh"

KERNEL(light, 2, f16, SB_CUDA_F16)
KERNEL(heavy, 2, f16, SB_CUDA_F16)
#endif

#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
#define SB_EVALUATOR_NAME evaluate_light_bf16
#define SB_EVALUATOR_WIDTH GROUP
#define SB_EVALUATOR_HEAVY 0
#define SB_EVALUATOR_REGISTERS SB_CUDA_FIXED_REGISTERS
#define SB_EVALUATOR_CONTEXT fused_operands
#define SB_EVALUATOR_LOAD LOAD_BF16
#define SB_EVALUATOR_BEGIN load_begin
#define SB_EVALUATOR_END END_BF16
#include "cuda/contraction/epilogue_evaluator.cuh"

#define SB_EVALUATOR_NAME evaluate_heavy_bf16
#define SB_EVALUATOR_WIDTH GROUP
#define SB_EVALUATOR_HEAVY 1
#define SB_EVALUATOR_REGISTERS SB_CUDA_FIXED_REGISTERS
#define SB_EVALUATOR_CONTEXT fused_operands
#define SB_EVALUATOR_LOAD LOAD_BF16
#define SB_EVALUATOR_BEGIN load_begin
#define SB_EVALUATOR_END END_BF16
#include "cuda/contraction/epilogue_evaluator.cuh"

KERNEL(light, 2, bf16, SB_CUDA_BF16)
KERNEL(heavy, 2, bf16, SB_CUDA_BF16)
#endif
