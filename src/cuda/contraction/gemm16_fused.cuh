/* The nodes behind a product of 16 bits, in Hopper's kernels (gemm16_nodes_parameters.h).
 *
 * Rounded chains are put in order in shared memory, on their way out, and a thread takes eight neighbours of each of some rows of C:
 * what it reads of an input is then underway together. In tiles of one warpgroup that take weights' columns as rows, results leave
 * from there. What does not lie so that 16 bytes go at once, and tiles of one warpgroup of few columns, take the results in registers
 * as they lie: SB_GEMM16_RESULTS of them, or fewer where the tile has so few. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_FUSED_CUH
#define SB_CUDA_CONTRACTION_GEMM16_FUSED_CUH

#include "cuda/common/halves.cuh"
#include "cuda/contraction/gemm16_epilogue.cuh"
#include "cuda/contraction/gemm16_hopper_epilogue.cuh"
#include "cuda/contraction/gemm16_node_places.cuh"

#if SB_HOPPER
/* Pieces of eight neighbours, of rows that lie so many apart: of a warp's sixteen rows, or of all columns of a swapped tile. */
#if SB_GEMM_GROUPS > 1
#define SB_GEMM16_PIECES 4
#define SB_GEMM16_PIECE_ROWS 4
#else
#define SB_GEMM16_PIECES (SB_GEMM_N < 16 ? 1 : SB_GEMM_N / 16)
#define SB_GEMM16_PIECE_ROWS 16
#endif

/* Where a thread's pieces lie, and how many of their rows there are; and what has been asked for of one input, before the results are
 * there that it belongs to. */
typedef struct sb_gemm16_node_pieces {
    sb_gemm16_node_place first;
    int count;
    const sb_cuda_epilogue_input *asked; /* NULL: nothing */
    uint32_t ahead[4 * SB_GEMM16_PIECES];
} sb_gemm16_node_pieces;

/* Whether all pieces are 16 bytes that go at once, of which one is at `at`. */
SB_CUDA_FUNCTION bool sb_gemm16_goes_by_eights(const sb_cuda_epilogue_input *input, const char *at) {
    const int64_t below = SB_GEMM16_PIECE_ROWS * input->steps[2];
    return input->steps[3] == 2 && (((uintptr_t)at | (uintptr_t)below) & 15) == 0;
}

/* Asks for the pieces of the first input that has other elements in each row, a residual say: memory's answer takes longer than
 * anything else that is done behind a product. */
SB_CUDA_FUNCTION void sb_gemm16_ask_for_pieces(const sb_gemm16_nodes *program, bool inside,
                                               sb_gemm16_node_pieces *pieces) {
    pieces->asked = NULL;
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < program->count && inside && pieces->asked == NULL; i++) {
        const int number = program->steps[i].input;
        if (number != 0 && program->inputs[number - 1].steps[2] != 0)
            pieces->asked = &program->inputs[number - 1];
    }
    if (pieces->asked == NULL)
        return;
    const char *at = sb_gemm16_input_at(pieces->asked, &pieces->first);
    if (!sb_gemm16_goes_by_eights(pieces->asked, at)) {
        pieces->asked = NULL;
        return;
    }
    SB_CUDA_UNROLL
    for (int r = 0; r < SB_GEMM16_PIECES; r++) {
        const int64_t row = r < pieces->count ? r : 0;
        const sb_cuda_eight eight = sb_cuda_load_eight(at + row * SB_GEMM16_PIECE_ROWS * pieces->asked->steps[2]);
        SB_CUDA_UNROLL
        for (int j = 0; j < 4; j++)
            pieces->ahead[4 * r + j] = eight.pairs[j];
    }
}

/* The elements of an input for all pieces, asked for together: as 16 bytes where eight lie so, or one number for a row, or one by
 * one. What is the same for all rows is read once. Of rows that are not there the first one's are taken. */
SB_CUDA_FUNCTION void sb_gemm16_load_pieces(const sb_gemm16_node_pieces *pieces, const sb_cuda_epilogue_input *input,
                                            uint32_t *pairs) {
    if (input == pieces->asked) {
        SB_CUDA_UNROLL
        for (int i = 0; i < 4 * SB_GEMM16_PIECES; i++)
            pairs[i] = pieces->ahead[i];
        return;
    }
    const char *at = sb_gemm16_input_at(input, &pieces->first);
    const int64_t step = input->steps[3], below = SB_GEMM16_PIECE_ROWS * input->steps[2];
    if (sb_gemm16_goes_by_eights(input, at)) {
        SB_CUDA_UNROLL
        for (int r = 0; r < SB_GEMM16_PIECES; r++) {
            sb_cuda_eight eight;
            if (r == 0 || below != 0)
                eight = sb_cuda_load_eight(at + (r < pieces->count ? r : 0) * below);
            SB_CUDA_UNROLL
            for (int j = 0; j < 4; j++)
                pairs[4 * r + j] = r == 0 || below != 0 ? eight.pairs[j] : pairs[j];
        }
        return;
    }
    SB_CUDA_UNROLL
    for (int r = 0; r < SB_GEMM16_PIECES; r++) {
        const char *row = at + (r < pieces->count ? r : 0) * below;
        SB_CUDA_UNROLL
        for (int j = 0; j < 4; j++) {
            const uint32_t low =
                j > 0 && step == 0 ? pairs[4 * r] & 0xffffu : *(const uint16_t *)(const void *)(row + 2 * j * step);
            const uint32_t high = step == 0 ? low : *(const uint16_t *)(const void *)(row + (2 * j + 1) * step);
            pairs[4 * r + j] = low | high << 16;
        }
    }
}

