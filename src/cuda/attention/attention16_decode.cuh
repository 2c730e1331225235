/* Attention of few rows by tensor cores: a block of 128 threads for a split of 512 keys (or all splits of few), with all of up
 * to 16 rows that share its keys. What limits it is memory, so keys and values come in a ring of blocks of 128 of which all
 * but one are on their way. Each warp scores a quarter of a block's keys; all weights meet in shared memory, and each warp sums
 * a quarter of the values' columns, in units of 16.
 *
 * What splits come to is folded by a kernel of its own (attention16_fold.cu). The block that finished last did it once, where splits were few: that
 * took twice as long (docs/notes/cuda.md). */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_DECODE_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_DECODE_CUH

#include "cuda/attention/attention16.cuh"

#define ROWS SB_CUDA_ATTENTION16_DECODE_ROWS
#define WARPS (THREADS / 32)
#define OWN_KEYS (KEYS / WARPS)
#define OWN_GROUPS (OWN_KEYS / 8)
/* Whether splits may stay together. */
#define FOLDS (D == 256)
#define WEIGHTS_PITCH SB_CUDA_ATTENTION16_PITCH(KEYS)

/* A block's shared memory. */
template <int D> struct sb_attention16_decode_memory {
    uint16_t *ring;    /* [stages][128][pitch] */
    uint16_t *weights; /* [16][pitch] */
    float *largest;    /* [warps][16]; at the end [0] has the sums of weights */
    int *again;
    float *totals; /* where splits stay together: values of each thread, side by side */
};

template <int D> SB_CUDA_FUNCTION sb_attention16_decode_memory<D> sb_attention16_decode_cut(unsigned char *memory) {
    sb_attention16_decode_memory<D> shared;
    shared.ring = (uint16_t *)(void *)memory;
    shared.weights = shared.ring + SB_CUDA_ATTENTION16_STAGES(D) * SB_CUDA_ATTENTION16_UNIT(D) / 2;
    shared.largest = (float *)(void *)(shared.weights + ROWS * WEIGHTS_PITCH);
    shared.again = (int *)(void *)(shared.largest + WARPS * ROWS);
    shared.totals = (float *)(void *)(shared.again + 4);
    return shared;
}

/* A thread's sums. Every warp knows the maxima of all rows, and the first one the lanes of weights. */
template <int D> struct sb_attention16_decode_sums {
    int32_t maximum[2]; /* NONE while the row has seen no key */
    bool is_nan[2], again;
    float lanes[2];
    sb_attention16_total totals[2];
    float values[(D / 16 + WARPS - 1) / WARPS][8];
};

#define EACH_UNIT for (int u = 0; u < (D / 16 + WARPS - 1) / WARPS; u++)

/* Begins to copy unit `number` of the split: the keys of a block, then its values, and so on. A batch in any case. */
template <int D, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode_begin(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                  int64_t first, int64_t number, uint16_t *ring,
                                                  sb_attention16_pages *pages) {
    const int64_t block = first + number / 2 * KEYS;
    uint16_t *to = ring + number % SB_CUDA_ATTENTION16_STAGES(D) * (SB_CUDA_ATTENTION16_UNIT(D) / 2);
    const bool is_values = number % 2 != 0;
    if (PAGED && block < tile->end) {
        if (!is_values)
            sb_attention16_turn(p, tile, block + threadIdx.x, pages);
        sb_attention16_load_paged<D>(is_values ? sb_attention16_paged_lines(&p->v, &tile->at)
                                               : sb_attention16_paged_lines(&p->k, &tile->at),
                                     pages->line, is_values ? p->value_width : p->width, to);
    } else if (block < tile->end && !is_values)
        sb_attention16_load<D>(&p->past_k, &p->k, tile, block, p->width, to);
    else if (block < tile->end)
        sb_attention16_load<D>(&p->past_v, &p->v, tile, block, p->value_width, to);
    SB_CUDA_COPIES_END();
}

