/* Products of f16 and bf16 matrices of any strides, alignments and extents, a tile of C for each block.
 *
 * Included by sources that say how large the tile is: TILE_M, TILE_N (of B's columns), WARPS_M, WARPS_N,
 * STAGES, and BLOCKS of a multiprocessor; and SB_GEMM_FUSED, where the nodes behind the product are computed too. Each has a kernel for each dtype and for each way in which the two
 * operands lie in memory.
 *
 * Operands go to shared memory in pieces of 8 elements that lie side by side in memory if there is such a
 * direction: K-major, or MN-major, from line to line. (A line is a row of A or a column of B.) Pieces that are
 * aligned and complete are copied STAGES - 1 steps of KSTEP ahead, beside the computing; others go through
 * registers one step ahead, if need be element by element. A k behind the last is a zero in both operands: a zero
 * times a NaN beside it would be NaN.
 *
 * On compute capability 9.0 a group of 16 k is one mma.sync.m16n8k16, which is a step of the chain (numerics/chain.h)
 * there. Elsewhere tensor cores add up in other ways, and threads compute the same elements by the definition. */
#include "cuda/common/asynchronous.cuh"
#include "cuda/common/index.cuh"
#include "cuda/common/kernel.cuh"
#include "cuda/contraction/gemm16_epilogue.cuh"
#include "cuda/contraction/gemm16_parameters.h"
#include "numerics/chain.h"

#if defined(SB_GEMM_FUSED)
#include "cuda/contraction/gemm16_general_nodes.cuh"
#define GIVEN sb_gemm16_general_fused
#define GENERAL(given) (&(given)->product)
#define END_TILE(suffix, product, ...)                                                                                 \
    sb_gemm16_end_fused_##suffix(product, &given->program, __VA_ARGS__, (int)threadIdx.x, THREADS)
#else
#define GIVEN sb_gemm16_general
#define GENERAL(given) (given)
#define END_TILE(suffix, product, ...) sb_gemm16_end_tile(product, __VA_ARGS__, (int)threadIdx.x, THREADS)
#endif

/* Not in PTX, which later generations run. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TENSOR_CORES 1
#else
#define TENSOR_CORES 0
#endif

#define KSTEP 32
#define THREADS (WARPS_M * WARPS_N * 32)
/* Pieces of 8 elements of a step: of an operand, and of a thread. */
#define A_PIECES (TILE_M * KSTEP / 8)
#define B_PIECES (TILE_N * KSTEP / 8)
#define OWN_A (A_PIECES / THREADS)
#define OWN_B (B_PIECES / THREADS)
#define MOST_OWN 2
#if OWN_A != 2 || OWN_B != 2
#error "threads must have a piece of each operand in each of the two groups of a step"
#endif
/* Tiles of 16 x 8 of a warp. Those that are 16 rows lower belong to the next warp, so that all warps together hold a
 * strip of C at any time. */
#define MATRICES_M (TILE_M / WARPS_M / 16)
#define MATRICES_N (TILE_N / WARPS_N / 8)
#define STRIP (16 * WARPS_M)
/* Of the strip in shared memory, in f32: threads that store pairs of neighbouring rows meet different banks. */
#define PITCH (TILE_N + 8)
#define STRIP_PIECES (STRIP * PITCH / 4)
#define STEP_PIECES (A_PIECES + B_PIECES)
#define SHARED_PIECES (STRIP_PIECES > STAGES * STEP_PIECES ? STRIP_PIECES : STAGES * STEP_PIECES)

/* Where the block's tile lies. */
typedef struct tile_place {
    int64_t batch, row, column; /* the first row and column of C */
    int64_t a, b;               /* the batch's matrices, in elements */
} tile_place;

/* Blocks that run at the same time share rows of A and columns of B, which the L2 cache then has: tiles are counted
 * down strips of 8 tiles. */
