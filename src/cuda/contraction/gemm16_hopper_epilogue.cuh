/* Epilogues of products by wgmma, on sums in registers: eight of a thread's at a time, so that what one waits for the
 * others use, and no more code than that is unrolled. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_HOPPER_EPILOGUE_CUH
#define SB_CUDA_CONTRACTION_GEMM16_HOPPER_EPILOGUE_CUH

#include "cuda/contraction/gemm16_activations.cuh"
#include "cuda/contraction/gemm16_hopper_tile.cuh"

#if SB_HOPPER
/* How many are taken at a time: a constant wherever it is an argument. */
#define SB_GEMM16_RESULTS 8

/* Where results of a thread lie. */
typedef struct sb_gemm16_results {
    const sb_gemm16_hopper *p;
    int batch;
    int64_t m,
        n; /* where the rows of the warpgroup begin, and the columns of these, in the kernel's C; with a gate in C */
} sb_gemm16_results;

/* Where gates and values alternate in the columns, a thread has both of one column of each four. Where eights of either
 * take turns in the rows, the first of its rows is a gate and the one eight below its value. */
SB_CUDA_FUNCTION int sb_gemm16_result_row(const sb_gemm16_results *place, int i) {
    if (place->p->stacked == 1)
        return (int)threadIdx.x % 128 / 32 * 8 + (int)threadIdx.x % 32 / 4;
    return place->p->product.gate == SB_GATE_INTERLEAVED ? sb_gemm16_sum_row(2 * i) : sb_gemm16_sum_row(i);
}

SB_CUDA_FUNCTION int sb_gemm16_result_column(const sb_gemm16_results *place, int i) {
    if (place->p->stacked == 1)
        return sb_gemm16_sum_column(i / 2 * 4 + i % 2);
    return place->p->product.gate == SB_GATE_INTERLEAVED ? sb_gemm16_sum_column(2 * i) / 2 : sb_gemm16_sum_column(i);
}

/* Whether result i is of the tile: rows behind those that a swapped tile takes are the next one's. */
SB_CUDA_FUNCTION bool sb_gemm16_is_of_tile(const sb_gemm16_results *place, int i) {
    return sb_gemm16_result_row(place, i) < (place->p->stacked == 1 ? place->p->tile_rows / 2 : place->p->tile_rows);
}

/* The place of result i in the product's C. */
SB_CUDA_FUNCTION int64_t sb_gemm16_c_row(const sb_gemm16_results *place, int i) {
    return place->p->swapped ? place->n + sb_gemm16_result_column(place, i) : place->m + sb_gemm16_result_row(place, i);
}

SB_CUDA_FUNCTION int64_t sb_gemm16_c_column(const sb_gemm16_results *place, int i) {
    return place->p->swapped ? place->m + sb_gemm16_result_row(place, i) : place->n + sb_gemm16_result_column(place, i);
}

/* Elements of an addend for results: that of C's first row and column is element `first`, the next row's lies `row` behind it and
 * the next column's `column`; zeros where C has none. The dtype is asked for once for all, so that all of them are underway
 * together: one by one they took 19 us of a tile of 128 by 256, which is multiplied in ten where K is 768. */
#define SB_GEMM16_LOAD_ADDENDS(load)                                                                                   \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < count; i++) {                                                                              \
            const int64_t m = sb_gemm16_c_row(place, i), n = sb_gemm16_c_column(place, i);                             \
            const bool inside = (row == 0 || m < place->p->product.m) && n < place->p->product.n;                      \
            values[i] = inside ? load(first + m * row + n * column) : 0.0f;                                            \
        }                                                                                                              \
    } while (0)
#define SB_GEMM16_F32_AT(index) ((const float *)addend->data)[index]
#define SB_GEMM16_BF16_AT(index) sb_bf16_to_f32(((const uint16_t *)addend->data)[index])
#define SB_GEMM16_F16_AT(index) sb_f16_to_f32(((const uint16_t *)addend->data)[index])
SB_CUDA_FUNCTION void sb_gemm16_load_addends(const sb_gemm16_results *place, const sb_gemm_addend *addend,
                                             int64_t first, int64_t row, int64_t column, int count, float *values) {
    if (addend->dtype == SB_F32)
        SB_GEMM16_LOAD_ADDENDS(SB_GEMM16_F32_AT);
    else if (addend->dtype == SB_BF16)
        SB_GEMM16_LOAD_ADDENDS(SB_GEMM16_BF16_AT);
    else
        SB_GEMM16_LOAD_ADDENDS(SB_GEMM16_F16_AT);
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++)
        values[i] = addend->scale * values[i];
}

