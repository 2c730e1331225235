/* Attention of many rows by tensor cores: tiles of 64 rows, 16 a warp, against blocks of 128 keys.
 *
 * Scores stay in the registers of the threads that hold their rows, and so do the weights, which are the left matrix of the
 * values' chains as they lie. Sums of a split stay in registers; those of the splits before it wait in shared memory, each
 * thread's own. Registers are what is short: where the tile is lies in shared memory, where each row is is computed when it is
 * asked for, and queries are fetched again for each block of keys. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_TILE_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_TILE_CUH

#include "cuda/attention/attention16.cuh"

#define ROWS SB_CUDA_ATTENTION16_ROWS
#define KEY_GROUPS (KEYS / 8)

#define EACH_SUM                                                                                                       \
    SB_CUDA_UNROLL                                                                                                     \
    for (int j = 0; j < D / 8; j++)                                                                                    \
    SB_CUDA_UNROLL for (int i = 0; i < 4; i++)

/* ---- shared memory ---- */

/* The places of a line's eights, which are in other banks than those of the next seven lines: of those whose number has `lowest` as its
 * lowest bit, one that the others follow from without the line. */
template <int D> SB_CUDA_FUNCTION int sb_attention16_tile_line(int line, int lowest) {
    return line * D + ((lowest ^ line) & 7) * 8;
}

/* Eight number `even` + the lowest bit of the line's. */
SB_CUDA_FUNCTION int sb_attention16_tile_eight(int line, int even) {
    return (line ^ (even & 6) * 8) + even / 8 * 64;
}

template <int D> SB_CUDA_FUNCTION int sb_attention16_tile_place(int line, int eight) {
    return sb_attention16_tile_eight(sb_attention16_tile_line<D>(line, eight & 1), eight & ~1);
}

/* A block's shared memory, in elements. */
template <int D> struct sb_attention16_tile_memory {
    uint16_t *queries, *keys, *values; /* 64, 128 and 128 lines */
    float *totals;                     /* sums of the splits before this one, an element of each thread side by side */
};

template <int D> SB_CUDA_FUNCTION sb_attention16_tile_memory<D> sb_attention16_tile_cut(unsigned char *memory) {
    sb_attention16_tile_memory<D> shared;
    shared.queries = (uint16_t *)(void *)memory;
    shared.keys = shared.queries + ROWS * D;
    shared.values = shared.keys + KEYS * D;
    shared.totals = (float *)(void *)(shared.values + KEYS * D);
    return shared;
}

/* Begins to copy the keys of a block, or their values; zeros stand for those that no row sees, and for columns behind
 * `width`. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_tile_load(const sb_attention16_tile *tile, const sb_cuda_attention_array *past,
                                               const sb_cuda_attention_array *fresh, int64_t block, int64_t width,
                                               uint16_t *to) {
    const int first_line = (int)threadIdx.x / (D / 8), eight = (int)threadIdx.x % (D / 8);
    const sb_attention_lines<int32_t> lines = sb_attention_lines_of<int32_t>(past, fresh, &tile->at, 2);
    const int32_t begin = (int32_t)tile->begin, end = eight * 8 < width ? (int32_t)tile->end : 0;
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < D / 8; first += 4) {
        SB_CUDA_UNROLL
        for (int i = first; i < first + 4; i++) {
            const int line = first_line + i * (THREADS / (D / 8));
            const int32_t key = (int32_t)block + line;
            const bool wanted = key >= begin && key < end;
            sb_cuda_copy_16_or_zero(
                to + sb_attention16_tile_place<D>(line, eight),
                sb_attention_line<int32_t>(&lines, wanted ? key : begin) + (wanted ? eight * 16 : 0), wanted);
        }
    }
}

/* The line of a block that thread `lane` of the warp has in mind. Its warp's lines are those of sb_attention16_tile_load. */
template <int D> SB_CUDA_FUNCTION int sb_attention16_tile_own(void) {
    const int lines = 256 / D, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    return lane / lines * (4 * lines) + warp * lines + lane % lines;
}

