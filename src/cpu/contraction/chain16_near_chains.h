/* The chains of elements that lie anywhere in a tile, two in each word of a vector: behind chain16_near_vector.h. The source that includes it
 * defines
 *
 *     group_source               where a group's elements are
 *     enter_group(source, a, panel, group)
 *                                 goes to a group
 *     MOST_GROUPS                as in sb_chain16_near
 *     choose_k(source, rows, columns, k, to)
 *                                 to->a[k] and to->b[k], of the lanes whose rows and columns lie at these places, and to->fields */

/* 2^x as the bits of a float; x may exceed what fits as long as another term brings it back. */
#define POWER_BITS(x) ((int)((uint32_t)((x) + 127) << 23))

/* What a group's exponents make of the low or of the high halves. */
typedef struct half_step {
    floats scale, back;
    integers sum; /* of the products, in units of 2^(E - 25) */
    uint32_t outside;
} half_step;

/* `fields` are the largest sums of two exponent fields. Those of products with a zero are among them, and of subnormals count as 0 in
 * place of 1: below T's limit neither is within what is ordinary, nor do they hide what is. */
static inline half_step begin_step(integers fields, floats acc) {
    const integers products = i_sub(fields, i_set(127));
    const integers field = i_max(products, i_shift_right(i_shift_left(i_from_bits(acc), 1), 24));
    const integers shifted = i_shift_left(field, 23);
    const half_step step = {
        f_from_bits(i_sub(i_set(POWER_BITS(25 + 127)), shifted)), f_from_bits(i_sub(shifted, i_set(25 << 23))),
        i_set(0),
        i_outside_mask(i_sub(field, i_set(SB_CHAIN16_FIELD_LOW)), SB_CHAIN16_FIELD_HIGH - SB_CHAIN16_FIELD_LOW)};
    return step;
}

static inline floats widen(integers halves, bool high) {
    return f_from_bits(high ? i_and(halves, i_set((int)0xffff0000u)) : i_shift_left(halves, 16));
}

static inline void add_product(half_step *step, integers a, integers b, bool high) {
    const floats product = f_mul(widen(a, high), widen(b, high));
    step->sum = i_add(step->sum, i_truncated(f_mul(product, step->scale)));
}

/* Something other than 0 in each half of a word that has a product other than zero. */
static __attribute__((noinline)) integers find_products(const chosen *now) {
    const integers magnitude = i_set(0x7fff7fff);
    integers any = i_set(0);
    for (int k = 0; k < GROUP; k++)
        any = i_or(any, h_min(i_and(now->a[k], magnitude), i_and(now->b[k], magnitude)));
    return any;
}

/* Returns the lanes that are not computed. */
static inline uint32_t end_step(const half_step *step, const chosen *now, bool high, float *acc) {
    const floats old = f_load(acc);
    const integers term = i_truncated(f_mul(old, step->scale)), all = i_add(step->sum, term);
    /* The sum of the products stays within int32; with the accumulator it may wrap. */
    const integers wrapped = i_and(i_xor(step->sum, all), i_xor(term, all));
    uint32_t strange = step->outside | i_outside_mask(wrapped, 0x7fffffff);
    floats after = f_mul(f_from_i_truncated(all), step->back);
    /* Zeros alone keep a chain as it is, which is common behind a ReLU and at the edges of images. */
    if (step->outside != 0) {
        const integers both = find_products(now), any = high ? i_shift_right(both, 16) : i_and(both, i_set(0xffff));
        after = f_choose(any, after, old);
        strange &= i_unequal_mask(any, i_set(0));
    }
    f_store(acc, after);
    return strange;
}

/* A group of lanes, while the elements of those that come next are chosen: what waits for what leaves half of the time otherwise. */
static inline __attribute__((always_inline)) uint32_t step_and_choose(const chosen *now, float *acc,
                                                                      const group_source *source, const uint16_t *rows,
                                                                      const uint16_t *columns, chosen *next) {
    half_step low = begin_step(i_shift_right(i_shift_left(now->fields, 16), 23), f_load(acc));
    half_step high = begin_step(i_shift_right(now->fields, 23), f_load(acc + LANES));
    next->fields = i_set(0);
    _Pragma("GCC unroll 16") for (int k = 0; k < GROUP; k++) {
        choose_k(source, rows, columns, k, next);
        add_product(&low, now->a[k], now->b[k], false);
        add_product(&high, now->a[k], now->b[k], true);
    }
    const uint32_t strange = end_step(&low, now, false, acc);
    return strange | end_step(&high, now, true, acc + LANES) << LANES;
}

/* Group by group for all of them, so that panels are read once. */
static void chains(const sb_chain16_near_rows *a, const uint16_t *panel, int64_t groups, sb_chain16_lanes *lanes,
                   int64_t count) {
    enum { TOGETHER_LANES = 2 * LANES };
    chosen both[2];
    group_source source;
    int turn = 0;
    memset(lanes->found, 0, (size_t)count * TOGETHER_LANES * sizeof(float));
    memset(lanes->strange, 0, (size_t)count * sizeof *lanes->strange);
    enter_group(&source, a, panel, 0);
    both[0].fields = i_set(0);
    for (int k = 0; k < GROUP; k++)
        choose_k(&source, lanes->rows, lanes->columns, k, &both[0]);
    for (int64_t group = 0; group < groups; group++) {
        for (int64_t i = 0; i < count; i++, turn ^= 1) {
            const int64_t next = i + 1 < count ? i + 1 : 0;
            if (next == 0 && group + 1 < groups)
                enter_group(&source, a, panel, group + 1);
            lanes->strange[i] |= step_and_choose(&both[turn], lanes->found + i * TOGETHER_LANES, &source,
                                                 lanes->rows + next * TOGETHER_LANES,
                                                 lanes->columns + next * TOGETHER_LANES, &both[turn ^ 1]);
        }
    }
}

#define KERNELS                                                                                                        \
    {                                                                                                                  \
        .lanes = 2 * LANES, .groups = MOST_GROUPS, .measure = measure, .finish = finish, .sum = sum, .bound = bound,   \
        .differ = differ, .chains = chains                                                                             \
    }
