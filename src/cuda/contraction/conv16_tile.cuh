/* Convolutions of f16 and bf16 of any strides, groups, dilations and extents, a tile of positions and outputs for each
 * block.
 *
 * Included by sources that say how large the tile is: TILE_N outputs, of WARPS_M by WARPS_N warps. The chain runs over the
 * kernel positions and at each over the group's channels (numerics.md, section 8), and is cut into groups of 16 from 0, so a
 * group may belong to several kernel positions. A thread has one position of the tile, and fetches half of the 32 k of a
 * step for it: eight channels at once where they lie side by side, else one by one, which positions side by side in
 * memory make whole pieces of. Where these k lie is worked out once for all positions, a step ahead. What a step needs is fetched while the step before is computed.
 *
 * On compute capability 9.0 a group of 16 k is one mma.sync.m16n8k16, which is a step of the chain (numerics/chain.h) there.
 * Elsewhere tensor cores add up in other ways, and threads compute the same elements by the definition. */
#include "cuda/common/box.cuh"
#include "cuda/common/index.cuh"
#include "cuda/common/kernel.cuh"
#include "cuda/contraction/conv16_parameters.h"
#include "cuda/contraction/gemm16_epilogue.cuh"
#include "numerics/chain.h"
#include "numerics/convert.h"

/* Not in PTX, which later generations run. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TENSOR_CORES 1
#else
#define TENSOR_CORES 0
#endif

#define TILE_M 128
#define KSTEP 32
#define THREADS 256
#if WARPS_M * WARPS_N * 32 != THREADS
#error "a block has eight warps"
#endif
/* Pieces of 8 elements of a step. */
#define A_PIECES (TILE_M * KSTEP / 8)
#define B_PIECES (TILE_N * KSTEP / 8)
#define STEP_PIECES (A_PIECES + B_PIECES)
/* Tiles of 16 x 8 of a warp. */
#define MATRICES_M (TILE_M / WARPS_M / 16)
#define MATRICES_N (TILE_N / WARPS_N / 8)
#define SUMS (MATRICES_M * MATRICES_N * 4)
/* Of chains in shared memory, in f32: odd, so that neighbouring positions are in different banks. */
#define PITCH (TILE_N + 1)
#define CHAIN_PIECES ((TILE_M * PITCH + 3) / 4)
#define SHARED_PIECES (CHAIN_PIECES > 2 * STEP_PIECES ? CHAIN_PIECES : 2 * STEP_PIECES)
#define NO_ROW INT64_MIN

#define EACH_AXIS                                                                                                      \
    SB_CUDA_UNROLL                                                                                                     \
    for (int d = 0; d < SB_CUDA_CONV_AXES; d++)

/* ---- from memory to registers ---- */

/* The output position that a thread fetches for. */
typedef struct conv_position {
    const uint16_t *first; /* where tap 0 of channel 0 would lie, which may be outside of the input */
    int start[SB_CUDA_CONV_AXES];
    bool wanted;
} conv_position;

SB_CUDA_FUNCTION conv_position find_position(const sb_cuda_conv16 *p, int64_t group, int64_t row) {
    conv_position at;
    at.wanted = row < p->rows;
    uint32_t sample = sb_cuda_divide(at.wanted ? (uint32_t)row : 0, &p->positions);
    uint32_t rest = (at.wanted ? (uint32_t)row : 0) - sample * p->positions.divisor;
    at.first = p->x + sample * p->x_sample + group * p->x_group;
    SB_CUDA_UNROLL
    for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--) {
        const uint32_t quotient = sb_cuda_divide(rest, &p->out[d]);
        at.start[d] = (int)(rest - quotient * p->out[d].divisor) * p->stride[d] - p->begin[d];
        at.first += at.start[d] * p->x_steps[d];
        rest = quotient;
    }
#if defined(__CUDACC__)
    /* Has it worked out here: the compiler would do so once more for each element. */
    size_t first = __cvta_generic_to_global(at.first);
    asm("" : "+l"(first));
    at.first = (const uint16_t *)__cvta_global_to_generic(first);
#endif
    return at;
}

