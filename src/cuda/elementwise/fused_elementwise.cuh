/* Finding, loading and storing the elements of a fused body. */
#ifndef SB_CUDA_ELEMENTWISE_FUSED_ELEMENTWISE_CUH
#define SB_CUDA_ELEMENTWISE_FUSED_ELEMENTWISE_CUH

#include "cuda/common/rehearsal.cuh"
#include "cuda/common/words.cuh"
#include "cuda/contraction/epilogue.cuh"
#include "cuda/elementwise/fused_elementwise_parameters.h"

#define WIDTH SB_CUDA_FUSED_WIDTH

/* A group of neighbours, by the first one's index. */
typedef struct fused_group {
    const sb_cuda_fused *fused;
    uint32_t index;
    bool full; /* false where elements are missing, or the output is not aligned */
    bool rehearses;
} fused_group;

/* Where element `j` of the group lies in an input. A missing one stands for the last, so that
 * nothing else is read. */
SB_CUDA_FUNCTION const char *fused_address(fused_group group, const sb_cuda_fused_input *input, int j) {
    const sb_cuda_fused *fused = group.fused;
    if (group.rehearses)
        return (const char *)(const void *)sb_cuda_rehearsed_operand;
    uint32_t rest = group.index + (uint32_t)j;
    rest = rest < fused->elements ? rest : fused->elements - 1;
    if (input->layout == SB_CUDA_FUSED_LINEAR)
        return input->data + (int64_t)rest * input->size;
    int64_t offset = 0;
    SB_CUDA_KEEP_LOOP
    for (int d = fused->rank - 1; d > 0; d--) {
        uint32_t quotient = sb_cuda_divide(rest, &fused->divisors[d]);
        offset += (rest - quotient * fused->divisors[d].divisor) * input->steps[d];
        rest = quotient;
    }
    return input->data + offset + rest * input->steps[0];
}

/* Four neighbours in one access: their bits as they are, … */
SB_CUDA_FUNCTION void fused_load_whole(int dtype, const char *at, float *values) {
    if (dtype == SB_CUDA_EPILOGUE_F32) {
        sb_cuda_words4 words = *(const sb_cuda_words4 *)(const void *)at;
        values[0] = sb_bits_to_f32(words.x);
        values[1] = sb_bits_to_f32(words.y);
        values[2] = sb_bits_to_f32(words.z);
        values[3] = sb_bits_to_f32(words.w);
    } else if (dtype == SB_CUDA_EPILOGUE_U8) {
        values[0] = sb_bits_to_f32(*(const uint32_t *)(const void *)at);
    } else {
        sb_cuda_words2 words = *(const sb_cuda_words2 *)(const void *)at;
        values[0] = sb_bits_to_f32(words.x);
        values[1] = sb_bits_to_f32(words.y);
    }
}

/* … and as values. */
SB_CUDA_FUNCTION void fused_widen(int dtype, float *values) {
    if (dtype == SB_CUDA_EPILOGUE_F32)
        return;
    uint32_t words[2] = {sb_bits_from_f32(values[0]), sb_bits_from_f32(values[1])};
    SB_CUDA_UNROLL
    for (int j = 0; j < WIDTH; j++) {
        uint16_t half = (uint16_t)(words[j / 2] >> 16 * (j % 2));
        values[j] = dtype == SB_CUDA_EPILOGUE_U8    ? (float)(words[0] >> 8 * j & 255)
                    : dtype == SB_CUDA_EPILOGUE_F16 ? sb_f16_to_f32(half)
                                                    : sb_bf16_to_f32(half);
    }
}

/* Loads an input in two steps, so that several loads may be under way. What is not one access is
 * loaded one by one, by one piece of code for all dtypes. */
SB_CUDA_FUNCTION void fused_load_begin(fused_group group, int number, float *values) {
    const sb_cuda_fused_input *input = &group.fused->inputs[number];
    int count = input->layout == SB_CUDA_FUSED_SINGLE || input->layout == SB_CUDA_FUSED_REPEATED ? 1 : WIDTH;
    if (input->whole && group.full) {
        fused_load_whole(input->dtype, fused_address(group, input, 0), values);
        return;
    }
    SB_CUDA_KEEP_LOOP
    for (int turn = 0; turn < count; turn++) {
        const bool single = input->layout == SB_CUDA_FUSED_SINGLE && !group.rehearses;
        const char *at = single ? input->data : fused_address(group, input, turn);
        float value = sb_cuda_epilogue_element(input->dtype, at);
        SB_CUDA_UNROLL
        for (int j = 0; j + 1 < WIDTH; j++)
            values[j] = count == 1 ? value : values[j + 1];
        values[WIDTH - 1] = value;
    }
}

