#include "checkpoint/weight_format.h"

#include <string.h>

#include "numerics/convert.h"

static uint16_t word_at(const uint8_t *bytes) {
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static float half_at(const uint8_t *bytes) {
    return sb_f16_to_f32(word_at(bytes));
}

static uint32_t long_at(const uint8_t *bytes) {
    return (uint32_t)word_at(bytes) | (uint32_t)word_at(bytes + 2) << 16;
}

/* ---- plain ---- */

static void decode_f32(const uint8_t *block, float *values) {
    memcpy(values, block, sizeof *values);
}

static void decode_f16(const uint8_t *block, float *values) {
    *values = half_at(block);
}

static void decode_bf16(const uint8_t *block, float *values) {
    *values = sb_bf16_to_f32(word_at(block));
}

/* ---- blocks of 32: x = d q, or d q + m ---- */

static void decode_q4_0(const uint8_t *block, float *values) {
    float d = half_at(block);
    for (int i = 0; i < 16; i++) {
        values[i] = d * (float)((block[2 + i] & 15) - 8);
        values[16 + i] = d * (float)((block[2 + i] >> 4) - 8);
    }
}

static void decode_q4_1(const uint8_t *block, float *values) {
    float d = half_at(block), m = half_at(block + 2);
    for (int i = 0; i < 16; i++) {
        values[i] = d * (float)(block[4 + i] & 15) + m;
        values[16 + i] = d * (float)(block[4 + i] >> 4) + m;
    }
}

/* Bit i of `high` is the fifth of element i. */
static int five_bits(const uint8_t *low, uint32_t high, int i) {
    int four = i < 16 ? low[i] & 15 : low[i - 16] >> 4;
    return four | (int)((high >> i & 1) << 4);
}

static void decode_q5_0(const uint8_t *block, float *values) {
    float d = half_at(block);
    for (int i = 0; i < 32; i++)
        values[i] = d * (float)(five_bits(block + 6, long_at(block + 2), i) - 16);
}

static void decode_q5_1(const uint8_t *block, float *values) {
    float d = half_at(block), m = half_at(block + 2);
    for (int i = 0; i < 32; i++)
        values[i] = d * (float)five_bits(block + 8, long_at(block + 4), i) + m;
}

static void decode_q8_0(const uint8_t *block, float *values) {
    float d = half_at(block);
    for (int i = 0; i < 32; i++)
        values[i] = d * (float)(int8_t)block[2 + i];
}

/* ---- blocks of 256, in groups of 16 or 32 with scales of their own ---- */

/* 16 groups of 16: four bits of scale, four of minimum. Of every 128 elements, 32 bytes hold four times 32 of two bits. */
static void decode_q2_k(const uint8_t *block, float *values) {
    const uint8_t *scales = block, *quants = block + 16;
    float d = half_at(block + 80), least = half_at(block + 82);
    for (int i = 0; i < 256; i++) {
        int group = i / 16, q = quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        float scale = d * (float)(scales[group] & 15), minimum = least * (float)(scales[group] >> 4);
        values[i] = scale * (float)q - minimum;
    }
}

/* 16 groups of 16 with scales of six bits; elements have two bits, as above, and a third in 32 bytes of masks, which
 * takes 4 away where it is not set. */
static void decode_q3_k(const uint8_t *block, float *values) {
    const uint8_t *masks = block, *quants = block + 32, *scales = block + 96;
    float d = half_at(block + 108);
    for (int i = 0; i < 256; i++) {
        int group = i / 16, part = i / 32;
        int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
        int high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
        int q = quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        float scale = d * (float)((low | high << 4) - 32);
        values[i] = scale * (float)(q - ((masks[i % 32] >> part & 1) != 0 ? 0 : 4));
    }
}

/* Scale and minimum of group `group` of 8, six bits each in 12 bytes. */
static void six_bits(const uint8_t *packed, int group, int *scale, int *minimum) {
    if (group < 4) {
        *scale = packed[group] & 63;
        *minimum = packed[group + 4] & 63;
    } else {
        *scale = (packed[group + 4] & 15) | packed[group - 4] >> 6 << 4;
        *minimum = packed[group + 4] >> 4 | packed[group] >> 6 << 4;
    }
}

/* 8 groups of 32. Of every 64 elements, 32 bytes hold the first half in their low bits, the second in their high ones. */
static int k_quant_bits(const uint8_t *quants, int i) {
    uint8_t byte = quants[i / 64 * 32 + i % 32];
    return i % 64 < 32 ? byte & 15 : byte >> 4;
}

static void decode_q4_k(const uint8_t *block, float *values) {
    float d = half_at(block), least = half_at(block + 2);
    for (int i = 0; i < 256; i++) {
        int scale, minimum;
        six_bits(block + 4, i / 32, &scale, &minimum);
        values[i] = d * (float)scale * (float)k_quant_bits(block + 16, i) - least * (float)minimum;
    }
}

static void decode_q5_k(const uint8_t *block, float *values) {
    float d = half_at(block), least = half_at(block + 2);
    const uint8_t *high = block + 16;
    for (int i = 0; i < 256; i++) {
        int scale, minimum, q = k_quant_bits(block + 48, i) | (high[i % 32] >> (i / 32) & 1) << 4;
        six_bits(block + 4, i / 32, &scale, &minimum);
        values[i] = d * (float)scale * (float)q - least * (float)minimum;
    }
}

/* 16 groups of 16 with signed bytes of scale. Of every 128 elements, 64 bytes hold four bits and 32 bytes two more. */
static void decode_q6_k(const uint8_t *block, float *values) {
    float d = half_at(block + 208);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, within = i % 128, quarter = within / 32;
        uint8_t low = block[half * 64 + within % 64], high = block[128 + half * 32 + within % 32];
        int q = (quarter < 2 ? low & 15 : low >> 4) | (high >> (2 * quarter) & 3) << 4;
        values[i] = d * (float)(int8_t)block[192 + i / 16] * (float)(q - 32);
    }
}

