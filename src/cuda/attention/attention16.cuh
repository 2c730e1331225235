/* Attention of f16 and bf16 by tensor cores (docs/numerics.md, section 10): tiles of 64 rows, 16 a warp, against blocks of 128
 * keys. A row is a query of one of the heads that share keys, so that these are read once for all.
 *
 * A multiplication of 16 k is a step of the chain, so scores are chains over the width. The threads that hold a row in the
 * sums (four, with 32 scores each) are the four lanes of the denominator; the weights, rounded, are the left matrix of the
 * values' chains as they lie. Sums of a split stay in registers; those of the splits before it wait in shared memory, each
 * thread's own.
 *
 * Where a weight of +0 meets an infinity or a NaN in the values, which the definition leaves out, a tensor core makes a NaN
 * that stays. So does a value that is NaN. A tile that ends with a NaN where no score was one is computed again by the
 * definition; so is one with a block of a row whose scores are all below about -0.7 million. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_CUH

#include "cuda/attention/attention_row.cuh"
#include "cuda/attention/warp_products.cuh"
#include "cuda/common/asynchronous.cuh"

#define TILE_ROWS SB_CUDA_ATTENTION16_ROWS
#define TILE_THREADS SB_CUDA_ATTENTION16_THREADS
#define KEYS SB_ATTENTION_BLOCK
#define NONE (-SB_SPLIT_EXPONENT_LIMIT)

template <int HALF> struct sb_attention16_element;
template <> struct sb_attention16_element<SB_CUDA_F16> { typedef sb_attention_f16 type; };
template <> struct sb_attention16_element<SB_CUDA_BF16> { typedef sb_attention_bf16 type; };

/* ---- scalars ---- */

/* The larger one; a NaN wins. */
SB_CUDA_FUNCTION float sb_attention16_larger(float a, float b) {
#if defined(__CUDA_ARCH__)
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
#else
    return a != a || a > b ? a : b;
#endif
}

/* P(f) · 2^62: scaled so, each step rounds as it does in sb_attention_power_f32. */
template <int HALF> SB_CUDA_FUNCTION float sb_attention16_power(float f) {
    if (HALF == SB_CUDA_BF16) {
        float p = sb_fma_f32(0x1.c3f798p57f, f, 0x1.f0de26p59f);
        p = sb_fma_f32(p, f, 0x1.62f31ap61f);
        return sb_fma_f32(p, f, 0x1.fff692p61f);
    }
    float p = sb_fma_f32(0x1.39a2a2p55f, f, 0x1.ca147ep57f);
    p = sb_fma_f32(p, f, 0x1.ec06a6p59f);
    p = sb_fma_f32(p, f, 0x1.62e0dcp61f);
    return sb_fma_f32(p, f, 0x1.ffffe8p61f);
}

/* max(a + b, 0) */
SB_CUDA_FUNCTION int32_t sb_attention16_add_floor(int32_t a, int32_t b) {
#if defined(__CUDA_ARCH__)
    return __viaddmax_s32(a, b, 0);
#else
    const int32_t sum = (int32_t)((uint32_t)a + (uint32_t)b);
    return sum > 0 ? sum : 0;
#endif
}

/* The weight of a score that is not above bound, not rounded: P(f) · 2^(n - m), and +0 where n - m < -64. A power of two from
 * 2^-62 down, made of the exponent n - m + 65, takes the 2^62 of P back; where that exponent is not positive it is +0. */
template <int HALF> SB_CUDA_FUNCTION float sb_attention16_weight(float s, sb_split_scale_f32 by, int32_t less) {
    const float held = s > -by.bound ? s : -by.bound;
    const float shifted = sb_split_shifted_f32(held, by);
    const int32_t exponent = sb_attention16_add_floor(sb_split_exponent_f32(shifted), less);
    return sb_attention16_power<HALF>(sb_split_fraction_f32(held, shifted, by)) *
           sb_bits_to_f32((uint32_t)exponent << 23);
}
#define LESS(maximum) (65 - (maximum))

/* ---- where a tile is ---- */

typedef struct sb_attention16_tile {
    sb_attention_place at; /* of the sample and the head of keys */
    int64_t length;
    int32_t group;             /* heads of queries of the head of keys */
    int64_t first_row, rows;   /* of the tile; used ones of the head of keys */
    int64_t begin, end;        /* keys that any row sees, but for the mask */
    int64_t full_begin, full_end; /* keys that every row sees */
    int64_t split;             /* -1: all */
} sb_attention16_tile;

