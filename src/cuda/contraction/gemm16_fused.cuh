/* The nodes behind a product of 16 bits, in Hopper's kernels (gemm16_nodes_parameters.h).
 *
 * In tiles of two warpgroups a thread takes eight neighbours of each of four rows, after the rounded chains have been put in
 * order in shared memory, on their way out: what it reads of an input is then underway together. In tiles of one, which are for
 * few rows, it takes the results in its registers as they lie: SB_GEMM16_RESULTS of them, or fewer where the tile has so few. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_FUSED_CUH
#define SB_CUDA_CONTRACTION_GEMM16_FUSED_CUH

#include "cuda/contraction/gemm16_epilogue.cuh"
#include "cuda/contraction/gemm16_hopper_epilogue.cuh"
#include "cuda/contraction/gemm16_node_places.cuh"

#if SB_HOPPER
#if SB_GEMM_GROUPS > 1
/* Pieces of eight neighbours, of four rows, each of which is so many behind the one before. */
#define SB_GEMM16_PIECES (SB_GEMM_N > 128 ? 2 : 4) /* as there are registers */
#define SB_GEMM16_PIECE_ROWS 4

/* Where a thread's pieces lie, and how many of their rows there are: one at least. */
typedef struct sb_gemm16_node_pieces {
    sb_gemm16_node_place first;
    int count;
} sb_gemm16_node_pieces;

/* The elements of an input for all pieces, asked for together: as 16 bytes where eight lie so, or one number for a row, or one by
 * one. What is the same for all rows is read once. Of rows that are not there the first one's are taken. */
#define SB_GEMM16_LOAD_PIECES(suffix)                                                                                  \
    SB_CUDA_FUNCTION void sb_gemm16_load_pieces_##suffix(const sb_gemm16_node_pieces *pieces,                          \
                                                         const sb_cuda_epilogue_input *input, float *values) {         \
        const char *at = sb_gemm16_input_at(input, &pieces->first);                                                    \
        const int64_t step = input->steps[3], below = SB_GEMM16_PIECE_ROWS * input->steps[2];                          \
        if (step == 2 && (((uintptr_t)at | (uintptr_t)below) & 15) == 0) {                                             \
            sb_gemm16_eight all[SB_GEMM16_PIECES];                                                                     \
            SB_CUDA_UNROLL                                                                                             \
            for (int r = 0; r < SB_GEMM16_PIECES; r++) {                                                               \
                if (r == 0 || below != 0)                                                                              \
                    all[r] = *(const sb_gemm16_eight *)(const void *)(at + (r < pieces->count ? r : 0) * below);       \
                else                                                                                                   \
                    all[r] = all[0];                                                                                   \
            }                                                                                                          \
            SB_CUDA_UNROLL                                                                                             \
            for (int r = 0; r < SB_GEMM16_PIECES; r++) {                                                               \
                sb_widen_pair_##suffix(all[r].x, &values[8 * r], &values[8 * r + 1]);                                  \
                sb_widen_pair_##suffix(all[r].y, &values[8 * r + 2], &values[8 * r + 3]);                              \
                sb_widen_pair_##suffix(all[r].z, &values[8 * r + 4], &values[8 * r + 5]);                              \
                sb_widen_pair_##suffix(all[r].w, &values[8 * r + 6], &values[8 * r + 7]);                              \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        SB_CUDA_UNROLL                                                                                                 \
        for (int r = 0; r < SB_GEMM16_PIECES; r++) {                                                                   \
            const char *row = at + (r < pieces->count ? r : 0) * below;                                                \
            SB_CUDA_UNROLL                                                                                             \
            for (int j = 0; j < 8; j++)                                                                                \
                values[8 * r + j] = j > 0 && step == 0                                                                 \
                                        ? values[8 * r]                                                                \
                                        : sb_##suffix##_to_f32(*(const uint16_t *)(const void *)(row + j * step));     \
        }                                                                                                              \
    }
SB_GEMM16_LOAD_PIECES(bf16)
SB_GEMM16_LOAD_PIECES(f16)

/* Asks the first-level cache for what the nodes will read for a box of 64 columns, of a warp's sixteen rows from the place on: read
 * when it is needed, it comes from the second level, for which a warp waits in every step. A lane asks for the line where a row's
 * piece begins or where it ends; of what is the same for all rows the first two do. */
SB_CUDA_FUNCTION void sb_gemm16_ask_for_box(const sb_gemm16_nodes *program, const sb_gemm16_node_place *first,
                                            int64_t rows, int64_t columns, int lane) {
#if defined(__CUDA_ARCH__)
    sb_gemm16_node_place place = *first;
    place.row += lane % 16;
    if (place.row >= rows || place.column >= columns)
        return;
    if (lane >= 16)
        place.column += columns - place.column < 64 ? columns - place.column - 1 : 63;
    SB_CUDA_KEEP_LOOP
    for (int at = 0; at < program->count; at++) {
        const sb_cuda_epilogue_input *input = &program->inputs[program->steps[at].input - 1];
        if (program->steps[at].input != 0 && input->steps[3] == 2 && (input->steps[2] != 0 || lane % 16 == 0))
            asm volatile("prefetch.global.L1 [%0];" ::"l"(sb_gemm16_input_at(input, &place)));
    }
#else
    (void)program, (void)first, (void)rows, (void)columns, (void)lane;
#endif
}

#define SB_NODES_NAME sb_gemm16_run_nodes_bf16
#define SB_NODES_WIDTH (8 * SB_GEMM16_PIECES)
#define SB_NODES_SUFFIX bf16
#define SB_NODES_CONTEXT const sb_gemm16_node_pieces *
#define SB_NODES_LOAD sb_gemm16_load_pieces_bf16
#include "cuda/contraction/gemm16_nodes.cuh"
#define SB_NODES_NAME sb_gemm16_run_nodes_f16
#define SB_NODES_WIDTH (8 * SB_GEMM16_PIECES)
#define SB_NODES_SUFFIX f16
#define SB_NODES_CONTEXT const sb_gemm16_node_pieces *
#define SB_NODES_LOAD sb_gemm16_load_pieces_f16
#include "cuda/contraction/gemm16_nodes.cuh"

/* The program on pieces: 16 bits an element, before and after. */
#define SB_GEMM16_FUSE(suffix)                                                                                         \
    SB_CUDA_FUNCTION void sb_gemm16_fuse_##suffix(const sb_gemm16_nodes *program, const sb_gemm16_node_pieces *pieces, \
                                                  uint32_t *words) {                                                   \
        float values[8 * SB_GEMM16_PIECES];                                                                            \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < 4 * SB_GEMM16_PIECES; i++)                                                                 \
            sb_widen_pair_##suffix(words[i], &values[2 * i], &values[2 * i + 1]);                                      \
        sb_gemm16_run_nodes_##suffix(program, pieces, values);                                                         \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < 4 * SB_GEMM16_PIECES; i++)                                                                 \
            words[i] = sb_canonical_pair_##suffix(sb_round_pair_##suffix(values[2 * i], values[2 * i + 1]));           \
    }
