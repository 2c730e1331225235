/* Quantization of rows, compiled once per instruction set. Formulas: ops/quantize_values.h, here in 32 bits: a quotient is
 * held within 2^20 before it becomes an integer, beyond which any zero point of 16 bits leaves the range anyhow. */
#include <string.h>

#include "base/isa.h"
#include "cpu/elementwise/quantize_rows.h"
#include "ops/convert_loops.h"
#include "ops/quantize_values.h"

#define PIECE 256
#define BEYOND 1048576.0f

static inline int32_t quantized(float quotient, int32_t zero, int32_t least, int32_t most) {
    float value = sb_round_half_even_f32(quotient);
    value = value > BEYOND ? BEYOND : value;
    value = value < -BEYOND ? -BEYOND : value;
    value = value == value ? value : 0.0f;
    int32_t sum = (int32_t)value + zero;
    sum = sum < least ? least : sum;
    return sum > most ? most : sum;
}

static bool is_small_float(sb_dtype dtype) {
    return (SB_SET(dtype) & SB_SET_SMALL_FLOAT) != 0;
}

/* At most a piece. Integers of 2 and 4 bits go through s8. */
static void load(sb_dtype to, void *values, sb_dtype from, const char *data, int64_t step, int64_t count) {
    int8_t bytes[PIECE];
    char *operands[2] = {values, (char *)(uintptr_t)data};
    sb_walk_row *const(*loops)[SB_DTYPE_COUNT] = SB_ISA_NAME(sb_convert_loops);
    if ((SB_SET(from) & SB_SET_SMALL_INTEGER) != 0) {
        loops[SB_S8][from](NULL, count, (char *const[]){(char *)bytes, operands[1]}, (const int64_t[]){1, step});
        operands[1] = (char *)bytes;
        step = 1;
        from = SB_S8;
    }
    sb_walk_row *loop = to == from ? loops[SB_DTYPE_NONE][sb_dtype_size(to)] : loops[to][from];
    loop(NULL, count, operands, (const int64_t[]){(int64_t)sb_dtype_size(to), step});
}

/* x / scale in place of x, where that is rounded to 16 bits; and where each element has a scale of its own. */
static void divide(const sb_quantize_types *types, const float *x, const float *scales, bool single, int64_t count,
                   float *quotients) {
    const sb_dtype precision = types->precision;
    const float scale = scales[0];
    if (precision != SB_F32)
        for (int64_t i = 0; i < count; i++)
            quotients[i] = sb_quantize_quotient(x[i], scales[single ? 0 : i], precision);
    else if (single)
        for (int64_t i = 0; i < count; i++)
            quotients[i] = sb_div_f32(x[i], scale);
    else
        for (int64_t i = 0; i < count; i++)
            quotients[i] = sb_div_f32(x[i], scales[i]);
}

/* Scales and zero points of a piece. A single one of each is read once. Zero points of small floats are f32. */
typedef struct factors {
    bool single;
    float scales[PIECE];
    union {
        int32_t zeros[PIECE];
        float float_zeros[PIECE];
    };
} factors;

static void load_factors(const sb_quantize_types *types, sb_dtype zero, int64_t start, int64_t count, char *const *data,
                         const int64_t *steps, factors *factors) {
    factors->single = steps[2] == 0 && steps[3] == 0;
    if (factors->single && start > 0)
        return;
    int64_t loaded = factors->single ? 1 : count;
    load(SB_F32, factors->scales, types->scale, data[2] + start * steps[2], steps[2], loaded);
    load(is_small_float(zero) ? SB_F32 : SB_S32, factors->zeros, zero, data[3] + start * steps[3], steps[3], loaded);
}

/* The single scale and zero point of a row, by the shortest way: rows of heads have 64 elements. */
static float single_scale(const sb_quantize_types *types, const char *data) {
    float scale;
    if (types->scale == SB_F32)
        memcpy(&scale, data, sizeof scale);
    else
        load(SB_F32, &scale, types->scale, data, 0, 1);
    return scale;
}

static int32_t single_zero(sb_dtype dtype, const char *data) {
    int32_t zero;
    if (dtype == SB_U8)
        return *(const uint8_t *)data;
    if (dtype == SB_S8)
        return *(const int8_t *)data;
    load(SB_S32, &zero, dtype, data, 0, 1);
    return zero;
}