SB_CUDA_FUNCTION sb_attention16_tile sb_attention16_find_tile(const sb_cuda_attention *p) {
    sb_attention16_tile tile;
    int64_t rest = blockIdx.x;
    /* The last queries of a causal mask take longest, and begin first. */
    const int64_t number = p->row_tiles - 1 - sb_cuda_take(&rest, p->row_tiles);
    tile.split = p->splits != 0 ? sb_cuda_take(&rest, p->splits) : -1;
    const int64_t key_head = sb_cuda_take(&rest, p->key_heads);
    tile.at = sb_attention_sample(p, rest, &tile.length);
    tile.at.key_head = key_head;
    tile.group = (int32_t)(p->heads / p->key_heads);
    tile.first_row = number * TILE_ROWS;
    tile.rows = tile.group * sb_cuda_used(p->used_queries, p->queries);
    const int64_t last = tile.first_row + TILE_ROWS < tile.rows ? tile.first_row + TILE_ROWS : tile.rows;
    const sb_attention_reach low = sb_attention_reach_at(p, &tile.at, tile.length, tile.first_row / tile.group);
    const sb_attention_reach high = sb_attention_reach_at(p, &tile.at, tile.length, (last - 1) / tile.group);
    tile.begin = low.first;
    tile.end = high.last;
    tile.full_begin = high.first;
    tile.full_end = low.last;
    if (tile.split >= 0) {
        const int64_t start = tile.split * SB_ATTENTION_SPLIT;
        tile.begin = tile.begin > start ? tile.begin : start;
        tile.end = tile.end < start + SB_ATTENTION_SPLIT ? tile.end : start + SB_ATTENTION_SPLIT;
    }
    return tile;
}

/* A row of the tile as the definition sees it. */
SB_CUDA_FUNCTION sb_attention_place sb_attention16_row(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                       int64_t row) {
    sb_attention_place at = tile->at;
    at.query = row / tile->group;
    at.head = at.key_head * tile->group + row % tile->group;
    at.used = row < tile->rows;
    at.reach = sb_attention_reach_at(p, &at, tile->length, at.query);
    if (!at.used)
        at.reach.first = at.reach.last = 0;
    return at;
}

SB_CUDA_FUNCTION float *sb_attention16_partial(const sb_cuda_attention *p, const sb_attention_place *at,
                                               int64_t split) {
    const int64_t row = (at->batch * p->heads + at->head) * p->queries + at->query;
    return p->partial + (row * p->splits + split) * SB_CUDA_ATTENTION_PARTIAL(p->value_width);
}

/* ---- the definition ---- */

template <class E>
SB_CUDA_APART void sb_attention16_again(const sb_cuda_attention *p, const sb_attention16_tile *tile, void *memory) {
    typedef sb_attention_real_f32 R;
    sb_attention_scratch<E, R> *shared = (sb_attention_scratch<E, R> *)memory;
    const int64_t column = threadIdx.x < p->value_width ? (int64_t)threadIdx.x : -1;
    SB_CUDA_KEEP_LOOP
    for (int64_t row = tile->first_row; row < tile->first_row + TILE_ROWS && row < tile->rows; row++) {
        const sb_attention_place at = sb_attention16_row(p, tile, row);
        sb_attention_sums<E, R> sums;
        if (tile->split < 0) {
            sb_attention_sum_row<E, R>(p, &at, column, shared, &sums);
            if (column >= 0)
                sb_attention_store<E, R>(p, &at, column, &sums);
        } else {
            sb_attention_split<E, R>(p, &at, tile->split * SB_ATTENTION_SPLIT, column, shared, &sums);
            float *to = sb_attention16_partial(p, &at, tile->split);
            if (column >= 0)
                to[column] = sums.value;
            if (threadIdx.x == 0) {
                to[p->value_width] = sums.sum;
                ((int32_t *)(void *)to)[p->value_width + 1] = sums.outcome == SB_CUDA_ATTENTION_NOTHING ? NONE
                                                              : sums.outcome == SB_CUDA_ATTENTION_NAN   ? -NONE
                                                                                                        : sums.maximum;
            }
        }
        SB_CUDA_BARRIER();
    }
}

/* ---- from memory ---- */

