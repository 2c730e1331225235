/* Attention in nodes (attention_nodes.cu) over any number of keys. Scores do not stay: they are computed three times, 64 keys at a
 * time, for the row's highest one, for the sum of the powers, and for the weights, each of which meets its value at once.
 *
 * The sum is in the order of numerics/reduce.h: a thread has 64 of the 256 lanes of each of its two rows, those of four chunks, in
 * registers, adds keys 256 apart to them one after the other, and folds them behind every 4096 keys. A lane without a key is +0,
 * which changes no sum of powers.
 *
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/contraction/attention_nodes.cuh"

/* Chunks whose keys are lanes of their own, and those of a block of the sum. */
#define LANE_CHUNKS (256 / CHUNK)
#define BLOCK_CHUNKS (4096 / CHUNK)
/* Lanes of a row that a thread has, in pairs: 32. */
#define LANE_PAIRS (256 / 8)
/* Groups of a chunk, all of which a warp has. */
#define CHUNK_GROUPS (CHUNK / 8)
#define THREADS SB_CUDA_ATTENTION_LONG_THREADS
#define STAGES SB_CUDA_ATTENTION_LONG_STAGES(WIDTH)

/* A block's work on its rows. */
template <int WIDTH> struct long_rows {
    const sb_cuda_attention_nodes *p;
    const attention_place *at;
    sb_cuda_eight *ring;
    int64_t first_row; /* of the warp */
    int keys, chunks;
    uint32_t queries[WIDTH / 16][4];
};

/* Copy `number`: the keys twice, then keys and values in turns. A batch in any case. */
template <int WIDTH> SB_CUDA_FUNCTION void begin_long_chunk(const long_rows<WIDTH> *rows, int number) {
    sb_cuda_eight *to = rows->ring + number % STAGES * CHUNK_PIECES;
    const sb_cuda_attention_nodes *p = rows->p;
    const int behind = number - 2 * rows->chunks, chunk = behind >= 0 ? behind / 2 : number % rows->chunks;
    if (chunk < rows->chunks && (behind < 0 || behind % 2 == 0))
        copy_lines<WIDTH, THREADS, CHUNK>(to, rows->at->operands[SB_CUDA_ATTENTION_KEYS],
                                          p->operands[SB_CUDA_ATTENTION_KEYS].line_step, chunk * CHUNK, rows->keys,
                                          (int)p->width);
    else if (chunk < rows->chunks)
        copy_lines<WIDTH, THREADS, CHUNK>(to, rows->at->operands[SB_CUDA_ATTENTION_VALUES],
                                          p->operands[SB_CUDA_ATTENTION_VALUES].line_step, chunk * CHUNK, rows->keys,
                                          (int)p->value_width);
    SB_CUDA_COPIES_END();
}

template <int WIDTH> SB_CUDA_FUNCTION void replace_long_chunk(const long_rows<WIDTH> *rows, int number) {
    SB_CUDA_BARRIER();
    begin_long_chunk<WIDTH>(rows, number + STAGES);
}

/* The scores of a chunk of keys, which copy `number` brings, as softmax reads them. */
template <int HALF, int WIDTH>
SB_CUDA_FUNCTION void find_scores(const long_rows<WIDTH> *rows, int number, int chunk, uint32_t (*scores)[2]) {
    wait_for_chunk<STAGES>();
    multiply_keys<HALF, WIDTH, CHUNK_GROUPS, 8>(rows->queries, rows->ring + number % STAGES * CHUNK_PIECES, 0,
                                                (int)rows->p->width, scores);
    replace_long_chunk<WIDTH>(rows, number);
    take_steps<HALF, CHUNK_GROUPS, 8>(rows->p, rows->at, scores, rows->first_row, chunk * CHUNK, rows->keys);
    end_scores<HALF, CHUNK_GROUPS, 8>(scores, chunk * CHUNK, rows->keys);
}

