/* Finding, loading and storing the elements of a web. */
#ifndef IV_CUDA_KERNELS_WEB_CUH
#define IV_CUDA_KERNELS_WEB_CUH

#include "cuda/kernels/tail.cuh"
#include "cuda/kernels/web_parameters.h"
#include "cuda/kernels/words.cuh"

#define WIDTH IV_CUDA_WEB_WIDTH

/* A group of neighbours, by the first one's index. */
typedef struct web_group {
    const iv_cuda_web *web;
    int64_t index;
    bool full; /* false where elements are missing, or the output is not aligned */
} web_group;

/* Where element `index` of an input lies, in bytes. */
IV_CUDA_FUNCTION int64_t web_offset(const iv_cuda_web *web, const iv_cuda_web_input *input,
                                    int64_t index) {
    int64_t offset = 0;
    if (web->elements <= INT32_MAX) {
        uint32_t rest = (uint32_t)index;
        IV_CUDA_KEEP_LOOP
        for (int d = web->rank - 1; d > 0; d--) {
            uint32_t quotient = iv_cuda_divide(rest, &web->divisors[d]);
            offset += (rest - quotient * web->divisors[d].divisor) * input->steps[d];
            rest = quotient;
        }
        return offset + rest * input->steps[0];
    }
    IV_CUDA_KEEP_LOOP
    for (int d = web->rank - 1; d > 0; d--) {
        int64_t quotient = index / web->dims[d];
        offset += (index - quotient * web->dims[d]) * input->steps[d];
        index = quotient;
    }
    return offset + index * input->steps[0];
}

/* A missing element stands for the last one, so that nothing else is read. */
IV_CUDA_FUNCTION void web_addresses(web_group group, const iv_cuda_web_input *input,
                                    const char **at) {
    const iv_cuda_web *web = group.web;
    int64_t last = web->elements - 1, step;
    switch (input->layout) {
    case IV_CUDA_WEB_LINEAR:
    case IV_CUDA_WEB_ANY:
        IV_CUDA_UNROLL
        for (int j = 0; j < WIDTH; j++) {
            int64_t index = group.index + j < last ? group.index + j : last;
            at[j] = input->data + (input->layout == IV_CUDA_WEB_ANY ? web_offset(web, input, index)
                                                                    : index * input->size);
        }
        break;
    default:
        step = input->layout == IV_CUDA_WEB_SINGLE ? 0 : input->steps[web->rank - 1];
        at[0] = input->data;
        if (step != 0 || input->layout == IV_CUDA_WEB_ROWS)
            at[0] += web_offset(web, input, group.index);
        IV_CUDA_UNROLL
        for (int j = 1; j < WIDTH; j++)
            at[j] = at[0] + j * step;
    }
}

/* Four neighbours in one access. */
IV_CUDA_FUNCTION void web_load_whole(int dtype, const char *at, float *values) {
    if (dtype == IV_CUDA_TAIL_F32) {
        iv_cuda_words4 words = *(const iv_cuda_words4 *)(const void *)at;
        values[0] = iv_bits_to_f32(words.x);
        values[1] = iv_bits_to_f32(words.y);
        values[2] = iv_bits_to_f32(words.z);
        values[3] = iv_bits_to_f32(words.w);
    } else if (dtype == IV_CUDA_TAIL_U8) {
        uint32_t word = *(const uint32_t *)(const void *)at;
        IV_CUDA_UNROLL
        for (int j = 0; j < WIDTH; j++)
            values[j] = (float)(word >> 8 * j & 255);
    } else {
        iv_cuda_words2 words = *(const iv_cuda_words2 *)(const void *)at;
        uint16_t halves[WIDTH] = {(uint16_t)words.x, (uint16_t)(words.x >> 16), (uint16_t)words.y,
                                  (uint16_t)(words.y >> 16)};
        IV_CUDA_UNROLL
        for (int j = 0; j < WIDTH; j++)
            values[j] = dtype == IV_CUDA_TAIL_F16 ? iv_f16_to_f32(halves[j])
                                                  : iv_bf16_to_f32(halves[j]);
    }
}

