/* Steps of the 16-bit chain whose lanes are channels, compiled once per instruction set: what chain16_vector.h does, written so that the
 * compiler makes vectors of it. A chunk of channels goes through a group's taps twice: for the largest exponent, and for the sum.
 *
 * Lanes out of the ordinary (infinities and NaN, exponents far from 0, sums that leave 32 bits) are computed again by the reference. */
#include "cpu/contraction/depthwise16.h"

#include "numerics/chain.h"

#define CHUNK 64
/* f32's bits from those of bf16, or of f16 times 2^-112; neither infinite nor NaN. */
#define BITS_FROM_BF16(raw) ((raw) << 16)
#define BITS_FROM_F16(raw) (((raw)&0x7fff) << 13 | ((raw)&0x8000) << 16)

/* Exponents within which scales and results are ordinary numbers. */
#define ORDINARY 100

static inline float power_of_two(int32_t exponent) {
    return sb_bits_to_f32((uint32_t)(exponent + 127) << 23);
}

static inline int16_t field_of(uint32_t magnitude, int fraction_bits, int32_t special) {
    int32_t field = (int32_t)(magnitude >> fraction_bits);
    field = field != 0 ? field : magnitude != 0 ? 1 : SB_DEPTHWISE16_ZERO;
    return (int16_t)(field == special ? SB_DEPTHWISE16_SPECIAL : field);
}

void SB_ISA_NAME(sb_depthwise16_widen)(sb_dtype dtype, int64_t count, const uint16_t *restrict raw,
                                       float *restrict values, int16_t *restrict fields) {
    if (dtype == SB_BF16) {
        for (int64_t i = 0; i < count; i++) {
            fields[i] = field_of(raw[i] & 0x7fffu, 7, 0xff);
            values[i] = fields[i] == SB_DEPTHWISE16_SPECIAL ? 0.0f : sb_bits_to_f32(BITS_FROM_BF16((uint32_t)raw[i]));
        }
        return;
    }
    /* The fields put in place of f32's read as the value times 2^-112, subnormals included. */
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = BITS_FROM_F16((uint32_t)raw[i]);
        fields[i] = field_of(raw[i] & 0x7fffu, 10, 0x1f);
        values[i] = fields[i] == SB_DEPTHWISE16_SPECIAL ? 0.0f : sb_bits_to_f32(bits) * 0x1p112f;
    }
}

/* Vectors that every machine has, in as many registers as they take. */
typedef uint16_t many_halves __attribute__((vector_size(64), aligned(2), may_alias));
typedef uint16_t halves __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint32_t words __attribute__((vector_size(64), aligned(4), may_alias));
typedef float floats __attribute__((vector_size(64), aligned(4), may_alias));
enum { LANES = 16 };

static inline bool is_moderate(uint16_t raw, uint16_t least, uint16_t most) {
    const uint16_t magnitude = raw & 0x7fffu;
    return magnitude == 0 || (magnitude >= least && magnitude <= most);
}

/* All of f16 but infinities and NaN is. */
bool SB_ISA_NAME(sb_depthwise16_moderate)(sb_dtype dtype, const uint16_t *raw, int64_t count) {
    const uint16_t least = dtype == SB_BF16 ? (uint16_t)(sb_bits_from_f32(SB_DEPTHWISE16_LEAST) >> 16) : 1;
    const uint16_t most = dtype == SB_BF16 ? (uint16_t)(sb_bits_from_f32(SB_DEPTHWISE16_MOST) >> 16) : 0x7bff;
    const int64_t together = 2 * LANES;
    many_halves odd = {0};
    bool moderate = true;
    int64_t i = 0;
    for (; i + together <= count; i += together) {
        const many_halves magnitude = *(const many_halves *)(const void *)(raw + i) & 0x7fff;
        odd |= (many_halves)((magnitude < least) & (magnitude != 0)) | (many_halves)(magnitude > most);
    }
    for (int j = 0; j < together; j++)
        moderate = moderate && odd[j] == 0;
    for (; i < count; i++)
        moderate = moderate && is_moderate(raw[i], least, most);
    return moderate;
}

