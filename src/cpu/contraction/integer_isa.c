/* Integer products, compiled once per instruction set: those whose words are two elements of 16 bits, and what else takes sums of integers. */
#include "cpu/contraction/integer_tile.h"

/* `stride` is 1, or anything. */
#define ROW(step)                                                                                                      \
    for (int64_t i = 0; i < k; i++) {                                                                                  \
        const uint8_t element = from[i * (step)] ^ sign;                                                               \
        wide[i] = element;                                                                                             \
        sum += element;                                                                                                \
    }

static uint32_t row(sb_dtype dtype, const void *a, int64_t stride, int64_t k, void *to) {
    const uint8_t sign = dtype == SB_S8 ? 0x80 : 0, *from = a;
    int16_t *restrict wide = to;
    uint32_t sum = 0;
    if (stride == 1) {
        ROW(1)
    } else {
        ROW(stride)
    }
    if (k % 2 != 0)
        wide[k] = 0;
    return sum;
}

const sb_integer_form SB_ISA_NAME(sb_integer_pairs) = {2, COLUMNS, row, multiply};

void SB_ISA_NAME(sb_integer_widen)(sb_dtype dtype, const void *x, int64_t count, int32_t zero, int16_t *restrict to) {
    if (dtype == SB_U8) {
        for (int64_t i = 0; i < count; i++)
            to[i] = (int16_t)(((const uint8_t *)x)[i] - zero);
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i] = (int16_t)(((const int8_t *)x)[i] - zero);
    }
}

/* Channels whose sums are in registers at once. */
#define CHUNK 64

/* `count` is a constant for whole chunks. */
static inline void depthwise_chunk(int64_t channels, int64_t first, int64_t count, int64_t taps,
                                   const int16_t *const *from, const int16_t *w, int32_t *y) {
    uint32_t sums[CHUNK] = {0};
    for (int64_t t = 0; t < taps; t++) {
        const int16_t *x = from[t] + first, *weight = w + t * channels + first;
        for (int64_t c = 0; c < count; c++)
            sums[c] += (uint32_t)((int32_t)x[c] * weight[c]);
    }
    for (int64_t c = 0; c < count; c++)
        y[first + c] = (int32_t)sums[c];
}

void SB_ISA_NAME(sb_integer_depthwise)(int64_t channels, int64_t taps, const int16_t *const *from, const int16_t *w,
                                       int32_t *y) {
    int64_t first = 0;
    for (; first + CHUNK <= channels; first += CHUNK)
        depthwise_chunk(channels, first, CHUNK, taps, from, w, y);
    if (first < channels)
        depthwise_chunk(channels, first, channels - first, taps, from, w, y);
}

/* 3 * 2^22: adding it rounds to an integer, half to even, which is then in the lowest bits. */
#define ROUNDING 12582912.0f
#define ROUNDING_BITS 0x4b400000

/* Products are held within what saturates anyway, of which the ends are integers, so that it may be done before they are rounded. */
static inline int32_t rescaled(int32_t sum, float multiplier, float least, float most) {
    float scaled = (float)sum * multiplier;
    int32_t bits;
    scaled = scaled > most ? most : scaled;
    scaled = scaled < least ? least : scaled;
    scaled = (scaled == scaled ? scaled : 0.0f) + ROUNDING;
    memcpy(&bits, &scaled, sizeof bits);
    return bits - ROUNDING_BITS;
}

void SB_ISA_NAME(sb_integer_rescale)(sb_dtype dtype, int64_t count, const int32_t *restrict sums,
                                     const int32_t *restrict bias, const float *restrict multipliers, int32_t zero,
                                     void *restrict y) {
    const float least = (float)((dtype == SB_S8 ? -128 : 0) - zero),
                most = (float)((dtype == SB_S8 ? 127 : 255) - zero);
    uint8_t *to = y;
    for (int64_t i = 0; i < count; i++)
        to[i] =
            (uint8_t)(rescaled((int32_t)((uint32_t)sums[i] + (uint32_t)bias[i]), multipliers[i], least, most) + zero);
}