/* Scores of the warp's 32 keys of a block. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_decode_scores(const sb_cuda_attention *p, const uint32_t queries[D / 16][4],
                                                   const uint16_t *keys, float s[OWN_GROUPS][4]) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN_GROUPS * 4; i++)
        s[i / 4][i % 4] = 0;
    SB_CUDA_UNROLL
    for (int k = 0; k < D / 16; k++) {
        if (k * 16 >= p->width)
            continue;
        SB_CUDA_UNROLL
        for (int n = 0; n < OWN_GROUPS / 2; n++) {
            uint32_t fetched[4];
            const int key = warp * OWN_KEYS + n * 16 + lane / 16 * 8 + lane % 8;
            sb_attention16_fetch<false>(fetched, keys + key * SB_CUDA_ATTENTION16_PITCH(D) + k * 16 + lane / 8 % 2 * 8);
            sb_cuda_multiply_matrices<HALF>(s[2 * n], queries[k], fetched);
            sb_cuda_multiply_matrices<HALF>(s[2 * n + 1], queries[k], fetched + 2);
        }
    }
}

/* The rows' maxima with this block, which all warps have scored, and what was summed brought to them. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_decode_raise(const float *largest, sb_split_scale_f32 by,
                                                  sb_attention16_decode_sums<D> *sums) {
    const int lane = (int)threadIdx.x % 32;
    EACH_ROW {
        float top = largest[lane / 4 + 8 * r];
        SB_CUDA_UNROLL
        for (int warp = 1; warp < WARPS; warp++)
            top = sb_attention16_larger(top, largest[warp * ROWS + lane / 4 + 8 * r]);
        const int32_t n = sb_attention16_exponent(top, by, &sums->is_nan[r], &sums->again);
        if (n <= sums->maximum[r])
            continue;
        const float factor = sb_split_factor_f32(sums->maximum[r], n);
        sums->maximum[r] = n;
        sums->lanes[r] = sums->lanes[r] * factor;
        SB_CUDA_UNROLL
        EACH_UNIT {
            SB_CUDA_UNROLL
            for (int i = 0; i < 4; i++)
                sums->values[u][i / 2 * 4 + 2 * r + i % 2] = sums->values[u][i / 2 * 4 + 2 * r + i % 2] * factor;
        }
    }
}

/* The weights of the warp's keys. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_decode_weigh(const float s[OWN_GROUPS][4], sb_split_scale_f32 by,
                                                  const sb_attention16_decode_sums<D> *sums, uint16_t *weights) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    EACH_ROW {
        const float shift = sb_attention16_shift(sums->maximum[r]);
        SB_CUDA_UNROLL
        for (int j = 0; j < OWN_GROUPS; j++) {
            uint16_t *to = weights + (lane / 4 + 8 * r) * WEIGHTS_PITCH + warp * OWN_KEYS + 8 * j + lane % 4 * 2;
            *(uint32_t *)(void *)to = sb_cuda_round_pair<HALF>(sb_attention16_weight(s[j][2 * r], by.scale, shift),
                                                               sb_attention16_weight(s[j][2 * r + 1], by.scale, shift));
        }
    }
}

/* A block's weighted values behind those before it: of the warp's units of 16 columns; and the weights' own sums. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_decode_add(const sb_cuda_attention *p, const uint16_t *weights,
                                                const uint16_t *values, sb_attention16_decode_sums<D> *sums) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    for (int k = 0; k < KEYS / 16; k++) {
        uint32_t left[4], right[4];
        sb_attention16_fetch<false>(left, weights + lane % 16 * WEIGHTS_PITCH + k * 16 + lane / 16 * 8);
        if (warp == 0) {
            SB_CUDA_UNROLL
            for (int i = 0; i < 4; i++) {
                float low, high;
                sb_cuda_widen_pair<HALF>(left[i], &low, &high);
                sums->lanes[i % 2] = sums->lanes[i % 2] + low;
                sums->lanes[i % 2] = sums->lanes[i % 2] + high;
            }
        }
        SB_CUDA_UNROLL
        EACH_UNIT {
            const int column = (warp + u * WARPS) * 16;
            if (column >= p->value_width)
                continue;
            sb_attention16_fetch<true>(right, values + (k * 16 + lane % 16) * SB_CUDA_ATTENTION16_PITCH(D) + column +
                                                  lane / 16 * 8);
            sb_cuda_multiply_matrices<HALF>(sums->values[u], left, right);
            sb_cuda_multiply_matrices<HALF>(sums->values[u] + 4, left, right + 2);
        }
    }
}

#define EACH_VALUE                                                                                                     \
    SB_CUDA_UNROLL                                                                                                     \
    EACH_UNIT SB_CUDA_UNROLL for (int i = 0; i < 8; i++)

template <int D> SB_CUDA_FUNCTION void sb_attention16_decode_clear(sb_attention16_decode_sums<D> *sums) {
    EACH_ROW {
        sums->maximum[r] = NONE;
        sums->lanes[r] = 0;
    }
    EACH_VALUE sums->values[u][i] = 0;
}

/* Folds a split into the totals. Sums of weights are the first warp's, who has their lanes. */
template <int D> SB_CUDA_FUNCTION void sb_attention16_decode_fold(sb_attention16_decode_sums<D> *sums, float *totals) {
    sb_attention16_factors by[2];
    EACH_ROW by[r] = sb_attention16_fold_row(&sums->totals[r], sums->maximum[r], sb_attention16_join(sums->lanes[r]));
    EACH_VALUE sb_attention16_fold_value(&totals[(u * 8 + i) * THREADS + threadIdx.x], sums->values[u][i],
                                         by[i % 4 / 2]);
    sb_attention16_decode_clear<D>(sums);
}