/* Where the k of a step lie, which is the same for all positions: counted from their tap 0 of channel 0. */
typedef struct step_places {
    int64_t offset[KSTEP];                       /* in x */
    int32_t moved[KSTEP][SB_CUDA_CONV_AXES + 1]; /* along each axis; 16 bytes */
} __attribute__((aligned(16))) step_places;

SB_CUDA_FUNCTION void find_place(const sb_cuda_conv16 *p, int k, int i, step_places *places) {
    uint32_t rest = sb_cuda_divide((uint32_t)k, &p->chain);
    int64_t offset = (k - (int)(rest * p->chain.divisor)) * p->x_channel;
    SB_CUDA_UNROLL
    for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--) {
        const uint32_t quotient = sb_cuda_divide(rest, &p->kernel[d]);
        const int moved = (int)(rest - quotient * p->kernel[d].divisor) * p->dilation[d];
        places->moved[i][d] = moved;
        offset += moved * p->x_steps[d];
        rest = quotient;
    }
    places->offset[i] = offset;
}

/* Whether what a position sees at k `i` of the step is inside of the input, without asking one thing after the other. */
SB_CUDA_FUNCTION bool is_inside(const sb_cuda_conv16 *p, const conv_position *at, const step_places *places, int i) {
    unsigned inside = at->wanted;
    EACH_AXIS inside &= (unsigned)(at->start[d] + places->moved[i][d]) < (unsigned)p->in[d];
    return inside != 0;
}

/* A thread's 16 k of a step, from `first` on, as two pieces of 8; `left` are there, and zeros behind them. */
SB_CUDA_FUNCTION void read_a(const sb_cuda_conv16 *p, const conv_position *at, const step_places *places, int first,
                             int left, sb_gemm16_eight *pieces) {
    const sb_gemm16_eight zeros = {0, 0, 0, 0};
    if (p->eights) {
        SB_CUDA_UNROLL
        for (int i = 0; i < 16; i += 8)
            pieces[i / 8] = (i < left) & is_inside(p, at, places, first + i)
                                ? *(const sb_gemm16_eight *)(const void *)(at->first + places->offset[first + i])
                                : zeros;
        return;
    }
    uint32_t e[16];
    SB_CUDA_UNROLL
    for (int i = 0; i < 16; i++)
        e[i] = (i < left) & is_inside(p, at, places, first + i) ? at->first[places->offset[first + i]] : 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < 16; i += 8) {
        const sb_gemm16_eight all = {e[i] | e[i + 1] << 16, e[i + 2] | e[i + 3] << 16, e[i + 4] | e[i + 5] << 16,
                                     e[i + 6] | e[i + 7] << 16};
        pieces[i / 8] = all;
    }
}

/* Eight k of an output's weights, of which `k` is the first; channels of different taps are side by side, or a multiple of
 * 16. */
SB_CUDA_FUNCTION sb_gemm16_eight read_b(const sb_cuda_conv16 *p, const uint16_t *line, int k) {
    const sb_gemm16_eight zeros = {0, 0, 0, 0};
    if (line == NULL || k >= p->k)
        return zeros;
    const uint32_t tap = sb_cuda_divide((uint32_t)k, &p->chain);
    return *(const sb_gemm16_eight *)(const void *)(line + tap * (p->w.tap - p->channels) + k);
}

/* ---- in shared memory ---- */

/* The place of 8 k of a line: those of neighbouring lines are in different banks. */
SB_CUDA_FUNCTION int place(int line, int eight) {
    return line * (KSTEP / 8) + (eight ^ (line >> 1 & 3));
}

/* Where element `i` of a thread's sums is in the block's tile. */
#define ELEMENT_LINE(i) ((warp_m * MATRICES_M + (i) / 4 / MATRICES_N) * 16 + (i) % 4 / 2 * 8 + lane / 4)
#define ELEMENT_COLUMN(i) ((warp_n * MATRICES_N + (i) / 4 % MATRICES_N) * 8 + lane % 4 * 2 + (i) % 2)

/* ---- a step ---- */

#if TENSOR_CORES
/* Four matrices of 8 x 8, whose rows are the pieces that threads 0 to 7, 8 to 15, … name. */
SB_CUDA_FUNCTION void fetch_matrices(uint32_t *matrices, const sb_gemm16_eight *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row))
                 : "memory");
}

