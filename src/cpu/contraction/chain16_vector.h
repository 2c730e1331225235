/* The chain's vector kernels, over macros that chain16_avx2.c and chain16_avx512.c define:
 *
 *     LANES                      32-bit lanes of a register; a tile has 4 * LANES columns
 *     integers, floats           the register types
 *     i_* , b_*, f_*             operations on 32-bit integers, bytes, floats
 *     i_outside_mask(v, limit)   bit per lane: v > limit, unsigned
 *     f_from_i_truncated(v)      int32 to f32 toward zero */
#include "cpu/contraction/chain16_repair.h"

#define COLUMNS (4 * LANES)
#define UNROLL4 _Pragma("GCC unroll 4")
#define FIELD_SPAN (SB_CHAIN16_FIELD_HIGH - SB_CHAIN16_FIELD_LOW)

/* 2^x as the bits of a float; x may exceed what fits as long as another term brings it back. */
#define POWER_BITS(x) ((int)((uint32_t)((x) + 127) << 23))

/* Smallest sum of two drops over the group, for all columns of the tile. */
static inline integers smallest_drop(const sb_chain16_a *a, const sb_chain16_b *tile) {
    integers even = b_add_saturated(i_load(tile->drop[0]), b_broadcast(a->drop[0]));
    integers odd = b_add_saturated(i_load(tile->drop[1]), b_broadcast(a->drop[1]));
    _Pragma("GCC unroll 7") for (int k = 2; k < SB_CHAIN16_GROUP; k += 2) {
        even = b_min(even, b_add_saturated(i_load(tile->drop[k]), b_broadcast(a->drop[k])));
        odd = b_min(odd, b_add_saturated(i_load(tile->drop[k + 1]), b_broadcast(a->drop[k + 1])));
    }
    return b_min(even, odd);
}

/* Biased field of E for vector q: the larger of the products' and the accumulator's. */
static inline integers largest_field(integers drop, int q, const sb_chain16_a *a, const sb_chain16_b *tile,
                                     integers acc) {
    int byte = DROP_BYTE(q);
    integers mine = byte == 0   ? i_and(drop, i_set(255))
                    : byte == 3 ? i_shift_right(drop, 24)
                                : i_and(i_shift_right(drop, 8 * byte), i_set(255));
    integers products = i_sub(i_add(i_load(tile->top + q * LANES), i_set(a->top)), mine);
    return i_max(products, i_shift_right(i_shift_left(acc, 1), 24));
}

/* Lanes of one vector whose sum of products and accumulator left int32: the products alone never
 * do, so the sum wrapped where its sign differs from both terms' signs. */
static __attribute__((noinline)) uint64_t wrapped_lanes(floats scale, integers sum, const float *acc) {
    integers term = i_truncated(f_mul(f_load(acc), scale));
    integers products = i_sub(sum, term);
    integers wrapped = i_and(i_xor(products, sum), i_xor(term, sum));
    return i_outside_mask(wrapped, 0x7fffffff);
}

/* One row, one group: `vectors` registers of columns; a constant at every call. */
static inline __attribute__((always_inline)) void step_row(sb_dtype dtype, const sb_chain16_a *a,
                                                           const sb_chain16_b *tile, int vectors, float *acc) {
    floats scale[4];
    integers sum[4], unscale[4], field[4];
    integers drop = smallest_drop(a, tile);
    integers outside = i_set(0);
    UNROLL4 for (int q = 0; q < vectors; q++) {
        floats old = f_load(acc + q * LANES);
        field[q] = largest_field(drop, q, a, tile, i_from_bits(old));
        integers offset = i_sub(field[q], i_set(SB_CHAIN16_FIELD_LOW));
        outside = i_max_unsigned(outside, offset);
        integers shifted = i_shift_left(field[q], 23);
        scale[q] = f_from_bits(i_sub(i_set(POWER_BITS(25 + 127)), shifted));
        unscale[q] = i_sub(shifted, i_set(25 << 23));
        sum[q] = i_truncated(f_mul(old, scale[q]));
    }
    uint64_t strange = 0;
    if (__builtin_expect(i_outside_mask(outside, FIELD_SPAN) != 0, 0)) {
        for (int q = 0; q < vectors; q++) {
            integers offset = i_sub(field[q], i_set(SB_CHAIN16_FIELD_LOW));
            strange |= (uint64_t)i_outside_mask(offset, FIELD_SPAN) << (q * LANES);
        }
    }
    _Pragma("GCC unroll 4") for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        floats left = f_broadcast(a->value[k]);
        UNROLL4 for (int q = 0; q < vectors; q++) {
            floats product = f_mul(left, f_load(tile->value[k] + q * LANES));
            sum[q] = i_add(sum[q], i_truncated(f_mul(product, scale[q])));
        }
    }
    if (__builtin_expect(a->overflow, 0)) {
        UNROLL4 for (int q = 0; q < vectors; q++) {
            uint64_t wrapped = wrapped_lanes(scale[q], sum[q], acc + q * LANES);
            strange |= wrapped << (q * LANES);
        }
    }
    float before[COLUMNS];
    if (__builtin_expect(strange != 0, 0))
        memcpy(before, acc, sizeof before);
    UNROLL4 for (int q = 0; q < vectors; q++)
        f_store(acc + q * LANES, f_mul(f_from_i_truncated(sum[q]), f_from_bits(unscale[q])));
    if (__builtin_expect(strange != 0, 0))
        sb_chain16_repair(dtype, a, tile, strange, before, acc);
}