/* An integer as f32, toward zero: the bits of f64 beyond f32's are cut off. */
static inline float truncated(int32_t sum) {
    double exact = (double)sum;
    uint64_t bits;
    memcpy(&bits, &exact, sizeof bits);
    bits &= ~UINT64_C(0x1fffffff);
    memcpy(&exact, &bits, sizeof bits);
    return (float)exact;
}

typedef struct group {
    int64_t first, count; /* of taps */
} group;

/* Largest sums of exponent fields; `count` is a constant for whole chunks. */
static inline void find_tops(const sb_depthwise16_pixel *pixel, const group *group, int64_t first, int64_t count,
                             int16_t *tops) {
    for (int64_t c = 0; c < count; c++)
        tops[c] = 2 * SB_DEPTHWISE16_ZERO;
    for (int64_t t = group->first; t < group->first + group->count; t++) {
        const int16_t *x = pixel->x.fields + pixel->offsets[t] + first;
        const int16_t *w = pixel->w.fields + t * pixel->channels + first;
        for (int64_t c = 0; c < count; c++) {
            int16_t sum = (int16_t)(x[c] + w[c]);
            tops[c] = sum > tops[c] ? sum : tops[c];
        }
    }
}

/* The exponent of a sum so far; far below all others for 0, at the top for an infinity or NaN. */
static inline int32_t exponent_of(float sum) {
    int32_t field = (int32_t)(sb_bits_from_f32(sum) << 1 >> 24);
    return sum == 0.0f ? -1000 : (field != 0 ? field : 1) - 127;
}

static inline void step_chunk(const sb_depthwise16_pixel *pixel, const group *group, int64_t first, int64_t count,
                              float *sums) {
    const int32_t bias = pixel->dtype == SB_BF16 ? 2 * 127 : 2 * 15;
    int16_t tops[CHUNK];
    float scales[CHUNK], units[CHUNK], after[CHUNK];
    int32_t strange[CHUNK], any = 0;
    uint32_t products[CHUNK];
    find_tops(pixel, group, first, count, tops);
    for (int64_t c = 0; c < count; c++) {
        int32_t mine = exponent_of(sums[c]), largest = tops[c] - bias;
        largest = mine > largest ? mine : largest;
        strange[c] = tops[c] >= 0 && (largest > ORDINARY || largest < -ORDINARY);
        largest = largest > ORDINARY ? ORDINARY : largest < -ORDINARY ? -ORDINARY : largest;
        scales[c] = power_of_two(SB_CHAIN16_ALIGNMENT_BITS - largest);
        units[c] = power_of_two(largest - SB_CHAIN16_ALIGNMENT_BITS);
        products[c] = 0;
    }
    for (int64_t t = group->first; t < group->first + group->count; t++) {
        const float *x = pixel->x.values + pixel->offsets[t] + first;
        const float *w = pixel->w.values + t * pixel->channels + first;
        for (int64_t c = 0; c < count; c++)
            products[c] += (uint32_t)(int32_t)(x[c] * w[c] * scales[c]);
    }
    for (int64_t c = 0; c < count; c++) {
        uint32_t own = (uint32_t)(int32_t)(sums[c] * scales[c]), sum = products[c] + own;
        strange[c] |= tops[c] >= 0 && ((products[c] ^ sum) & (own ^ sum)) >> 31 != 0;
        /* Nothing but products that are zero: the sum stays, but for the sign of a zero. */
        after[c] = tops[c] < 0 ? sums[c] + 0.0f : truncated((int32_t)sum) * units[c];
        any |= strange[c];
    }
    for (int64_t c = 0; c < count && any != 0; c++) {
        if (strange[c])
            after[c] = sb_depthwise16_step(pixel, group->first, group->count, first + c, sums[c]);
    }
    for (int64_t c = 0; c < count; c++)
        sums[c] = after[c];
}