#define STRIP_TILES 8
SB_CUDA_FUNCTION tile_place find_tile(const sb_gemm16_general *p, int64_t index) {
    tile_place at;
    int64_t strip = index;
    int64_t inside = sb_cuda_take(&strip, p->row_tiles * p->column_tiles);
    at.batch = strip;
    strip = inside;
    inside = sb_cuda_take(&strip, STRIP_TILES * p->column_tiles);
    const int64_t first = strip * STRIP_TILES, left = p->row_tiles - first;
    int64_t column = inside;
    at.row = (first + sb_cuda_take(&column, left < STRIP_TILES ? left : STRIP_TILES)) * TILE_M;
    at.column = column * (p->product.gate != SB_GATE_NONE ? TILE_N / 2 : TILE_N);
    int64_t rest = at.batch;
    at.a = at.b = 0;
    SB_CUDA_KEEP_LOOP
    for (int d = p->batches.rank - 1; d >= 0; d--) {
        const int64_t number = sb_cuda_take(&rest, p->batches.dims[d]);
        at.a += number * p->batches.a_steps[d];
        at.b += number * p->batches.b_steps[d];
    }
    return at;
}

/* Whether anybody looks at the tile: those behind the used rows and columns are left out. */
SB_CUDA_FUNCTION bool is_used(const sb_gemm16 *p, const tile_place *at) {
    return at->row < sb_cuda_used(p->used_m, p->m) && at->column < sb_cuda_used(p->used_n, p->n);
}

/* ---- from memory to registers ---- */

/* A thread's pieces of an operand: the same lines in every step. */
typedef struct reader {
    const uint16_t *at[MOST_OWN]; /* in the first step; where there are no lines, of the operand's first ones */
    int lines[MOST_OWN];          /* how many there are: 0 or 1 when K-major, 0 to 8 when MN-major */
} reader;

/* Pieces are counted such that those of neighbouring threads are neighbours in memory: 4 in a line when K-major, or
 * `tile` / 8 in a row of lines. */
SB_CUDA_FUNCTION int piece_line(int piece, bool k_major, int tile) {
    return k_major ? piece / (KSTEP / 8) : piece % (tile / 8) * 8;
}
SB_CUDA_FUNCTION int piece_k(int piece, bool k_major, int tile) {
    return k_major ? piece % (KSTEP / 8) * 8 : piece / (tile / 8);
}

SB_CUDA_FUNCTION reader read_a(const sb_gemm16_general *p, bool k_major, const tile_place *tile) {
    const sb_gemm16_operand *a = &p->product.a;
    reader made;
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN_A; i++) {
        const int piece = (int)threadIdx.x + i * THREADS;
        const int64_t row = tile->row + piece_line(piece, k_major, TILE_M),
                      left = p->product.k > 0 ? p->product.m - row : 0;
        made.lines[i] = left <= 0 ? 0 : k_major ? 1 : left > 8 ? 8 : (int)left;
        made.at[i] = a->data + (p->product.k > 0 ? piece_k(piece, k_major, TILE_M) * a->k_stride : 0) +
                     (left > 0 ? tile->a + row * a->line_stride : 0);
    }
    return made;
}

SB_CUDA_FUNCTION reader read_b(const sb_gemm16_general *p, bool k_major, const tile_place *tile) {
    const sb_gemm16_operand *b = &p->product.b;
    reader made;
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN_B; i++) {
        const int piece = (int)threadIdx.x + i * THREADS, line = piece_line(piece, k_major, TILE_N);
        int64_t left, column = sb_gemm16_b_column(&p->product, tile->column, line / 8 * 8, &left);
        const bool inside = line % 8 < left && p->product.k > 0;
        made.lines[i] = !inside ? 0 : k_major ? 1 : (int)left;
        made.at[i] = b->data + (p->product.k > 0 ? piece_k(piece, k_major, TILE_N) * b->k_stride : 0) +
                     (inside ? tile->b + (column + line % 8) * b->line_stride : 0);
    }
    return made;
}

/* Whether every piece of the tile's operands has all its lines, or none, and can be copied. What stands for lines that
 * are not there does not matter, since only their own sums see it. */
