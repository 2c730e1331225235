/* Epilogues of products by wgmma, on sums in registers: eight of a thread's at a time, so that what one waits for the others use,
 * and no more code than that is unrolled. */
#ifndef IV_CUDA_KERNELS_GEMM16_FINISH_CUH
#define IV_CUDA_KERNELS_GEMM16_FINISH_CUH

#include "cuda/kernels/gemm16_hopper_tile.cuh"

#if IV_HOPPER
/* How many are taken at a time: a constant wherever it is an argument. */
#define IV_GEMM16_SOME 8

/* Some results of a thread: whose they are. */
typedef struct iv_gemm16_some {
    const iv_gemm16_hopper *p;
    int batch;
    int64_t m, n; /* where the rows of the warpgroup begin, and the columns of these, in the kernel's C; with a gate in C */
} iv_gemm16_some;

/* Where gates and values alternate, a thread has both of one column of each four. */
IV_CUDA_FUNCTION int iv_gemm16_some_row(const iv_gemm16_some *some, int i) {
    return some->p->product.gate == IV_GATE_INTERLEAVED ? iv_gemm16_sum_row(2 * i) : iv_gemm16_sum_row(i);
}

IV_CUDA_FUNCTION int iv_gemm16_some_column(const iv_gemm16_some *some, int i) {
    return some->p->product.gate == IV_GATE_INTERLEAVED ? iv_gemm16_sum_column(2 * i) / 2 : iv_gemm16_sum_column(i);
}

/* The place of result i in the product's C. */
IV_CUDA_FUNCTION int64_t iv_gemm16_c_row(const iv_gemm16_some *some, int i) {
    return some->p->turned ? some->n + iv_gemm16_some_column(some, i) : some->m + iv_gemm16_some_row(some, i);
}

IV_CUDA_FUNCTION int64_t iv_gemm16_c_column(const iv_gemm16_some *some, int i) {
    return some->p->turned ? some->m + iv_gemm16_some_row(some, i) : some->n + iv_gemm16_some_column(some, i);
}

/* Scale, and the bias of B's columns from `first` on: those of C, or with a gate of their gates or values. */
IV_CUDA_FUNCTION void iv_gemm16_scale_some(const iv_gemm16_some *some, int64_t first, int step, int count, float *results) {
    const iv_gemm_epilogue *e = &some->p->product.epilogue;
    IV_CUDA_UNROLL
    for (int i = 0; i < count; i++)
        results[i] = iv_gemm_scale(e, results[i]);
    if (!e->bias.data)
        return;
    IV_CUDA_UNROLL
    for (int i = 0; i < count; i++) {
        const int64_t column = iv_gemm16_c_column(some, i);
        if (column < some->p->product.n)
            results[i] = results[i] + iv_gemm_load_addend(&e->bias, some->batch, 0, first + column * step);
    }
}

#define IV_GEMM16_ACTIVATE(kind)                                                                                               \
    case kind:                                                                                                                 \
        IV_CUDA_UNROLL                                                                                                         \
        for (int i = 0; i < count; i++)                                                                               \
            results[i] = iv_gemm_activate(kind, results[i]);                                                                   \
        break;
IV_CUDA_FUNCTION void iv_gemm16_activate_some(int32_t activation, int count, float *results) {
    switch (activation) {
        IV_GEMM16_ACTIVATE(IV_ACTIVATION_RELU)
        IV_GEMM16_ACTIVATE(IV_ACTIVATION_SILU)
        IV_GEMM16_ACTIVATE(IV_ACTIVATION_GELU)
        IV_GEMM16_ACTIVATE(IV_ACTIVATION_GELU_TANH)
    }
}

/* The residual, where there is one. */
IV_CUDA_FUNCTION void iv_gemm16_add_residual(const iv_gemm16_some *some, int count, float *results) {
    const iv_gemm16 *product = &some->p->product;
    if (!product->epilogue.residual.data)
        return;
    IV_CUDA_UNROLL
    for (int i = 0; i < count; i++) {
        const int64_t row = iv_gemm16_c_row(some, i), column = iv_gemm16_c_column(some, i);
        if (row < product->m && column < product->n)
            results[i] = results[i] + iv_gemm_load_addend(&product->epilogue.residual, some->batch, row, column);
    }
}

/* Stores results one by one. */
IV_CUDA_FUNCTION void iv_gemm16_store_some(const iv_gemm16_some *some, int count, const float *results) {
    const iv_gemm16 *product = &some->p->product;
    const iv_gemm16_output *c = &product->c;
    IV_CUDA_UNROLL
    for (int i = 0; i < count; i++) {
        const int64_t row = iv_gemm16_c_row(some, i), column = iv_gemm16_c_column(some, i);
        if (row < product->m && column < product->n)
            iv_gemm_store(&product->epilogue, c->data,
                          some->batch * c->batch_stride + row * c->row_stride + column * c->column_stride, results[i]);
    }
}

/* Sums become results, which are not rounded yet. */
IV_CUDA_FUNCTION void iv_gemm16_finish_some(const iv_gemm16_some *some, int count, float *sums) {
    iv_gemm16_scale_some(some, 0, 1, count, sums);
    iv_gemm16_activate_some(some->p->product.epilogue.activation, count, sums);
    iv_gemm16_add_residual(some, count, sums);
}

/* Sixteen sums become eight gated results, which are stored. */
IV_CUDA_FUNCTION void iv_gemm16_finish_gated(const iv_gemm16_some *some, const float *sums) {
    const iv_gemm16 *product = &some->p->product;
    const bool alternate = product->gate == IV_GATE_INTERLEAVED;
    float gates[IV_GEMM16_SOME], values[IV_GEMM16_SOME];
    IV_CUDA_UNROLL
    for (int i = 0; i < IV_GEMM16_SOME; i++) {
        gates[i] = alternate ? sums[2 * i] : sums[i / 4 * 8 + i % 4];
        values[i] = alternate ? sums[2 * i + 1] : sums[i / 4 * 8 + 4 + i % 4];
    }
    iv_gemm16_scale_some(some, 0, alternate ? 2 : 1, IV_GEMM16_SOME, gates);
    iv_gemm16_scale_some(some, alternate ? 1 : product->n, alternate ? 2 : 1, IV_GEMM16_SOME, values);
    iv_gemm16_activate_some(product->epilogue.activation, IV_GEMM16_SOME, gates);
    IV_CUDA_UNROLL
    for (int i = 0; i < IV_GEMM16_SOME; i++)
        gates[i] = gates[i] * values[i];
    iv_gemm16_add_residual(some, IV_GEMM16_SOME, gates);
    iv_gemm16_store_some(some, IV_GEMM16_SOME, gates);
}
#endif

#endif
