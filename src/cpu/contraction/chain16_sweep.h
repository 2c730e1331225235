/* Few rows of A over a panel of B, from its 16-bit elements: what a step of a language model does with its weights, which
 * are read once and not again. Included by the files that include chain16_vector.h, behind it.
 *
 * Expanding a tile (expand_b) costs as much as three rows' steps, so for few rows nothing is expanded. E comes from the
 * exponent fields as they lie in the 16-bit lanes: with d = how far an element of a lies below its group's top (a zero:
 * as far as it goes), the largest max(0, field of b - d) over the group says how far E is above that of the top and a
 * field of 0. A field of 0 is a zero, which takes no part, or a subnormal, whose field counts as 1; neither
 * matters where a product's or the accumulator's E is above that of a field of 0. Groups that have a lane where it is not, or
 * an infinity or a NaN, or that the other rules of chain16_kernels.h name, take the way of many rows: expand_b and step.
 *
 * A panel's row of 64 is two cache lines, so all of a panel's columns are taken in one pass, also where a tile
 * has half of them. */

/* The largest max(0, field of b - d), and the largest field of b, in 16-bit lanes of the two registers of a tile's row. */
typedef struct fields {
    integers above[2], largest;
} fields;

static inline __attribute__((always_inline)) fields fields_of(const uint16_t *panel, const sb_chain16_few *few,
                                                              int exponent_mask) {
    fields found = {{i_set(0), i_set(0)}, i_set(0)};
    _Pragma("GCC unroll 4") for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        integers below = i_set((int)few->below[k]);
        for (int half = 0; half < 2; half++) {
            integers field = i_and(i_load(panel + k * SB_CHAIN16_PANEL + half * 2 * LANES), i_set(exponent_mask));
            found.above[half] = h_max(found.above[half], h_sub_saturated(field, below));
            found.largest = h_max(found.largest, field);
        }
    }
    return found;
}

/* One row, one group, one tile; false, and nothing done, where a lane is not ordinary. `fraction_bits` is a constant at
 * every call. */
static inline __attribute__((always_inline)) bool sweep_tile(const uint16_t *panel, int fraction_bits, uint64_t exists,
                                                             const sb_chain16_a *a, const sb_chain16_few *few,
                                                             float *acc) {
    sb_chain16_format format = fraction_bits == 7 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
    int exponent_mask = format.exponent_mask << fraction_bits;
    fields found = fields_of(panel, few, exponent_mask | exponent_mask << 16);
    int base = a->top - format.bias, low = base + 1 > SB_CHAIN16_FIELD_LOW ? base + 1 : SB_CHAIN16_FIELD_LOW;
    floats scale[4];
    integers sum[4], shifted[4], offset[4], outside = i_set(0);
    UNROLL4 for (int q = 0; q < 4; q++) {
        integers pair = found.above[HALF_OF(q)];
        integers above = q == HIGH_VECTOR(HALF_OF(q)) ? i_shift_right(pair, 16 + fraction_bits)
                                                      : i_shift_right(i_and(pair, i_set(0xffff)), fraction_bits);
        floats old = f_load(acc + q * LANES);
        integers field = i_max(i_add(above, i_set(base)), i_shift_right(i_shift_left(i_from_bits(old), 1), 24));
        offset[q] = i_sub(field, i_set(low));
        outside = i_max_unsigned(outside, offset[q]);
        shifted[q] = i_shift_left(field, 23);
        scale[q] = f_from_bits(i_sub(i_set(POWER_BITS(25 + 127)), shifted[q]));
        sum[q] = i_truncated(f_mul(old, scale[q]));
    }
    integers infinite = i_set(exponent_mask | exponent_mask << 16);
    if (__builtin_expect(h_any_equal(found.largest, infinite), 0))
        return false;
    if (__builtin_expect(i_outside_mask(outside, SB_CHAIN16_FIELD_HIGH - low) != 0, 0)) {
        uint64_t strange = 0;
        for (int q = 0; q < 4; q++)
            strange |= (uint64_t)i_outside_mask(offset[q], SB_CHAIN16_FIELD_HIGH - low) << (q * LANES);
        if ((strange & exists) != 0)
            return false;
    }
    _Pragma("GCC unroll 4") for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        floats left = f_broadcast(a->value[k]);
        for (int half = 0; half < 2; half++) {
            integers bits = i_load(panel + k * SB_CHAIN16_PANEL + half * 2 * LANES);
            for (int high = 0; high < 2; high++) {
                int q = high ? HIGH_VECTOR(half) : LOW_VECTOR(half);
                floats product = f_mul(left, values_of(bits, high, fraction_bits));
                sum[q] = i_add(sum[q], i_truncated(f_mul(product, scale[q])));
            }
        }
    }
    UNROLL4 for (int q = 0; q < 4; q++)
        f_store(acc + q * LANES, f_mul(f_from_i_truncated(sum[q]), f_from_bits(i_sub(shifted[q], i_set(25 << 23)))));
    return true;
}

/* One group of every row; `fraction_bits` is a constant at every call. */
static inline __attribute__((always_inline)) void sweep_group(sb_dtype dtype, int fraction_bits, const sb_chain16_a *a,
                                                              const sb_chain16_few *few, int64_t rows,
                                                              const uint16_t *panel, int valid, sb_chain16_b *tile,
                                                              float *acc) {
    for (int64_t row = 0; row < rows; row++, acc += SB_CHAIN16_PANEL) {
        for (int first = 0; first < valid; first += COLUMNS) {
            int columns = valid - first < COLUMNS ? valid - first : COLUMNS;
            uint64_t exists = columns < 64 ? ((uint64_t)1 << columns) - 1 : ~(uint64_t)0;
            if (__builtin_expect(few[row].ordinary, 1) &&
                sweep_tile(panel + first, fraction_bits, exists, a + row, few + row, acc + first))
                continue;
            expand_b(dtype, panel + first, columns, tile);
            step(dtype, a + row, 1, tile, acc + first);
        }
    }
}

/* Brings the group nearer that lies GROUPS_AHEAD groups ahead, where a line of a panel goes on in the next panel, and in
 * the end past B, where nothing is read: the processor fetches ahead by itself, and not far enough. */
#define GROUPS_AHEAD 4
static inline void fetch_ahead(const uint16_t *panel) {
    enum { GROUP_BYTES = SB_CHAIN16_GROUP * SB_CHAIN16_PANEL * sizeof(uint16_t), LINE = 64 };
    const uintptr_t ahead = (uintptr_t)panel + GROUPS_AHEAD * GROUP_BYTES;
    for (uintptr_t at = ahead; at < ahead + GROUP_BYTES; at += LINE)
        __builtin_prefetch((const void *)at);
}

static void sweep(sb_dtype dtype, const sb_chain16_a *a, const sb_chain16_few *few, int64_t rows, int64_t groups,
                  const uint16_t *panel, int valid, sb_chain16_b *tile, float *acc) {
    for (int64_t group = 0; group < groups; group++) {
        fetch_ahead(panel);
        if (dtype == SB_BF16)
            sweep_group(dtype, 7, a, few, rows, panel, valid, tile, acc);
        else
            sweep_group(dtype, 10, a, few, rows, panel, valid, tile, acc);
        a += rows;
        few += rows;
        panel += SB_CHAIN16_GROUP * SB_CHAIN16_PANEL;
    }
}
