/* Attention as a model's nodes write it, in one kernel with the rounding of each node: scores = Q · K, a chain over the head's
 * width, rounded; scores · number, rounded; scores + mask, rounded; Softmax of a row in f32, rounded; weights · V, a chain
 * over all keys, rounded.
 *
 * A team of four warps shares 16 rows. Of the groups of eight keys warp `member` has those whose number is `member` modulo four, so
 * that whatever the order of the row's sum (numerics/reduce.h) adds first, keys 32 and more apart, is in one thread. Their scores stay
 * in registers, as the pairs of 16 bits that they are between nodes. The highest score, the sums of keys 16 and 8 apart, and at last
 * the weights go through shared memory: of the second product, whose chains go over all keys in order, each warp has a quarter of
 * the columns.
 *
 * With more than 512 keys: attention_nodes_long.cu.
 *
 * Keys, and then values, come 64 lines at a time into a ring in shared memory. Keys behind the last one have scores of -inf, of
 * which softmax makes zeros, and values of zero. Where that is not so, the row has a NaN anyway, and so is NaN: exp(-inf - m) is
 * NaN if m is, or if all scores are -inf.
 *
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/contraction/attention_nodes.cuh"

#define TEAM SB_CUDA_ATTENTION_TEAM(ROWS, KEYS)
#define THREADS SB_CUDA_ATTENTION_THREADS(ROWS, KEYS)
#define STAGES 4
/* Groups of eight keys that a warp has, and how many of them a chunk has. */
#define GROUPS (KEYS / 8 / TEAM)
#define CHUNK_GROUPS (CHUNK / 8 / TEAM)
#define SPACING (8 * TEAM)

/* A block's shared memory: SB_CUDA_ATTENTION_SHARED. */
template <int ROWS, int KEYS, int WIDTH> struct sb_attention_shared {
    sb_cuda_eight ring[STAGES * CHUNK_PIECES];
    sb_cuda_eight rows[ROWS * (KEYS > WIDTH ? KEYS : WIDTH) / 8]; /* of queries, then of weights */
    sb_cuda_float4 sums[ROWS / 16][TEAM][32];                     /* of two rows of a thread, a pair each */
    uint32_t highest[ROWS / 16][8][TEAM];                         /* of two rows */
    attention_place at;
};

/* Which part of a block's rows a warp has. */
typedef struct attention_part {
    int lane, member, strip; /* of 16 rows */
} attention_part;

template <int TEAM_WARPS> SB_CUDA_FUNCTION attention_part find_part(void) {
    const unsigned thread = threadIdx.x;
    const attention_part part = {(int)(thread % 32), (int)(thread / 32 % TEAM_WARPS), (int)(thread / 32 / TEAM_WARPS)};
    return part;
}

/* ---- shared memory ---- */

/* Copy `number`: the keys' chunks, then those of the values. A batch in any case. */
template <int ROWS, int KEYS, int WIDTH>
SB_CUDA_FUNCTION void begin_chunk(const sb_cuda_attention_nodes *p, const attention_place *at, sb_cuda_eight *ring,
                                  int number, int chunks, int keys) {
    const bool is_value = number >= chunks;
    if (number < 2 * chunks)
        copy_lines<WIDTH, THREADS, CHUNK>(
            ring + number % STAGES * CHUNK_PIECES,
            is_value ? at->operands[SB_CUDA_ATTENTION_VALUES] : at->operands[SB_CUDA_ATTENTION_KEYS],
            is_value ? p->operands[SB_CUDA_ATTENTION_VALUES].line_step : p->operands[SB_CUDA_ATTENTION_KEYS].line_step,
            (is_value ? number - chunks : number) * CHUNK, keys, (int)(is_value ? p->value_width : p->width));
    SB_CUDA_COPIES_END();
}

/* Whether the ring takes all chunks. Then the chunks behind the last key are there too, with lines of zeros, so that a device has
 * nothing to decide. */
#define RING_TAKES_ALL (2 * KEYS / CHUNK <= STAGES)
template <int KEYS> SB_CUDA_FUNCTION int count_chunks(int keys) {
    return RING_TAKES_ALL ? KEYS / CHUNK : (keys + CHUNK - 1) / CHUNK;
}

