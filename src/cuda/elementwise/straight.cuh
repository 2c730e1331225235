/* Kernels of programs that are known when compiling: straight.cu. A thread takes eight neighbours of the output at once,
 * and every step is rounded to 16 bits, as a node of its own would be. */
#ifndef SB_CUDA_ELEMENTWISE_STRAIGHT_CUH
#define SB_CUDA_ELEMENTWISE_STRAIGHT_CUH

#include "cuda/common/halves.cuh"
#include "cuda/elementwise/straight_formulas.h"
#include "cuda/elementwise/straight_programs.h"
#include "ops/batch_factors_formula.h"
#include "ops/binary_values.h"
#include "ops/unary_values.h"

#define GROUP SB_CUDA_STRAIGHT_GROUP
#define EACH_OF_GROUP SB_CUDA_UNROLL for (int j = 0; j < GROUP; j++)

/* A group of neighbours and the row that it begins in; where that ends within the group, the next row too. */
typedef struct straight_group {
    uint32_t index;
    int count, left; /* elements that there are, and those of the first row */
    uint32_t outer, middle, inner;
    uint32_t next_outer, next_middle;
} straight_group;

SB_CUDA_FUNCTION straight_group straight_find(const sb_cuda_straight *p, uint32_t index) {
    straight_group group = {index, GROUP, GROUP, 0, 0, 0, 0, 0};
    if (p->elements - index < GROUP)
        group.count = (int)(p->elements - index);
    if (!p->places)
        return group;
    uint32_t row = sb_cuda_divide(index, &p->inner);
    group.inner = index - row * p->inner.divisor;
    group.outer = sb_cuda_divide(row, &p->middle);
    group.middle = row - group.outer * p->middle.divisor;
    group.next_outer = group.outer;
    group.next_middle = group.middle;
    const uint32_t left = p->inner.divisor - group.inner;
    if (left < (uint32_t)group.count) {
        group.left = (int)left;
        group.next_middle++;
        if (group.next_middle == p->middle.divisor) {
            group.next_middle = 0;
            group.next_outer++;
        }
    }
    return group;
}

/* Elements that are not there are any. */
SB_CUDA_FUNCTION sb_cuda_eight straight_load(const sb_cuda_straight_input *input, const straight_group *group) {
    if (input->layout == SB_CUDA_STRAIGHT_LINEAR) {
        const char *at = input->data + (int64_t)group->index * 2;
        if (group->count == GROUP)
            return sb_cuda_load_eight(at);
        sb_cuda_eight part = {{0, 0, 0, 0}};
        EACH_OF_GROUP {
            if (j < group->count)
                part.pairs[j / 2] |= (uint32_t)((const uint16_t *)(const void *)at)[j] << 16 * (j % 2);
        }
        return part;
    }
    const char *row = input->data + group->outer * input->steps[0] + group->middle * input->steps[1];
    if (input->layout == SB_CUDA_STRAIGHT_ROW)
        return sb_cuda_load_eight(row + (int64_t)group->inner * 2);
    const uint16_t first = *(const uint16_t *)(const void *)row;
    if (group->left == GROUP)
        return sb_cuda_eight_times(first);
    const char *next = input->data + group->next_outer * input->steps[0] + group->next_middle * input->steps[1];
    const uint16_t second = *(const uint16_t *)(const void *)next;
    sb_cuda_eight both;
    SB_CUDA_UNROLL
    for (int pair = 0; pair < GROUP / 2; pair++)
        both.pairs[pair] = (uint32_t)(2 * pair < group->left ? first : second) |
                           (uint32_t)(2 * pair + 1 < group->left ? first : second) << 16;
    return both;
}

SB_CUDA_FUNCTION void straight_store(const sb_cuda_straight *p, const straight_group *group, sb_cuda_eight eight) {
    char *at = p->out + (int64_t)group->index * 2;
    if (group->count == GROUP) {
        sb_cuda_store_eight(at, eight);
        return;
    }
    EACH_OF_GROUP {
        if (j < group->count)
            ((uint16_t *)(void *)at)[j] = sb_cuda_of_eight(eight, j);
    }
}