SB_CUDA_FUNCTION bool has_whole_lines(const sb_gemm16_general *p, bool a_k_major, bool b_k_major,
                                      const tile_place *tile) {
    const sb_gemm16 *product = &p->product;
    const int columns = product->gate != SB_GATE_NONE ? TILE_N / 2 : TILE_N;
    const bool a_whole = a_k_major || product->m % 8 == 0 || tile->row + TILE_M <= product->m;
    const bool b_whole = b_k_major || product->n % 8 == 0 || tile->column + columns <= product->n;
    return p->a_width == 8 && a_whole && p->b_width == 8 && b_whole;
}

/* The first `count` of 8 elements `stride` apart, and zeros. */
SB_CUDA_FUNCTION sb_gemm16_eight read_elements(const uint16_t *from, int64_t stride, int count, int width) {
    uint32_t words[4];
    if (count == 8 && width == 8)
        return *(const sb_gemm16_eight *)(const void *)from;
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++) {
        if (count == 8 && width == 2) {
            words[i] = ((const uint32_t *)(const void *)from)[i];
        } else {
            const uint32_t low = 2 * i < count ? from[2 * i * stride] : 0;
            const uint32_t high = 2 * i + 1 < count ? from[(2 * i + 1) * stride] : 0;
            words[i] = low | high << 16;
        }
    }
    sb_gemm16_eight all = {words[0], words[1], words[2], words[3]};
    return all;
}

/* Group `group` of the chains of `depth` k, without those behind the last. */
typedef struct step_group {
    int64_t row;
    int count;
} step_group;

SB_CUDA_FUNCTION step_group find_group(const sb_gemm16 *p, int64_t depth, int64_t group) {
    step_group found;
    const int64_t left = depth - group * 16;
    found.row = group * 16;
    found.count = left < 0 ? 0 : left > 16 ? 16 : (int)left;
    if (p->groups) {
        found.count = 0;
        if (group < p->group_count) {
            found.row = p->groups[group].row;
            found.count = (int)p->groups[group].count;
        }
    }
    return found;
}

/* A piece whose k begin `inside` the step and are in a group of `rows` k from `row` on. */
SB_CUDA_FUNCTION sb_gemm16_eight read_piece(const uint16_t *at, int lines, int inside, int64_t row, int rows,
                                            bool k_major, int64_t k_stride, int width) {
    const int left = rows - inside % 16;
    const int there = left <= 0 ? 0 : left > 8 ? 8 : left;
    const int count = k_major ? (lines != 0 ? there : 0) : (there != 0 ? lines : 0);
    return read_elements(at + (count != 0 ? (row + inside % 16 - inside) * k_stride : 0), k_major ? k_stride : 1, count,
                         width);
}

#define READ(own, pieces, operand, k_major, tile, width)                                                               \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < own; i++) {                                                                                \
            const int inside = piece_k((int)threadIdx.x + i * THREADS, k_major, tile);                                 \
            const int64_t row = inside < 16 ? low_group.row : high_group.row;                                          \
            const int count = inside < 16 ? low_group.count : high_group.count;                                        \
            pieces[i] = read_piece(operand.at[i], operand.lines[i], inside, row, count, k_major,                       \
                                   p->product.operand.k_stride, width);                                                \
        }                                                                                                              \
    } while (0)

/* ---- in shared memory ---- */

/* The place of 8 elements of a line, or of 8 lines of one k: pieces of neighbouring lines, or k, are in different banks
 * when eight of them are fetched at once or put there. */
SB_CUDA_FUNCTION int k_major_place(int line, int eight) {
    return line * (KSTEP / 8) + (eight ^ (line >> 1 & 3));
}
SB_CUDA_FUNCTION int mn_major_place(int k, int eight, int tile) {
    return k * (tile / 8) + (eight ^ (k & 7));
}
SB_CUDA_FUNCTION int place(int line, int k, bool k_major, int tile) {
    return k_major ? k_major_place(line, k / 8) : mn_major_place(k, line / 8, tile);
}