SB_GEMM16_FUSE(bf16)
SB_GEMM16_FUSE(f16)
#else
#define SB_GEMM16_FUSED_WIDTH (SB_GEMM_N / 2 < SB_GEMM16_RESULTS ? SB_GEMM_N / 2 : SB_GEMM16_RESULTS)

/* A thread's results in registers. */
typedef struct sb_gemm16_fused_results {
    const sb_gemm16_results *results;
    const sb_gemm16_node_place *batch;
} sb_gemm16_fused_results;

/* Zeros where there is no such result. */
#define SB_GEMM16_LOAD_RESULTS(suffix)                                                                                 \
    SB_CUDA_FUNCTION void sb_gemm16_load_results_##suffix(sb_gemm16_fused_results of,                                  \
                                                          const sb_cuda_epilogue_input *input, float *values) {        \
        const char *first = sb_gemm16_input_at(input, of.batch);                                                       \
        const sb_gemm16 *product = &of.results->p->product;                                                            \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SB_GEMM16_FUSED_WIDTH; i++) {                                                              \
            const int64_t row = sb_gemm16_c_row(of.results, i), column = sb_gemm16_c_column(of.results, i);            \
            const bool inside = row < product->m && column < product->n;                                               \
            const char *at = first + (inside ? row * input->steps[2] + column * input->steps[3] : 0);                  \
            values[i] = inside ? sb_##suffix##_to_f32(*(const uint16_t *)(const void *)at) : 0.0f;                     \
        }                                                                                                              \
    }
SB_GEMM16_LOAD_RESULTS(bf16)
SB_GEMM16_LOAD_RESULTS(f16)

#define SB_NODES_NAME sb_gemm16_run_nodes_bf16
#define SB_NODES_WIDTH SB_GEMM16_FUSED_WIDTH
#define SB_NODES_SUFFIX bf16
#define SB_NODES_CONTEXT sb_gemm16_fused_results
#define SB_NODES_LOAD sb_gemm16_load_results_bf16
#include "cuda/contraction/gemm16_nodes.cuh"
#define SB_NODES_NAME sb_gemm16_run_nodes_f16
#define SB_NODES_WIDTH SB_GEMM16_FUSED_WIDTH
#define SB_NODES_SUFFIX f16
#define SB_NODES_CONTEXT sb_gemm16_fused_results
#define SB_NODES_LOAD sb_gemm16_load_results_f16
#include "cuda/contraction/gemm16_nodes.cuh"

/* The program on results that are not rounded yet. What it leaves rounds to itself. */
#define SB_GEMM16_FUSE_RESULTS(suffix)                                                                                 \
    SB_CUDA_FUNCTION void sb_gemm16_fuse_results_##suffix(const sb_gemm16_nodes *program,                              \
                                                          const sb_gemm16_results *results, float *values) {           \
        const sb_gemm16_node_place batch = sb_gemm16_nodes_begin(program, results->batch);                             \
        const sb_gemm16_fused_results of = {results, &batch};                                                          \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SB_GEMM16_FUSED_WIDTH; i++)                                                                \
            values[i] = sb_rounded_##suffix(values[i]);                                                                \
        sb_gemm16_run_nodes_##suffix(program, of, values);                                                             \
    }
SB_GEMM16_FUSE_RESULTS(bf16)
SB_GEMM16_FUSE_RESULTS(f16)
#endif
#endif

#endif