template <int HALF, int WIDTH> SB_CUDA_FUNCTION void find_highest(const long_rows<WIDTH> *rows, float *highest) {
    const uint32_t none = HALF == SB_CUDA_F16 ? 0xfc00fc00u : 0xff80ff80u;
    uint32_t pairs[2] = {none, none};
    SB_CUDA_KEEP_LOOP
    for (int c = 0; c < rows->chunks; c++) {
        uint32_t scores[CHUNK_GROUPS][2];
        find_scores<HALF, WIDTH>(rows, c, c, scores);
        SB_CUDA_UNROLL
        for (int r = 0; r < 2; r++)
            pairs[r] = sb_cuda_larger_pair<HALF>(pairs[r], highest_pair<HALF, CHUNK_GROUPS>(scores, r));
    }
    sb_cuda_widen_pair<HALF>(highest_of_rows<HALF>(pairs[0], pairs[1]), &highest[0], &highest[1]);
}

/* Folds the upper half of so many pairs of lanes onto the lower one. */
template <int PAIRS> SB_CUDA_FUNCTION void fold_half(float (*lanes)[2]) {
    SB_CUDA_UNROLL
    for (int i = 0; i < PAIRS / 2; i++) {
        lanes[i][0] = lanes[i][0] + lanes[i + PAIRS / 2][0];
        lanes[i][1] = lanes[i][1] + lanes[i + PAIRS / 2][1];
    }
}

/* Folds the lanes by halves to their sum, for the four threads that have them. */
SB_CUDA_FUNCTION float fold_lanes(float (*lanes)[2]) {
    fold_half<LANE_PAIRS>(lanes);
    fold_half<LANE_PAIRS / 2>(lanes);
    fold_half<LANE_PAIRS / 4>(lanes);
    fold_half<LANE_PAIRS / 8>(lanes);
    fold_half<LANE_PAIRS / 16>(lanes);
    return fold_quad(lanes[0][0], lanes[0][1]);
}

template <int HALF, int WIDTH>
SB_CUDA_FUNCTION void find_sums(const long_rows<WIDTH> *rows, const float *highest, float *sums) {
    float lanes[2][LANE_PAIRS][2];
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < rows->chunks; first += LANE_CHUNKS) {
        SB_CUDA_UNROLL
        for (int j = 0; j < LANE_CHUNKS; j++) {
            uint32_t scores[CHUNK_GROUPS][2];
            const int c = first + j;
            const bool there = c < rows->chunks, begins = first % BLOCK_CHUNKS == 0;
            if (there)
                find_scores<HALF, WIDTH>(rows, rows->chunks + c, c, scores);
            SB_CUDA_UNROLL
            for (int i = 0; i < CHUNK_GROUPS * 2; i++) {
                float powers[2] = {0, 0}, *lane = lanes[i % 2][j * (CHUNK_GROUPS) + i / 2];
                if (there)
                    raise_pair<HALF>(scores[i / 2][i % 2], highest[i % 2], powers);
                lane[0] = begins ? powers[0] : lane[0] + powers[0];
                lane[1] = begins ? powers[1] : lane[1] + powers[1];
            }
        }
        if (first + LANE_CHUNKS < rows->chunks && (first + LANE_CHUNKS) % BLOCK_CHUNKS != 0)
            continue;
        SB_CUDA_UNROLL
        for (int r = 0; r < 2; r++) {
            const float block = fold_lanes(lanes[r]);
            sums[r] = first < BLOCK_CHUNKS ? block : sums[r] + block;
        }
    }
}

template <int HALF, int WIDTH>
SB_CUDA_FUNCTION void weigh_values(const long_rows<WIDTH> *rows, const float *highest, const float *sums,
                                   float (*results)[4]) {
    const float inverse[2] = {sb_div_f32(1.0f, sums[0]), sb_div_f32(1.0f, sums[1])};
    SB_CUDA_KEEP_LOOP
    for (int c = 0; c < rows->chunks; c++) {
        uint32_t scores[CHUNK_GROUPS][2];
        const int number = 2 * (rows->chunks + c);
        find_scores<HALF, WIDTH>(rows, number, c, scores);
        SB_CUDA_UNROLL
        for (int i = 0; i < CHUNK_GROUPS * 2; i++) {
            const int r = i % 2;
            float powers[2];
            raise_pair<HALF>(scores[i / 2][r], highest[r], powers);
            scores[i / 2][r] = sb_cuda_round_pair<HALF>(divide_by_sum<HALF>(powers[0], sums[r], inverse[r]),
                                                        divide_by_sum<HALF>(powers[1], sums[r], inverse[r]));
        }
        wait_for_chunk<STAGES>();
        SB_CUDA_UNROLL
        for (int k = 0; k < CHUNK / 16; k++) {
            const uint32_t left[4] = {scores[2 * k][0], scores[2 * k][1], scores[2 * k + 1][0], scores[2 * k + 1][1]};
            multiply_values<HALF, WIDTH, WIDTH>(left, rows->ring + (number + 1) % STAGES * CHUNK_PIECES, k * 16, 0,
                                                (int)rows->p->value_width, results);
        }
        replace_long_chunk<WIDTH>(rows, number + 1);
    }
}