/* Begins to copy 128 keys, or their values, from `block` on; zeros stand for those that are not there, and for columns behind
 * `width`. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_load(const sb_cuda_attention *p, const sb_attention_place *at,
                                          const sb_cuda_attention_array *old, const sb_cuda_attention_array *fresh,
                                          int64_t block, int64_t end, int64_t width, uint16_t *to) {
    const int64_t old_at = at->batch * old->batch + at->key_head * old->head;
    const int64_t fresh_at = at->batch * fresh->batch + at->key_head * fresh->head - at->past * fresh->row;
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 8; i++) {
        const int piece = i * TILE_THREADS + (int)threadIdx.x, row = piece / (D / 8), column = piece % (D / 8) * 8;
        const int64_t key = block + row;
        const bool is_old = key < at->past, wanted = key < end && column < width;
        const int64_t index = is_old ? old_at + key * old->row : fresh_at + key * fresh->row;
        const char *from = (is_old ? old->data : fresh->data) + (index + column) * 2;
        sb_copy_eight(to + row * SB_CUDA_ATTENTION16_PITCH(D) + column, wanted ? from : p->q.data, wanted);
    }
}

template <int D>
SB_CUDA_FUNCTION void sb_attention16_load_queries(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                  uint16_t *to) {
    SB_CUDA_UNROLL
    for (int i = 0; i < TILE_ROWS * D / 8 / TILE_THREADS; i++) {
        const int piece = i * TILE_THREADS + (int)threadIdx.x, row = piece / (D / 8), column = piece % (D / 8) * 8;
        const int64_t number = tile->first_row + row;
        const bool wanted = number < tile->rows && column < p->width;
        const int64_t head = tile->at.key_head * tile->group + number % tile->group;
        const int64_t index = sb_attention_at(&p->q, tile->at.batch, head, number / tile->group, column);
        sb_copy_eight(to + row * SB_CUDA_ATTENTION16_PITCH(D) + column, wanted ? p->q.data + index * 2 : p->q.data,
                      wanted);
    }
}

/* ---- scores ---- */

/* Two rows of a thread: numbers lane / 4 and lane / 4 + 8 of the warp's. */
#define EACH_ROW for (int r = 0; r < 2; r++)
/* Elements j of eight columns, row and column i % 2. */
#define EACH_SCORE                                                                                                     \
    SB_CUDA_UNROLL                                                                                                     \
    for (int j = 0; j < KEYS / 8; j++)                                                                                 \
        SB_CUDA_UNROLL for (int i = 0; i < 4; i++)

/* Keys that a row does not see become -infinity; first and last count from the block's first key. */
SB_CUDA_FUNCTION void sb_attention16_hide(float s[KEYS / 8][4], const sb_attention_place *rows, int64_t block) {
    int first[2], last[2];
    EACH_ROW {
        const int64_t from = rows[r].reach.first - block, to = rows[r].reach.last - block;
        first[r] = from < 0 ? 0 : from > KEYS ? KEYS : (int)from;
        last[r] = to < 0 ? 0 : to > KEYS ? KEYS : (int)to;
    }
    const int pair = (int)threadIdx.x % 4 * 2;
    EACH_SCORE {
        const int key = 8 * j + pair + i % 2;
        if (key < first[i / 2] || key >= last[i / 2])
            s[j][i] = -sb_infinity_f32();
    }
}

/* Scale, cap and mask, element by element. */
template <class E>
SB_CUDA_FUNCTION void sb_attention16_finish(const sb_cuda_attention *p, float s[KEYS / 8][4],
                                            const sb_attention_place *rows, int64_t block) {
    const bool direct = sb_attention_is_direct(p), biased = p->mask_kind == SB_CUDA_ATTENTION_BIAS;
    const int pair = (int)threadIdx.x % 4 * 2;
    EACH_SCORE {
        double bias = 0;
        const int64_t key = block + 8 * j + pair + i % 2;
        const bool seen = sb_attention_look(p, &rows[i / 2], E::dtype, key, &bias);
        if (!direct)
            s[j][i] = sb_attention_finish(s[j][i], p->scale, p->cap, biased, bias);
        if (!seen)
            s[j][i] = -sb_infinity_f32();
    }
}

/* ---- tiles ---- */

#define EACH_SUM                                                                                                       \
    SB_CUDA_UNROLL                                                                                                     \
    for (int j = 0; j < D / 8; j++)                                                                                    \
        SB_CUDA_UNROLL for (int i = 0; i < 4; i++)

/* A thread's sums of its two rows. */
template <int D> struct sb_attention16_sums {
    int32_t maximum[2]; /* NONE while the row has seen no key */
    float weights[2];
    float values[D / 8][4];
};

