/* What the kernels of attention in nodes share (attention_nodes.cu): where a block's rows are, lines on their way to shared memory,
 * a warp's scores of 64 keys at a time, the nodes behind them, and the second product.
 *
 * A warp has 16 rows, and COUNT groups of eight keys each, whose first keys are SPACING apart: a part of them all where several warps
 * share rows. A thread holds of each group two neighbours, as a pair of 16 bits: [0] of row lane / 4, [1] of the one 8 further on. */
#ifndef SB_CUDA_CONTRACTION_ATTENTION_NODES_CUH
#define SB_CUDA_CONTRACTION_ATTENTION_NODES_CUH

#include "cuda/common/half_arithmetic.cuh"
#include "cuda/common/index.cuh"
#include "cuda/contraction/attention_nodes_parameters.h"
#include "cuda/contraction/warp_products.cuh"
#include "cuda/rows/row_vectors.cuh"
#include "numerics/elementary.h"
#include "numerics/exp_nonpositive.h"

/* Lines that are fetched together. */
#define CHUNK 64
#define PIECES (WIDTH / 8) /* of 16 bytes in a line */
#define CHUNK_PIECES (CHUNK * PIECES)

/* Where a block's rows are: the number of the first, and the operands' data for its matrices. In shared memory. */
typedef struct attention_place {
    int64_t row;
    const uint16_t *operands[SB_CUDA_ATTENTION_OPERANDS] __attribute__((aligned(16)));
} attention_place;

/* Finds the place of a tile, an operand a thread. */
SB_CUDA_FUNCTION void find_place(const sb_cuda_attention_nodes *p, int64_t tile, attention_place *at) {
    if (threadIdx.x < SB_CUDA_ATTENTION_OPERANDS) {
        const sb_cuda_attention_operand *operand = &p->operands[threadIdx.x];
        const uint16_t *data = operand->data;
        const int64_t row = sb_cuda_take(&tile, p->row_tiles) * p->tile_rows;
        SB_CUDA_KEEP_LOOP
        for (int d = p->rank - 1; d >= 0; d--)
            data += sb_cuda_take(&tile, p->dims[d]) * operand->steps[d];
        at->operands[threadIdx.x] = data;
        if (threadIdx.x == 0)
            at->row = row;
    }
    SB_CUDA_BARRIER();
}

/* ---- shared memory ---- */

/* The place of eight elements of a line; those of eight lines, which are fetched at once, are in different banks. */
template <int WIDTH> SB_CUDA_FUNCTION int piece_place(int line, int eight) {
    return line * PIECES + (eight ^ (line & 7));
}

/* Begins to copy COUNT lines from `first` on; lines behind `lines`, and elements behind `width`, are zeros. */
template <int WIDTH, int THREADS, int COUNT>
SB_CUDA_FUNCTION void copy_lines(sb_cuda_eight *to, const uint16_t *from, int64_t step, int first, int lines,
                                 int width) {
    const int own = (int)(threadIdx.x / PIECES), eight = (int)(threadIdx.x % PIECES);
    const uint16_t *own_line = from + own * step + eight * 8;
    const bool fits = eight * 8 < width;
    SB_CUDA_UNROLL
    for (int i = 0; i < COUNT * PIECES / THREADS; i++) {
        const int ahead = first + i * (THREADS / PIECES);
        const bool wanted = fits && own < lines - ahead;
        sb_cuda_copy_16_or_zero(to + piece_place<WIDTH>(own + i * (THREADS / PIECES), eight),
                                wanted ? own_line + ahead * step : from, wanted);
    }
}

/* Waits for a copy behind which STAGES - 1 have begun. */
template <int STAGES> SB_CUDA_FUNCTION void wait_for_chunk() {
    SB_CUDA_COPIES_WAIT(STAGES - 1);
    SB_CUDA_BARRIER();
}

/* Behind the widths of heads there are zeros in shared memory, and a step of zeros leaves a chain as it is. So a device goes through
 * them, with nothing to decide, and fetches go ahead of products. The host, whose steps are long, leaves them out. */
SB_CUDA_FUNCTION bool leaves_out(int begin, int width) {
#if defined(__CUDACC__)
    return false;
#else
    return begin >= width;
#endif
}

/* ---- the first product ---- */

