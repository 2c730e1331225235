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
    int batch, row;                     /* of the first result */
    float biases[16], value_biases[16]; /* of the next eights' columns, four each */
} sb_gemm16_ends;

SB_CUDA_FUNCTION sb_gemm16_ends sb_gemm16_ends_of(const sb_gemm16_hopper *p, int batch, int row) {
    sb_gemm16_ends ends;
    ends.p = p;
    ends.batch = batch;
    ends.row = row;
    return ends;
}

/* The biases of a box of four eights of C's columns from `column` on; with gates, of their values too. */
SB_CUDA_FUNCTION void sb_gemm16_load_biases(sb_gemm16_ends *ends, int64_t column) {
    const sb_gemm16 *product = &ends->p->product;
    const sb_gemm_addend *bias = &product->epilogue.bias;
    if (!bias->data)
        return;
    const int64_t begin = ends->batch * bias->batch_stride, left = product->n - column;
    const bool alternate = product->gate == SB_GATE_INTERLEAVED;
    const int64_t step = alternate ? 2 : 1, first = begin + column * step * bias->column_stride;
    sb_gemm16_load_columns(bias, first, step * bias->column_stride, left, 16, ends->biases);
    if (product->gate != SB_GATE_NONE)
        sb_gemm16_load_columns(bias, first + (alternate ? 1 : product->n) * bias->column_stride,
                               step * bias->column_stride, left, 16, ends->value_biases);
}

/* Goes on to the next eight. */
SB_CUDA_FUNCTION void sb_gemm16_next_biases(sb_gemm16_ends *ends) {
    SB_CUDA_UNROLL
    for (int j = 0; j < 12; j++) {
        ends->biases[j] = ends->biases[j + 4];
        ends->value_biases[j] = ends->value_biases[j + 4];
    }
}

/* Chains' own rounding, scale, and the biases of an eight's four columns, if there are any. */
SB_CUDA_FUNCTION void sb_gemm16_scale_eight(const sb_gemm16_ends *ends, const float *biases, float *results) {
    const sb_gemm_epilogue *e = &ends->p->product.epilogue;
    sb_gemm16_round_chains(e, 8, results);
    SB_CUDA_UNROLL
    for (int i = 0; i < 8; i++)
        results[i] = sb_gemm_scale(e, results[i]);
    if (!e->bias.data)
        return;
    SB_CUDA_UNROLL
    for (int i = 0; i < 8; i++)
        results[i] = results[i] + biases[i / 4 * 2 + i % 2];
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
                               residual->column_stride, row < product->m ? product->n - column : 0, 4, four);
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
    const bool gated = product->gate != SB_GATE_NONE;
    SB_CUDA_UNROLL
    for (int i = 0; i < 8; i++)
        results[i] = gated ? sums[i / 4 * 8 + i % 4] : sums[i];
    sb_gemm16_scale_eight(ends, ends->biases, results);
    if (!gated) {
        sb_gemm16_activate_results(&product->epilogue, 8, results, 0);
    } else {
        float values[8];
        SB_CUDA_UNROLL
        for (int i = 0; i < 8; i++)
            values[i] = sums[i / 4 * 8 + 4 + i % 4];
        sb_gemm16_scale_eight(ends, ends->value_biases, values);
        sb_gemm16_activate_results(&product->epilogue, 8, results, values);
    }
    sb_gemm16_add_residual_to_eight(ends, column, results);
}
#endif

#endif