#define STORE(own, pieces, to, k_major, tile)                                                                          \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < own; i++) {                                                                                \
            const int piece = (int)threadIdx.x + i * THREADS;                                                          \
            (to)[place(piece_line(piece, k_major, tile), piece_k(piece, k_major, tile), k_major, tile)] = pieces[i];   \
        }                                                                                                              \
    } while (0)

/* Copies a piece, or zeros where it is not `wanted`; `from` is an address in any case. */
SB_CUDA_FUNCTION void copy_piece(sb_gemm16_eight *to, const uint16_t *from, bool wanted) {
#if defined(__CUDACC__)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(wanted ? 16 : 0)
                 : "memory");
#else
    host_begin_copy(to, wanted ? from : NULL, 16);
#endif
}

/* Step `next` of an operand. Groups of row maps only when MN-major: a thread's piece `i` is in group `i` of the step
 * then, and there or not as a whole. */
#define COPY(own, to, operand, k_major, tile)                                                                          \
    do {                                                                                                               \
        const int64_t k_stride = p->product.operand.k_stride;                                                          \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < own; i++) {                                                                                \
            const int piece = (int)threadIdx.x + i * THREADS;                                                          \
            const bool wanted =                                                                                        \
                !by_rows || piece_k((int)threadIdx.x, k_major, tile) < (i == 0 ? low_group.count : high_group.count);  \
            const int64_t k = by_rows ? (i == 0 ? low_group.row : high_group.row) - i * 16 : next * KSTEP;             \
            copy_piece((to) + place(piece_line(piece, k_major, tile), piece_k(piece, k_major, tile), k_major, tile),   \
                       operand.at[i] + (wanted ? k * k_stride : 0), wanted);                                           \
        }                                                                                                              \
    } while (0)
#define COPY_BOTH(a_k_major, b_k_major)                                                                                \
    do {                                                                                                               \
        if (next < copied) {                                                                                           \
            COPY(OWN_A, shared + put * STEP_PIECES, a, a_k_major, TILE_M);                                             \
            COPY(OWN_B, shared + put * STEP_PIECES + A_PIECES, b, b_k_major, TILE_N);                                  \
            if (by_rows) {                                                                                             \
                low_group = find_group(&p->product, depth, next * 2 + 2);                                              \
                high_group = find_group(&p->product, depth, next * 2 + 3);                                             \
            }                                                                                                          \
        }                                                                                                              \
        SB_CUDA_COPIES_END();                                                                                          \
        put = put + 1 < STAGES ? put + 1 : 0;                                                                          \
        next++;                                                                                                        \
    } while (0)

/* ---- a step ---- */

#if TENSOR_CORES
/* Four matrices of 8 x 8, whose rows are the pieces that threads 0 to 7, 8 to 15, … name;
 * `transpose` transposes each. */
SB_CUDA_FUNCTION void fetch_matrices(uint32_t *matrices, const sb_gemm16_eight *row, bool transpose) {
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    if (transpose)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                     : "r"(address)
                     : "memory");
}

#define MULTIPLY(type, sums, a, b)                                                                                     \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, "                                  \
        "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                                                       \
        : "+f"((sums)[0]), "+f"((sums)[1]), "+f"((sums)[2]), "+f"((sums)[3])                                           \
        : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))

/* The piece that a thread fetches of the first 16 x 16 matrix of its warp: row `row` of 8 x 8, and which of the four in
 * the order in which a multiplication wants them, lines and k by turns. */
SB_CUDA_FUNCTION int fetch_place(int line, int line_eight, int k_eight, int row, bool k_major, int tile) {
    return k_major ? k_major_place(line + line_eight * 8 + row, k_eight)
                   : mn_major_place(k_eight * 8 + row, line / 8 + line_eight, tile);
}
/* The same `lines` lines further, a multiple of 16, and `k` further, 0 or 16. Their bits are not set in the
 * first place's, so that flipping them adds them, whatever the spreading over the banks has flipped below: no
 * address needs a register. */