/* The sum of a row's four lanes. */
SB_CUDA_FUNCTION float sb_attention16_join(float lane) {
    const float pair = lane + sb_cuda_shuffle_exchange_f32(lane, 1);
    return pair + sb_cuda_shuffle_exchange_f32(pair, 2);
}

/* Folds a split into the totals, whose values are in shared memory, an element of each thread side by side. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_fold(const sb_attention16_sums<D> *split, const float *sum, int32_t *maximum,
                                          float *weights, float *totals) {
    float own[2], before[2];
    bool first[2];
    EACH_ROW {
        const int32_t largest = split->maximum[r];
        first[r] = maximum[r] == NONE;
        own[r] = before[r] = 1.0f;
        if (largest == NONE)
            continue;
        if (first[r]) {
            weights[r] = sum[r];
            maximum[r] = largest;
        } else if (largest < maximum[r]) {
            own[r] = sb_split_factor_f32(largest, maximum[r]);
            weights[r] = weights[r] + sum[r] * own[r];
        } else {
            before[r] = sb_split_factor_f32(maximum[r], largest);
            weights[r] = weights[r] * before[r] + sum[r];
            maximum[r] = largest;
        }
    }
    EACH_SUM {
        float *total = &totals[(j * 4 + i) * TILE_THREADS + threadIdx.x];
        if (split->maximum[i / 2] == NONE)
            continue;
        if (first[i / 2])
            *total = split->values[j][i];
        else
            *total = *total * before[i / 2] + split->values[j][i] * own[i / 2];
    }
}

/* Block of keys: scores to weights, and sums rescaled. Returns whether the tile has to be computed again. */
template <int HALF, int D>
SB_CUDA_FUNCTION bool sb_attention16_weigh(float s[KEYS / 8][4], sb_split_scale_f32 by, bool *is_nan,
                                           sb_attention16_sums<D> *sums, uint32_t weights[KEYS / 16][4]) {
    bool again = false;
    int32_t less[2];
    float top[2];
    EACH_ROW top[r] = -sb_infinity_f32();
    EACH_SCORE top[i / 2] = sb_attention16_larger(top[i / 2], s[j][i]);
    EACH_ROW {
        top[r] = sb_attention16_larger(top[r], sb_cuda_shuffle_exchange_f32(top[r], 1));
        top[r] = sb_attention16_larger(top[r], sb_cuda_shuffle_exchange_f32(top[r], 2));
        const float held = sb_split_hold_f32(top[r], by);
        int32_t n = sb_split_exponent_f32(sb_split_shifted_f32(held, by));
        if (held != held || n >= -NONE) {
            is_nan[r] = true;
            n = NONE;
        }
        again |= n > NONE && n < NONE / 2;
        if (n > sums->maximum[r]) {
            const float factor = sb_split_factor_f32(sums->maximum[r], n);
            sums->weights[r] = sums->weights[r] * factor;
            SB_CUDA_UNROLL
            for (int j = 0; j < D / 8; j++) {
                sums->values[j][2 * r] = sums->values[j][2 * r] * factor;
                sums->values[j][2 * r + 1] = sums->values[j][2 * r + 1] * factor;
            }
            sums->maximum[r] = n;
        }
        less[r] = LESS(sums->maximum[r] == NONE ? 0 : sums->maximum[r]);
    }
    SB_CUDA_UNROLL
    for (int j = 0; j < KEYS / 8; j++) {
        EACH_ROW {
            float low, high;
            const uint32_t pair = sb_cuda_round_pair<HALF>(sb_attention16_weight<HALF>(s[j][2 * r], by, less[r]),
                                                           sb_attention16_weight<HALF>(s[j][2 * r + 1], by, less[r]));
            sb_cuda_widen_pair<HALF>(pair, &low, &high);
            sums->weights[r] = sums->weights[r] + low;
            sums->weights[r] = sums->weights[r] + high;
            weights[j / 2][j % 2 * 2 + r] = pair;
        }
    }
    return again;
}