/* Channels' factors: those of the first row, and where the group goes on into another row of that one. */
template <int HALF>
SB_CUDA_FUNCTION void straight_normalize(const sb_cuda_eight *statistics, float epsilon, const straight_group *group,
                                         float *values) {
    float first[4], second[4], unused, a, b;
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++) {
        sb_cuda_widen_pair<HALF>(statistics[i].pairs[0], &first[i], &unused);
        sb_cuda_widen_pair<HALF>(statistics[i].pairs[GROUP / 2 - 1], &unused, &second[i]);
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

/* What a step computes with. */
template <int HALF, int SOURCE>
SB_CUDA_FUNCTION void straight_fetch(const sb_cuda_straight *p, int at, const sb_cuda_eight *inputs,
                                     const float *previous, const float *kept, float *values) {
    if constexpr (SOURCE == SB_CUDA_EPILOGUE_PREVIOUS) {
        EACH_OF_GROUP values[j] = previous[j];
    } else if constexpr (SOURCE < SB_CUDA_EPILOGUE_IMMEDIATE_A) {
        EACH_OF_GROUP values[j] = kept[j];
    } else if constexpr (SOURCE == SB_CUDA_EPILOGUE_IMMEDIATE_A) {
        EACH_OF_GROUP values[j] = p->a[at];
    } else if constexpr (SOURCE == SB_CUDA_EPILOGUE_IMMEDIATE_B) {
        EACH_OF_GROUP values[j] = p->b[at];
    } else {
        sb_cuda_widen_eight<HALF>(inputs[SOURCE - SB_CUDA_EPILOGUE_INPUT], values);
    }
}

/* The formulas of all opcodes that programs have. `z` is Clip's upper bound. */
template <int HALF, int OPCODE, int DIVISOR>
SB_CUDA_FUNCTION float straight_value(float x, float y, float z, float a, float b) {
#define STRAIGHT_BINARY(op)                                                                                            \
    if constexpr (OPCODE == SB_CUDA_EPILOGUE_##op)                                                                     \
        return sb_binary_value_##op##_f32(x, y);
#define STRAIGHT_UNARY(op)                                                                                             \
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
    SB_CUDA_EPILOGUE_LIGHT_BINARY(STRAIGHT_BINARY)
    SB_CUDA_EPILOGUE_LIGHT_UNARY(STRAIGHT_UNARY)
    SB_CUDA_EPILOGUE_HEAVY_UNARY(STRAIGHT_UNARY)
    return 0;
#undef STRAIGHT_BINARY
#undef STRAIGHT_UNARY
}

/* Step AT and those behind it. `values` is the step before's, and is left as the last one's, not rounded. */
template <typename PROGRAM, int HALF, int AT>
SB_CUDA_FUNCTION void straight_steps(const sb_cuda_straight *p, const straight_group *group,
                                     const sb_cuda_eight *inputs, float *kept, float *values) {
    if constexpr (AT < PROGRAM::program.count) {
        constexpr sb_cuda_straight_step step = PROGRAM::program.steps[AT];
        float x[GROUP];
        straight_fetch<HALF, step.sources[0]>(p, AT, inputs, values, kept, x);
        if constexpr (step.opcode == SB_CUDA_EPILOGUE_Normalize) {
            straight_normalize<HALF>(&inputs[step.sources[1] - SB_CUDA_EPILOGUE_INPUT], p->a[AT], group, x);
            EACH_OF_GROUP values[j] = x[j];
        } else {
            float y[GROUP], z[GROUP];
            straight_fetch<HALF, step.sources[1]>(p, AT, inputs, values, kept, y);
            straight_fetch<HALF, step.sources[2]>(p, AT, inputs, values, kept, z);
            EACH_OF_GROUP values[j] =
                straight_value<HALF, step.opcode, step.sources[1]>(x[j], y[j], z[j], p->a[AT], p->b[AT]);
        }
        if constexpr (AT + 1 < PROGRAM::program.count) {
            SB_CUDA_UNROLL
            for (int j = 0; j < GROUP; j += 2)
                sb_cuda_widen_pair<HALF>(sb_cuda_round_pair<HALF>(values[j], values[j + 1]), &values[j],
                                         &values[j + 1]);
        }
        if constexpr (step.keep != 0) {
            EACH_OF_GROUP kept[j] = values[j];
        }
        straight_steps<PROGRAM, HALF, AT + 1>(p, group, inputs, kept, values);
    }
}

template <typename PROGRAM, int HALF> SB_CUDA_FUNCTION void straight_run(const sb_cuda_straight *p) {
    const uint32_t stride = gridDim.x * blockDim.x * GROUP;
    for (uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) * GROUP; index < p->elements; index += stride) {
        const straight_group group = straight_find(p, index);
        sb_cuda_eight inputs[SB_CUDA_STRAIGHT_INPUTS];
        float kept[GROUP] = {0}, values[GROUP] = {0};
        SB_CUDA_UNROLL
        for (int i = 0; i < PROGRAM::program.inputs; i++)
            inputs[i] = straight_load(&p->inputs[i], &group);
        straight_steps<PROGRAM, HALF, 0>(p, &group, inputs, kept, values);
        straight_store(p, &group, sb_cuda_round_eight<HALF>(values));
    }
}

#endif