#define SB_NODES_NAME sb_gemm16_run_pieces_bf16
#define SB_NODES_PAIRS (4 * SB_GEMM16_PIECES)
#define SB_NODES_HALF SB_CUDA_BF16
#define SB_NODES_CONTEXT const sb_gemm16_node_pieces *
#define SB_NODES_LOAD sb_gemm16_load_pieces
#include "cuda/contraction/gemm16_nodes.cuh"
#define SB_NODES_NAME sb_gemm16_run_pieces_f16
#define SB_NODES_PAIRS (4 * SB_GEMM16_PIECES)
#define SB_NODES_HALF SB_CUDA_F16
#define SB_NODES_CONTEXT const sb_gemm16_node_pieces *
#define SB_NODES_LOAD sb_gemm16_load_pieces
#include "cuda/contraction/gemm16_nodes.cuh"

/* The program on pieces, as they are stored after it. */
#define SB_GEMM16_FUSE(suffix, HALF)                                                                                   \
    SB_CUDA_FUNCTION void sb_gemm16_fuse_##suffix(const sb_gemm16_nodes *program, const sb_gemm16_node_pieces *pieces, \
                                                  uint32_t *pairs) {                                                   \
        sb_gemm16_run_pieces_##suffix(program, pieces, pairs);                                                         \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < 4 * SB_GEMM16_PIECES; i++)                                                                 \
            pairs[i] = sb_cuda_canonical_pair<HALF>(pairs[i]);                                                         \
    }
SB_GEMM16_FUSE(bf16, SB_CUDA_BF16)
SB_GEMM16_FUSE(f16, SB_CUDA_F16)

#if SB_GEMM_GROUPS == 1
#define SB_GEMM16_FUSED_WIDTH (SB_GEMM_N / 2 < SB_GEMM16_RESULTS ? SB_GEMM_N / 2 : SB_GEMM16_RESULTS)

/* A thread's results in registers. */
typedef struct sb_gemm16_fused_results {
    const sb_gemm16_results *results;
    const sb_gemm16_node_place *batch;
} sb_gemm16_fused_results;

/* Zeros where there is no such result. */
SB_CUDA_FUNCTION void sb_gemm16_load_results(sb_gemm16_fused_results of, const sb_cuda_epilogue_input *input,
                                             uint32_t *pairs) {
    const char *first = sb_gemm16_input_at(input, of.batch);
    const sb_gemm16 *product = &of.results->p->product;
    uint32_t halves[SB_GEMM16_FUSED_WIDTH];
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_GEMM16_FUSED_WIDTH; i++) {
        const int64_t row = sb_gemm16_c_row(of.results, i), column = sb_gemm16_c_column(of.results, i);
        const bool inside = row < product->m && column < product->n;
        const char *at = first + (inside ? row * input->steps[2] + column * input->steps[3] : 0);
        halves[i] = inside ? *(const uint16_t *)(const void *)at : 0;
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_GEMM16_FUSED_WIDTH / 2; i++)
        pairs[i] = halves[2 * i] | halves[2 * i + 1] << 16;
}

#define SB_NODES_NAME sb_gemm16_run_nodes_bf16
#define SB_NODES_PAIRS (SB_GEMM16_FUSED_WIDTH / 2)
#define SB_NODES_HALF SB_CUDA_BF16
#define SB_NODES_CONTEXT sb_gemm16_fused_results
#define SB_NODES_LOAD sb_gemm16_load_results
#include "cuda/contraction/gemm16_nodes.cuh"
#define SB_NODES_NAME sb_gemm16_run_nodes_f16
#define SB_NODES_PAIRS (SB_GEMM16_FUSED_WIDTH / 2)
#define SB_NODES_HALF SB_CUDA_F16
#define SB_NODES_CONTEXT sb_gemm16_fused_results
#define SB_NODES_LOAD sb_gemm16_load_results
#include "cuda/contraction/gemm16_nodes.cuh"

/* The program on results that are not rounded yet. What it leaves rounds to itself. */
#define SB_GEMM16_FUSE_RESULTS(suffix, HALF)                                                                           \
    SB_CUDA_FUNCTION void sb_gemm16_fuse_results_##suffix(const sb_gemm16_nodes *program,                              \
                                                          const sb_gemm16_results *results, float *values) {           \
        const sb_gemm16_node_place batch = sb_gemm16_nodes_begin(program, results->batch);                             \
        const sb_gemm16_fused_results of = {results, &batch};                                                          \
        uint32_t pairs[SB_GEMM16_FUSED_WIDTH / 2];                                                                     \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SB_GEMM16_FUSED_WIDTH / 2; i++)                                                            \
            pairs[i] = sb_cuda_round_pair<HALF>(values[2 * i], values[2 * i + 1]);                                     \
        sb_gemm16_run_nodes_##suffix(program, of, pairs);                                                              \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SB_GEMM16_FUSED_WIDTH / 2; i++)                                                            \
            sb_cuda_widen_pair<HALF>(pairs[i], &values[2 * i], &values[2 * i + 1]);                                    \
    }
SB_GEMM16_FUSE_RESULTS(bf16, SB_CUDA_BF16)
SB_GEMM16_FUSE_RESULTS(f16, SB_CUDA_F16)
#endif
#endif

#endif