/* ---- rows without gaps of f32 and of 8 or 16 bits, with one scale and one zero point ----
 *
 * One pass. The range is cut to before it is rounded: its ends are integers, so that nothing else comes out, and what is
 * left is small enough for the sum that rounds. An element takes 0.28 ns, and by pieces as further down 0.75 (AVX-512). */

#define ROUNDING_BITS 0x4b400000u /* of SB_QUANTIZE_ROUNDING */

static inline uint32_t quantized_small(float x, float scale, float least, float most, uint32_t zero) {
    float value = sb_div_f32(x, scale);
    value = value == value ? value : 0.0f;
    value = value > most ? most : value;
    value = value < least ? least : value;
    return sb_bits_from_f32(value + SB_QUANTIZE_ROUNDING) - ROUNDING_BITS + zero;
}

/* least and most are those of the quotient: without the zero point. */
#define QUANTIZE_DENSE(name, type)                                                                                     \
    static void name(int64_t count, const float *restrict x, float scale, float least, float most, uint32_t zero,      \
                     type *restrict y) {                                                                               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            y[i] = (type)quantized_small(x[i], scale, least, most, zero);                                              \
    }
QUANTIZE_DENSE(quantize_dense_8, uint8_t)
QUANTIZE_DENSE(quantize_dense_16, uint16_t)

#define DEQUANTIZE_DENSE(name, type)                                                                                   \
    static void name(int64_t count, const type *restrict x, float scale, int32_t zero, float *restrict y) {            \
        for (int64_t i = 0; i < count; i++)                                                                            \
            y[i] = (float)(x[i] - zero) * scale;                                                                       \
    }
DEQUANTIZE_DENSE(dequantize_dense_u8, uint8_t)
DEQUANTIZE_DENSE(dequantize_dense_s8, int8_t)
DEQUANTIZE_DENSE(dequantize_dense_u16, uint16_t)
DEQUANTIZE_DENSE(dequantize_dense_s16, int16_t)

/* Whether the row was one of these, and is done. */
static bool quantize_dense(const sb_quantize_types *types, int64_t count, char *const *data, const int64_t *steps) {
    const sb_dtype to = types->output;
    const bool bytes = to == SB_U8 || to == SB_S8;
    if (types->input != SB_F32 || types->precision != SB_F32 || !(bytes || to == SB_U16 || to == SB_S16) ||
        steps[0] != (bytes ? 1 : 2) || steps[1] != (int64_t)sizeof(float) || steps[2] != 0 || steps[3] != 0)
        return false;
    const float scale = single_scale(types, data[2]);
    const int32_t zero = single_zero(to, data[3]);
    const float least = (float)((int32_t)types->least - zero), most = (float)((int32_t)types->most - zero);
    const float *x = (const float *)(const void *)data[1];
    if (bytes)
        quantize_dense_8(count, x, scale, least, most, (uint32_t)zero, (uint8_t *)data[0]);
    else
        quantize_dense_16(count, x, scale, least, most, (uint32_t)zero, (uint16_t *)(void *)data[0]);
    return true;
}

static bool dequantize_dense(const sb_quantize_types *types, int64_t count, char *const *data, const int64_t *steps) {
    const sb_dtype from = types->input;
    const bool bytes = from == SB_U8 || from == SB_S8;
    if (!(bytes || from == SB_U16 || from == SB_S16) || steps[0] != (int64_t)sizeof(float) ||
        steps[1] != (bytes ? 1 : 2) || steps[2] != 0 || steps[3] != 0)
        return false;
    const float scale = single_scale(types, data[2]);
    const int32_t zero = single_zero(from, data[3]);
    float *y = (float *)(void *)data[0];
    const void *x = data[1];
    if (from == SB_U8)
        dequantize_dense_u8(count, x, scale, zero, y);
    else if (from == SB_S8)
        dequantize_dense_s8(count, x, scale, zero, y);
    else if (from == SB_U16)
        dequantize_dense_u16(count, x, scale, zero, y);
    else
        dequantize_dense_s16(count, x, scale, zero, y);
    return true;
}

/* ---- all rows ---- */