/* All keys of the block's split, or of all splits if the tile has no split. Heads of up to 128 have one then. Behind it `totals`
 * and `values` are what the rows come to. */
template <int HALF, int D, bool GENERAL, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode_sum(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                const sb_attention_place *rows, sb_attention16_decode_memory<D> shared,
                                                sb_attention16_decode_sums<D> *sums) {
    typedef typename sb_attention16_element<HALF>::type E;
    const int stages = SB_CUDA_ATTENTION16_STAGES(D), unit = SB_CUDA_ATTENTION16_UNIT(D) / 2;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const sb_split_scale_f32 by = sb_split_scale_of_f32((float)sb_attention_factor(p));
    const int64_t first = tile->begin - tile->begin % KEYS;
    uint32_t queries[D / 16][4];
    sb_attention16_pages pages = {-1, PAGED ? sb_attention16_look_up(p, tile, first + threadIdx.x) : 0};
    SB_CUDA_KEEP_LOOP
    for (int64_t number = 0; number < stages - 1; number++)
        sb_attention16_decode_begin<D, PAGED>(p, tile, first, number, shared.ring, &pages);
    sb_attention16_load_queries<D>(p, rows, queries);
    int64_t number = 0;
    SB_CUDA_KEEP_LOOP
    for (int64_t block = first; block < tile->end; block += KEYS) {
        float s[OWN_GROUPS][4], largest[2];
        const int64_t own = block + warp * OWN_KEYS;
        SB_CUDA_COPIES_WAIT(SB_CUDA_ATTENTION16_STAGES(D) - 2);
        SB_CUDA_BARRIER();
        sb_attention16_decode_begin<D, PAGED>(p, tile, first, number + stages - 1, shared.ring, &pages);
        sb_attention16_decode_scores<HALF, D>(p, queries, shared.ring + number++ % stages * unit, s);
        if (GENERAL)
            sb_attention16_finish<E, OWN_GROUPS>(p, s, rows, own);
        else if (block < tile->full_begin || block + KEYS > tile->full_end)
            sb_attention16_hide<OWN_GROUPS>(s, rows, own);
        sb_attention16_largest<OWN_GROUPS>(s, largest);
        EACH_ROW {
            if (lane % 4 == 0)
                shared.largest[warp * ROWS + lane / 4 + 8 * r] = largest[r];
        }
        SB_CUDA_BARRIER();
        sb_attention16_decode_raise<D>(shared.largest, by, sums);
        sb_attention16_decode_weigh<HALF, D>(s, by, sums, shared.weights);
        SB_CUDA_COPIES_WAIT(SB_CUDA_ATTENTION16_STAGES(D) - 2);
        SB_CUDA_BARRIER();
        sb_attention16_decode_begin<D, PAGED>(p, tile, first, number + stages - 1, shared.ring, &pages);
        sb_attention16_decode_add<HALF, D>(p, shared.weights, shared.ring + number++ % stages * unit, sums);
        if (FOLDS && tile->split < 0 && (block + KEYS >= tile->end || (block + KEYS) % SB_ATTENTION_SPLIT == 0))
            sb_attention16_decode_fold<D>(sums, shared.totals);
    }
    SB_CUDA_COPIES_WAIT(0);
    if (FOLDS && tile->split < 0) {
        EACH_VALUE sums->values[u][i] =
            sums->totals[i % 4 / 2].maximum != NONE ? shared.totals[(u * 8 + i) * THREADS + threadIdx.x] : 0;
        return;
    }
    EACH_ROW {
        sums->totals[r].maximum = sums->maximum[r];
        sums->totals[r].sum = sb_attention16_join(sums->lanes[r]);
    }
}