template <int HALF, int WIDTH>
SB_CUDA_FUNCTION void attend_long(const sb_cuda_attention_nodes *p, const attention_place *at, sb_cuda_eight *ring,
                                  sb_cuda_eight *query_lines, int keys) {
    long_rows<WIDTH> rows;
    const int64_t left = p->rows - at->row;
    float highest[2], sums[2] = {0, 0}, results[WIDTH / 8][4];
    rows.p = p;
    rows.at = at;
    rows.ring = ring;
    rows.first_row = at->row + (int)(threadIdx.x / 32) * 16;
    rows.keys = keys;
    rows.chunks = (keys + CHUNK - 1) / CHUNK;
    begin_results<WIDTH>(results);
    copy_lines<WIDTH, THREADS, CHUNK>(
        query_lines,
        at->operands[SB_CUDA_ATTENTION_QUERIES] + at->row * p->operands[SB_CUDA_ATTENTION_QUERIES].line_step,
        p->operands[SB_CUDA_ATTENTION_QUERIES].line_step, 0, (int)(left < CHUNK ? left : CHUNK), (int)p->width);
    SB_CUDA_COPIES_END();
    SB_CUDA_COPIES_WAIT(0);
    SB_CUDA_BARRIER();
    fetch_queries<WIDTH>(query_lines, (int)(threadIdx.x / 32) * 16, rows.queries);
    if (rows.chunks != 0) {
        SB_CUDA_KEEP_LOOP
        for (int i = 0; i < STAGES; i++)
            begin_long_chunk<WIDTH>(&rows, i);
        find_highest<HALF, WIDTH>(&rows, highest);
        find_sums<HALF, WIDTH>(&rows, highest, sums);
        weigh_values<HALF, WIDTH>(&rows, highest, sums, results);
    }
    store_rows<HALF, WIDTH>(p, at, rows.first_row, 0, results);
    SB_CUDA_COPIES_WAIT(0);
}

/* A block's shared memory: SB_CUDA_ATTENTION_LONG_SHARED. */
template <int WIDTH> struct long_shared {
    sb_cuda_eight ring[STAGES * CHUNK_PIECES], query_lines[CHUNK_PIECES];
    attention_place at;
};

template <int HALF, int WIDTH> SB_CUDA_FUNCTION void attend_long_all(const sb_cuda_attention_nodes *p) {
    static_assert(sizeof(long_shared<WIDTH>) == SB_CUDA_ATTENTION_LONG_SHARED(WIDTH), "what the launch asks for");
    SB_CUDA_DYNAMIC_SHARED(memory);
    long_shared<WIDTH> *const shared = (long_shared<WIDTH> *)(void *)memory;
    const int keys = (int)sb_cuda_used(p->used_keys, p->key_count);
    const int64_t used_rows = sb_cuda_used(p->used_rows, p->rows);
    find_place(p, p->first_tile + blockIdx.x, &shared->at);
    if (shared->at.row < used_rows)
        attend_long<HALF, WIDTH>(p, &shared->at, shared->ring, shared->query_lines, keys);
}

#define KERNEL(width, suffix, HALF)                                                                                    \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention_nodes_long_##width##_##suffix, sb_cuda_attention_nodes, p,          \
                                 SB_CUDA_ATTENTION_LONG_THREADS, 2) {                                                  \
        attend_long_all<HALF, width>(p);                                                                               \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
KERNEL(64, f16, SB_CUDA_F16)
KERNEL(128, f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
KERNEL(64, bf16, SB_CUDA_BF16)
KERNEL(128, bf16, SB_CUDA_BF16)
#endif