/* The same from pages. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_tile_load_paged(const sb_attention16_tile *tile,
                                                     const sb_cuda_attention_array *array,
                                                     const sb_attention16_pages *pages, int64_t width, uint16_t *to) {
    const int first_line = (int)threadIdx.x / (D / 8), eight = (int)threadIdx.x % (D / 8);
    const sb_attention_lines<int32_t> lines = sb_attention16_paged_lines(array, &tile->at);
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < D / 8; first += 4) {
        SB_CUDA_UNROLL
        for (int i = first; i < first + 4; i++) {
            const int32_t line = sb_cuda_shuffle_from_s32(pages->line, i * (256 / D) + (int)threadIdx.x % 32 / (D / 8));
            const bool wanted = line >= 0 && eight * 8 < width;
            sb_cuda_copy_16_or_zero(to + sb_attention16_tile_place<D>(first_line + i * (THREADS / (D / 8)), eight),
                                    sb_attention_line<int32_t>(&lines, wanted ? line : 0) + (wanted ? eight * 16 : 0),
                                    wanted);
        }
    }
}

template <int D>
SB_CUDA_FUNCTION void sb_attention16_tile_load_queries(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                       uint16_t *to) {
    const int first_line = (int)threadIdx.x / (D / 8), eight = (int)threadIdx.x % (D / 8);
    SB_CUDA_KEEP_LOOP
    for (int line = first_line; line < ROWS; line += THREADS / (D / 8)) {
        const int64_t row = tile->first_row + line;
        const bool wanted = row < tile->rows && eight * 8 < p->width;
        const int64_t head = tile->at.key_head * tile->group + row % tile->group;
        const int64_t index =
            sb_attention_at(&p->q, tile->at.batch, head, tile->first_query + row / tile->group, eight * 8);
        sb_cuda_copy_16_or_zero(to + sb_attention16_tile_place<D>(line, eight), p->q.data + (wanted ? index * 2 : 0),
                                wanted);
    }
}

/* ---- sums ---- */

/* A thread's sums of its two rows: of a split, and what is small of all splits before it. */
template <int D> struct sb_attention16_tile_sums {
    int32_t maximum[2]; /* NONE while the row has seen no key */
    float lanes[2];
    sb_attention16_total totals[2];
    float values[D / 8][4];
    bool is_nan[2], again;
};

template <int D> SB_CUDA_FUNCTION void sb_attention16_tile_clear(sb_attention16_tile_sums<D> *sums) {
    EACH_ROW {
        sums->maximum[r] = NONE;
        sums->lanes[r] = 0;
    }
    EACH_SUM sums->values[j][i] = 0;
}

/* Folds a split into the totals. */
template <int D> SB_CUDA_FUNCTION void sb_attention16_tile_fold(sb_attention16_tile_sums<D> *sums, float *totals) {
    sb_attention16_factors by[2];
    EACH_ROW by[r] = sb_attention16_fold_row(&sums->totals[r], sums->maximum[r], sb_attention16_join(sums->lanes[r]));
    EACH_SUM sb_attention16_fold_value(&totals[(j * 4 + i) * THREADS + threadIdx.x], sums->values[j][i], by[i / 2]);
    sb_attention16_tile_clear<D>(sums);
}

/* ---- a block of keys ---- */

