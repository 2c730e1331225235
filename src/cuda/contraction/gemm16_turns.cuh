/* The ends of tiles that two warpgroups take in turns (gemm16_hopper.cuh): from the sums of a box of 64 rows and 64 columns of C, 32 of
 * a thread, to as many results. All of a box at a time: eight at a time, sums moved up behind each eight and what is the same for all asked
 * again for each took three times as long as SiLU. What a box reads is asked for as soon as the one before is finished. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_TURNS_CUH
#define SB_CUDA_CONTRACTION_GEMM16_TURNS_CUH

#include "cuda/contraction/gemm16_hopper_epilogue.cuh"

#if SB_HOPPER
/* A thread's results of a box: result i lies at column i / 4 * 8 + i % 2 and row i / 2 % 2 * 8 from its first one on. */
#define SB_GEMM16_BOX 32

/* What results of a box read. */
typedef struct sb_gemm16_ends {
    const sb_gemm16_hopper *p;
    int batch, row, column;                                           /* of the thread's first result */
    float biases[SB_GEMM16_BOX / 2], value_biases[SB_GEMM16_BOX / 2]; /* of their columns */
    uint32_t residuals[SB_GEMM16_BOX / 2];                            /* by pairs, where they lie so */
} sb_gemm16_ends;

/* Whether two neighbouring residuals of C's dtype are read at once. */
SB_CUDA_FUNCTION bool sb_gemm16_pairs_residuals(const sb_gemm16 *product, int32_t dtype) {
    const sb_gemm_addend *residual = &product->epilogue.residual;
    return residual->dtype == dtype && residual->column_stride == 1 && (uint32_t)(uintptr_t)residual->data % 4 == 0 &&
           (product->m == 1 || (uint32_t)residual->row_stride % 2 == 0) &&
           (product->batches == 1 || (uint32_t)residual->batch_stride % 2 == 0);
}

SB_CUDA_FUNCTION void sb_gemm16_load_residuals(sb_gemm16_ends *ends) {
    const sb_gemm16 *product = &ends->p->product;
    const sb_gemm_addend *residual = &product->epilogue.residual;
    const uint16_t *first = (const uint16_t *)residual->data + ends->batch * residual->batch_stride + ends->column;
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_GEMM16_BOX / 2; i++) {
        const int m = ends->row + i % 2 * 8;
        ends->residuals[i] = m < product->m && ends->column + i / 2 * 8 < product->n
                                 ? *(const uint32_t *)(const void *)(first + m * residual->row_stride + i / 2 * 8)
                                 : 0;
    }
}

/* Whether that happens ahead: activations and gates have no registers for them. */
SB_CUDA_FUNCTION bool sb_gemm16_asks_for_residuals(const sb_gemm16 *product, int32_t dtype, const bool gated) {
    return !gated && product->epilogue.residual.data && product->epilogue.activation <= SB_ACTIVATION_RELU &&
           sb_gemm16_pairs_residuals(product, dtype);
}

/* Elements of an addend for a box's columns, four at a time: seldom, and so in little code. */
SB_CUDA_FUNCTION void sb_gemm16_load_box_columns(const sb_gemm_addend *addend, int64_t first, int64_t step,
                                                 int64_t left, float *columns) {
    SB_CUDA_KEEP_LOOP
    for (int q = 0; q < SB_GEMM16_BOX / 8; q++) {
        float four[4];
        sb_gemm16_load_columns(addend, first + q * 16 * step, step, left - q * 16, 4, four);
        SB_CUDA_UNROLL
        for (int i = 0; i < SB_GEMM16_BOX / 2; i++)
            columns[i] = i + 4 < SB_GEMM16_BOX / 2 ? columns[(i + 4) % (SB_GEMM16_BOX / 2)] : four[i % 4];
    }
}

/* Asks for all that a box reads, of which `row` and `column` are the thread's first. `gated` is a constant. */
SB_CUDA_FUNCTION void sb_gemm16_ask_for_box(const sb_gemm16_hopper *p, int batch, int row, int column, int32_t dtype,
                                            const bool gated, sb_gemm16_ends *ends) {
    const sb_gemm16 *product = &p->product;
    const sb_gemm_addend *bias = &product->epilogue.bias;
    ends->p = p;
    ends->batch = batch;
    ends->row = row;
    ends->column = column;
    if (!gated)
        sb_gemm16_load_light_biases(product, batch, column, SB_GEMM16_BOX / 2, ends->biases);
    else if (bias->data) {
        const bool alternate = product->gate == SB_GATE_INTERLEAVED;
        const int64_t step = (alternate ? 2 : 1) * bias->column_stride, left = product->n - column;
        const int64_t first = batch * bias->batch_stride + column * step;
        sb_gemm16_load_box_columns(bias, first, step, left, ends->biases);
        sb_gemm16_load_box_columns(bias, first + (alternate ? 1 : product->n) * bias->column_stride, step, left,
                                   ends->value_biases);
    }
    if (sb_gemm16_asks_for_residuals(product, dtype, gated))
        sb_gemm16_load_residuals(ends);
}