/* Begins the copies that the ring takes. */
template <int ROWS, int KEYS, int WIDTH>
SB_CUDA_FUNCTION void begin_chunks(const sb_cuda_attention_nodes *p, const attention_place *at, sb_cuda_eight *ring,
                                   int keys) {
    const int chunks = count_chunks<KEYS>(keys);
    if (RING_TAKES_ALL) {
        SB_CUDA_UNROLL
        for (int i = 0; i < STAGES; i++)
            begin_chunk<ROWS, KEYS, WIDTH>(p, at, ring, i, chunks, keys);
        return;
    }
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < STAGES; i++)
        begin_chunk<ROWS, KEYS, WIDTH>(p, at, ring, i, chunks, keys);
}

/* Puts another in the place of chunk `number`, which nobody needs any more. */
template <int ROWS, int KEYS, int WIDTH>
SB_CUDA_FUNCTION void replace_chunk(const sb_cuda_attention_nodes *p, const attention_place *at, sb_cuda_eight *ring,
                                    int number, int chunks, int keys) {
    if (RING_TAKES_ALL) {
        SB_CUDA_COPIES_END();
        return;
    }
    if (number + STAGES < 2 * chunks)
        SB_CUDA_BARRIER();
    begin_chunk<ROWS, KEYS, WIDTH>(p, at, ring, number + STAGES, chunks, keys);
}

/* ---- softmax ---- */

/* The highest scores of a thread's two rows: of all the team's keys. */
template <int HALF, int COUNT, int MEMBERS>
SB_CUDA_FUNCTION void find_highest(const attention_part *part, const uint32_t (*scores)[2],
                                   uint32_t (*words)[8][MEMBERS], float *highest) {
    uint32_t *own = words[part->strip][part->lane / 4];
    const uint32_t both =
        highest_of_rows<HALF>(highest_pair<HALF, COUNT>(scores, 0), highest_pair<HALF, COUNT>(scores, 1));
    if (part->lane % 4 == 0)
        own[part->member] = both;
    SB_CUDA_BARRIER();
    uint32_t all = own[0];
    SB_CUDA_UNROLL
    for (int i = 1; i < MEMBERS; i++)
        all = sb_cuda_larger_pair<HALF>(all, own[i]);
    sb_cuda_widen_pair<HALF>(all, &highest[0], &highest[1]);
}

/* The bits of `number`, below `count`, a power of two, in reverse. */
SB_CUDA_FUNCTION int reversed(int number, int count) {
    int result = 0;
    SB_CUDA_UNROLL
    for (int bit = 1; bit < count; bit *= 2)
        result = result * 2 + ((number & bit) != 0);
    return result;
}

/* The powers of a row, and their sum as far as a thread has it, in the order of numerics/reduce.h. Its 256 lanes are the keys, and of more
 * keys a lane adds that 256 further on first; folding by halves adds what is 128 apart, and so on, down to 32 here: by this tree, gone through
 * depth first so that few sums are held. Lanes without a key are left out, or have a power of +0, which changes no sum of powers. */
template <int HALF, int COUNT>
SB_CUDA_FUNCTION void sum_powers(const uint32_t (*scores)[2], int r, float highest, float (*powers)[2], float *sum) {
    float held[6][2];
    int level = 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < COUNT; i++) {
        const int n = reversed(i, COUNT);
        raise_pair<HALF>(scores[n][r], highest, powers[n]);
        float pair[2] = {powers[n][0], powers[n][1]};
        level = 0;
        SB_CUDA_UNROLL
        for (int bit = 1; (i & bit) != 0; bit *= 2, level++) {
            pair[0] = held[level][0] + pair[0];
            pair[1] = held[level][1] + pair[1];
        }
        held[level][0] = pair[0];
        held[level][1] = pair[1];
    }
    sum[0] = held[level][0];
    sum[1] = held[level][1];
}