#define MULTIPLY(type, sums, a, b)                                                                                     \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, "                                  \
        "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                                                       \
        : "+f"((sums)[0]), "+f"((sums)[1]), "+f"((sums)[2]), "+f"((sums)[3])                                           \
        : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))

/* A group behind the last is all zeros, which leaves every sum as a step has left it. */
#define COMPUTE(suffix, type)                                                                                          \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int k = 0; k < KSTEP / 8; k += 2) {                                                                       \
            uint32_t a[4], b[MATRICES_N / 2][4];                                                                       \
            SB_CUDA_UNROLL                                                                                             \
            for (int j = 0; j < MATRICES_N / 2; j++)                                                                   \
                fetch_matrices(                                                                                        \
                    b[j], b_tile + place((warp_n * MATRICES_N + j * 2 + lane / 16) * 8 + lane % 8, k + lane / 8 % 2)); \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < MATRICES_M; i++) {                                                                     \
                fetch_matrices(a, a_tile + place((warp_m * MATRICES_M + i) * 16 + lane % 16, k + lane / 16));          \
                SB_CUDA_UNROLL                                                                                         \
                for (int j = 0; j < MATRICES_N; j++)                                                                   \
                    MULTIPLY(type, sums + (i * MATRICES_N + j) * 4, a, b[j / 2] + j % 2 * 2);                          \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#else
/* An element of a line in shared memory. */
SB_CUDA_FUNCTION uint16_t element(const sb_gemm16_eight *tile, int line, int k) {
    const sb_gemm16_eight *eight = &tile[place(line, k / 8)];
    const uint32_t word = k % 8 < 2 ? eight->x : k % 8 < 4 ? eight->y : k % 8 < 6 ? eight->z : eight->w;
    return (uint16_t)(word >> k % 2 * 16);
}

#define COMPUTE(suffix, type)                                                                                          \
    do {                                                                                                               \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int i = 0; i < SUMS; i++) {                                                                               \
            const int line = ELEMENT_LINE(i), column = ELEMENT_COLUMN(i);                                              \
            if (tile.row + line >= p->rows || tile.column + column >= p->columns)                                      \
                continue;                                                                                              \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int k = 0; k < KSTEP && step * KSTEP + k < p->k; k += 16) {                                           \
                uint16_t a[16], b[16];                                                                                 \
                for (int l = 0; l < 16; l++) {                                                                         \
                    a[l] = element(a_tile, line, k + l);                                                               \
                    b[l] = element(b_tile, column, k + l);                                                             \
                }                                                                                                      \
                sums[i] = sb_chain16_step_##suffix(a, b, sums[i]);                                                     \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#endif

/* ---- the kernels ---- */

typedef struct conv_tile {
    int64_t group;
    int row, column; /* the first ones */
} conv_tile;

/* Tiles of the same positions come one after the other, so that the second-level cache has what they read. */
SB_CUDA_FUNCTION conv_tile find_tile(const sb_cuda_conv16 *p, int64_t index) {
    conv_tile tile;
    tile.group = index;
    tile.column = (int)sb_cuda_take(&tile.group, p->column_tiles) * TILE_N;
    tile.row = (int)sb_cuda_take(&tile.group, p->row_tiles) * TILE_M;
    return tile;
}

/* Adds the bias, rounds and stores the tile's chains; rows[i] is where position i of the tile begins in y. Neighbouring
 * threads have neighbouring positions, or outputs where these lie side by side. */
#define END(suffix)                                                                                                    \
    do {                                                                                                               \
        const bool across = p->y_channel == 1;                                                                         \
        const int64_t output = tile.group * p->columns + tile.column;                                                  \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int i = (int)threadIdx.x; i < TILE_M * TILE_N; i += THREADS) {                                            \
            const int line = across ? i / TILE_N : i % TILE_M, column = across ? i % TILE_N : i / TILE_M;              \
            const int64_t row = row_places[line];                                                                      \
            if (row == NO_ROW || tile.column + column >= p->columns)                                                   \
                continue;                                                                                              \
            float value = chains[line * PITCH + column];                                                               \
            if (p->bias)                                                                                               \
                value = value + sb_##suffix##_to_f32(p->bias[(output + column) * p->bias_step]);                       \
            p->y[row + (output + column) * p->y_channel] = sb_##suffix##_from_f32(value);                              \
        }                                                                                                              \
    } while (0)

#define CONVOLUTION(name, suffix, type)                                                                                \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(name, sb_cuda_conv16, p, THREADS, 2) {                                                \
        SB_CUDA_SHARED sb_gemm16_eight shared[SHARED_PIECES];                                                          \
        SB_CUDA_SHARED int64_t row_places[TILE_M];                                                                     \
        SB_CUDA_SHARED step_places places[2];                                                                          \
        float *chains = (float *)(void *)shared;                                                                       \
        const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;                                          \
        const int warp_m = warp / WARPS_N, warp_n = warp % WARPS_N;                                                    \
        const int own_line = (int)threadIdx.x % TILE_M, own_half = (int)threadIdx.x / TILE_M;                          \
        const int steps = (p->k + KSTEP - 1) / KSTEP;                                                                  \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int64_t index = blockIdx.x; index < p->tiles; index += gridDim.x) {                                       \
            const conv_tile tile = find_tile(p, index);                                                                \
            const conv_position at = find_position(p, tile.group, (int64_t)tile.row + own_line);                       \
            const int b_line = (int)threadIdx.x / (KSTEP / 8), b_eight = (int)threadIdx.x % (KSTEP / 8);               \
            const uint16_t *weights = b_line < TILE_N && tile.column + b_line < p->columns                             \
                                          ? p->w.data + (tile.group * p->columns + tile.column + b_line) * p->w.line   \
                                          : NULL;                                                                      \
            if (own_half == 0) {                                                                                       \
                const int64_t row = (int64_t)tile.row + own_line;                                                      \
                const uint32_t sample = sb_cuda_divide(at.wanted ? (uint32_t)row : 0, &p->positions);                  \
                const int64_t position = row - (int64_t)sample * p->positions.divisor;                                 \
                row_places[own_line] = at.wanted ? sample * p->y_sample + position * p->y_position : NO_ROW;           \
            }                                                                                                          \
            float sums[SUMS];                                                                                          \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < SUMS; i++)                                                                             \
                sums[i] = 0.0f;                                                                                        \
            sb_gemm16_eight a_pieces[2], b_piece;                                                                      \
            if (warp == 0 && p->k > 0)                                                                                 \
                find_place(p, lane, lane, &places[0]);                                                                 \
            SB_CUDA_BARRIER();                                                                                         \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int ahead = 0; ahead <= steps; ahead++) {                                                             \
                if (ahead < steps) {                                                                                   \
                    read_a(p, &at, &places[ahead % 2], own_half * 16, p->k - ahead * KSTEP - own_half * 16, a_pieces); \
                    b_piece = read_b(p, weights, ahead * KSTEP + b_eight * 8);                                         \
                }                                                                                                      \
                if (warp == 0)                                                                                         \
                    find_place(p, (ahead + 1) * KSTEP + lane, lane, &places[(ahead + 1) % 2]);                         \
                if (ahead > 0) {                                                                                       \
                    const int step = ahead - 1;                                                                        \
                    const sb_gemm16_eight *a_tile = shared + step % 2 * STEP_PIECES, *b_tile = a_tile + A_PIECES;      \
                    COMPUTE(suffix, type);                                                                             \
                }                                                                                                      \
                if (ahead < steps) {                                                                                   \
                    sb_gemm16_eight *to = shared + ahead % 2 * STEP_PIECES;                                            \
                    to[place(own_line, own_half * 2)] = a_pieces[0];                                                   \
                    to[place(own_line, own_half * 2 + 1)] = a_pieces[1];                                               \
                    if (b_line < TILE_N)                                                                               \
                        to[A_PIECES + place(b_line, b_eight)] = b_piece;                                               \
                }                                                                                                      \
                SB_CUDA_BARRIER();                                                                                     \
            }                                                                                                          \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < SUMS; i++)                                                                             \
                chains[ELEMENT_LINE(i) * PITCH + ELEMENT_COLUMN(i)] = sums[i];                                         \
            SB_CUDA_BARRIER();                                                                                         \
            END(suffix);                                                                                               \
            SB_CUDA_BARRIER();                                                                                         \
        }                                                                                                              \
    }