IV_CUDA_FUNCTION void web_load(web_group group, int number, float *values) {
    const iv_cuda_web_input *input = &group.web->inputs[number];
    const char *at[WIDTH];
    if (input->whole && group.full) {
        int64_t offset = input->layout == IV_CUDA_WEB_LINEAR
                             ? group.index * input->size
                             : web_offset(group.web, input, group.index);
        web_load_whole(input->dtype, input->data + offset, values);
        return;
    }
    web_addresses(group, input, at);
    if (input->dtype == IV_CUDA_TAIL_F32) {
        IV_CUDA_UNROLL
        for (int j = 0; j < WIDTH; j++)
            values[j] = *(const float *)(const void *)at[j];
        return;
    }
    /* One piece of code for all: the dtypes are many. */
    IV_CUDA_KEEP_LOOP
    for (int turn = 0; turn < WIDTH; turn++) {
        const char *first = at[0];
        float value = iv_cuda_tail_element(input->dtype, first);
        IV_CUDA_UNROLL
        for (int j = 0; j + 1 < WIDTH; j++) {
            at[j] = at[j + 1];
            values[j] = values[j + 1];
        }
        values[WIDTH - 1] = value;
    }
}

/* The output's bits: values have been rounded to its dtype. */
IV_CUDA_FUNCTION uint32_t web_bits(int dtype, float value) {
    return dtype == IV_CUDA_TAIL_F32    ? iv_bits_from_f32(value)
           : dtype == IV_CUDA_TAIL_F16  ? iv_f16_from_f32(value)
           : dtype == IV_CUDA_TAIL_BF16 ? iv_bf16_from_f32(value)
                                        : (uint32_t)value;
}

IV_CUDA_FUNCTION void web_store(web_group group, const float *values) {
    int dtype = group.web->out_dtype;
    int size = dtype == IV_CUDA_TAIL_F32 ? 4 : dtype == IV_CUDA_TAIL_U8 ? 1 : 2;
    char *out = group.web->out + group.index * size;
    uint32_t bits[WIDTH];
    IV_CUDA_UNROLL
    for (int j = 0; j < WIDTH; j++)
        bits[j] = web_bits(dtype, values[j]);
    if (!group.full) {
        IV_CUDA_UNROLL
        for (int j = 0; j < WIDTH; j++) {
            if (group.index + j >= group.web->elements)
                break;
            if (size == 4)
                *(uint32_t *)(void *)(out + 4 * j) = bits[j];
            else if (size == 2)
                *(uint16_t *)(void *)(out + 2 * j) = (uint16_t)bits[j];
            else
                *(uint8_t *)(out + j) = (uint8_t)bits[j];
        }
    } else if (size == 4) {
        iv_cuda_words4 words = {bits[0], bits[1], bits[2], bits[3]};
        *(iv_cuda_words4 *)(void *)out = words;
    } else if (size == 2) {
        iv_cuda_words2 words = {bits[0] | bits[1] << 16, bits[2] | bits[3] << 16};
        *(iv_cuda_words2 *)(void *)out = words;
    } else {
        *(uint32_t *)(void *)out = bits[0] | bits[1] << 8 | bits[2] << 16 | bits[3] << 24;
    }
}

/* A kernel around an evaluator that takes groups. */
#define WEB_KERNEL(name, evaluate, blocks)                                                         \
    IV_CUDA_KERNEL_BOUNDED(name, iv_cuda_web, web, IV_CUDA_WEB_THREADS, blocks) {                  \
        IV_CUDA_EACH(number, (web->elements + WIDTH - 1) / WIDTH) {                                \
            int64_t end = number * WIDTH + WIDTH;                                                  \
            web_group group = {web, number * WIDTH, web->whole && end <= web->elements};           \
            float values[WIDTH] = {0};                                                             \
            evaluate(&web->code, group, values);                                                   \
            web_store(group, values);                                                              \
        }                                                                                          \
    }

#endif