/* Gives out what a thread has of its rows: the output, or a part of it. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_end(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                         const sb_attention_place *rows, const bool *is_nan, const int32_t *maximum,
                                         const float *weights, const float values[D / 8][4]) {
    const int pair = (int)threadIdx.x % 4 * 2;
    SB_CUDA_UNROLL
    EACH_ROW {
        if (!rows[r].used)
            continue;
        if (tile->split >= 0) {
            float *to = sb_attention16_partial(p, &rows[r], tile->split);
            SB_CUDA_UNROLL
            for (int j = 0; j < D / 8; j++) {
                if (8 * j < p->value_width) {
                    to[8 * j + pair] = values[j][2 * r];
                    to[8 * j + pair + 1] = values[j][2 * r + 1];
                }
            }
            if (pair == 0) {
                to[p->value_width] = weights[r];
                ((int32_t *)(void *)to)[p->value_width + 1] = is_nan[r] ? -NONE : maximum[r];
            }
            continue;
        }
        const float share = sb_div_f32(1, weights[r]);
        char *to = p->y.data + sb_attention_at(&p->y, rows[r].batch, rows[r].head, rows[r].query, 0) * 2;
        SB_CUDA_UNROLL
        for (int j = 0; j < D / 8; j++) {
            float low = is_nan[r] ? sb_nan_f32() : 0, high = low;
            if (!is_nan[r] && maximum[r] != NONE) {
                low = values[j][2 * r] * share;
                high = values[j][2 * r + 1] * share;
            }
            if (8 * j < p->value_width)
                *(uint32_t *)(void *)(to + (8 * j + pair) * 2) =
                    sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(low, high));
        }
    }
}

template <int HALF, int D, bool GENERAL> SB_CUDA_FUNCTION void sb_attention16_block(const sb_cuda_attention *p) {
    typedef typename sb_attention16_element<HALF>::type E;
    SB_CUDA_DYNAMIC_SHARED(memory);
    const int pitch = SB_CUDA_ATTENTION16_PITCH(D);
    uint16_t *const keys = (uint16_t *)(void *)memory, *const values = keys + KEYS * pitch;
    float *const totals = (float *)(void *)(values + KEYS * pitch);
    int *const again_all = (int *)(void *)(totals + TILE_ROWS * D);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const sb_attention16_tile tile = sb_attention16_find_tile(p);
    if (tile.first_row >= tile.rows)
        return;
    const sb_split_scale_f32 by = sb_split_scale_of_f32((float)sb_attention_factor(p));
    const int64_t own_row = tile.first_row + warp * 16 + lane / 4;
    const sb_attention_place rows[2] = {sb_attention16_row(p, &tile, own_row),
                                        sb_attention16_row(p, &tile, own_row + 8)};
    const bool works = tile.first_row + warp * 16 < tile.rows;
    uint32_t q[D / 16][4];
    sb_attention16_load_queries<D>(p, &tile, keys);
    SB_CUDA_COPIES_END();
    SB_CUDA_COPIES_WAIT(0);
    if (threadIdx.x == 0)
        *again_all = 0;
    SB_CUDA_BARRIER();
    SB_CUDA_UNROLL
    for (int k = 0; k < D / 16; k++)
        sb_fetch_matrices(q[k], keys + (warp * 16 + lane % 16) * pitch + k * 16 + lane / 16 * 8, false);
    SB_CUDA_BARRIER();
    bool again = false, is_nan[2] = {false, false};
    sb_attention16_sums<D> sums;
    int32_t maximum[2] = {NONE, NONE};
    float weights[2] = {0, 0};
    EACH_ROW {
        sums.maximum[r] = NONE;
        sums.weights[r] = 0;
    }
    EACH_SUM sums.values[j][i] = 0;
    int64_t block = tile.begin - tile.begin % KEYS;
    if (block < tile.end)
        sb_attention16_load<D>(p, &tile.at, &p->past_k, &p->k, block, tile.end, p->width, keys);
    SB_CUDA_COPIES_END();
    SB_CUDA_KEEP_LOOP
    for (; block < tile.end; block += KEYS) {
        float s[KEYS / 8][4];
        uint32_t p_pairs[KEYS / 16][4];
        SB_CUDA_COPIES_WAIT(0);
        SB_CUDA_BARRIER();
        sb_attention16_load<D>(p, &tile.at, &p->past_v, &p->v, block, tile.end, p->value_width, values);
        SB_CUDA_COPIES_END();
        if (works) {
            EACH_SCORE s[j][i] = 0;
            SB_CUDA_UNROLL
            for (int k = 0; k < D / 16; k++) {
                SB_CUDA_UNROLL
                for (int n = 0; n < KEYS / 16; n++) {
                    uint32_t b[4];
                    sb_fetch_matrices(
                        b, keys + (n * 16 + lane / 16 * 8 + lane % 8) * pitch + k * 16 + lane / 8 % 2 * 8, false);
                    sb_multiply_warp<HALF>(s[2 * n], q[k], b);
                    sb_multiply_warp<HALF>(s[2 * n + 1], q[k], b + 2);
                }
            }
        }
        SB_CUDA_BARRIER();
        if (block + KEYS < tile.end)
            sb_attention16_load<D>(p, &tile.at, &p->past_k, &p->k, block + KEYS, tile.end, p->width, keys);
        SB_CUDA_COPIES_END();
        if (works) {
            if (GENERAL)
                sb_attention16_finish<E>(p, s, rows, block);
            else if (block < tile.full_begin || block + KEYS > tile.full_end)
                sb_attention16_hide(s, rows, block);
            again |= sb_attention16_weigh<HALF, D>(s, by, is_nan, &sums, p_pairs);
        }
        SB_CUDA_COPIES_WAIT(1);
        SB_CUDA_BARRIER();
        if (works) {
            SB_CUDA_UNROLL
            for (int k = 0; k < KEYS / 16; k++) {
                SB_CUDA_UNROLL
                for (int n = 0; n < D / 16; n++) {
                    uint32_t b[4];
                    sb_fetch_matrices(b, values + (k * 16 + lane % 16) * pitch + n * 16 + lane / 16 * 8, true);
                    sb_multiply_warp<HALF>(sums.values[2 * n], p_pairs[k], b);
                    sb_multiply_warp<HALF>(sums.values[2 * n + 1], p_pairs[k], b + 2);
                }
            }
        }
        if (tile.split >= 0 || !works || (block + KEYS < tile.end && (block + KEYS) % SB_ATTENTION_SPLIT != 0))
            continue;
        float sum[2];
        EACH_ROW sum[r] = sb_attention16_join(sums.weights[r]);
        sb_attention16_fold<D>(&sums, sum, maximum, weights, totals);
        EACH_ROW {
            sums.maximum[r] = NONE;
            sums.weights[r] = 0;
        }
        EACH_SUM sums.values[j][i] = 0;
    }
    SB_CUDA_COPIES_WAIT(0);
    if (tile.split >= 0 && works) {
        EACH_ROW {
            maximum[r] = sums.maximum[r];
            weights[r] = sb_attention16_join(sums.weights[r]);
        }
    } else {
        EACH_SUM sums.values[j][i] = maximum[i / 2] != NONE ? totals[(j * 4 + i) * TILE_THREADS + threadIdx.x] : 0;
    }
    EACH_SUM again |= rows[i / 2].used && !is_nan[i / 2] && maximum[i / 2] != NONE &&
                      sums.values[j][i] != sums.values[j][i];
    if (again)
        *again_all = 1;
    SB_CUDA_BARRIER();
    if (SB_CUDA_SELDOM(*again_all)) {
        sb_attention16_again<E>(p, &tile, memory);
        return;
    }
    if (works)
        sb_attention16_end<HALF, D>(p, &tile, rows, is_nan, maximum, weights, sums.values);
}

/* ---- splits ---- */