SB_CUDA_FUNCTION void fused_load_end(fused_group group, int number, float *values) {
    const sb_cuda_fused_input *input = &group.fused->inputs[number];
    if (input->whole && group.full)
        fused_widen(input->dtype, values);
}

SB_CUDA_FUNCTION void fused_load(fused_group group, int number, float *values) {
    fused_load_begin(group, number, values);
    fused_load_end(group, number, values);
}

/* The output's bits: values have been rounded to its dtype. */
SB_CUDA_FUNCTION uint32_t fused_bits(int dtype, float value) {
    return dtype == SB_CUDA_EPILOGUE_F32    ? sb_bits_from_f32(value)
           : dtype == SB_CUDA_EPILOGUE_F16  ? sb_f16_from_f32(value)
           : dtype == SB_CUDA_EPILOGUE_BF16 ? sb_bf16_from_f32(value)
                                            : (uint32_t)value;
}

SB_CUDA_FUNCTION void fused_store(fused_group group, const float *values) {
    int dtype = group.fused->out_dtype;
    int size = dtype == SB_CUDA_EPILOGUE_F32 ? 4 : dtype == SB_CUDA_EPILOGUE_U8 ? 1 : 2;
    char *out = group.fused->out + (int64_t)group.index * size;
    uint32_t bits[WIDTH];
    SB_CUDA_UNROLL
    for (int j = 0; j < WIDTH; j++)
        bits[j] = fused_bits(dtype, values[j]);
    if (!group.full) {
        SB_CUDA_UNROLL
        for (int j = 0; j < WIDTH; j++) {
            if (group.index + (uint32_t)j >= group.fused->elements)
                break;
            if (size == 4)
                *(uint32_t *)(void *)(out + 4 * j) = bits[j];
            else if (size == 2)
                *(uint16_t *)(void *)(out + 2 * j) = (uint16_t)bits[j];
            else
                *(uint8_t *)(out + j) = (uint8_t)bits[j];
        }
    } else if (size == 4) {
        sb_cuda_words4 words = {bits[0], bits[1], bits[2], bits[3]};
        *(sb_cuda_words4 *)(void *)out = words;
    } else if (size == 2) {
        sb_cuda_words2 words = {bits[0] | bits[1] << 16, bits[2] | bits[3] << 16};
        *(sb_cuda_words2 *)(void *)out = words;
    } else {
        *(uint32_t *)(void *)out = bits[0] | bits[1] << 8 | bits[2] << 16 | bits[3] << 24;
    }
}

/* A kernel around an evaluator that takes groups. */
#define FUSED_KERNEL(name, evaluate, blocks)                                                                           \
    SB_CUDA_REHEARSED_KERNEL_BOUNDED(name, sb_cuda_fused, fused, SB_CUDA_FUSED_THREADS, blocks) {                      \
        const uint32_t stride = gridDim.x * blockDim.x * WIDTH;                                                        \
        uint32_t index = (blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;                                              \
        bool rehearses = sb_cuda_rehearses();                                                                          \
        SB_CUDA_KEEP_LOOP                                                                                              \
        while (rehearses || index < fused->elements) {                                                                 \
            bool full = fused->whole && fused->elements - index >= WIDTH;                                              \
            fused_group group = {fused, index, full, rehearses};                                                       \
            float values[WIDTH] = {0};                                                                                 \
            evaluate(&fused->code, group, values);                                                                     \
            if (rehearses) {                                                                                           \
                sb_cuda_end_rehearsal<WIDTH>(values);                                                                  \
                rehearses = false;                                                                                     \
                continue;                                                                                              \
            }                                                                                                          \
            fused_store(group, values);                                                                                \
            index += stride;                                                                                           \
        }                                                                                                              \
    }

#endif
