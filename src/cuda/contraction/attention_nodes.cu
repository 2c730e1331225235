/* Attention as a model's nodes write it, in one kernel with the rounding of each node: scores = Q · K, a chain over the head's
 * width, rounded; scores · number, rounded; scores + mask, rounded; Softmax of a row in f32, rounded; weights · V, a chain
 * over all keys, rounded. A row's scores stay in the registers of four threads, as the pairs of 16 bits that they are between
 * nodes, and are the left factor of the second product where they lie.
 *
 * A warp has 16 rows. Keys, and then values, come 64 lines at a time into a ring in shared memory. Keys behind the last one
 * have scores of -inf, of which softmax makes zeros, and values of zero. Where that is not so, the row has a NaN anyway, and
 * so is NaN: exp(-inf - m) is NaN if m is, or if all scores are -inf.
 *
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/common/index.cuh"
#include "cuda/contraction/attention_nodes_parameters.h"
#include "cuda/contraction/warp_products.cuh"
#include "cuda/rows/row_vectors.cuh"
#include "numerics/elementary.h"

/* Lines that are fetched together. */
#define CHUNK 64
#define STAGES (WIDTH == 64 ? 4 : 2)
#define PIECES (WIDTH / 8) /* of 16 bytes in a line */
#define CHUNK_PIECES (CHUNK * PIECES)
/* Scores of a row that a thread holds are two of each group of eight. */
#define GROUPS (KEYS / 8)
/* With more keys there are no registers for f32 of all powers: they are computed a second time for the quotients. */
#define KEEPS_POWERS (KEYS <= 128)

/* Where a block's rows are. */
typedef struct attention_place {
    int64_t row; /* the first */
    const uint16_t *queries, *keys, *values, *steps[SB_ATTENTION_NODE_STEPS];
    uint16_t *result;
} attention_place;

SB_CUDA_FUNCTION attention_place find_place(const sb_cuda_attention_nodes *p, int64_t index) {
    attention_place at;
    int64_t rest = index;
    at.row = sb_cuda_take(&rest, p->row_tiles) * SB_CUDA_ATTENTION_ROWS;
    at.queries = p->queries.data;
    at.keys = p->keys.data;
    at.values = p->values.data;
    at.result = (uint16_t *)(uintptr_t)p->result.data;
    SB_CUDA_UNROLL
    for (int s = 0; s < SB_ATTENTION_NODE_STEPS; s++)
        at.steps[s] = p->steps[s].operand.data;
    SB_CUDA_KEEP_LOOP
    for (int d = p->rank - 1; d >= 0; d--) {
        const int64_t number = sb_cuda_take(&rest, p->dims[d]);
        at.queries += number * p->queries.steps[d];
        at.keys += number * p->keys.steps[d];
        at.values += number * p->values.steps[d];
        at.result += number * p->result.steps[d];
        SB_CUDA_UNROLL
        for (int s = 0; s < SB_ATTENTION_NODE_STEPS; s++)
            at.steps[s] += number * p->steps[s].operand.steps[d];
    }
    return at;
}

/* ---- shared memory ---- */

/* The place of eight elements of a line; those of eight lines, which are fetched at once, are in different banks. */
template <int WIDTH> SB_CUDA_FUNCTION int piece_place(int line, int eight) {
    return line * PIECES + (eight ^ (line & 7));
}

/* Begins to copy 64 lines from `first` on; lines behind `lines`, and elements behind `width`, are zeros. */
template <int WIDTH>
SB_CUDA_FUNCTION void copy_lines(sb_cuda_eight *to, const uint16_t *from, int64_t step, int first, int lines,
                                 int width) {
    SB_CUDA_UNROLL
    for (int i = 0; i < CHUNK_PIECES / SB_CUDA_ATTENTION_THREADS; i++) {
        const int piece = (int)threadIdx.x + i * SB_CUDA_ATTENTION_THREADS, line = piece / PIECES,
                  eight = piece % PIECES;
        const bool wanted = first + line < lines && eight * 8 < width;
        sb_cuda_copy_16_or_zero(to + piece_place<WIDTH>(line, eight),
                                from + (wanted ? (first + line) * step + eight * 8 : 0), wanted);
    }
}