SB_CUDA_FUNCTION int further(int place, int lines, int k, bool k_major, int tile) {
    return k_major ? (place ^ k / 8) + lines * (KSTEP / 8) : (place ^ lines / 8) + k * (tile / 8);
}

#define FETCH_A(i, a_k_major)                                                                                          \
    fetch_matrices(a[(i) % 2], a_tile + further(a_place, (i)*WARPS_M * 16, k, a_k_major, TILE_M), !a_k_major)
#define FETCH_B(j, b_k_major) fetch_matrices(b[j], b_tile + further(b_place, (j)*16, k, b_k_major, TILE_N), !b_k_major)

/* A group behind the last is all zeros, which leaves every sum as a step has left it. */
#define COMPUTE(suffix, type, a_k_major, b_k_major)                                                                    \
    do {                                                                                                               \
        (void)step, (void)groups;                                                                                      \
        const int a_place = fetch_place(warp_m * 16, lane / 8 % 2, lane / 16, lane % 8, a_k_major, TILE_M);            \
        const int b_place =                                                                                            \
            fetch_place(warp_n * (TILE_N / WARPS_N), lane / 16, lane / 8 % 2, lane % 8, b_k_major, TILE_N);            \
        SB_CUDA_UNROLL                                                                                                 \
        for (int k = 0; k < KSTEP; k += 16) {                                                                          \
            uint32_t a[2][4], b[MATRICES_N / 2][4];                                                                    \
            SB_CUDA_UNROLL                                                                                             \
            for (int j = 0; j < MATRICES_N / 2; j++)                                                                   \
                FETCH_B(j, b_k_major);                                                                                 \
            FETCH_A(0, a_k_major);                                                                                     \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < MATRICES_M; i++) {                                                                     \
                if (i + 1 < MATRICES_M)                                                                                \
                    FETCH_A(i + 1, a_k_major);                                                                         \
                SB_CUDA_UNROLL                                                                                         \
                for (int j = 0; j < MATRICES_N; j++)                                                                   \
                    MULTIPLY(type, sums[i][j], a[i % 2], b[j / 2] + j % 2 * 2);                                        \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#else
/* An element of a tile in shared memory. */
SB_CUDA_FUNCTION uint16_t element(const sb_gemm16_eight *tile_data, int line, int k, bool k_major, int tile) {
    const sb_gemm16_eight *eight = &tile_data[place(line, k, k_major, tile)];
    const int i = k_major ? k % 8 : line % 8;
    const uint32_t word = i < 2 ? eight->x : i < 4 ? eight->y : i < 6 ? eight->z : eight->w;
    return (uint16_t)(word >> i % 2 * 16);
}

#define COMPUTE(suffix, type, a_k_major, b_k_major)                                                                    \
    do {                                                                                                               \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int i = 0; i < MATRICES_M * MATRICES_N * 4; i++) {                                                        \
            const int line = ELEMENT_LINE(i), column = ELEMENT_COLUMN(i);                                              \
            if (tile.row + line >= p->product.m ||                                                                     \
                tile.column + sb_gemm16_c_column(p->product.gate, column) >= p->product.n)                             \
                continue;                                                                                              \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int k = 0; k < KSTEP && step * 2 + k / 16 < groups; k += 16) {                                        \
                uint16_t a[16], b[16];                                                                                 \
                for (int l = 0; l < 16; l++) {                                                                         \
                    a[l] = element(a_tile, line, k + l, a_k_major, TILE_M);                                            \
                    b[l] = element(b_tile, column, k + l, b_k_major, TILE_N);                                          \
                }                                                                                                      \
                SUM(i) = sb_chain16_step_##suffix(a, b, SUM(i));                                                       \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#endif

/* Where element `i` of a thread's sums is in the block's tile. */
#define ELEMENT_LINE(i) (((i) / 4 / MATRICES_N * WARPS_M + warp_m) * 16 + (i) % 4 / 2 * 8 + lane / 4)
#define ELEMENT_COLUMN(i) (warp_n * (TILE_N / WARPS_N) + (i) / 4 % MATRICES_N * 8 + lane % 4 * 2 + (i) % 2)

/* ---- the kernels ---- */

/* Step `ahead` into its half of the first two places. */
#define STORE_BOTH(a_k_major, b_k_major)                                                                               \
    do {                                                                                                               \
        sb_gemm16_eight *to = shared + ahead % 2 * STEP_PIECES;                                                        \
        STORE(OWN_A, a_pieces, to, a_k_major, TILE_M);                                                                 \
        STORE(OWN_B, b_pieces, to + A_PIECES, b_k_major, TILE_N);                                                      \
    } while (0)

/* The first `copied` steps. A place is filled again when all threads have met behind its last use. */
#define COPIED_STEPS(suffix, type, a_k_major, b_k_major)                                                               \
    do {                                                                                                               \
        step_group low_group = find_group(&p->product, depth, 0), high_group = find_group(&p->product, depth, 1);      \
        int64_t next = 0;                                                                                              \
        int put = 0, use = 0;                                                                                          \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int i = 0; i < STAGES - 1; i++)                                                                           \
            COPY_BOTH(a_k_major, b_k_major);                                                                           \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int64_t step = 0; step < copied; step++) {                                                                \
            SB_CUDA_COPIES_WAIT(STAGES - 2);                                                                           \
            SB_CUDA_BARRIER();                                                                                         \
            COPY_BOTH(a_k_major, b_k_major);                                                                           \
            const sb_gemm16_eight *a_tile = shared + use * STEP_PIECES, *b_tile = a_tile + A_PIECES;                   \
            COMPUTE(suffix, type, a_k_major, b_k_major);                                                               \
            use = use + 1 < STAGES ? use + 1 : 0;                                                                      \
        }                                                                                                              \
        SB_CUDA_BARRIER();                                                                                             \
    } while (0)

/* The others, one after the step that is computed. */
#define OTHER_STEPS(suffix, type, a_k_major, b_k_major)                                                                \
    do {                                                                                                               \
        sb_gemm16_eight a_pieces[OWN_A], b_pieces[OWN_B];                                                              \
        step_group low_group = find_group(&p->product, depth, copied * 2);                                             \
        step_group high_group = find_group(&p->product, depth, copied * 2 + 1);                                        \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int64_t ahead = copied; ahead <= steps; ahead++) {                                                        \
            if (ahead < steps) {                                                                                       \
                READ(OWN_A, a_pieces, a, a_k_major, TILE_M, p->a_width);                                               \
                READ(OWN_B, b_pieces, b, b_k_major, TILE_N, p->b_width);                                               \
                low_group = find_group(&p->product, depth, ahead * 2 + 2);                                             \
                high_group = find_group(&p->product, depth, ahead * 2 + 3);                                            \
            }                                                                                                          \
            if (ahead > copied) {                                                                                      \
                const int64_t step = ahead - 1;                                                                        \
                const sb_gemm16_eight *a_tile = shared + step % 2 * STEP_PIECES, *b_tile = a_tile + A_PIECES;          \
                COMPUTE(suffix, type, a_k_major, b_k_major);                                                           \
            }                                                                                                          \
            if (ahead < steps)                                                                                         \
                STORE_BOTH(a_k_major, b_k_major);                                                                      \
            SB_CUDA_BARRIER();                                                                                         \
        }                                                                                                              \
    } while (0)