/* A left factor of 16 rows from `line` on, and of 16 elements, out of shared memory: the queries of a warp, and its weights. */
template <int WIDTH>
SB_CUDA_FUNCTION void fetch_left(const sb_cuda_eight *lines, int line, int sixteen, uint32_t *left) {
    const int lane = (int)(threadIdx.x % 32);
    sb_cuda_fetch_matrices<false>(
        left, lines + piece_place<WIDTH>(line + lane / 8 % 2 * 8 + lane % 8, (sixteen * 2) ^ (lane / 16)));
}

/* The warp's rows of the queries. */
template <int WIDTH>
SB_CUDA_FUNCTION void fetch_queries(const sb_cuda_eight *query_lines, int line, uint32_t (*queries)[4]) {
    SB_CUDA_UNROLL
    for (int k = 0; k < WIDTH / 16; k++)
        fetch_left<WIDTH>(query_lines, line, k, queries[k]);
}

/* The scores of the groups of a chunk, the first of which begins at `line`, rounded. */
template <int HALF, int WIDTH, int COUNT, int SPACING>
SB_CUDA_FUNCTION void multiply_keys(const uint32_t (*queries)[4], const sb_cuda_eight *keys, int line, int width,
                                    uint32_t (*scores)[2]) {
    const int lane = (int)(threadIdx.x % 32);
    SB_CUDA_UNROLL
    for (int pair = 0; pair < COUNT / 2; pair++) {
        float sums[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
        SB_CUDA_UNROLL
        for (int k = 0; k < WIDTH / 16; k++) {
            uint32_t fetched[4];
            if (leaves_out(k * 16, width))
                continue;
            sb_cuda_fetch_matrices<false>(fetched,
                                          keys + piece_place<WIDTH>(line + (pair * 2 + lane / 16) * SPACING + lane % 8,
                                                                    (k * 2) ^ (lane / 8 % 2)));
            sb_cuda_multiply_matrices<HALF>(sums[0], queries[k], fetched);
            sb_cuda_multiply_matrices<HALF>(sums[1], queries[k], fetched + 2);
        }
        SB_CUDA_UNROLL
        for (int i = 0; i < 2; i++) {
            scores[pair * 2 + i][0] = sb_cuda_round_pair<HALF>(sums[i][0], sums[i][1]);
            scores[pair * 2 + i][1] = sb_cuda_round_pair<HALF>(sums[i][2], sums[i][3]);
        }
    }
}

/* ---- the nodes between ---- */

template <int HALF> SB_CUDA_FUNCTION float widen(uint16_t half) {
    float low, high;
    sb_cuda_widen_pair<HALF>(half, &low, &high);
    return low;
}

/* A power of two whose reciprocal is normal too: then a quotient is a product, with the same one rounding. */
template <int HALF> SB_CUDA_FUNCTION bool is_power_of_two(uint16_t half) {
    const int fraction_bits = HALF == SB_CUDA_F16 ? 10 : 7, most = HALF == SB_CUDA_F16 ? 29 : 253;
    const int exponent = (half & 0x7fff) >> fraction_bits;
    return (half & ((1 << fraction_bits) - 1)) == 0 && exponent >= 1 && exponent <= most;
}

template <int HALF, int COUNT> SB_CUDA_FUNCTION void multiply_scores(uint32_t (*scores)[2], uint16_t number) {
    const uint32_t by = number * UINT32_C(0x10001);
    SB_CUDA_UNROLL
    for (int n = 0; n < COUNT; n++) {
        scores[n][0] = sb_cuda_multiply_pair<HALF>(scores[n][0], by);
        scores[n][1] = sb_cuda_multiply_pair<HALF>(scores[n][1], by);
    }
}

template <int HALF, int COUNT> SB_CUDA_FUNCTION void divide_scores(uint32_t (*scores)[2], uint16_t number) {
    if (is_power_of_two<HALF>(number)) {
        const float inverse = sb_div_f32(1.0f, widen<HALF>(number));
        multiply_scores<HALF, COUNT>(scores, (uint16_t)sb_cuda_round_pair<HALF>(inverse, inverse));
        return;
    }
    const float by = widen<HALF>(number);
    SB_CUDA_UNROLL
    for (int n = 0; n < COUNT * 2; n++) {
        float low, high;
        sb_cuda_widen_pair<HALF>(scores[n / 2][n % 2], &low, &high);
        scores[n / 2][n % 2] = sb_cuda_round_pair<HALF>(sb_div_f32(low, by), sb_div_f32(high, by));
    }
}

/* The addends of a row, zeros behind the last key. All are loaded before the first is needed. */
template <int COUNT, int SPACING>
SB_CUDA_FUNCTION void load_addends(const uint16_t *row, int first_key, int keys, int64_t step, bool whole,
                                   uint32_t *pairs) {
    const int own = first_key + (int)(threadIdx.x % 4) * 2;
    if (whole) { /* where there is a key, so is the next one: an even number of them */
        SB_CUDA_UNROLL
        for (int n = 0; n < COUNT; n++)
            pairs[n] = own + n * SPACING < keys ? *(const uint32_t *)(const void *)(row + own + n * SPACING) : 0;
        return;
    }
    SB_CUDA_UNROLL
    for (int n = 0; n < COUNT; n++) {
        const int key = own + n * SPACING;
        const uint32_t low = key < keys ? row[key * step] : 0, high = key + 1 < keys ? row[(key + 1) * step] : 0;
        pairs[n] = low | high << 16;
    }
}

template <int HALF, int COUNT, int SPACING>
SB_CUDA_FUNCTION void add_to_scores(uint32_t (*scores)[2], const uint16_t *data, int64_t line, int64_t beside,
                                    int64_t first_row, int64_t rows, int first_key, int keys) {
    const int lane = (int)(threadIdx.x % 32);
    const int64_t last = rows - 1, row = first_row + lane / 4;
    const bool whole = beside == 1 && keys % 2 == 0 && line % 2 == 0 && (uintptr_t)data % 4 == 0;
    uint32_t pairs[COUNT];
    SB_CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        const int64_t own = row + 8 * r < last ? row + 8 * r : last;
        if (r == 0 || line != 0)
            load_addends<COUNT, SPACING>(data + own * line, first_key, keys, beside, whole, pairs);
        SB_CUDA_UNROLL
        for (int n = 0; n < COUNT; n++)
            scores[n][r] = sb_cuda_add_pair<HALF>(scores[n][r], pairs[n]);
    }
}