/* Copy `number`: the keys' chunks, then those of the values. A batch in any case. */
template <int WIDTH>
SB_CUDA_FUNCTION void begin_chunk(const sb_cuda_attention_nodes *p, const attention_place *at, sb_cuda_eight *ring,
                                  int number, int chunks, int keys) {
    sb_cuda_eight *to = ring + number % STAGES * CHUNK_PIECES;
    if (number < chunks)
        copy_lines<WIDTH>(to, at->keys, p->keys.line_step, number * CHUNK, keys, (int)p->width);
    else if (number < 2 * chunks)
        copy_lines<WIDTH>(to, at->values, p->values.line_step, (number - chunks) * CHUNK, keys, (int)p->value_width);
    SB_CUDA_COPIES_END();
}

/* Waits for that copy: STAGES - 1 have begun behind it. */
template <int WIDTH> SB_CUDA_FUNCTION void wait_for_chunk() {
    SB_CUDA_COPIES_WAIT(STAGES - 1);
    SB_CUDA_BARRIER();
}

/* Puts another in the place of chunk `number`, which nobody needs any more. */
template <int WIDTH>
SB_CUDA_FUNCTION void replace_chunk(const sb_cuda_attention_nodes *p, const attention_place *at, sb_cuda_eight *ring,
                                    int number, int chunks, int keys) {
    if (number + STAGES < 2 * chunks)
        SB_CUDA_BARRIER();
    begin_chunk<WIDTH>(p, at, ring, number + STAGES, chunks, keys);
}

/* ---- the first product ---- */