/* Chains' own rounding, scale, and the biases of a box's columns, if there are any. */
SB_CUDA_FUNCTION void sb_gemm16_scale_box(const sb_gemm_epilogue *e, int32_t dtype, const float *biases,
                                          float *results) {
    sb_gemm16_round_chains(e, dtype, SB_GEMM16_BOX, results);
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_GEMM16_BOX; i++)
        results[i] = sb_gemm_scale(e, results[i]);
    if (!e->bias.data)
        return;
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_GEMM16_BOX; i++)
        results[i] = results[i] + biases[i / 4 * 2 + i % 2];
}

/* Activations by their definitions, four results at a time: there is too much code of them to be there for each. */
SB_CUDA_FUNCTION void sb_gemm16_activate_box(const sb_gemm_epilogue *e, const bool gated, float *results,
                                             float *values) {
    SB_CUDA_KEEP_LOOP
    for (int q = 0; q < SB_GEMM16_BOX / 4; q++) {
        float four[4];
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++)
            four[i] = results[i];
        sb_gemm16_activate_exactly(e, 4, four, gated ? values : 0);
        SB_CUDA_UNROLL
        for (int i = 0; i < SB_GEMM16_BOX; i++) {
            results[i] = i + 4 < SB_GEMM16_BOX ? results[(i + 4) % SB_GEMM16_BOX] : four[i % 4];
            if (gated && i + 4 < SB_GEMM16_BOX)
                values[i] = values[(i + 4) % SB_GEMM16_BOX];
        }
    }
}

SB_CUDA_FUNCTION void sb_gemm16_add_residual_to_box(sb_gemm16_ends *ends, int32_t dtype, const bool is_there,
                                                    float *results) {
    const sb_gemm16 *product = &ends->p->product;
    const sb_gemm_addend *residual = &product->epilogue.residual;
    if (!residual->data)
        return;
    if (sb_gemm16_pairs_residuals(product, dtype)) {
        if (!is_there)
            sb_gemm16_load_residuals(ends);
        SB_CUDA_UNROLL
        for (int i = 0; i < SB_GEMM16_BOX / 2; i++) {
            float low, high;
            if (dtype == SB_BF16)
                sb_cuda_widen_pair<SB_CUDA_BF16>(ends->residuals[i], &low, &high);
            else
                sb_cuda_widen_pair<SB_CUDA_F16>(ends->residuals[i], &low, &high);
            results[2 * i] = results[2 * i] + residual->scale * low;
            results[2 * i + 1] = results[2 * i + 1] + residual->scale * high;
        }
        return;
    }
    SB_CUDA_KEEP_LOOP
    for (int q = 0; q < SB_GEMM16_BOX / 8; q++) {
        const int column = ends->column + q * 16;
        float eight[8];
        SB_CUDA_UNROLL
        for (int i = 0; i < 8; i++)
            eight[i] = results[i];
        SB_CUDA_KEEP_LOOP
        for (int r = 0; r < 2; r++) {
            const int64_t row = ends->row + r * 8;
            float four[4];
            sb_gemm16_load_columns(residual,
                                   ends->batch * residual->batch_stride + row * residual->row_stride +
                                       column * residual->column_stride,
                                   residual->column_stride, row < product->m ? product->n - column : 0, 4, four);
            SB_CUDA_UNROLL
            for (int j = 0; j < 4; j++) {
                const float sum = eight[j / 2 * 4 + j % 2] + four[j];
                eight[j / 2 * 4 + j % 2] = eight[j / 2 * 4 + 2 + j % 2];
                eight[j / 2 * 4 + 2 + j % 2] = sum;
            }
        }
        SB_CUDA_UNROLL
        for (int i = 0; i < SB_GEMM16_BOX; i++)
            results[i] = i + 8 < SB_GEMM16_BOX ? results[(i + 8) % SB_GEMM16_BOX] : eight[i % 8];
    }
}

/* A box's sums, with gates their values beside them, become results of the product's C. */
SB_CUDA_FUNCTION void sb_gemm16_finish_box(sb_gemm16_ends *ends, int32_t dtype, const bool gated, float *results,
                                           float *values) {
    const sb_gemm_epilogue *e = &ends->p->product.epilogue;
    sb_gemm16_scale_box(e, dtype, ends->biases, results);
    if (gated)
        sb_gemm16_scale_box(e, dtype, ends->value_biases, values);
    if (e->activation == SB_ACTIVATION_SILU && !e->residual.data) {
        SB_CUDA_UNROLL
        for (int i = 0; i < SB_GEMM16_BOX; i += 8)
            sb_gemm16_silu_to_round(dtype, 8, results + i, gated ? values + i : 0);
    } else if (e->activation > SB_ACTIVATION_RELU || gated) {
        sb_gemm16_activate_box(e, gated, results, values);
        sb_gemm16_add_residual_to_box(ends, dtype, false, results);
    } else {
        if (e->activation == SB_ACTIVATION_RELU) {
            SB_CUDA_UNROLL
            for (int i = 0; i < SB_GEMM16_BOX; i++)
                results[i] = sb_gemm_activate(SB_ACTIVATION_RELU, results[i]);
        }
        sb_gemm16_add_residual_to_box(ends, dtype, true, results);
    }
}
#endif

#endif
