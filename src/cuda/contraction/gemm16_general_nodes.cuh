/* The nodes behind a product of 16 bits in the general kernels: on four results of
 * a thread, which the block's threads take from shared memory as in gemm16_epilogue.cuh. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_GENERAL_NODES_CUH
#define SB_CUDA_CONTRACTION_GEMM16_GENERAL_NODES_CUH

#include "cuda/contraction/gemm16_epilogue.cuh"
#include "cuda/contraction/gemm16_node_places.cuh"

/* Neighbours of a row, or with `down` of a column. */
typedef struct sb_gemm16_four {
    sb_gemm16_node_place place; /* of the first */
    bool down;
    int count;
} sb_gemm16_four;

/* Zeros where there is no such element. */
SB_CUDA_FUNCTION void sb_gemm16_load_four(const sb_gemm16_four *four, const sb_cuda_epilogue_input *input,
                                          uint32_t *pairs) {
    const char *at = sb_gemm16_input_at(input, &four->place);
    const int64_t step = input->steps[four->down ? 2 : 3];
    uint32_t halves[4];
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++)
        halves[i] = i < four->count ? *(const uint16_t *)(const void *)(at + i * step) : 0;
    pairs[0] = halves[0] | halves[1] << 16;
    pairs[1] = halves[2] | halves[3] << 16;
}

#define SB_NODES_NAME sb_gemm16_run_four_bf16
#define SB_NODES_PAIRS 2
#define SB_NODES_HALF SB_CUDA_BF16
#define SB_NODES_CONTEXT const sb_gemm16_four *
#define SB_NODES_LOAD sb_gemm16_load_four
#include "cuda/contraction/gemm16_nodes.cuh"
#define SB_NODES_NAME sb_gemm16_run_four_f16
#define SB_NODES_PAIRS 2
#define SB_NODES_HALF SB_CUDA_F16
#define SB_NODES_CONTEXT const sb_gemm16_four *
#define SB_NODES_LOAD sb_gemm16_load_four
#include "cuda/contraction/gemm16_nodes.cuh"

/* A chain behind what Gemm itself does: one rounding with it. */
SB_CUDA_FUNCTION float sb_gemm16_end_chain(const sb_gemm16 *p, int64_t batch, int64_t row, int64_t column,
                                           float chain) {
    const float value = sb_gemm_scale_and_bias(&p->epilogue, batch, column, chain);
    return p->epilogue.residual.data ? value + sb_gemm_load_addend(&p->epilogue.residual, batch, row, column) : value;
}

/* What sb_gemm16_end_tile does of products without gates and activations, and the nodes behind them. */
#define SB_GEMM16_END_FUSED(suffix, HALF)                                                                              \
    SB_CUDA_FUNCTION void sb_gemm16_end_fused_##suffix(                                                                \
        const sb_gemm16 *p, const sb_gemm16_nodes *program, int64_t batch, int64_t row, int64_t column, int rows,      \
        int columns, const float *chains, int pitch, int thread, int threads) {                                        \
        sb_gemm16_four four = {sb_gemm16_nodes_begin(program, batch), p->c.row_stride == 1 && p->c.column_stride != 1, \
                               0};                                                                                     \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int index = thread; index < rows * columns / 4; index += threads) {                                       \
            const int r = four.down ? index % (rows / 4) * 4 : index / (columns / 4);                                  \
            const int c = four.down ? index / (rows / 4) : index % (columns / 4) * 4;                                  \
            const int64_t left = four.down ? p->m - (row + r) : p->n - (column + c);                                   \
            if (row + r >= p->m || column + c >= p->n)                                                                 \
                continue;                                                                                              \
            four.count = left > 4 ? 4 : (int)left;                                                                     \
            four.place.row = row + r;                                                                                  \
            four.place.column = column + c;                                                                            \
            float results[4];                                                                                          \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < 4; i++) {                                                                              \
                const int down = four.down ? i : 0, right = four.down ? 0 : i;                                         \
                results[i] = chains[(r + down) * pitch + c + right];                                                   \
                if (p->has_epilogue && i < four.count)                                                                 \
                    results[i] = sb_gemm16_end_chain(p, batch, row + r + down, column + c + right, results[i]);        \
            }                                                                                                          \
            uint32_t pairs[2] = {sb_cuda_round_pair<HALF>(results[0], results[1]),                                     \
                                 sb_cuda_round_pair<HALF>(results[2], results[3])};                                    \
            sb_gemm16_run_four_##suffix(program, &four, pairs);                                                        \
            sb_cuda_widen_pair<HALF>(pairs[0], &results[0], &results[1]);                                              \
            sb_cuda_widen_pair<HALF>(pairs[1], &results[2], &results[3]);                                              \
            sb_gemm16_store_four(&p->c, batch, row + r, column + c, four.down, four.count, results);                   \
        }                                                                                                              \
    }
SB_GEMM16_END_FUSED(bf16, SB_CUDA_BF16)
SB_GEMM16_END_FUSED(f16, SB_CUDA_F16)

#endif