/* ---- the table ---- */

static const sb_weight_format formats[] = {
    {"F32", 1, 4, true, SB_F32, 0, "F32", decode_f32},
    {"F16", 1, 2, true, SB_F16, 1, "F16", decode_f16},
    {"BF16", 1, 2, true, SB_BF16, 30, "BF16", decode_bf16},
    {"Q4_0", 32, 18, false, SB_F32, 2, NULL, decode_q4_0},
    {"Q4_1", 32, 20, false, SB_F32, 3, NULL, decode_q4_1},
    {"Q5_0", 32, 22, false, SB_F32, 6, NULL, decode_q5_0},
    {"Q5_1", 32, 24, false, SB_F32, 7, NULL, decode_q5_1},
    {"Q8_0", 32, 34, false, SB_F32, 8, NULL, decode_q8_0},
    {"Q2_K", 256, 84, false, SB_F32, 10, NULL, decode_q2_k},
    {"Q3_K", 256, 110, false, SB_F32, 11, NULL, decode_q3_k},
    {"Q4_K", 256, 144, false, SB_F32, 12, NULL, decode_q4_k},
    {"Q5_K", 256, 176, false, SB_F32, 13, NULL, decode_q5_k},
    {"Q6_K", 256, 210, false, SB_F32, 14, NULL, decode_q6_k},
    /* What files may also hold, and no family reads: masks, positions, weights for others. */
    {"F64", 1, 8, false, SB_F32, 28, "F64", NULL},
    {"I64", 1, 8, false, SB_F32, 27, "I64", NULL},
    {"U64", 1, 8, false, SB_F32, -1, "U64", NULL},
    {"I32", 1, 4, false, SB_F32, 26, "I32", NULL},
    {"U32", 1, 4, false, SB_F32, -1, "U32", NULL},
    {"I16", 1, 2, false, SB_F32, 25, "I16", NULL},
    {"U16", 1, 2, false, SB_F32, -1, "U16", NULL},
    {"I8", 1, 1, false, SB_F32, 24, "I8", NULL},
    {"U8", 1, 1, false, SB_F32, -1, "U8", NULL},
    {"BOOL", 1, 1, false, SB_F32, -1, "BOOL", NULL},
    {"F8_E4M3", 1, 1, false, SB_F32, -1, "F8_E4M3", NULL},
    {"F8_E5M2", 1, 1, false, SB_F32, -1, "F8_E5M2", NULL},
};

enum { FORMATS = sizeof formats / sizeof *formats };

const sb_weight_format *sb_weight_format_of_ggml(int64_t number) {
    for (int i = 0; i < FORMATS; i++) {
        if (number >= 0 && formats[i].ggml == number)
            return &formats[i];
    }
    return NULL;
}

const sb_weight_format *sb_weight_format_of_safetensors(const char *name) {
    for (int i = 0; i < FORMATS; i++) {
        if (formats[i].safetensors != NULL && strcmp(formats[i].safetensors, name) == 0)
            return &formats[i];
    }
    return NULL;
}

static void store(const float *values, int64_t count, sb_dtype dtype, char *to) {
    uint16_t *words = (uint16_t *)(void *)to;
    if (dtype == SB_F32)
        memcpy(to, values, (size_t)count * sizeof *values);
    for (int64_t i = 0; dtype == SB_F16 && i < count; i++)
        words[i] = sb_f16_from_f32(values[i]);
    for (int64_t i = 0; dtype == SB_BF16 && i < count; i++)
        words[i] = sb_bf16_from_f32(values[i]);
}

void sb_weight_convert(const sb_weight_format *format, const void *blocks, int64_t count, sb_dtype dtype, void *to) {
    float values[SB_WEIGHT_BLOCK];
    const uint8_t *from = blocks;
    char *at = to;
    size_t size = sb_dtype_size(dtype);
    if (format->is_float && format->dtype == dtype) {
        memcpy(to, blocks, (size_t)count * size);
        return;
    }
    int64_t together = SB_WEIGHT_BLOCK / format->elements;
    for (int64_t done = 0; done < count; done += together) {
        int64_t piece = count - done < together ? count - done : together;
        for (int64_t i = 0; i < piece; i++, from += format->bytes)
            format->decode(from, values + i * format->elements);
        store(values, piece * format->elements, dtype, at);
        at += (size_t)(piece * format->elements) * size;
    }
}
