/* Attention as a model's nodes write it, in one kernel with the rounding of each node: scores = Q · K, a chain over the head's
 * width, rounded; scores · number, rounded; scores + mask, rounded; Softmax of a row in f32, rounded; weights · V, a chain
 * over all keys, rounded. A row's scores stay in the registers of four threads, as the pairs of 16 bits that they are between
 * nodes, and are the left factor of the second product where they lie.
 *
 * With more than 256 keys: attention_nodes_long.cu.
 *
 * A warp has 16 rows. Keys, and then values, come 64 lines at a time into a ring in shared memory. Keys behind the last one
 * have scores of -inf, of which softmax makes zeros, and values of zero. Where that is not so, the row has a NaN anyway, and
 * so is NaN: exp(-inf - m) is NaN if m is, or if all scores are -inf.
 *
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/contraction/attention_nodes.cuh"

/* With more keys there are no registers for f32 of all powers: they are computed a second time for the quotients. */
#define KEEPS_POWERS (KEYS <= 128)

/* ---- shared memory ---- */

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

/* Puts another in the place of chunk `number`, which nobody needs any more. */
template <int WIDTH>
SB_CUDA_FUNCTION void replace_chunk(const sb_cuda_attention_nodes *p, const attention_place *at, sb_cuda_eight *ring,
                                    int number, int chunks, int keys) {
    if (number + STAGES < 2 * chunks)
        SB_CUDA_BARRIER();
    begin_chunk<WIDTH>(p, at, ring, number + STAGES, chunks, keys);
}

/* ---- softmax ---- */

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
    return fold_quad(held[top][0], held[top][1]);
}

template <int HALF, int KEYS> SB_CUDA_FUNCTION void weigh(uint32_t (*scores)[2], int r) {
    float powers[KEEPS_POWERS ? GROUPS : 1][2];
    const float highest = highest_of_row<HALF>(highest_pair<HALF, KEYS>(scores, r));
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

/* ---- all of it ---- */

template <int HALF, int KEYS, int WIDTH>
SB_CUDA_FUNCTION void attend(const sb_cuda_attention_nodes *p, const attention_place *at, sb_cuda_eight *ring,
                             sb_cuda_eight *query_lines, int keys) {
    const int warp = (int)threadIdx.x / 32, chunks = (keys + CHUNK - 1) / CHUNK;
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
        if (c == 0)
            fetch_queries<WIDTH>(query_lines, queries);
        multiply_keys<HALF, WIDTH>(queries, ring + c % STAGES * CHUNK_PIECES, (int)p->width, scores + c * (CHUNK / 8));
        replace_chunk<WIDTH>(p, at, ring, c, chunks, keys);
    }
    take_steps<HALF, KEYS>(p, at, scores, first_row, 0, keys);
    end_scores<HALF, KEYS>(scores, 0, keys);
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