#define PRODUCT(name, suffix, type, a_k_major, b_k_major)                                                              \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(name, GIVEN, given, THREADS, BLOCKS) {                                                \
        const sb_gemm16_general *p = GENERAL(given);                                                                   \
        SB_CUDA_SHARED sb_gemm16_eight shared[SHARED_PIECES];                                                          \
        float *chains = (float *)(void *)shared;                                                                       \
        const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;                                          \
        const int warp_m = warp / WARPS_N, warp_n = warp % WARPS_N;                                                    \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int64_t index = blockIdx.x; index < p->tiles; index += gridDim.x) {                                       \
            const tile_place tile = find_tile(p, index);                                                               \
            if (!is_used(&p->product, &tile))                                                                          \
                continue;                                                                                              \
            const reader a = read_a(p, a_k_major, &tile), b = read_b(p, b_k_major, &tile);                             \
            const int64_t depth = sb_cuda_used(p->product.used_k, p->product.k);                                       \
            const int64_t groups = p->product.used_k ? (depth + 15) / 16 : p->product.group_count;                     \
            const int64_t steps = (groups + 1) / 2;                                                                    \
            const bool by_rows = p->product.groups && !a_k_major && !b_k_major;                                        \
            const int64_t copied = !has_whole_lines(p, a_k_major, b_k_major, &tile) ? 0                                \
                                   : by_rows                                        ? steps                            \
                                   : p->product.groups                              ? 0                                \
                                                                                    : depth / KSTEP;                                                \
            float sums[MATRICES_M][MATRICES_N][4];                                                                     \
            BEGIN();                                                                                                   \
            COPIED_STEPS(suffix, type, a_k_major, b_k_major);                                                          \
            OTHER_STEPS(suffix, type, a_k_major, b_k_major);                                                           \
            END(suffix);                                                                                               \
        }                                                                                                              \
    }