SB_CUDA_FUNCTION sb_cuda_float4 add_parts(sb_cuda_float4 a, sb_cuda_float4 b) {
    const sb_cuda_float4 sum = {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
    return sum;
}

/* The rows' whole sums: of the warps' parts, those half of the team apart first, and then of four threads'. */
template <int MEMBERS>
SB_CUDA_FUNCTION void join_sums(const attention_part *part, float (*own)[2], sb_cuda_float4 (*parts)[MEMBERS][32],
                                float *sums) {
    const sb_cuda_float4 given = {own[0][0], own[0][1], own[1][0], own[1][1]};
    sb_cuda_float4 all[MEMBERS];
    parts[part->strip][part->member][part->lane] = given;
    SB_CUDA_BARRIER();
    SB_CUDA_UNROLL
    for (int i = 0; i < MEMBERS; i++)
        all[i] = parts[part->strip][i][part->lane];
    SB_CUDA_UNROLL
    for (int apart = MEMBERS / 2; apart > 0; apart /= 2) {
        SB_CUDA_UNROLL
        for (int i = 0; i < apart; i++)
            all[i] = add_parts(all[i], all[i + apart]);
    }
    sums[0] = fold_quad(all[0].x, all[0].y);
    sums[1] = fold_quad(all[0].z, all[0].w);
}

/* Makes weights of the scores, and puts them where all of the team find them. */
template <int HALF, int ROWS, int KEYS, int WIDTH>
SB_CUDA_FUNCTION void weigh(const attention_part *part, const uint32_t (*scores)[2],
                            sb_attention_shared<ROWS, KEYS, WIDTH> *shared) {
    float highest[2], powers[2][GROUPS][2], own[2][2], sums[2];
    find_highest<HALF, GROUPS, TEAM>(part, scores, shared->highest, highest);
    SB_CUDA_UNROLL
    for (int r = 0; r < 2; r++)
        sum_powers<HALF, GROUPS>(scores, r, highest[r], powers[r], own[r]);
    join_sums<TEAM>(part, own, shared->sums, sums);
    SB_CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        const float inverse = sb_div_f32(1.0f, sums[r]);
        const int line = part->strip * 16 + part->lane / 4 + 8 * r;
        SB_CUDA_UNROLL
        for (int n = 0; n < GROUPS; n++)
            shared->rows[piece_place<KEYS>(line, n * TEAM + part->member)].pairs[part->lane % 4] =
                sb_cuda_round_pair<HALF>(divide_by_sum<HALF>(powers[r][n][0], sums[r], inverse),
                                         divide_by_sum<HALF>(powers[r][n][1], sums[r], inverse));
    }
}

/* ---- all of it ---- */

/* The scores of the warp's keys, as softmax reads them. */
template <int HALF, int ROWS, int KEYS, int WIDTH>
SB_CUDA_FUNCTION void find_scores(const sb_cuda_attention_nodes *p, const attention_place *at,
                                  const attention_part *part, int keys, uint32_t (*scores)[2],
                                  sb_attention_shared<ROWS, KEYS, WIDTH> *shared) {
    const int chunks = count_chunks<KEYS>(keys);
    uint32_t queries[WIDTH / 16][4];
    SB_CUDA_UNROLL
    for (int c = 0; c < KEYS / CHUNK; c++) {
        uint32_t(*own)[2] = scores + c * CHUNK_GROUPS;
        if (c >= chunks) {
            SB_CUDA_UNROLL
            for (int n = 0; n < CHUNK_GROUPS; n++)
                own[n][0] = own[n][1] = 0;
            continue;
        }
        wait_for_chunk<STAGES>();
        if (c == 0)
            fetch_queries<WIDTH>(shared->rows, part->strip * 16, queries);
        multiply_keys<HALF, WIDTH, CHUNK_GROUPS, SPACING>(queries, shared->ring + c % STAGES * CHUNK_PIECES,
                                                          part->member * 8, (int)p->width, own);
        replace_chunk<ROWS, KEYS, WIDTH>(p, at, shared->ring, c, chunks, keys);
    }
    take_steps<HALF, GROUPS, SPACING>(p, at, scores, at->row + part->strip * 16, part->member * 8, keys);
    end_scores<HALF, GROUPS, SPACING>(scores, part->member * 8, keys);
}

