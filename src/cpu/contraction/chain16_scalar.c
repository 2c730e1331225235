/* The chain's kernels in plain C: the same steps as chain16_vector.h over arrays of a panel's 64
 * columns, in loops that compilers vectorise for whatever the baseline has (SSE2, NEON). Unlike
 * registers, C must not convert a float that does not fit to an integer, so lanes that go to the
 * reference get a scale of zero, and exceptional groups have zeros for values. */
#include "cpu/contraction/chain16_repair.h"

enum { COLUMNS = SB_CHAIN16_PANEL };

/* The two 16-bit formats behind one switch; the reference's parts give significand and exponent. */
static sb_chain16_format format_of(sb_dtype dtype) {
    return dtype == SB_BF16 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
}

static float value_of(sb_dtype dtype, uint16_t bits) {
    return dtype == SB_BF16 ? sb_bf16_to_f32(bits) : sb_f16_to_f32(bits);
}

/* Exponent field as products take it: 0 for zero, 1 for a subnormal. */
static int field_of(uint16_t bits, sb_chain16_format format) {
    int field = (bits >> format.fraction_bits) & format.exponent_mask;
    return field == 0 && (bits & 0x7fffu) != 0 ? 1 : field;
}

static void expand_a(sb_dtype dtype, const uint16_t *elements, int64_t groups, sb_chain16_a *a, int64_t stride) {
    sb_chain16_format format = format_of(dtype);
    for (int64_t group = 0; group < groups; group++, a += stride, elements += SB_CHAIN16_GROUP) {
        int largest = 0, upper_halves = 0;
        for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
            int field = field_of(elements[k], format);
            largest = field > largest ? field : largest;
            upper_halves += (elements[k] >> (format.fraction_bits - 1)) & 1;
        }
        int32_t top = sb_chain16_top(largest, format);
        for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
            int field = field_of(elements[k], format);
            a->raw[k] = elements[k];
            a->value[k] = top == SB_CHAIN16_TOP_EXCEPTIONAL ? 0.0f : value_of(dtype, elements[k]);
            a->drop[k] = (uint8_t)(field == 0 ? SB_CHAIN16_DROP_ZERO : largest - field);
        }
        a->top = top == SB_CHAIN16_TOP_ZERO ? top : top + 127;
        a->overflow = upper_halves >= SB_CHAIN16_GROUP - 1;
    }
}

/* One row of a panel in the order of its columns. */
static void spread(const uint16_t *packed, uint16_t bits[COLUMNS]) {
    for (int l = 0; l < COLUMNS / 4; l++) {
        bits[l] = packed[2 * l];
        bits[16 + l] = packed[2 * l + 1];
        bits[32 + l] = packed[32 + 2 * l];
        bits[48 + l] = packed[32 + 2 * l + 1];
    }
}

static void expand_b(sb_dtype dtype, const uint16_t *panel, int valid, sb_chain16_b *tile) {
    sb_chain16_format format = format_of(dtype);
    uint16_t field[SB_CHAIN16_GROUP][COLUMNS], largest[COLUMNS] = {0};
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        uint16_t bits[COLUMNS];
        spread(panel + k * SB_CHAIN16_PANEL, bits);
        for (int j = 0; j < COLUMNS; j++) {
            uint16_t magnitude = bits[j] & 0x7fffu;
            uint16_t stored = (uint16_t)(magnitude >> format.fraction_bits);
            field[k][j] = stored > (magnitude != 0) ? stored : (magnitude != 0);
            largest[j] = field[k][j] > largest[j] ? field[k][j] : largest[j];
        }
        if (dtype == SB_BF16) {
            for (int j = 0; j < COLUMNS; j++)
                tile->value[k][j] = sb_bf16_to_f32(bits[j]);
        } else {
            for (int j = 0; j < COLUMNS; j++)
                tile->value[k][j] = sb_f16_to_f32(bits[j]);
        }
    }
    tile->raw = panel;
    tile->valid = valid;
    tile->exceptional = false;
    for (int j = 0; j < COLUMNS; j++) {
        /* Missing columns hold zeros; this top makes up for their saturated drops. */
        tile->top[j] = j < valid ? sb_chain16_top(largest[j], format) : SB_CHAIN16_DROP_ZERO;
        tile->exceptional |= tile->top[j] == SB_CHAIN16_TOP_EXCEPTIONAL;
    }
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        for (int j = 0; j < COLUMNS; j++)
            tile->drop[k][j] = (uint8_t)(field[k][j] == 0 ? SB_CHAIN16_DROP_ZERO : largest[j] - field[k][j]);
        for (int j = 0; tile->exceptional && j < COLUMNS; j++)
            tile->value[k][j] = tile->top[j] == SB_CHAIN16_TOP_EXCEPTIONAL ? 0.0f : tile->value[k][j];
    }
}