#define EACH_SUM                                                                                                       \
    SB_CUDA_UNROLL                                                                                                     \
    for (int i = 0; i < MATRICES_M * MATRICES_N * 4; i++)

#define SUM(i) sums[(i) / 4 / MATRICES_N][(i) / 4 % MATRICES_N][(i) % 4]
#define CHAIN(i) chains[(ELEMENT_LINE(i) - strip * STRIP) * PITCH + ELEMENT_COLUMN(i)]

/* Chains begin with +0, or with C, which has no gates then and comes strip by strip through shared memory. */
#define BEGIN()                                                                                                        \
    do {                                                                                                               \
        EACH_SUM                                                                                                       \
        SUM(i) = 0.0f;                                                                                                 \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int strip = 0; strip < MATRICES_M && p->product.c.accumulate; strip++) {                                  \
            sb_gemm16_begin_tile(&p->product, tile.batch, tile.row + strip * STRIP, tile.column, STRIP, TILE_N,        \
                                 chains, PITCH, (int)threadIdx.x, THREADS);                                            \
            SB_CUDA_BARRIER();                                                                                         \
            EACH_SUM {                                                                                                 \
                if (i / 4 / MATRICES_N == strip)                                                                       \
                    SUM(i) = CHAIN(i);                                                                                 \
            }                                                                                                          \
            SB_CUDA_BARRIER();                                                                                         \
        }                                                                                                              \
    } while (0)

/* Strip by strip through shared memory. */
#define END(suffix)                                                                                                    \
    do {                                                                                                               \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int strip = 0; strip < MATRICES_M; strip++) {                                                             \
            EACH_SUM {                                                                                                 \
                if (i / 4 / MATRICES_N == strip)                                                                       \
                    CHAIN(i) = SUM(i);                                                                                 \
            }                                                                                                          \
            SB_CUDA_BARRIER();                                                                                         \
            END_TILE(suffix, &p->product, tile.batch, tile.row + strip * STRIP, tile.column, STRIP,                    \
                     p->product.gate != SB_GATE_NONE ? TILE_N / 2 : TILE_N, chains, PITCH);                            \
            SB_CUDA_BARRIER();                                                                                         \
        }                                                                                                              \
    } while (0)

#define LAYOUTS(name, suffix, type)                                                                                    \
    PRODUCT(name##_k_k, suffix, type, true, true)                                                                      \
    PRODUCT(name##_k_mn, suffix, type, true, false)                                                                    \
    PRODUCT(name##_mn_k, suffix, type, false, true)                                                                    \
    PRODUCT(name##_mn_mn, suffix, type, false, false)