/* The warp's columns of weights · V. */
template <int HALF, int ROWS, int KEYS, int WIDTH>
SB_CUDA_FUNCTION void weigh_values(const sb_cuda_attention_nodes *p, const attention_place *at,
                                   const attention_part *part, int keys, float (*sums)[4],
                                   sb_attention_shared<ROWS, KEYS, WIDTH> *shared) {
    const int chunks = count_chunks<KEYS>(keys);
    begin_results<WIDTH / TEAM>(sums);
    SB_CUDA_UNROLL
    for (int c = 0; c < KEYS / CHUNK; c++) {
        if (c >= chunks || keys == 0) /* no keys: no step, and no weights but NaN */
            continue;
        wait_for_chunk<STAGES>();
        SB_CUDA_UNROLL
        for (int k = 0; k < CHUNK / 16; k++) {
            uint32_t left[4];
            fetch_left<KEYS>(shared->rows, part->strip * 16, c * (CHUNK / 16) + k, left);
            multiply_values<HALF, WIDTH, WIDTH / TEAM>(left, shared->ring + (chunks + c) % STAGES * CHUNK_PIECES,
                                                       k * 16, part->member * (PIECES / TEAM), (int)p->value_width,
                                                       sums);
        }
        replace_chunk<ROWS, KEYS, WIDTH>(p, at, shared->ring, chunks + c, chunks, keys);
    }
}

template <int HALF, int ROWS, int KEYS, int WIDTH>
SB_CUDA_FUNCTION void attend(const sb_cuda_attention_nodes *p, int keys,
                             sb_attention_shared<ROWS, KEYS, WIDTH> *shared) {
    const attention_part part = find_part<TEAM>();
    const attention_place *at = &shared->at;
    const int64_t left = p->rows - at->row;
    uint32_t scores[GROUPS][2];
    float sums[WIDTH / TEAM / 8][4];
    copy_lines<WIDTH, THREADS, ROWS>(
        shared->rows,
        at->operands[SB_CUDA_ATTENTION_QUERIES] + at->row * p->operands[SB_CUDA_ATTENTION_QUERIES].line_step,
        p->operands[SB_CUDA_ATTENTION_QUERIES].line_step, 0, (int)(left < ROWS ? left : ROWS), (int)p->width);
    begin_chunks<ROWS, KEYS, WIDTH>(p, at, shared->ring, keys);
    find_scores<HALF, ROWS, KEYS, WIDTH>(p, at, &part, keys, scores, shared);
    weigh<HALF, ROWS, KEYS, WIDTH>(&part, scores, shared);
    weigh_values<HALF, ROWS, KEYS, WIDTH>(p, at, &part, keys, sums, shared);
    store_rows<HALF, WIDTH / TEAM>(p, at, at->row + part.strip * 16, part.member * (PIECES / TEAM), sums);
    SB_CUDA_COPIES_WAIT(0);
}

template <int HALF, int ROWS, int KEYS, int WIDTH> SB_CUDA_FUNCTION void attend_all(const sb_cuda_attention_nodes *p) {
    typedef sb_attention_shared<ROWS, KEYS, WIDTH> shared_memory;
    static_assert(sizeof(shared_memory) == SB_CUDA_ATTENTION_SHARED(ROWS, KEYS, WIDTH), "what the launch asks for");
    SB_CUDA_DYNAMIC_SHARED(memory);
    shared_memory *const shared = (shared_memory *)(void *)memory;
    const int keys = (int)sb_cuda_used(p->used_keys, p->key_count);
    const int64_t used_rows = sb_cuda_used(p->used_rows, p->rows);
    find_place(p, p->first_tile + blockIdx.x, &shared->at);
    if (shared->at.row < used_rows)
        attend<HALF, ROWS, KEYS, WIDTH>(p, keys, shared);
}

/* Blocks of a multiprocessor: as many as leave a thread 64, 80, 128 or 255 registers. */
#define THREADS_AT_ONCE(rows, keys, width)                                                                             \
    ((keys) > 256 ? 256 : (keys) > 128 || (width) > 64 ? 512 : (rows) == 64 ? 768 : 1024)
#define BLOCKS(rows, keys, width) (THREADS_AT_ONCE(rows, keys, width) / SB_CUDA_ATTENTION_THREADS(rows, keys))
#define KERNEL(rows, keys, width, suffix, HALF)                                                                        \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention_nodes_##rows##x##keys##x##width##_##suffix,                         \
                                 sb_cuda_attention_nodes, p, SB_CUDA_ATTENTION_THREADS(rows, keys),                    \
                                 BLOCKS(rows, keys, width)) {                                                          \
        attend_all<HALF, rows, keys, width>(p);                                                                        \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
SB_CUDA_ATTENTION_SHAPES(KERNEL, f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
SB_CUDA_ATTENTION_SHAPES(KERNEL, bf16, SB_CUDA_BF16)
#endif