/* Chains' own rounding, scale, and the bias of B's columns from `first` on: those of C, or with a gate of their gates or values. */
SB_CUDA_FUNCTION void sb_gemm16_scale_results(const sb_gemm16_results *place, int64_t first, int step, int count,
                                              float *results) {
    const sb_gemm_epilogue *e = &place->p->product.epilogue;
    const sb_gemm_addend *bias = &e->bias;
    sb_gemm16_round_chains(e, e->dtype, count, results);
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++)
        results[i] = sb_gemm_scale(e, results[i]);
    if (!bias->data)
        return;
    float values[SB_GEMM16_RESULTS];
    sb_gemm16_load_addends(place, bias, place->batch * bias->batch_stride + first * bias->column_stride, 0,
                           step * bias->column_stride, count, values);
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++)
        results[i] = results[i] + values[i];
}

/* The residual, where there is one. */
SB_CUDA_FUNCTION void sb_gemm16_add_residual(const sb_gemm16_results *place, int count, float *results) {
    const sb_gemm_addend *residual = &place->p->product.epilogue.residual;
    if (!residual->data)
        return;
    float values[SB_GEMM16_RESULTS];
    sb_gemm16_load_addends(place, residual, place->batch * residual->batch_stride, residual->row_stride,
                           residual->column_stride, count, values);
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++)
        results[i] = results[i] + values[i];
}

/* Elements of an addend for the columns of eights of results, sixteen columns apart; the dtype is asked for once for all, so that
 * all of them are underway together. */
#define SB_GEMM16_LOAD_COLUMNS(load)                                                                                   \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int j = 0; j < count; j++) {                                                                              \
            const int column = j / 4 * 16 + j / 2 % 2 * 8 + j % 2;                                                     \
            columns[j] = column < left ? load(first + column * step) : 0.0f;                                           \
        }                                                                                                              \
    } while (0)

/* Four elements an eight of results of a row, `count` in all, of which there are those of `left` columns: that of the first is
 * element `first`, and the next column's lies `step` behind it. */
SB_CUDA_FUNCTION void sb_gemm16_load_columns(const sb_gemm_addend *addend, int64_t first, int64_t step, int64_t left,
                                             const int count, float *columns) {
    if (addend->dtype == SB_F32)
        SB_GEMM16_LOAD_COLUMNS(SB_GEMM16_F32_AT);
    else if (addend->dtype == SB_BF16)
        SB_GEMM16_LOAD_COLUMNS(SB_GEMM16_BF16_AT);
    else
        SB_GEMM16_LOAD_COLUMNS(SB_GEMM16_F16_AT);
    SB_CUDA_UNROLL
    for (int j = 0; j < count; j++)
        columns[j] = addend->scale * columns[j];
}

/* Whether nothing but scale, bias, and Relu or a SiLU whose rounding to 16 bits is wanted is behind the chains: ends that are short
 * enough to be unrolled, of which two warpgroups that multiply the same tile have nothing to hide behind. */
SB_CUDA_FUNCTION bool sb_gemm16_is_light(const sb_gemm16 *product) {
    const sb_gemm_epilogue *e = &product->epilogue;
    return product->gate == SB_GATE_NONE && !e->residual.data && !e->rounds && e->activation <= SB_ACTIVATION_SILU;
}

/* Biases of a thread's columns, `count` in all, of which the first is C's column `column`. Most are f32 that lie side by side: then
 * their places are constants from one address on. */
SB_CUDA_FUNCTION void sb_gemm16_load_light_biases(const sb_gemm16 *product, int batch, int column, const int count,
                                                  float *biases) {
    const sb_gemm_addend *bias = &product->epilogue.bias;
    if (!bias->data)
        return;
    const int64_t first = batch * bias->batch_stride + column * bias->column_stride;
    const int left = (int)product->n - column, last = (count - 1) / 2 * 8 + (count - 1) % 2;
    if (bias->dtype != SB_F32 || bias->column_stride != 1 || left <= last) {
        sb_gemm16_load_columns(bias, first, bias->column_stride, left, count, biases);
        return;
    }
    const float *side_by_side = (const float *)bias->data + first;
    SB_CUDA_UNROLL
    for (int j = 0; j < count; j++)
        biases[j] = side_by_side[j / 2 * 8 + j % 2];
    SB_CUDA_UNROLL
    for (int j = 0; j < count; j++)
        biases[j] = bias->scale * biases[j];
}