static inline __attribute__((always_inline)) void step_rows(sb_dtype dtype, const sb_chain16_a *a, int64_t rows,
                                                            const sb_chain16_b *tile, int vectors, float *acc) {
    for (int64_t row = 0; row < rows; row++, acc += COLUMNS) {
        /* A group of zeros (padding of a convolution) only turns an accumulator of -0 into +0. */
        if (a[row].top == SB_CHAIN16_TOP_ZERO && !tile->exceptional) {
            for (int q = 0; q < vectors; q++)
                f_store(acc + q * LANES, f_add(f_load(acc + q * LANES), f_set(0.0f)));
            continue;
        }
        step_row(dtype, a + row, tile, vectors, acc);
    }
}

static void step(sb_dtype dtype, const sb_chain16_a *a, int64_t rows, const sb_chain16_b *tile, float *acc) {
    switch ((tile->valid + LANES - 1) / LANES) {
    case 1:
        step_rows(dtype, a, rows, tile, 1, acc);
        break;
    case 2:
        step_rows(dtype, a, rows, tile, 2, acc);
        break;
    case 3:
        step_rows(dtype, a, rows, tile, 3, acc);
        break;
    default:
        step_rows(dtype, a, rows, tile, 4, acc);
        break;
    }
}

/* The format's exponent fields of 16-bit lanes: 0 for zero, 1 for a subnormal, because products
 * take a subnormal's exponent as stored. */
static inline integers exponent_fields(integers bits, int fraction_bits) {
    integers magnitude = i_and(bits, i_set(0x7fff7fff));
    return h_max(h_shift_right(magnitude, fraction_bits), h_min(magnitude, i_set(0x00010001)));
}

/* f32 values of the low or the high 16 bits of each lane. */
static inline floats values_of(integers bits, bool high, int fraction_bits) {
    if (fraction_bits == 7)
        return f_from_bits(high ? i_and(bits, i_set((int)0xffff0000u)) : i_shift_left(bits, 16));
    /* The f16 fields put in place of f32's read as the value times 2^-112, subnormals included; the
     * product is exact. */
    integers spread = i_shift_right_signed(high ? bits : i_shift_left(bits, 16), 3);
    return f_mul(f_from_bits(i_and(spread, i_set((int)0x8fffe000u))), f_set(0x1p112f));
}

/* Stores the tops of one vector of columns from their largest fields, as if none were special;
 * returns whether one is. */
static inline bool store_tops(integers fields, sb_chain16_format format, int32_t *top) {
    int limit = SB_CHAIN16_TOP_LIMIT + format.bias;
    limit = limit < format.exponent_mask ? limit : format.exponent_mask;
    i_store(top, i_sub(fields, i_set(format.bias)));
    /* 0 becomes the largest unsigned number, so that one comparison finds both ends. */
    return i_outside_mask(i_sub(fields, i_set(1)), limit - 2) != 0;
}

/* The columns of a tile whose tops are special, or that do not exist. */
static __attribute__((noinline)) void settle_tops(sb_chain16_format format, sb_chain16_b *tile) {
    for (int j = 0; j < tile->valid; j++) {
        tile->top[j] = sb_chain16_top(tile->top[j] + format.bias, format);
        tile->exceptional |= tile->top[j] == SB_CHAIN16_TOP_EXCEPTIONAL;
    }
    /* Missing columns hold zeros, so their drops are saturated; a top that makes up for it keeps
     * their E ordinary. */
    for (int j = tile->valid; j < COLUMNS; j++)
        tile->top[j] = SB_CHAIN16_DROP_ZERO;
}