template <int HALF, int COUNT, int SPACING>
SB_CUDA_FUNCTION void take_steps(const sb_cuda_attention_nodes *p, const attention_place *at, uint32_t (*scores)[2],
                                 int64_t first_row, int first_key, int keys) {
    SB_CUDA_KEEP_LOOP
    for (int s = 0; s < p->step_count; s++) {
        const sb_cuda_attention_step *step = &p->steps[s];
        const uint16_t *data = at->operands[SB_CUDA_ATTENTION_STEPS + s];
        if (step->operation == SB_ATTENTION_ADD)
            add_to_scores<HALF, COUNT, SPACING>(scores, data, p->operands[SB_CUDA_ATTENTION_STEPS + s].line_step,
                                                step->key_step, first_row, p->rows, first_key, keys);
        else if (step->operation == SB_ATTENTION_MULTIPLY)
            multiply_scores<HALF, COUNT>(scores, *data);
        else
            divide_scores<HALF, COUNT>(scores, *data);
    }
}

/* Scores of keys behind the last are -inf. */
template <int HALF, int COUNT, int SPACING>
SB_CUDA_FUNCTION void end_scores(uint32_t (*scores)[2], int first_key, int keys) {
    const uint32_t none = HALF == SB_CUDA_F16 ? 0xfc00u : 0xff80u;
    if (keys - first_key >= (COUNT - 1) * SPACING + 8)
        return;
    SB_CUDA_UNROLL
    for (int n = 0; n < COUNT; n++) {
        const int key = first_key + n * SPACING + (int)(threadIdx.x % 4) * 2;
        SB_CUDA_UNROLL
        for (int r = 0; r < 2; r++) {
            const uint32_t low = key < keys ? scores[n][r] & 0xffffu : none;
            const uint32_t high = key + 1 < keys ? scores[n][r] & 0xffff0000u : none << 16;
            scores[n][r] = low | high;
        }
    }
}

/* ---- softmax ---- */

/* The higher ones of pairs of a row's scores. */
template <int HALF, int COUNT> SB_CUDA_FUNCTION uint32_t highest_pair(const uint32_t (*scores)[2], int r) {
    uint32_t highest = scores[0][r];
    SB_CUDA_UNROLL
    for (int n = 1; n < COUNT; n++)
        highest = sb_cuda_larger_pair<HALF>(highest, scores[n][r]);
    return highest;
}

