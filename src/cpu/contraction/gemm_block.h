/* The loop nest that matrix products and convolutions share: a block of rows times a range of columns. */
#ifndef SB_CPU_CONTRACTION_GEMM_BLOCK_H
#define SB_CPU_CONTRACTION_GEMM_BLOCK_H

#include "cpu/contraction/gemm_kernels.h"

/* Rows of a block, at most: 4 tiles of 14, 9 of 6. B is read once per block, from L3 or memory, but
 * announced (fetch_next_b); the block's part of A, 168 KiB, must stay in L2 beside it. Measured (Zen
 * 4, BERT-base at 128 tokens): 224 rows 229 ms, 112 rows 222, 56 rows 219, 28 rows 218. */
#define SB_GEMM_BLOCK_ROWS 56
/* Values of k in one pass, about: a panel of 32 columns is 96 KiB then. Measured (Zen 4, BERT-base):
 * 384 gives 219.7 ms, 768 218.9, 1536 224.8; 2048³ likes few passes, as C, in L3, is read and
 * written less often. */
#define SB_GEMM_K_BLOCK 768
/* Bytes of C from which a tile brings the next one's rows of it nearer: what a second-level cache does not hold. Measured
 * (Zen 5, ResNet-50 at batch 8): layers whose C has 3 to 6 MiB took 12 % longer when this was 8 MiB. */
#define SB_GEMM_FAR_BYTES ((int64_t)2 << 20)

/* Row r's values for ascending k: `runs` runs of `length`, run i from a[i * a_run_step + r] + a_offset. */
typedef struct sb_gemm_block {
    int64_t rows; /* at most SB_GEMM_BLOCK_ROWS */
    const float *const *a;
    int64_t a_run_step, a_offset;
    /* Between the values of a run. Not 1 only for a matrix (runs is 1), whose rows then lie a_row_stride apart. */
    int64_t a_column_stride, a_row_stride;
    int64_t runs, length;
    const float *b; /* column n0 of the first panel, row 0 */
    int64_t b_step; /* from a row of B to the next */
    int64_t b_panel_step;
    int64_t panel_offset; /* n0's place in its panel: how many columns the first panel lacks */
    int64_t n0, n1;
    float *const *c; /* each row's column n0; columns contiguous */
    bool far;        /* C is too large to be in a cache */
    bool continues;
    const sb_epilogue *epilogue; /* may be NULL */
    int64_t m;                   /* the first row's number */
    void *workspace;             /* sb_gemm_block_workspace_bytes() */
} sb_gemm_block;

/** Whether a block of `runs` runs of `length` is computed in one pass over k: then C is only written once, after what
 * the epilogue adds to an element was read. */
bool sb_gemm_in_one_pass(int64_t runs, int64_t length);

/** Bytes of workspace for any block. */
size_t sb_gemm_block_workspace_bytes(void);

/** Computes a block. */
void sb_gemm_block_compute(const sb_gemm_kernels *kernels, const sb_gemm_block *block);

/** Applies steps [0, steps) of an epilogue, of any kinds, to finished segments of rows from m on: row r's elements
 * n to n + count lie at row[r] + offset. */
void sb_gemm_epilogue_rows(const sb_gemm_kernels *kernels, const sb_epilogue_step *step, int steps, float *const *row,
                           int64_t offset, int64_t m, int64_t rows, int64_t n, int64_t count);

/* Bytes rounded up to whole cache lines. */
static inline size_t sb_gemm_lines(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

#endif