/* A tile's columns are two registers of 16-bit lanes; `fraction_bits` is a constant at every call. */
static inline __attribute__((always_inline)) void expand_tile(const uint16_t *panel, int fraction_bits, int valid,
                                                              sb_chain16_b *tile) {
    sb_chain16_format format = fraction_bits == 7 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
    integers largest[2] = {i_set(0), i_set(0)};
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        UNROLL4 for (int half = 0; half < 2; half++) {
            integers bits = i_load(panel + k * SB_CHAIN16_PANEL + half * 2 * LANES);
            largest[half] = h_max(largest[half], exponent_fields(bits, fraction_bits));
            f_store(tile->value[k] + LOW_VECTOR(half) * LANES, values_of(bits, false, fraction_bits));
            f_store(tile->value[k] + HIGH_VECTOR(half) * LANES, values_of(bits, true, fraction_bits));
        }
    }
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        integers drop[2];
        UNROLL4 for (int half = 0; half < 2; half++) {
            integers bits = i_load(panel + k * SB_CHAIN16_PANEL + half * 2 * LANES);
            integers field = exponent_fields(bits, fraction_bits);
            drop[half] = h_or_255_where_zero(h_sub(largest[half], field), field);
        }
        i_store(tile->drop[k], i_or(drop[0], i_shift_left(drop[1], 8)));
    }
    bool special = valid < COLUMNS;
    UNROLL4 for (int half = 0; half < 2; half++) {
        special |= store_tops(i_and(largest[half], i_set(0xffff)), format, tile->top + LOW_VECTOR(half) * LANES);
        special |= store_tops(i_shift_right(largest[half], 16), format, tile->top + HIGH_VECTOR(half) * LANES);
    }
    tile->raw = panel;
    tile->valid = valid;
    tile->exceptional = false;
    if (special)
        settle_tops(format, tile);
}

static void expand_b(sb_dtype dtype, const uint16_t *panel, int valid, sb_chain16_b *tile) {
    if (dtype == SB_BF16)
        expand_tile(panel, 7, valid, tile);
    else
        expand_tile(panel, 10, valid, tile);
}

/* One record: 16 elements of a row. All of AVX2, whatever LANES is. */
static inline __attribute__((always_inline)) void expand_record(const uint16_t *elements, int fraction_bits,
                                                                sb_chain16_a *a) {
    sb_chain16_format format = fraction_bits == 7 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)elements);
    _mm256_store_si256((__m256i *)(void *)a->raw, bits);
    for (int half = 0; half < 2; half++) {
        __m128i eight = half == 0 ? _mm256_castsi256_si128(bits) : _mm256_extracti128_si256(bits, 1);
        __m256 value = fraction_bits == 7 ? _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16))
                                          : _mm256_cvtph_ps(eight);
        _mm256_store_ps(a->value + 8 * half, value);
    }
    __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi16(0x7fff));
    __m256i field = _mm256_max_epu16(_mm256_srli_epi16(magnitude, fraction_bits),
                                     _mm256_min_epu16(magnitude, _mm256_set1_epi16(1)));
    __m128i larger = _mm_max_epu16(_mm256_castsi256_si128(field), _mm256_extracti128_si256(field, 1));
    /* The largest, as the complement of the smallest complement. */
    __m128i smallest = _mm_minpos_epu16(_mm_xor_si128(larger, _mm_set1_epi16(-1)));
    int largest = 0xffff & ~_mm_cvtsi128_si32(smallest);
    __m256i drop = _mm256_sub_epi16(_mm256_set1_epi16((short)largest), field);
    __m256i zero = _mm256_cmpeq_epi16(field, _mm256_setzero_si256());
    drop = _mm256_or_si256(drop, _mm256_and_si256(zero, _mm256_set1_epi16(255)));
    __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(drop), _mm256_extracti128_si256(drop, 1));
    _mm_store_si128((__m128i *)(void *)a->drop, bytes);
    a->top = sb_chain16_top(largest, format);
    if (a->top != SB_CHAIN16_TOP_ZERO)
        a->top += 127;
    __m256i half_bits = _mm256_slli_epi16(bits, 16 - fraction_bits);
    __m128i signs = _mm_packs_epi16(_mm256_castsi256_si128(half_bits), _mm256_extracti128_si256(half_bits, 1));
    a->overflow = __builtin_popcount((unsigned)_mm_movemask_epi8(signs)) >= SB_CHAIN16_GROUP - 1;
}

static void expand_a(sb_dtype dtype, const uint16_t *elements, int64_t groups, sb_chain16_a *a, int64_t stride) {
    for (int64_t group = 0; group < groups; group++, elements += SB_CHAIN16_GROUP) {
        if (dtype == SB_BF16)
            expand_record(elements, 7, a + group * stride);
        else
            expand_record(elements, 10, a + group * stride);
    }
}
