/* Kernels of programs that are known when compiling: fixed.cu. A thread takes eight neighbours of the output at once,
 * and every step is rounded to 16 bits, as a node of its own would be. */
#ifndef SB_CUDA_ELEMENTWISE_FIXED_CUH
#define SB_CUDA_ELEMENTWISE_FIXED_CUH

#include "cuda/common/half_arithmetic.cuh"
#include "cuda/elementwise/fixed_formulas.h"
#include "cuda/elementwise/fixed_groups.cuh"
#include "cuda/elementwise/fixed_programs.h"
#include "ops/batch_factors_formula.h"
#include "ops/binary_values.h"
#include "ops/unary_values.h"

/* Factors of channels that are neighbours: kept while a thread stays at the same place of its rows. */
typedef struct fixed_factors {
    float a[GROUP], b[GROUP];
    uint32_t inner; /* where they belong to */
} fixed_factors;

template <int HALF>
SB_CUDA_FUNCTION void fixed_find_factors(const sb_cuda_fixed_input *statistics, float epsilon, const fixed_group *group,
                                         fixed_factors *factors) {
    float of[4][GROUP];
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++)
        sb_cuda_widen_eight<HALF>(fixed_load(&statistics[i], group), of[i]);
    EACH_OF_GROUP sb_batch_normalization_factors(of[0][j], of[1][j], of[2][j], of[3][j], epsilon, &factors->a[j],
                                                 &factors->b[j]);
    factors->inner = group->inner;
}

/* Where a row is of one channel: its factors, and where the group goes on into another row those of that one. */
template <int HALF>
SB_CUDA_FUNCTION void fixed_normalize(const sb_cuda_fixed_input *statistics, float epsilon, const fixed_group *group,
                                      float *values) {
    float first[4], second[4], unused, a, b;
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++) {
        const sb_cuda_eight eight = fixed_load(&statistics[i], group);
        sb_cuda_widen_pair<HALF>(eight.pairs[0], &first[i], &unused);
        sb_cuda_widen_pair<HALF>(eight.pairs[GROUP / 2 - 1], &unused, &second[i]);
    }
    sb_batch_normalization_factors(first[0], first[1], first[2], first[3], epsilon, &a, &b);
    if (group->left == GROUP) {
        EACH_OF_GROUP values[j] = sb_fma_f32(values[j], a, b);
        return;
    }
    float next_a, next_b;
    sb_batch_normalization_factors(second[0], second[1], second[2], second[3], epsilon, &next_a, &next_b);
    EACH_OF_GROUP values[j] = sb_fma_f32(values[j], j < group->left ? a : next_a, j < group->left ? b : next_b);
}

/* What a step computes with: pairs, or numbers in f32. */
template <int HALF, int SOURCE>
SB_CUDA_FUNCTION void fixed_fetch_pairs(const sb_cuda_fixed *p, int at, const sb_cuda_eight *inputs,
                                        const sb_cuda_eight *previous, const sb_cuda_eight *kept,
                                        sb_cuda_eight *pairs) {
    if constexpr (SOURCE == SB_CUDA_EPILOGUE_PREVIOUS) {
        *pairs = *previous;
    } else if constexpr (SOURCE < SB_CUDA_EPILOGUE_IMMEDIATE_A) {
        *pairs = *kept;
    } else if constexpr (SOURCE == SB_CUDA_EPILOGUE_IMMEDIATE_A || SOURCE == SB_CUDA_EPILOGUE_IMMEDIATE_B) {
        const float number = SOURCE == SB_CUDA_EPILOGUE_IMMEDIATE_A ? p->a[at] : p->b[at];
        *pairs = sb_cuda_eight_times((uint16_t)sb_cuda_round_pair<HALF>(number, number));
    } else {
        *pairs = inputs[SOURCE - SB_CUDA_EPILOGUE_INPUT];
    }
}