/* The scores of 64 keys, rounded: `scores` of groups of eight, [0] of row lane / 4, [1] of the one 8 further on. */
template <int HALF, int WIDTH>
SB_CUDA_FUNCTION void multiply_keys(const uint32_t (*queries)[4], const sb_cuda_eight *keys, int width,
                                    uint32_t (*scores)[2]) {
    const int lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    for (int pair = 0; pair < CHUNK / 16; pair++) {
        float sums[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
        SB_CUDA_UNROLL
        for (int k = 0; k < WIDTH / 16; k++) {
            uint32_t fetched[4];
            if (k * 16 >= width)
                continue;
            sb_cuda_fetch_matrices<false>(
                fetched, keys + piece_place<WIDTH>(pair * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
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

/* Operations on pairs of 16 bits, rounded once. Of f16 a device has instructions for them: a product is exact in f32, and a
 * sum that is rounded to f32 before it is rounded to f16 is the same, since f32 has more than twice as many digits and
 * two. */
template <int HALF> SB_CUDA_FUNCTION uint32_t multiply_pair(uint32_t pair, uint32_t by) {
#if defined(__CUDA_ARCH__)
    if (HALF == SB_CUDA_F16) {
        uint32_t product;
        asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(pair), "r"(by));
        return product;
    }
#endif
    float low, high, by_low, by_high;
    sb_cuda_widen_pair<HALF>(pair, &low, &high);
    sb_cuda_widen_pair<HALF>(by, &by_low, &by_high);
    return sb_cuda_round_pair<HALF>(low * by_low, high * by_high);
}

template <int HALF> SB_CUDA_FUNCTION uint32_t add_pair(uint32_t pair, uint32_t addend) {
#if defined(__CUDA_ARCH__)
    if (HALF == SB_CUDA_F16) {
        uint32_t sum;
        asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(pair), "r"(addend));
        return sum;
    }
#endif
    float low, high, more_low, more_high;
    sb_cuda_widen_pair<HALF>(pair, &low, &high);
    sb_cuda_widen_pair<HALF>(addend, &more_low, &more_high);
    return sb_cuda_round_pair<HALF>(low + more_low, high + more_high);
}

template <int HALF> SB_CUDA_FUNCTION uint32_t larger_pair(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    uint32_t larger;
    if (HALF == SB_CUDA_F16)
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    else
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
#else
    float low[2], high[2];
    sb_cuda_widen_pair<HALF>(a, &low[0], &high[0]);
    sb_cuda_widen_pair<HALF>(b, &low[1], &high[1]);
    return sb_cuda_round_pair<HALF>(row_larger(low[0], low[1]), row_larger(high[0], high[1]));
#endif
}

/* A power of two whose reciprocal is normal too: then a quotient is a product, with the same one rounding. */
template <int HALF> SB_CUDA_FUNCTION bool is_power_of_two(uint16_t half) {
    const int fraction_bits = HALF == SB_CUDA_F16 ? 10 : 7, most = HALF == SB_CUDA_F16 ? 29 : 253;
    const int exponent = (half & 0x7fff) >> fraction_bits;
    return (half & ((1 << fraction_bits) - 1)) == 0 && exponent >= 1 && exponent <= most;
}

template <int HALF, int KEYS> SB_CUDA_FUNCTION void multiply_scores(uint32_t (*scores)[2], uint16_t number) {
    const uint32_t by = number * UINT32_C(0x10001);
    SB_CUDA_UNROLL
    for (int n = 0; n < GROUPS; n++) {
        scores[n][0] = multiply_pair<HALF>(scores[n][0], by);
        scores[n][1] = multiply_pair<HALF>(scores[n][1], by);
    }
}

template <int HALF, int KEYS> SB_CUDA_FUNCTION void divide_scores(uint32_t (*scores)[2], uint16_t number) {
    if (is_power_of_two<HALF>(number)) {
        const float inverse = sb_div_f32(1.0f, widen<HALF>(number));
        multiply_scores<HALF, KEYS>(scores, (uint16_t)sb_cuda_round_pair<HALF>(inverse, inverse));
        return;
    }
    const float by = widen<HALF>(number);
    SB_CUDA_UNROLL
    for (int n = 0; n < GROUPS * 2; n++) {
        float low, high;
        sb_cuda_widen_pair<HALF>(scores[n / 2][n % 2], &low, &high);
        scores[n / 2][n % 2] = sb_cuda_round_pair<HALF>(sb_div_f32(low, by), sb_div_f32(high, by));
    }
}

/* Two neighbours of an addend, zeros behind the last key. */
SB_CUDA_FUNCTION uint32_t load_pair(const uint16_t *row, int key, int keys, int64_t step, bool whole) {
    if (whole && key < keys) /* and so is the next one: an even number, or room for it */
        return *(const uint32_t *)(const void *)(row + key);
    const uint32_t low = key < keys ? row[key * step] : 0, high = key + 1 < keys ? row[(key + 1) * step] : 0;
    return low | high << 16;
}

template <int HALF, int KEYS>
SB_CUDA_FUNCTION void add_to_scores(uint32_t (*scores)[2], const sb_cuda_attention_step *step, const uint16_t *data,
                                    int64_t first_row, int64_t rows, int keys) {
    const int lane = (int)threadIdx.x % 32;
    const int64_t last = rows - 1, row = first_row + lane / 4, line = step->operand.line_step, beside = step->key_step;
    const uint16_t *upper = data + (row < last ? row : last) * line;
    const uint16_t *lower = data + (row + 8 < last ? row + 8 : last) * line;
    const bool whole = beside == 1 && keys % 2 == 0 && line % 2 == 0 && (uintptr_t)data % 4 == 0;
    SB_CUDA_UNROLL
    for (int n = 0; n < GROUPS; n++) {
        const int key = n * 8 + lane % 4 * 2;
        const uint32_t pair = load_pair(upper, key, keys, beside, whole);
        const uint32_t other = line != 0 ? load_pair(lower, key, keys, beside, whole) : pair;
        scores[n][0] = add_pair<HALF>(scores[n][0], pair);
        scores[n][1] = add_pair<HALF>(scores[n][1], other);
    }
}

template <int HALF, int KEYS>
SB_CUDA_FUNCTION void take_steps(const sb_cuda_attention_nodes *p, const attention_place *at, uint32_t (*scores)[2],
                                 int64_t first_row, int keys) {
    SB_CUDA_KEEP_LOOP
    for (int s = 0; s < p->step_count; s++) {
        const sb_cuda_attention_step *step = &p->steps[s];
        const uint16_t *data = at->steps[0];
        SB_CUDA_UNROLL
        for (int i = 1; i < SB_ATTENTION_NODE_STEPS; i++)
            data = i == s ? at->steps[i] : data;
        if (step->operation == SB_ATTENTION_ADD)
            add_to_scores<HALF, KEYS>(scores, step, data, first_row, p->rows, keys);
        else if (step->operation == SB_ATTENTION_MULTIPLY)
            multiply_scores<HALF, KEYS>(scores, *data);
        else
            divide_scores<HALF, KEYS>(scores, *data);
    }
}

/* Scores of keys behind the last are -inf. */
template <int HALF, int KEYS> SB_CUDA_FUNCTION void end_scores(uint32_t (*scores)[2], int keys) {
    const uint32_t none = HALF == SB_CUDA_F16 ? 0xfc00u : 0xff80u;
    if (keys == KEYS)
        return;
    SB_CUDA_UNROLL
    for (int n = 0; n < GROUPS; n++) {
        const int key = n * 8 + (int)threadIdx.x % 4 * 2;
        SB_CUDA_UNROLL
        for (int r = 0; r < 2; r++) {
            const uint32_t low = key < keys ? scores[n][r] & 0xffffu : none;
            const uint32_t high = key + 1 < keys ? scores[n][r] & 0xffff0000u : none << 16;
            scores[n][r] = low | high;
        }
    }
}

/* ---- softmax ---- */

/* A row's highest score, for the four threads that have it. */
template <int HALF, int KEYS> SB_CUDA_FUNCTION float find_highest(const uint32_t (*scores)[2], int r) {
    uint32_t highest = scores[0][r];
    SB_CUDA_UNROLL
    for (int n = 1; n < GROUPS; n++)
        highest = larger_pair<HALF>(highest, scores[n][r]);
    float low, high;
    sb_cuda_widen_pair<HALF>(highest, &low, &high);
    float both = row_larger(low, high);
    both = row_larger(both, sb_cuda_shuffle_exchange_f32(both, 2));
    return row_larger(both, sb_cuda_shuffle_exchange_f32(both, 1));
}

template <int HALF> SB_CUDA_FUNCTION void raise_pair(uint32_t pair, float highest, float *powers) {
    float low, high;
    sb_cuda_widen_pair<HALF>(pair, &low, &high);
    powers[0] = sb_exp_f32(low - highest);
    powers[1] = sb_exp_f32(high - highest);
}

/* The bits of `number`, below `count`, a power of two, in reverse. */
SB_CUDA_FUNCTION int reversed(int number, int count) {
    int result = 0;
    SB_CUDA_UNROLL
    for (int bit = 1; bit < count; bit *= 2)
        result = result * 2 + ((number & bit) != 0);
    return result;
}

/* The sum of a row's powers in the order of numerics/reduce.h. Its lanes are the keys, since there are at most 256; folding by
 * halves adds what is half of the keys apart, and so on: groups of eight of one thread, by which the tree is gone through depth
 * first so that few sums are held, and then what is 4, 2 and 1 apart. Lanes without a key are left out, or have a power of +0,
 * which changes no sum of powers. */
template <int HALF, int KEYS>
SB_CUDA_FUNCTION float sum_powers(const uint32_t (*scores)[2], int r, float highest, float (*powers)[2]) {
    float held[6][2];
    SB_CUDA_UNROLL
    for (int i = 0; i < GROUPS; i++) {
        const int n = reversed(i, GROUPS);
        float pair[2];
        raise_pair<HALF>(scores[n][r], highest, pair);
        if (KEEPS_POWERS) {
            powers[n][0] = pair[0];
            powers[n][1] = pair[1];
        }
        int level = 0;
        SB_CUDA_UNROLL
        for (int bit = 1; (i & bit) != 0; bit *= 2, level++) {
            pair[0] = held[level][0] + pair[0];
            pair[1] = held[level][1] + pair[1];
        }
        held[level][0] = pair[0];
        held[level][1] = pair[1];
    }
    const int top = GROUPS == 16 ? 4 : 5;
    float *lanes = held[top];
    SB_CUDA_UNROLL
    for (int apart = 2; apart > 0; apart /= 2) {
        lanes[0] = lanes[0] + sb_cuda_shuffle_exchange_f32(lanes[0], apart);
        lanes[1] = lanes[1] + sb_cuda_shuffle_exchange_f32(lanes[1], apart);
    }
    return lanes[0] + lanes[1];
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

template <int HALF, int KEYS> SB_CUDA_FUNCTION void weigh(uint32_t (*scores)[2], int r) {
    float powers[KEEPS_POWERS ? GROUPS : 1][2];
    const float highest = find_highest<HALF, KEYS>(scores, r);
    const float sum = sum_powers<HALF, KEYS>(scores, r, highest, powers), inverse = sb_div_f32(1.0f, sum);
    SB_CUDA_UNROLL
    for (int n = 0; n < GROUPS; n++) {
        float pair[2];
        if (KEEPS_POWERS) {
            pair[0] = powers[n][0];
            pair[1] = powers[n][1];
        } else {
            raise_pair<HALF>(scores[n][r], highest, pair);
        }
        scores[n][r] = sb_cuda_round_pair<HALF>(divide_by_sum<HALF>(pair[0], sum, inverse),
                                                divide_by_sum<HALF>(pair[1], sum, inverse));
    }
}

/* ---- the second product ---- */

template <int HALF, int WIDTH>
SB_CUDA_FUNCTION void multiply_values(const uint32_t (*weights)[2], const sb_cuda_eight *values, int width,
                                      float (*sums)[4]) {
    const int lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    for (int k = 0; k < CHUNK / 16; k++) {
        const uint32_t left[4] = {weights[2 * k][0], weights[2 * k][1], weights[2 * k + 1][0], weights[2 * k + 1][1]};
        SB_CUDA_UNROLL
        for (int column = 0; column < WIDTH / 16; column++) {
            uint32_t fetched[4];
            if (column * 16 >= width)
                continue;
            sb_cuda_fetch_matrices<true>(
                fetched, values + piece_place<WIDTH>(k * 16 + lane / 8 % 2 * 8 + lane % 8, column * 2 + lane / 16));
            sb_cuda_multiply_matrices<HALF>(sums[2 * column], left, fetched);
            sb_cuda_multiply_matrices<HALF>(sums[2 * column + 1], left, fetched + 2);
        }
    }
}

template <int HALF, int WIDTH>
SB_CUDA_FUNCTION void store_rows(const sb_cuda_attention_nodes *p, uint16_t *result, int64_t first_row,
                                 const float (*sums)[4]) {
    const int lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        const int64_t row = first_row + lane / 4 + r * 8;
        if (row >= p->rows)
            continue;
        uint32_t *to = (uint32_t *)(void *)(result + row * p->result.line_step);
        SB_CUDA_UNROLL
        for (int n = 0; n < WIDTH / 8; n++) {
            if (n * 8 < p->value_width)
                to[n * 4 + lane % 4] =
                    sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(sums[n][2 * r], sums[n][2 * r + 1]));
        }
    }
}

/* ---- all of it ---- */

template <int HALF, int KEYS, int WIDTH>
SB_CUDA_FUNCTION void attend(const sb_cuda_attention_nodes *p, const attention_place *at, sb_cuda_eight *ring,
                             sb_cuda_eight *query_lines, int keys) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, chunks = (keys + CHUNK - 1) / CHUNK;
    const int64_t first_row = at->row + warp * 16;
    const int rows = (int)(p->rows - at->row < CHUNK ? p->rows - at->row : CHUNK);
    uint32_t queries[WIDTH / 16][4], scores[GROUPS][2];
    copy_lines<WIDTH>(query_lines, at->queries + at->row * p->queries.line_step, p->queries.line_step, 0, rows,
                      (int)p->width);
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < STAGES; i++)
        begin_chunk<WIDTH>(p, at, ring, i, chunks, keys);
    SB_CUDA_UNROLL
    for (int c = 0; c < KEYS / CHUNK; c++) {
        if (c >= chunks) {
            SB_CUDA_UNROLL
            for (int n = 0; n < CHUNK / 8; n++)
                scores[c * (CHUNK / 8) + n][0] = scores[c * (CHUNK / 8) + n][1] = 0;
            continue;
        }
        wait_for_chunk<WIDTH>();
        if (c == 0) {
            SB_CUDA_UNROLL
            for (int k = 0; k < WIDTH / 16; k++)
                sb_cuda_fetch_matrices<false>(
                    queries[k],
                    query_lines + piece_place<WIDTH>(warp * 16 + lane / 8 % 2 * 8 + lane % 8, k * 2 + lane / 16));
        }
        multiply_keys<HALF, WIDTH>(queries, ring + c % STAGES * CHUNK_PIECES, (int)p->width, scores + c * (CHUNK / 8));
        replace_chunk<WIDTH>(p, at, ring, c, chunks, keys);
    }
    take_steps<HALF, KEYS>(p, at, scores, first_row, keys);
    end_scores<HALF, KEYS>(scores, keys);
    weigh<HALF, KEYS>(scores, 0);
    weigh<HALF, KEYS>(scores, 1);
    float sums[WIDTH / 8][4];
    SB_CUDA_UNROLL
    for (int i = 0; i < WIDTH / 8 * 4; i++)
        sums[i / 4][i % 4] = 0;
    SB_CUDA_UNROLL
    for (int c = 0; c < KEYS / CHUNK; c++) {
        if (c >= chunks)
            continue;
        wait_for_chunk<WIDTH>();
        multiply_values<HALF, WIDTH>(scores + c * (CHUNK / 8), ring + (chunks + c) % STAGES * CHUNK_PIECES,
                                     (int)p->value_width, sums);
        replace_chunk<WIDTH>(p, at, ring, chunks + c, chunks, keys);
    }
    store_rows<HALF, WIDTH>(p, at->result, first_row, sums);
    SB_CUDA_COPIES_WAIT(0);
    SB_CUDA_BARRIER();
}

template <int HALF, int KEYS, int WIDTH> SB_CUDA_FUNCTION void attend_all(const sb_cuda_attention_nodes *p) {
    SB_CUDA_SHARED sb_cuda_eight ring[STAGES * CHUNK_PIECES] __attribute__((aligned(16)));
    SB_CUDA_SHARED sb_cuda_eight query_lines[CHUNK_PIECES] __attribute__((aligned(16)));
    const int keys = (int)sb_cuda_used(p->used_keys, p->key_count);
    const int64_t used_rows = sb_cuda_used(p->used_rows, p->rows);
    SB_CUDA_KEEP_LOOP
    for (int64_t index = blockIdx.x; index < p->tiles; index += gridDim.x) {
        const attention_place at = find_place(p, index);
        if (at.row < used_rows)
            attend<HALF, KEYS, WIDTH>(p, &at, ring, query_lines, keys);
    }
}

#define KERNEL(keys, width, suffix, HALF)                                                                              \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention_nodes_##keys##x##width##_##suffix, sb_cuda_attention_nodes, p,      \
                                 SB_CUDA_ATTENTION_THREADS, (keys) <= 128 && (width) <= 64 ? 3 : 2) {                  \
        attend_all<HALF, keys, width>(p);                                                                              \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
SB_CUDA_ATTENTION_SHAPES(KERNEL, f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
SB_CUDA_ATTENTION_SHAPES(KERNEL, bf16, SB_CUDA_BF16)
#endif