/* `count` sums, a multiple of 8, with all of a light epilogue for a C of `dtype`. */
SB_CUDA_FUNCTION void sb_gemm16_finish_light(const sb_gemm_epilogue *epilogue, int32_t dtype, const int count,
                                             const float *biases, float *sums) {
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++)
        sums[i] = sb_gemm_scale(epilogue, sums[i]);
    if (epilogue->bias.data) {
        SB_CUDA_UNROLL
        for (int i = 0; i < count; i++)
            sums[i] = sums[i] + biases[i / 4 * 2 + i % 2];
    }
    if (epilogue->activation == SB_ACTIVATION_SILU)
        sb_gemm16_silu_to_round(dtype, count, sums, 0);
    if (epilogue->activation == SB_ACTIVATION_RELU) {
        SB_CUDA_UNROLL
        for (int i = 0; i < count; i++)
            sums[i] = sb_gemm_activate(SB_ACTIVATION_RELU, sums[i]);
    }
}

/* Stores results one by one. */
SB_CUDA_FUNCTION void sb_gemm16_store_results(const sb_gemm16_results *place, int count, const float *results) {
    const sb_gemm16 *product = &place->p->product;
    const sb_gemm16_output *c = &product->c;
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++) {
        const int64_t row = sb_gemm16_c_row(place, i), column = sb_gemm16_c_column(place, i);
        if (row < product->m && column < product->n && sb_gemm16_is_of_tile(place, i))
            sb_gemm_store(&product->epilogue, c->data,
                          place->batch * c->batch_stride + row * c->row_stride + column * c->column_stride, results[i]);
    }
}

/* Sums become results, which are not rounded yet. */
SB_CUDA_FUNCTION void sb_gemm16_apply_epilogue(const sb_gemm16_results *place, int count, float *sums) {
    sb_gemm16_scale_results(place, 0, 1, count, sums);
    sb_gemm16_activate_results(&place->p->product.epilogue, count, sums, 0);
    sb_gemm16_add_residual(place, count, sums);
}

/* Gates become results by their values, which are not rounded yet. */
SB_CUDA_FUNCTION void sb_gemm16_finish_gates(const sb_gemm16_results *place, int count, float *gates, float *values) {
    const sb_gemm16 *product = &place->p->product;
    const bool alternate = product->gate == SB_GATE_INTERLEAVED;
    sb_gemm16_scale_results(place, 0, alternate ? 2 : 1, count, gates);
    sb_gemm16_scale_results(place, alternate ? 1 : product->n, alternate ? 2 : 1, count, values);
    sb_gemm16_activate_results(&product->epilogue, count, gates, values);
    sb_gemm16_add_residual(place, count, gates);
}

/* The same, and stores them. */
SB_CUDA_FUNCTION void sb_gemm16_end_gated(const sb_gemm16_results *place, int count, float *gates, float *values) {
    sb_gemm16_finish_gates(place, count, gates, values);
    sb_gemm16_store_results(place, count, gates);
}

/* Sixteen sums become eight gated results. */
SB_CUDA_FUNCTION void sb_gemm16_apply_gated_epilogue(const sb_gemm16_results *place, const float *sums) {
    const bool alternate = place->p->product.gate == SB_GATE_INTERLEAVED;
    float gates[SB_GEMM16_RESULTS], values[SB_GEMM16_RESULTS];
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_GEMM16_RESULTS; i++) {
        gates[i] = alternate ? sums[2 * i] : sums[i / 4 * 8 + i % 4];
        values[i] = alternate ? sums[2 * i + 1] : sums[i / 4 * 8 + 4 + i % 4];
    }
    sb_gemm16_end_gated(place, SB_GEMM16_RESULTS, gates, values);
}

/* Sixteen sums, in which eights of columns of gates and of values take turns, become eight results of sixteen columns, where a sum would
 * have sixteen of them. */
SB_CUDA_FUNCTION void sb_gemm16_finish_stacked_gates(const sb_gemm16_results *place, const float *sums,
                                                     float results[SB_GEMM16_RESULTS]) {
    float values[SB_GEMM16_RESULTS];
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_GEMM16_RESULTS; i++) {
        results[i] = sums[i / 4 * 8 + i % 4];
        values[i] = sums[i / 4 * 8 + 4 + i % 4];
    }
    sb_gemm16_finish_gates(place, SB_GEMM16_RESULTS, results, values);
}

/* 2 * count sums of rows in which eights of gates and of values take turns become so many results. */
SB_CUDA_FUNCTION void sb_gemm16_apply_swapped_gates(const sb_gemm16_results *place, int count, const float *sums) {
    float gates[SB_GEMM16_RESULTS / 2], values[SB_GEMM16_RESULTS / 2];
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++) {
        gates[i] = sums[i / 2 * 4 + i % 2];
        values[i] = sums[i / 2 * 4 + 2 + i % 2];
    }
    sb_gemm16_end_gated(place, count, gates, values);
}
#endif

#endif