/* The thread's two rows, as the definition sees them. */
SB_CUDA_FUNCTION sb_attention_place sb_attention16_tile_row(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                            int r) {
    const int own = (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4 + 8 * r;
    return sb_attention16_row(p, tile, tile->first_row + own);
}

/* The warp's scores. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_tile_scores(const sb_cuda_attention *p, const uint16_t *queries,
                                                 const uint16_t *keys, float s[KEY_GROUPS][4]) {
    const int lane = (int)threadIdx.x % 32, first_row = (int)threadIdx.x / 32 * 16;
    const int query = sb_attention16_tile_line<D>(first_row + lane % 16, lane / 16);
    const int key = sb_attention16_tile_line<D>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    SB_CUDA_UNROLL
    for (int i = 0; i < KEY_GROUPS * 4; i++)
        s[i / 4][i % 4] = 0;
    SB_CUDA_UNROLL
    for (int k = 0; k < D / 16; k++) {
        uint32_t left[4], right[4];
        if (k * 16 >= p->width)
            continue;
        sb_attention16_fetch<false>(left, queries + sb_attention16_tile_eight(query, 2 * k));
        SB_CUDA_UNROLL
        for (int n = 0; n < KEYS / 16; n++) {
            sb_attention16_fetch<false>(right, keys + sb_attention16_tile_eight(key, 2 * k) + n * 16 * D);
            sb_cuda_multiply_matrices<HALF>(s[2 * n], left, right);
            sb_cuda_multiply_matrices<HALF>(s[2 * n + 1], left, right + 2);
        }
    }
}

/* What a score is but for its chain, and which keys are seen. */
template <class E, bool GENERAL>
SB_CUDA_FUNCTION void sb_attention16_tile_see(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                              float s[KEY_GROUPS][4], int64_t block) {
    if (!GENERAL && block >= tile->full_begin && block + KEYS <= tile->full_end)
        return;
    const sb_attention_place rows[2] = {sb_attention16_tile_row(p, tile, 0), sb_attention16_tile_row(p, tile, 1)};
    if (GENERAL)
        sb_attention16_finish<E, KEY_GROUPS>(p, s, rows, block);
    else
        sb_attention16_hide<KEY_GROUPS>(s, rows, block);
}

/* Scores of a block to weights, and sums brought to the maxima with them. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_tile_weigh(const float s[KEY_GROUPS][4], sb_split_scale_f32 by,
                                                sb_attention16_tile_sums<D> *sums, uint32_t weights[KEYS / 16][4]) {
    float largest[2], shift[2];
    sb_attention16_largest<KEY_GROUPS>(s, largest);
    EACH_ROW {
        const int32_t n = sb_attention16_exponent(largest[r], by, &sums->is_nan[r], &sums->again);
        if (n > sums->maximum[r]) {
            const float factor = sb_split_factor_f32(sums->maximum[r], n);
            sums->lanes[r] = sums->lanes[r] * factor;
            SB_CUDA_UNROLL
            for (int j = 0; j < D / 8; j++) {
                sums->values[j][2 * r] = sums->values[j][2 * r] * factor;
                sums->values[j][2 * r + 1] = sums->values[j][2 * r + 1] * factor;
            }
            sums->maximum[r] = n;
        }
        shift[r] = sb_attention16_shift(sums->maximum[r]);
    }
    SB_CUDA_UNROLL
    for (int j = 0; j < KEY_GROUPS; j++) {
        EACH_ROW {
            float low, high;
            const uint32_t pair = sb_cuda_round_pair<HALF>(sb_attention16_weight(s[j][2 * r], by.scale, shift[r]),
                                                           sb_attention16_weight(s[j][2 * r + 1], by.scale, shift[r]));
            sb_cuda_widen_pair<HALF>(pair, &low, &high);
            sums->lanes[r] = sums->lanes[r] + low;
            sums->lanes[r] = sums->lanes[r] + high;
            weights[j / 2][j % 2 * 2 + r] = pair;
        }
    }
}

/* A block's weighted values behind those before it. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_tile_add(const sb_cuda_attention *p, const uint32_t weights[KEYS / 16][4],
                                              const uint16_t *values, sb_attention16_tile_sums<D> *sums) {
    const int lane = (int)threadIdx.x % 32, line = sb_attention16_tile_line<D>(lane % 16, lane / 16);
    SB_CUDA_UNROLL
    for (int k = 0; k < KEYS / 16; k++) {
        SB_CUDA_UNROLL
        for (int n = 0; n < D / 16; n++) {
            uint32_t right[4];
            if (n * 16 >= p->value_width)
                continue;
            sb_attention16_fetch<true>(right, values + sb_attention16_tile_eight(line, 2 * n) + k * 16 * D);
            sb_cuda_multiply_matrices<HALF>(sums->values[2 * n], weights[k], right);
            sb_cuda_multiply_matrices<HALF>(sums->values[2 * n + 1], weights[k], right + 2);
        }
    }
}

/* ---- all of it ---- */

/* Begins to copy the keys of a block, or with those keys copied its values. */
template <int D, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_tile_begin(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                int64_t block, bool is_values, sb_attention16_tile_memory<D> shared,
                                                sb_attention16_pages *pages) {
    const int64_t width = is_values ? p->value_width : p->width;
    uint16_t *to = is_values ? shared.values : shared.keys;
    if (PAGED) {
        if (!is_values)
            sb_attention16_turn(p, tile, block + sb_attention16_tile_own<D>(), pages);
        sb_attention16_tile_load_paged<D>(tile, is_values ? &p->v : &p->k, pages, width, to);
    } else {
        sb_attention16_tile_load<D>(tile, is_values ? &p->past_v : &p->past_k, is_values ? &p->v : &p->k, block, width,
                                    to);
    }
}

/* All blocks of keys. Behind it `totals` and `values` are what the rows come to. */
template <int HALF, int D, bool GENERAL, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_tile_sum(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                              sb_attention16_tile_memory<D> shared, sb_attention16_tile_sums<D> *sums) {
    typedef typename sb_attention16_element<HALF>::type E;
    const sb_split_scale_f32 by = sb_split_scale_of_f32((float)sb_attention_factor(p));
    const bool works = tile->first_row + (int)threadIdx.x / 32 * 16 < tile->rows;
    int64_t block = tile->begin - tile->begin % KEYS;
    sb_attention16_pages pages = {-1,
                                  PAGED ? sb_attention16_look_up(p, tile, block + sb_attention16_tile_own<D>()) : 0};
    sb_attention16_tile_load_queries<D>(p, tile, shared.queries);
    if (block < tile->end)
        sb_attention16_tile_begin<D, PAGED>(p, tile, block, false, shared, &pages);
    SB_CUDA_COPIES_END();
    SB_CUDA_KEEP_LOOP
    for (; block < tile->end; block += KEYS) {
        float s[KEY_GROUPS][4];
        uint32_t weights[KEYS / 16][4];
        SB_CUDA_COPIES_WAIT(0);
        SB_CUDA_BARRIER();
        sb_attention16_tile_begin<D, PAGED>(p, tile, block, true, shared, &pages);
        SB_CUDA_COPIES_END();
        if (works)
            sb_attention16_tile_scores<HALF, D>(p, shared.queries, shared.keys, s);
        SB_CUDA_BARRIER();
        if (block + KEYS < tile->end)
            sb_attention16_tile_begin<D, PAGED>(p, tile, block + KEYS, false, shared, &pages);
        SB_CUDA_COPIES_END();
        if (works) {
            sb_attention16_tile_see<E, GENERAL>(p, tile, s, block);
            sb_attention16_tile_weigh<HALF, D>(s, by, sums, weights);
        }
        SB_CUDA_COPIES_WAIT(1);
        SB_CUDA_BARRIER();
        if (works)
            sb_attention16_tile_add<HALF, D>(p, weights, shared.values, sums);
        if (tile->split < 0 && works && (block + KEYS >= tile->end || (block + KEYS) % SB_ATTENTION_SPLIT == 0))
            sb_attention16_tile_fold<D>(sums, shared.totals);
    }
    SB_CUDA_COPIES_WAIT(0);
    if (tile->split < 0) {
        EACH_SUM sums->values[j][i] =
            sums->totals[i / 2].maximum != NONE ? shared.totals[(j * 4 + i) * THREADS + threadIdx.x] : 0;
        return;
    }
    EACH_ROW {
        sums->totals[r].maximum = sums->maximum[r];
        sums->totals[r].sum = sb_attention16_join(sums->lanes[r]);
    }
}

/* Gives out what a thread has of a row. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_tile_give(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                               const sb_attention16_tile_sums<D> *sums, int r) {
    const int lane = (int)threadIdx.x % 32;
    const sb_attention_place row = sb_attention16_tile_row(p, tile, r);
    const sb_attention16_total total = sums->totals[r];
    const float share = sb_div_f32(1, total.sum);
    if (!row.used)
        return;
    if (tile->split >= 0 && lane % 4 == 0)
        sb_attention16_give_sum(p, tile, &row, sums->is_nan[r], total.maximum, total.sum);
    SB_CUDA_UNROLL
    for (int j = 0; j < D / 8; j++) {
        if (8 * j < p->value_width)
            sb_attention16_give<HALF>(p, tile, &row, 8 * j + lane % 4 * 2, sums->values[j][2 * r],
                                      sums->values[j][2 * r + 1], sums->is_nan[r], total.maximum, share);
    }
}

/* All of a tile. `*again` is shared, and false. Behind it a thread may still read shared memory. */
template <int HALF, int D, bool GENERAL, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_tile_compute(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                  unsigned char *memory, int *again) {
    typedef typename sb_attention16_element<HALF>::type E;
    sb_attention16_tile_sums<D> sums;
    sums.again = false;
    EACH_ROW {
        sums.totals[r].maximum = NONE;
        sums.totals[r].sum = 0;
        sums.is_nan[r] = false;
    }
    sb_attention16_tile_clear<D>(&sums);
    sb_attention16_tile_sum<HALF, D, GENERAL, PAGED>(p, tile, sb_attention16_tile_cut<D>(memory), &sums);
    /* Rows that are not there have seen no key. */
    EACH_SUM sums.again |=
        !sums.is_nan[i / 2] && sums.totals[i / 2].maximum != NONE && sums.values[j][i] != sums.values[j][i];
    if (sums.again)
        *again = 1;
    SB_CUDA_BARRIER();
    if (SB_CUDA_SELDOM(*again)) {
        sb_attention16_again<E>(p, tile, ROWS, memory);
        return;
    }
    SB_CUDA_UNROLL
    EACH_ROW sb_attention16_tile_give<HALF, D>(p, tile, &sums, r);
}

template <int HALF, int D, bool GENERAL, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_tile_run(const sb_cuda_attention *p) {
    SB_CUDA_DYNAMIC_SHARED(memory);
    SB_CUDA_SHARED sb_attention16_tile tile;
    SB_CUDA_SHARED int again;
    SB_CUDA_SHARED bool is_there;
    SB_CUDA_KEEP_LOOP
    for (int64_t index = blockIdx.x;; index += gridDim.x) {
        if (threadIdx.x < (PAGED ? 32 : 1)) {
            /* Written where it stays, by a whole warp the same: a copy of their own costs the threads registers to the end. */
            is_there = sb_attention16_take_tile<PAGED>(p, index, ROWS, &tile);
            again = 0;
        }
        SB_CUDA_BARRIER();
        if (!is_there)
            return;
        if (!sb_attention16_is_idle(&tile))
            sb_attention16_tile_compute<HALF, D, GENERAL, PAGED>(p, &tile, memory, &again);
        SB_CUDA_BARRIER();
    }
}

/* The kernels of a source, whose modules are `module`_<name>: heads of up to `width`, how many blocks a multiprocessor shall take,
 * and whether keys lie on pages. */
#define SB_CUDA_ATTENTION16_TILE_KERNEL(module, name, half, width, blocks, is_paged, suffix, is_general)               \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_##module##_##name##suffix, sb_cuda_attention, p, THREADS, blocks) {           \
        sb_attention16_tile_run<half, width, is_general, is_paged>(p);                                                 \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_TILE_F16(module, width, blocks, is_paged)                                                  \
    SB_CUDA_ATTENTION16_TILE_KERNEL(module, f16, SB_CUDA_F16, width, blocks, is_paged, , false)                        \
    SB_CUDA_ATTENTION16_TILE_KERNEL(module, f16, SB_CUDA_F16, width, blocks, is_paged, _masked, true)
#else
#define SB_CUDA_ATTENTION16_TILE_F16(module, width, blocks, is_paged)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_TILE_BF16(module, width, blocks, is_paged)                                                 \
    SB_CUDA_ATTENTION16_TILE_KERNEL(module, bf16, SB_CUDA_BF16, width, blocks, is_paged, , false)                      \
    SB_CUDA_ATTENTION16_TILE_KERNEL(module, bf16, SB_CUDA_BF16, width, blocks, is_paged, _masked, true)
#else
#define SB_CUDA_ATTENTION16_TILE_BF16(module, width, blocks, is_paged)
#endif
#define SB_CUDA_ATTENTION16_TILE(module, width, blocks, is_paged)                                                      \
    SB_CUDA_ATTENTION16_TILE_F16(module, width, blocks, is_paged)                                                      \
    SB_CUDA_ATTENTION16_TILE_BF16(module, width, blocks, is_paged)

#endif