/* int32 to f32 toward zero: see truncated_float in chain16_avx2.c. */
static inline float truncated_float(uint32_t sum) {
    uint32_t sign = sum & 0x80000000u;
    uint32_t magnitude = sign ? 0u - sum : sum;
    float truncated = (float)(int32_t)(magnitude & ~(magnitude >> 24));
    return sb_bits_to_f32(sb_bits_from_f32(truncated) | (truncated == 0.0f ? 0u : sign));
}

/* One row, one group. */
static void step_row(sb_dtype dtype, const sb_chain16_a *a, const sb_chain16_b *tile, float *acc) {
    uint8_t smallest[COLUMNS];
    float scale[COLUMNS], unscale[COLUMNS];
    uint32_t term[COLUMNS], sum[COLUMNS], strange[COLUMNS], any = 0;
    for (int j = 0; j < COLUMNS; j++)
        smallest[j] = SB_CHAIN16_DROP_ZERO;
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        for (int j = 0; j < COLUMNS; j++) {
            uint8_t drop = (uint8_t)(a->drop[k] + tile->drop[k][j]);
            drop = drop < a->drop[k] ? SB_CHAIN16_DROP_ZERO : drop;
            smallest[j] = drop < smallest[j] ? drop : smallest[j];
        }
    }
    for (int j = 0; j < COLUMNS; j++) {
        int32_t products = tile->top[j] + a->top - smallest[j];
        int32_t mine = (int32_t)((sb_bits_from_f32(acc[j]) >> 23) & 255);
        int32_t field = products > mine ? products : mine;
        bool outside = field < SB_CHAIN16_FIELD_LOW || field > SB_CHAIN16_FIELD_HIGH;
        strange[j] = outside;
        any |= strange[j];
        uint32_t shifted = (uint32_t)field << 23;
        scale[j] = sb_bits_to_f32(outside ? 0u : ((25u + 2 * 127u) << 23) - shifted);
        unscale[j] = sb_bits_to_f32(outside ? 0u : shifted - (25u << 23));
        term[j] = (uint32_t)(int32_t)((outside ? 0.0f : acc[j]) * scale[j]);
        sum[j] = term[j];
    }
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        for (int j = 0; j < COLUMNS; j++)
            sum[j] += (uint32_t)(int32_t)(a->value[k] * tile->value[k][j] * scale[j]);
    }
    if (a->overflow) {
        /* The products' sum never leaves int32, so the whole wrapped where its sign differs from both terms'. */
        for (int j = 0; j < COLUMNS; j++) {
            strange[j] |= (((sum[j] - term[j]) ^ sum[j]) & (term[j] ^ sum[j])) >> 31;
            any |= strange[j];
        }
    }
    float before[COLUMNS];
    memcpy(before, acc, sizeof before);
    for (int j = 0; j < COLUMNS; j++)
        acc[j] = truncated_float(sum[j]) * unscale[j];
    if (any == 0)
        return;
    uint64_t lanes = 0;
    for (int j = 0; j < COLUMNS; j++)
        lanes |= (uint64_t)strange[j] << j;
    sb_chain16_repair(dtype, a, tile, lanes, before, acc);
}

static void step(sb_dtype dtype, const sb_chain16_a *a, int64_t rows, const sb_chain16_b *tile, float *acc) {
    for (int64_t row = 0; row < rows; row++, acc += COLUMNS) {
        if (a[row].top != SB_CHAIN16_TOP_ZERO || tile->exceptional) {
            step_row(dtype, a + row, tile, acc);
            continue;
        }
        /* A group of zeros (padding of a convolution) only turns an accumulator of -0 into +0. */
        for (int j = 0; j < COLUMNS; j++)
            acc[j] += 0.0f;
    }
}

const sb_chain16_kernels sb_chain16_kernels_scalar = {
    .name = "scalar",
    .f32 = &sb_gemm_f32_kernels_scalar,
    .columns = COLUMNS,
    .expand_a = expand_a,
    .expand_b = expand_b,
    .step = step,
    .round = sb_chain16_round,
};