static inline void chain_chunk(const sb_depthwise16_pixel *pixel, int64_t first, int64_t count) {
    float sums[CHUNK] = {0.0f};
    for (int64_t t = 0; t < pixel->taps; t += SB_CHAIN16_GROUP) {
        const int64_t left = pixel->taps - t;
        const group group = {t, left < SB_CHAIN16_GROUP ? left : SB_CHAIN16_GROUP};
        step_chunk(pixel, &group, first, count, sums);
    }
    for (int64_t c = 0; c < count; c++)
        pixel->sums[first + c] = sums[c];
}

void SB_ISA_NAME(sb_depthwise16_chains)(const sb_depthwise16_pixel *pixel) {
    int64_t first = 0;
    for (; first + CHUNK <= pixel->channels; first += CHUNK)
        chain_chunk(pixel, first, CHUNK);
    if (first < pixel->channels)
        chain_chunk(pixel, first, pixel->channels - first);
}

/* Vectors whose sums and magnitudes stay in registers. */
#if defined(SB_ISA_avx512)
#define TOGETHER 4
#else
#define TOGETHER 2
#endif

/* Channels [first, first + LANES · vectors), `vectors` and `is_bf16` being constants. */
static inline __attribute__((always_inline)) void near_vectors(const sb_depthwise16_pixel *pixel, bool is_bf16,
                                                               int64_t first, int vectors, float unit) {
    floats sums[TOGETHER] = {{0}}, magnitudes[TOGETHER] = {{0}};
    for (int64_t t = 0; t < pixel->taps; t++) {
        const uint16_t *x = pixel->x.raw + pixel->offsets[t] + first;
        const float *w = pixel->w.values + t * pixel->channels + first;
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) {
            const words raw = __builtin_convertvector(*(const halves *)(const void *)(x + v * LANES), words);
            floats own = (floats)BITS_FROM_BF16(raw);
            if (!is_bf16)
                own = (floats)BITS_FROM_F16(raw) * 0x1p112f;
            const floats product = own * *(const floats *)(const void *)(w + v * LANES);
            sums[v] += product;
            magnitudes[v] += (floats)((words)product & 0x7fffffff);
        }
    }
    _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) {
        *(floats *)(void *)(pixel->sums + first + v * LANES) = sums[v] - magnitudes[v] * unit;
        *(floats *)(void *)(pixel->highest + first + v * LANES) = sums[v] + magnitudes[v] * unit;
    }
}

static void near_channel(const sb_depthwise16_pixel *pixel, bool is_bf16, int64_t channel, float unit) {
    float sum = 0, magnitude = 0;
    for (int64_t t = 0; t < pixel->taps; t++) {
        const uint32_t raw = pixel->x.raw[pixel->offsets[t] + channel];
        const float own = is_bf16 ? sb_bits_to_f32(BITS_FROM_BF16(raw)) : sb_bits_to_f32(BITS_FROM_F16(raw)) * 0x1p112f;
        const float product = own * pixel->w.values[t * pixel->channels + channel];
        sum = sum + product;
        magnitude = magnitude + __builtin_fabsf(product);
    }
    pixel->sums[channel] = sum - magnitude * unit;
    pixel->highest[channel] = sum + magnitude * unit;
}

static inline __attribute__((always_inline)) void near_pixel(const sb_depthwise16_pixel *pixel, bool is_bf16,
                                                             float unit) {
    int64_t first = 0;
    for (; first + TOGETHER * LANES <= pixel->channels; first += TOGETHER * LANES)
        near_vectors(pixel, is_bf16, first, TOGETHER, unit);
    for (; first + LANES <= pixel->channels; first += LANES)
        near_vectors(pixel, is_bf16, first, 1, unit);
    for (; first < pixel->channels; first++)
        near_channel(pixel, is_bf16, first, unit);
}

void SB_ISA_NAME(sb_depthwise16_near)(const sb_depthwise16_pixel *pixel) {
    const int64_t groups = (pixel->taps + SB_CHAIN16_GROUP - 1) / SB_CHAIN16_GROUP;
    const float unit = 1.02f * 0x1p-25f * (float)(3 * pixel->taps + 5 * groups + 2);
    if (pixel->dtype == SB_BF16)
        near_pixel(pixel, true, unit);
    else
        near_pixel(pixel, false, unit);
}