/* A row's splits, folded; a block of threads for each row, a column each. */
template <int HALF> SB_CUDA_FUNCTION void sb_attention16_fold_rows(const sb_cuda_attention *p) {
    typedef typename sb_attention16_element<HALF>::type E;
    typedef sb_attention_real_f32 R;
    const int64_t count = p->batch * p->heads * p->queries;
    const int64_t column = threadIdx.x;
    SB_CUDA_KEEP_LOOP
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        const sb_attention_place at = sb_attention_row(p, row);
        const int64_t splits = (at.keys + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT;
        sb_attention_sums<E, R> total;
        total.outcome = SB_CUDA_ATTENTION_NOTHING;
        if (!at.used || column >= p->value_width)
            continue;
        for (int64_t split = 0; split < splits; split++) {
            const float *from = sb_attention16_partial(p, &at, split);
            sb_attention_sums<E, R> part;
            part.maximum = ((const int32_t *)(const void *)from)[p->value_width + 1];
            part.sum = from[p->value_width];
            part.value = from[column];
            part.outcome = SB_CUDA_ATTENTION_SUM;
            if (part.maximum == -NONE)
                total.outcome = SB_CUDA_ATTENTION_NAN;
            else if (part.maximum != NONE && total.outcome != SB_CUDA_ATTENTION_NAN)
                sb_attention_fold<E, R>(&total, &part);
        }
        sb_attention_store<E, R>(p, &at, column, &total);
    }
}

#endif