/* The highest scores of the thread's two rows, which four threads have, as a pair of them: of the highest pairs of each. */
template <int HALF> SB_CUDA_FUNCTION uint32_t highest_of_rows(uint32_t first, uint32_t second) {
    uint32_t both = sb_cuda_larger_pair<HALF>((first & 0xffffu) | second << 16, first >> 16 | (second & 0xffff0000u));
    SB_CUDA_UNROLL
    for (int apart = 2; apart > 0; apart /= 2)
        both = sb_cuda_larger_pair<HALF>(both,
                                         sb_bits_from_f32(sb_cuda_shuffle_exchange_f32(sb_bits_to_f32(both), apart)));
    return both;
}

template <int HALF> SB_CUDA_FUNCTION void raise_pair(uint32_t pair, float highest, float *powers) {
    float low, high;
    sb_cuda_widen_pair<HALF>(pair, &low, &high);
    powers[0] = sb_exp_nonpositive_f32(row_larger(low - highest, SB_EXP_LEAST_F32));
    powers[1] = sb_exp_nonpositive_f32(row_larger(high - highest, SB_EXP_LEAST_F32));
}

/* The last three folds of a row's sum: of the four threads that have a pair each. */
SB_CUDA_FUNCTION float fold_quad(float low, float high) {
    SB_CUDA_UNROLL
    for (int apart = 2; apart > 0; apart /= 2) {
        low = low + sb_cuda_shuffle_exchange_f32(low, apart);
        high = high + sb_cuda_shuffle_exchange_f32(high, apart);
    }
    return low + high;
}

/* power / sum, rounded once, for a sum of at least 1, or NaN: `inverse` is 1 / sum, rounded. The second quotient is off by at
 * most its last digit, so the third is the nearest (Markstein). Where the rest could be inexact, a quotient is rounded to zero
 * in f16; in bf16 it is computed otherwise. */
template <int HALF> SB_CUDA_FUNCTION float divide_by_sum(float power, float sum, float inverse) {
    float quotient = power * inverse;
    quotient = sb_fma_f32(sb_fma_f32(-quotient, sum, power), inverse, quotient);
    quotient = sb_fma_f32(sb_fma_f32(-quotient, sum, power), inverse, quotient);
    if (HALF == SB_CUDA_BF16 && SB_CUDA_SELDOM(power < 0x1p-100f && power != 0)) /* +0 for a masked key is exact */
        quotient = sb_div_f32(power, sum);
    return quotient;
}

/* ---- the second product ---- */

/* A step of the chains of COLUMNS columns of the values, from the eight of number `first` on: 16 keys from `line` on. */
template <int HALF, int WIDTH, int COLUMNS>
SB_CUDA_FUNCTION void multiply_values(const uint32_t *left, const sb_cuda_eight *values, int line, int first, int width,
                                      float (*sums)[4]) {
    const int lane = (int)(threadIdx.x % 32);
    SB_CUDA_UNROLL
    for (int column = 0; column < COLUMNS / 16; column++) {
        uint32_t fetched[4];
        if (leaves_out(first * 8 + column * 16, width))
            continue;
        sb_cuda_fetch_matrices<true>(
            fetched, values + piece_place<WIDTH>(line + lane / 8 % 2 * 8 + lane % 8, first + column * 2 + lane / 16));
        sb_cuda_multiply_matrices<HALF>(sums[2 * column], left, fetched);
        sb_cuda_multiply_matrices<HALF>(sums[2 * column + 1], left, fetched + 2);
    }
}

template <int COLUMNS> SB_CUDA_FUNCTION void begin_results(float (*sums)[4]) {
    SB_CUDA_UNROLL
    for (int i = 0; i < COLUMNS / 8 * 4; i++)
        sums[i / 4][i % 4] = 0;
}

/* Those columns of the warp's rows. */
template <int HALF, int COLUMNS>
SB_CUDA_FUNCTION void store_rows(const sb_cuda_attention_nodes *p, const attention_place *at, int64_t first_row,
                                 int first, const float (*sums)[4]) {
    const int lane = (int)(threadIdx.x % 32);
    uint16_t *result = (uint16_t *)(uintptr_t)at->operands[SB_CUDA_ATTENTION_RESULT];
    SB_CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        const int64_t row = first_row + lane / 4 + r * 8;
        if (row >= p->rows)
            continue;
        uint32_t *to = (uint32_t *)(void *)(result + row * p->operands[SB_CUDA_ATTENTION_RESULT].line_step);
        SB_CUDA_UNROLL
        for (int n = 0; n < COLUMNS / 8; n++) {
            if ((first + n) * 8 < p->value_width)
                to[(first + n) * 4 + lane % 4] =
                    sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(sums[n][2 * r], sums[n][2 * r + 1]));
        }
    }
}

#endif