static void quantize(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const sb_quantize_types *types = opaque;
    if (quantize_dense(types, count, data, steps))
        return;
    const int32_t least = (int32_t)types->least, most = (int32_t)types->most;
    float values[PIECE];
    int32_t results[PIECE];
    factors factors;
    for (int64_t start = 0; start < count; start += PIECE) {
        int64_t size = count - start < PIECE ? count - start : PIECE;
        load_factors(types, types->output, start, size, data, steps, &factors);
        const float *x = values;
        if (types->input == SB_F32 && steps[1] == (int64_t)sizeof(float))
            x = (const float *)(const void *)(data[1] + start * steps[1]);
        else
            load(SB_F32, values, types->input, data[1] + start * steps[1], steps[1], size);
        divide(types, x, factors.scales, factors.single, size, values);
        if (factors.single) {
            int32_t zero = factors.zeros[0];
            for (int64_t i = 0; i < size; i++)
                results[i] = quantized(values[i], zero, least, most);
        } else {
            for (int64_t i = 0; i < size; i++)
                results[i] = quantized(values[i], factors.zeros[i], least, most);
        }
        char *stored[2] = {data[0] + start * steps[0], (char *)results};
        SB_ISA_NAME(sb_convert_loops)
        [types->output][SB_S32](NULL, size, stored, (const int64_t[]){steps[0], sizeof *results});
    }
}

static void quantize_to_floats(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const sb_quantize_types *types = opaque;
    sb_conversion conversion = {types->output, SB_F32, types->saturate, 0};
    float values[PIECE];
    factors factors;
    for (int64_t start = 0; start < count; start += PIECE) {
        int64_t size = count - start < PIECE ? count - start : PIECE;
        load_factors(types, types->output, start, size, data, steps, &factors);
        load(SB_F32, values, types->input, data[1] + start * steps[1], steps[1], size);
        divide(types, values, factors.scales, factors.single, size, values);
        for (int64_t i = 0; i < size && types->has_zero; i++)
            values[i] += factors.float_zeros[factors.single ? 0 : i];
        char *stored[2] = {data[0] + start * steps[0], (char *)values};
        SB_ISA_NAME(sb_convert_loops)
        [types->output][SB_F32](&conversion, size, stored, (const int64_t[]){steps[0], sizeof *values});
    }
}

static void dequantize(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const sb_quantize_types *types = opaque;
    if (dequantize_dense(types, count, data, steps))
        return;
    int32_t values[PIECE];
    float results[PIECE];
    factors factors;
    for (int64_t start = 0; start < count; start += PIECE) {
        int64_t size = count - start < PIECE ? count - start : PIECE;
        load_factors(types, types->input, start, size, data, steps, &factors);
        load(SB_S32, values, types->input, data[1] + start * steps[1], steps[1], size);
        bool dense = steps[0] == (int64_t)sizeof(float);
        float *to = dense ? (float *)(void *)(data[0] + start * steps[0]) : results;
        if (factors.single) {
            float scale = factors.scales[0];
            int32_t zero = factors.zeros[0];
            for (int64_t i = 0; i < size; i++)
                to[i] = (float)(values[i] - zero) * scale;
        } else {
            for (int64_t i = 0; i < size; i++)
                to[i] = (float)(values[i] - factors.zeros[i]) * factors.scales[i];
        }
        for (int64_t i = 0; i < size && !dense; i++)
            SB_AT(float, data[0], steps[0], start + i) = results[i];
    }
}

static void dequantize_floats(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const sb_quantize_types *types = opaque;
    float values[PIECE];
    factors factors;
    for (int64_t start = 0; start < count; start += PIECE) {
        int64_t size = count - start < PIECE ? count - start : PIECE;
        load_factors(types, types->input, start, size, data, steps, &factors);
        load(SB_F32, values, types->input, data[1] + start * steps[1], steps[1], size);
        for (int64_t i = 0; i < size; i++) {
            int64_t factor = factors.single ? 0 : i;
            SB_AT(float, data[0], steps[0], start + i) =
                sb_dequantize_float(values[i], factors.scales[factor], factors.float_zeros[factor]);
        }
    }
}

const sb_quantize_rows SB_ISA_NAME(sb_quantize_rows) = {quantize, dequantize, quantize_to_floats, dequantize_floats};
