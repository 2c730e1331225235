/* The ends of tiles that two warpgroups take in turns (gemm16_hopper.cuh): from eight sums of a thread, two eights of columns
 * in two rows, to as many results of the product's C. Eight at a time, so that what one waits for the others use, and no more
 * code than that is unrolled. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_TURNS_CUH
#define SB_CUDA_CONTRACTION_GEMM16_TURNS_CUH

#include "cuda/contraction/gemm16_hopper_epilogue.cuh"

#if SB_HOPPER
/* Result i lies at column i / 4 * 8 + i % 2 and row i / 2 % 2 * 8 from the thread's first one on. */
typedef struct sb_gemm16_ends {
    const sb_gemm16_hopper *p;
    int batch, row; /* of the first result */
} sb_gemm16_ends;

SB_CUDA_FUNCTION sb_gemm16_ends sb_gemm16_ends_of(const sb_gemm16_hopper *p, int batch, int row) {
    const sb_gemm16_ends ends = {p, batch, row};
    return ends;
}

/* An element of an addend of the dtype that is asked for once for all. */
#define SB_GEMM16_LOAD_FOUR(load)                                                                                      \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int j = 0; j < 4; j++)                                                                                    \
            four[j] = j / 2 * 8 + j % 2 < left ? load(first + (j / 2 * 8 + j % 2) * step) : 0.0f;                      \
    } while (0)
#define SB_GEMM16_F32_AT(index) ((const float *)addend->data)[index]
#define SB_GEMM16_BF16_AT(index) sb_bf16_to_f32(((const uint16_t *)addend->data)[index])
#define SB_GEMM16_F16_AT(index) sb_f16_to_f32(((const uint16_t *)addend->data)[index])

/* Elements for the columns of eight results of a row, of which there are `left` from the first one on: that is element
 * `first`, and the next column's lies `step` behind it. */
SB_CUDA_FUNCTION void sb_gemm16_load_columns(const sb_gemm_addend *addend, int64_t first, int64_t step, int64_t left,
                                             float *four) {
    if (addend->dtype == SB_F32)
        SB_GEMM16_LOAD_FOUR(SB_GEMM16_F32_AT);
    else if (addend->dtype == SB_BF16)
        SB_GEMM16_LOAD_FOUR(SB_GEMM16_BF16_AT);
    else
        SB_GEMM16_LOAD_FOUR(SB_GEMM16_F16_AT);
    SB_CUDA_UNROLL
    for (int j = 0; j < 4; j++)
        four[j] = addend->scale * four[j];
}

/* Scale, and the bias of B's columns: `first` is that of C's column 0, and `step` columns behind it the next one's. */
SB_CUDA_FUNCTION void sb_gemm16_scale_eight(const sb_gemm16_ends *ends, int64_t column, int64_t first, int step,
                                            float *results) {
    const sb_gemm_epilogue *e = &ends->p->product.epilogue;
    SB_CUDA_UNROLL
    for (int i = 0; i < 8; i++)
        results[i] = sb_gemm_scale(e, results[i]);
    if (!e->bias.data)
        return;
    float four[4];
    sb_gemm16_load_columns(&e->bias,
                           ends->batch * e->bias.batch_stride + (first + column * step) * e->bias.column_stride,
                           step * e->bias.column_stride, ends->p->product.n - column, four);
    SB_CUDA_UNROLL
    for (int i = 0; i < 8; i++)
        results[i] = results[i] + four[i / 4 * 2 + i % 2];
}

SB_CUDA_FUNCTION void sb_gemm16_add_residual_to_eight(const sb_gemm16_ends *ends, int64_t column, float *results) {
    const sb_gemm16 *product = &ends->p->product;
    const sb_gemm_addend *residual = &product->epilogue.residual;
    if (!residual->data)
        return;
    SB_CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        const int64_t row = ends->row + r * 8;
        float four[4];
        sb_gemm16_load_columns(residual,
                               ends->batch * residual->batch_stride + row * residual->row_stride +
                                   column * residual->column_stride,
                               residual->column_stride, row < product->m ? product->n - column : 0, four);
        SB_CUDA_UNROLL
        for (int j = 0; j < 4; j++)
            results[j / 2 * 4 + r * 2 + j % 2] = results[j / 2 * 4 + r * 2 + j % 2] + four[j];
    }
}

/* The first eight sums with the whole epilogue; with gates the first sixteen, of which eight columns of gates and of their
 * values take turns. */
SB_CUDA_FUNCTION void sb_gemm16_finish_eight(const sb_gemm16_ends *ends, int64_t column, const float *sums,
                                             float *results) {
    const sb_gemm16 *product = &ends->p->product;
    const bool gated = product->gate != SB_GATE_NONE, alternate = product->gate == SB_GATE_INTERLEAVED;
    const int step = alternate ? 2 : 1;
    SB_CUDA_UNROLL
    for (int i = 0; i < 8; i++)
        results[i] = gated ? sums[i / 4 * 8 + i % 4] : sums[i];
    sb_gemm16_scale_eight(ends, column, 0, step, results);
    sb_gemm16_activate_results(product->epilogue.activation, 8, results);
    if (gated) {
        float values[8];
        SB_CUDA_UNROLL
        for (int i = 0; i < 8; i++)
            values[i] = sums[i / 4 * 8 + 4 + i % 4];
        sb_gemm16_scale_eight(ends, column, alternate ? 1 : product->n, step, values);
        SB_CUDA_UNROLL
        for (int i = 0; i < 8; i++)
            results[i] = results[i] * values[i];
    }
    sb_gemm16_add_residual_to_eight(ends, column, results);
}

/* Eight sums as Gemm's own node rounds them. */
SB_CUDA_FUNCTION void sb_gemm16_finish_chains(const sb_gemm16_ends *ends, int64_t column, const float *sums,
                                              float *results) {
    SB_CUDA_UNROLL
    for (int i = 0; i < 8; i++)
        results[i] = sums[i];
    if (ends->p->storing & SB_GEMM16_PLAIN)
        return;
    sb_gemm16_scale_eight(ends, column, 0, 1, results);
    sb_gemm16_add_residual_to_eight(ends, column, results);
}
#endif

#endif