/* Gives out what a thread has of a row. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_decode_give(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                 const sb_attention_place *row,
                                                 const sb_attention16_decode_sums<D> *sums, int r, float sum) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int32_t maximum = sums->totals[r].maximum;
    const float share = sb_div_f32(1, sum);
    if (tile->split >= 0 && warp == 0 && lane % 4 == 0)
        sb_attention16_give_sum(p, tile, row, sums->is_nan[r], maximum, sum);
    SB_CUDA_UNROLL
    EACH_UNIT {
        SB_CUDA_UNROLL
        for (int half = 0; half < 2; half++) {
            const int64_t column = (warp + u * WARPS) * 16 + half * 8 + lane % 4 * 2;
            if (column < p->value_width)
                sb_attention16_give<HALF>(p, tile, row, column, sums->values[u][half * 4 + 2 * r],
                                          sums->values[u][half * 4 + 2 * r + 1], sums->is_nan[r], maximum, share);
        }
    }
}

/* All of a tile. Behind it a thread may still read shared memory. */
template <int HALF, int D, bool GENERAL, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode_tile(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                 sb_attention16_decode_memory<D> shared, void *memory) {
    typedef typename sb_attention16_element<HALF>::type E;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const sb_attention_place rows[2] = {sb_attention16_row(p, tile, tile->first_row + lane / 4),
                                        sb_attention16_row(p, tile, tile->first_row + lane / 4 + 8)};
    sb_attention16_decode_sums<D> sums;
    sums.again = false;
    EACH_ROW {
        sums.totals[r].maximum = NONE;
        sums.totals[r].sum = 0;
        sums.is_nan[r] = false;
    }
    sb_attention16_decode_clear<D>(&sums);
    if (threadIdx.x == 0)
        *shared.again = 0;
    sb_attention16_decode_sum<HALF, D, GENERAL, PAGED>(p, tile, rows, shared, &sums);
    SB_CUDA_BARRIER();
    EACH_ROW {
        if (warp == 0 && lane % 4 == 0)
            shared.largest[lane / 4 + 8 * r] = sums.totals[r].sum;
    }
    /* Rows that are not there have seen no key. */
    EACH_VALUE {
        const int r = i % 4 / 2;
        sums.again |= !sums.is_nan[r] && sums.totals[r].maximum != NONE && sums.values[u][i] != sums.values[u][i];
    }
    if (sums.again)
        *shared.again = 1;
    SB_CUDA_BARRIER();
    if (SB_CUDA_SELDOM(*shared.again)) {
        sb_attention16_again<E>(p, tile, ROWS, memory);
        return;
    }
    EACH_ROW {
        if (rows[r].used)
            sb_attention16_decode_give<HALF, D>(p, tile, &rows[r], &sums, r, shared.largest[lane / 4 + 8 * r]);
    }
}

/* Tiles `first`, `first` + `step`, …; `memory` is shared memory. */
template <int HALF, int D, bool GENERAL, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode(const sb_cuda_attention *p, int64_t first, int64_t step,
                                            unsigned char *memory) {
    const sb_attention16_decode_memory<D> shared = sb_attention16_decode_cut<D>(memory);
    sb_attention16_tile tile;
    SB_CUDA_KEEP_LOOP
    for (int64_t index = first; sb_attention16_take_tile<PAGED>(p, index, ROWS, &tile); index += step) {
        if (sb_attention16_is_idle(&tile))
            continue;
        sb_attention16_decode_tile<HALF, D, GENERAL, PAGED>(p, &tile, shared, memory);
        SB_CUDA_BARRIER();
    }
}

/* The kernels of a source, whose modules are `module`_<name>: heads of up to `width`, how many blocks a multiprocessor shall take,
 * and whether keys lie on pages. */
#define SB_CUDA_ATTENTION16_DECODE_KERNEL(module, name, half, width, blocks, is_paged, suffix, is_general)             \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_##module##_##name##suffix, sb_cuda_attention, p, THREADS, blocks) {           \
        SB_CUDA_DYNAMIC_SHARED(memory);                                                                                \
        sb_attention16_decode<half, width, is_general, is_paged>(p, blockIdx.x, gridDim.x, memory);                    \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_DECODE_F16(module, width, blocks, is_paged)                                                \
    SB_CUDA_ATTENTION16_DECODE_KERNEL(module, f16, SB_CUDA_F16, width, blocks, is_paged, , false)                      \
    SB_CUDA_ATTENTION16_DECODE_KERNEL(module, f16, SB_CUDA_F16, width, blocks, is_paged, _masked, true)
#else
#define SB_CUDA_ATTENTION16_DECODE_F16(module, width, blocks, is_paged)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_DECODE_BF16(module, width, blocks, is_paged)                                               \
    SB_CUDA_ATTENTION16_DECODE_KERNEL(module, bf16, SB_CUDA_BF16, width, blocks, is_paged, , false)                    \
    SB_CUDA_ATTENTION16_DECODE_KERNEL(module, bf16, SB_CUDA_BF16, width, blocks, is_paged, _masked, true)
#else
#define SB_CUDA_ATTENTION16_DECODE_BF16(module, width, blocks, is_paged)
#endif
#define SB_CUDA_ATTENTION16_DECODE(module, width, blocks, is_paged)                                                    \
    SB_CUDA_ATTENTION16_DECODE_F16(module, width, blocks, is_paged)                                                    \
    SB_CUDA_ATTENTION16_DECODE_BF16(module, width, blocks, is_paged)

#endif
