/* The nodes behind a product of 16 bits, in Hopper's kernels (gemm16_nodes_parameters.h).
 *
 * In tiles of two warpgroups a thread takes eight neighbours of a row, after the rounded chains have been put in order in
 * shared memory, on their way out. In tiles of one, which are for few rows, it takes the results in its registers as they
 * lie: SB_GEMM16_RESULTS of them, or fewer where the tile has so few. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_FUSED_CUH
#define SB_CUDA_CONTRACTION_GEMM16_FUSED_CUH

#include "cuda/contraction/gemm16_epilogue.cuh"
#include "cuda/contraction/gemm16_hopper_epilogue.cuh"
#include "cuda/contraction/gemm16_node_places.cuh"

#if SB_HOPPER
/* Beside two warpgroups' whole tile there are no registers for a value that is kept, nor for elementary functions. */
#if SB_GEMM_GROUPS > 1 && !defined(SB_GEMM_TURNS)
#define SB_GEMM16_HEAVY_NODES 0
#else
#define SB_GEMM16_HEAVY_NODES 1
#endif
#if SB_GEMM_GROUPS > 1
/* Eight neighbours of a row: as one piece of 16 bytes where they lie so, or one number for all, or one by one. */
#define SB_GEMM16_LOAD_EIGHT(suffix)                                                                                   \
    SB_CUDA_FUNCTION void sb_gemm16_load_eight_##suffix(const sb_gemm16_node_place *place,                             \
                                                        const sb_cuda_epilogue_input *input, float *values) {          \
        const char *at = sb_gemm16_input_at(input, place);                                                             \
        const int64_t step = input->steps[3];                                                                          \
        if (step == 2 && ((uintptr_t)at & 15) == 0) {                                                                  \
            const sb_gemm16_eight all = *(const sb_gemm16_eight *)(const void *)at;                                    \
            sb_widen_pair_##suffix(all.x, &values[0], &values[1]);                                                     \
            sb_widen_pair_##suffix(all.y, &values[2], &values[3]);                                                     \
            sb_widen_pair_##suffix(all.z, &values[4], &values[5]);                                                     \
            sb_widen_pair_##suffix(all.w, &values[6], &values[7]);                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        if (step == 0) {                                                                                               \
            const float value = sb_##suffix##_to_f32(*(const uint16_t *)(const void *)at);                             \
            SB_CUDA_UNROLL                                                                                             \
            for (int j = 0; j < 8; j++)                                                                                \
                values[j] = value;                                                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        SB_CUDA_UNROLL                                                                                                 \
        for (int j = 0; j < 8; j++)                                                                                    \
            values[j] = sb_##suffix##_to_f32(*(const uint16_t *)(const void *)(at + j * step));                        \
    }
SB_GEMM16_LOAD_EIGHT(bf16)
SB_GEMM16_LOAD_EIGHT(f16)

#define SB_NODES_NAME sb_gemm16_run_nodes_bf16
#define SB_NODES_WIDTH 8
#define SB_NODES_SUFFIX bf16
#define SB_NODES_CONTEXT const sb_gemm16_node_place *
#define SB_NODES_LOAD sb_gemm16_load_eight_bf16
#define SB_NODES_HEAVY SB_GEMM16_HEAVY_NODES
#include "cuda/contraction/gemm16_nodes.cuh"
#define SB_NODES_NAME sb_gemm16_run_nodes_f16
#define SB_NODES_WIDTH 8
#define SB_NODES_SUFFIX f16
#define SB_NODES_CONTEXT const sb_gemm16_node_place *
#define SB_NODES_LOAD sb_gemm16_load_eight_f16
#define SB_NODES_HEAVY SB_GEMM16_HEAVY_NODES
#include "cuda/contraction/gemm16_nodes.cuh"

/* The program on eight neighbours at `place`, which are there: 16 bits each, before and after. */
#define SB_GEMM16_FUSE(suffix)                                                                                         \
    SB_CUDA_FUNCTION void sb_gemm16_fuse_##suffix(const sb_gemm16_nodes *program, const sb_gemm16_node_place *place,   \
                                                  uint32_t *words) {                                                   \
        float values[8];                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < 4; i++)                                                                                    \
            sb_widen_pair_##suffix(words[i], &values[2 * i], &values[2 * i + 1]);                                      \
        sb_gemm16_run_nodes_##suffix(program, place, values);                                                          \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < 4; i++)                                                                                    \
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
#define SB_NODES_HEAVY SB_GEMM16_HEAVY_NODES
#include "cuda/contraction/gemm16_nodes.cuh"
#define SB_NODES_NAME sb_gemm16_run_nodes_f16
#define SB_NODES_WIDTH SB_GEMM16_FUSED_WIDTH
#define SB_NODES_SUFFIX f16
#define SB_NODES_CONTEXT sb_gemm16_fused_results
#define SB_NODES_LOAD sb_gemm16_load_results_f16
#define SB_NODES_HEAVY SB_GEMM16_HEAVY_NODES
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