template <int HALF, int SOURCE>
SB_CUDA_FUNCTION void fixed_fetch(const sb_cuda_fixed *p, int at, const sb_cuda_eight *inputs,
                                  const sb_cuda_eight *previous, const sb_cuda_eight *kept, float *values) {
    if constexpr (SOURCE == SB_CUDA_EPILOGUE_IMMEDIATE_A) {
        EACH_OF_GROUP values[j] = p->a[at];
    } else if constexpr (SOURCE == SB_CUDA_EPILOGUE_IMMEDIATE_B) {
        EACH_OF_GROUP values[j] = p->b[at];
    } else {
        sb_cuda_eight pairs;
        fixed_fetch_pairs<HALF, SOURCE>(p, at, inputs, previous, kept, &pairs);
        sb_cuda_widen_eight<HALF>(pairs, values);
    }
}

/* The formulas of all opcodes that programs have. `z` is Clip's upper bound. */
template <int HALF, int OPCODE, int DIVISOR>
SB_CUDA_FUNCTION float fixed_value(float x, float y, float z, float a, float b) {
#define FIXED_BINARY(op)                                                                                               \
    if constexpr (OPCODE == SB_CUDA_EPILOGUE_##op)                                                                     \
        return sb_binary_value_##op##_f32(x, y);
#define FIXED_UNARY(op)                                                                                                \
    if constexpr (OPCODE == SB_CUDA_EPILOGUE_##op)                                                                     \
        return sb_unary_##op##_f32(x, a, b);
    if constexpr (OPCODE == SB_CUDA_EPILOGUE_Div && HALF == SB_CUDA_F16 && DIVISOR == SB_CUDA_EPILOGUE_IMMEDIATE_B)
        return sb_cuda_quotient_f16(x, b, a);
    if constexpr (OPCODE == SB_CUDA_EPILOGUE_Erf)
        return sb_cuda_erf_16(x);
    if constexpr (OPCODE == SB_CUDA_EPILOGUE_Clip) {
        const float raised = x < y ? y : x;
        return raised > z ? z : raised;
    }
    SB_CUDA_EPILOGUE_LIGHT_BINARY(FIXED_BINARY)
    SB_CUDA_EPILOGUE_LIGHT_UNARY(FIXED_UNARY)
    SB_CUDA_EPILOGUE_HEAVY_UNARY(FIXED_UNARY)
    return 0;
#undef FIXED_BINARY
#undef FIXED_UNARY
}

/* A step by operations on pairs, which f16 has for sums and products: numbers in the program are values of f16 (fixed.c). */
template <typename PROGRAM, int HALF, int AT>
SB_CUDA_FUNCTION sb_cuda_eight fixed_step_of_pairs(const sb_cuda_fixed *p, const sb_cuda_eight *inputs,
                                                   const sb_cuda_eight *kept, const sb_cuda_eight *previous) {
    constexpr sb_cuda_fixed_step step = PROGRAM::program.steps[AT];
    sb_cuda_eight x, y, result;
    fixed_fetch_pairs<HALF, step.sources[0]>(p, AT, inputs, previous, kept, &x);
    fixed_fetch_pairs<HALF, step.sources[1]>(p, AT, inputs, previous, kept, &y);
    SB_CUDA_UNROLL
    for (int i = 0; i < GROUP / 2; i++)
        result.pairs[i] = step.opcode == SB_CUDA_EPILOGUE_Add ? sb_cuda_add_pair<HALF>(x.pairs[i], y.pairs[i])
                                                              : sb_cuda_multiply_pair<HALF>(x.pairs[i], y.pairs[i]);
    return result;
}

/* Any step, in f32. */
template <typename PROGRAM, int HALF, int AT>
SB_CUDA_FUNCTION sb_cuda_eight fixed_step(const sb_cuda_fixed *p, const fixed_group *group, const sb_cuda_eight *inputs,
                                          fixed_factors *factors, const sb_cuda_eight *kept,
                                          const sb_cuda_eight *previous) {
    constexpr sb_cuda_fixed_step step = PROGRAM::program.steps[AT];
    float x[GROUP];
    fixed_fetch<HALF, step.sources[0]>(p, AT, inputs, previous, kept, x);
    if constexpr (step.opcode == SB_CUDA_EPILOGUE_Normalize) {
        const sb_cuda_fixed_input *statistics = &p->inputs[step.sources[1] - SB_CUDA_EPILOGUE_INPUT];
        if (p->channels_last) {
            if (factors->inner != group->inner)
                fixed_find_factors<HALF>(statistics, p->a[AT], group, factors);
            EACH_OF_GROUP x[j] = sb_fma_f32(x[j], factors->a[j], factors->b[j]);
        } else {
            fixed_normalize<HALF>(statistics, p->a[AT], group, x);
        }
    } else {
        float y[GROUP], z[GROUP];
        fixed_fetch<HALF, step.sources[1]>(p, AT, inputs, previous, kept, y);
        fixed_fetch<HALF, step.sources[2]>(p, AT, inputs, previous, kept, z);
        EACH_OF_GROUP x[j] = fixed_value<HALF, step.opcode, step.sources[1]>(x[j], y[j], z[j], p->a[AT], p->b[AT]);
    }
    sb_cuda_eight result;
    SB_CUDA_UNROLL
    for (int i = 0; i < GROUP / 2; i++)
        result.pairs[i] = sb_cuda_round_pair<HALF>(x[2 * i], x[2 * i + 1]);
    return result;
}

/* Step AT and those behind it. `values` is the step before's, and is left as the last one's, with NaNs of any kind. */
template <typename PROGRAM, int HALF, int AT>
SB_CUDA_FUNCTION void fixed_steps(const sb_cuda_fixed *p, const fixed_group *group, const sb_cuda_eight *inputs,
                                  fixed_factors *factors, sb_cuda_eight *kept, sb_cuda_eight *values) {
    if constexpr (AT < PROGRAM::program.count) {
        constexpr sb_cuda_fixed_step step = PROGRAM::program.steps[AT];
        if constexpr (HALF == SB_CUDA_F16 &&
                      (step.opcode == SB_CUDA_EPILOGUE_Add || step.opcode == SB_CUDA_EPILOGUE_Mul))
            *values = fixed_step_of_pairs<PROGRAM, HALF, AT>(p, inputs, kept, values);
        else
            *values = fixed_step<PROGRAM, HALF, AT>(p, group, inputs, factors, kept, values);
        if constexpr (step.keep != 0)
            *kept = *values;
        fixed_steps<PROGRAM, HALF, AT + 1>(p, group, inputs, factors, kept, values);
    }
}

template <typename PROGRAM, int HALF> SB_CUDA_FUNCTION void fixed_run(const sb_cuda_fixed *p) {
    constexpr bool normalizes = PROGRAM::program.steps[0].opcode == SB_CUDA_EPILOGUE_Normalize;
    fixed_factors factors;
    factors.inner = UINT32_MAX;
    const uint32_t stride = gridDim.x * blockDim.x * GROUP;
    for (uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) * GROUP; index < p->box.elements; index += stride) {
        const fixed_group group = fixed_find(&p->box, index);
        sb_cuda_eight inputs[SB_CUDA_FIXED_INPUTS];
        sb_cuda_eight kept = {{0, 0, 0, 0}}, values = kept;
        SB_CUDA_UNROLL
        for (int i = 0; i < PROGRAM::program.inputs; i++) {
            /* Statistics are loaded where their factors are worked out. */
            if (!normalizes || i == 0 || i > 4)
                inputs[i] = fixed_load(&p->inputs[i], &group);
        }
        fixed_steps<PROGRAM, HALF, 0>(p, &group, inputs, &factors, &kept, &values);
        SB_CUDA_UNROLL
        for (int i = 0; i < GROUP / 2; i++)
            values.pairs[i] = sb_cuda_canonical_pair<HALF>(values.pairs[i]);
        fixed_store(&p->box, &group, values);
    }
}

#endif
