/* f32 matrix products whose every element is one chain: acc = +0, then acc = fmaf(a[m][k], b[k][n],
 * acc) for ascending k. Results do not depend on the instruction set, on how the work is cut, on
 * strides or on whether B was packed ahead.
 *
 * Everything here works on raw pointers, allocates nothing and is safe to call from many threads at
 * once, each with its own workspace and its own part of C.
 *
 * Strides are in elements and may be anything, 0 and negative included, except that C's elements
 * must be distinct. C must not overlap any operand, but for a matrix that the epilogue adds: it may be
 * C itself where sb_gemm_f32_in_one_pass. */
#ifndef SB_CPU_CONTRACTION_GEMM_H
#define SB_CPU_CONTRACTION_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samebit/isa.h>

/* -- What happens to a finished chain ---------------------------------------------------------- */

/* A step computes y from y; each is one f32 operation with its own rounding, so that a fused graph
 * has the bits of the unfused one. `m` and `n` are the element's row and column in all of C. */
typedef enum sb_epilogue_kind {
    SB_EPILOGUE_SCALE_SHIFT_COLUMNS, /* y = fmaf(y, vector[n], shift[n]): batch normalisation */
    SB_EPILOGUE_ADD_COLUMNS,         /* y = y + vector[n] */
    SB_EPILOGUE_MUL_COLUMNS,         /* y = y * vector[n] */
    SB_EPILOGUE_ADD_ROWS,            /* y = y + vector[m] */
    SB_EPILOGUE_ADD_MATRIX,          /* y = y + scalar * vector[m * row_stride + n * column_stride], scalar 1 or -1 */
    SB_EPILOGUE_MUL_MATRIX,          /* y = y * vector[m * row_stride + n * column_stride] */
    SB_EPILOGUE_ADD_SCALAR,          /* y = y + scalar */
    SB_EPILOGUE_MUL_SCALAR,          /* y = y * scalar */
    SB_EPILOGUE_DIV_SCALAR,          /* y = y / scalar */
    SB_EPILOGUE_GATE,                /* t = factor * y; t = t + addend; t clipped as below; y = y * t: hard swish */
    SB_EPILOGUE_RELU,                /* y = y < 0 ? +0 : y, as the operator: NaN and -0 stay */
    SB_EPILOGUE_CLIP,                /* t = y < scalar ? scalar : y; y = t > high ? high : t */
    SB_EPILOGUE_CALL                 /* call(context, row, m, n, count) on a row segment */
} sb_epilogue_kind;

/* What is known of a CALL. */
typedef enum sb_epilogue_nature {
    SB_EPILOGUE_ANYTHING,
    SB_EPILOGUE_MONOTONE,    /* each element rises with its own y throughout, or falls */
    SB_EPILOGUE_ROUNDS_FIRST /* each y is rounded to the dtype of what is computed, and not looked at before */
} sb_epilogue_nature;

typedef struct sb_epilogue_step {
    sb_epilogue_kind kind;
    const float *vector;
    const float *shift;
    int64_t row_stride, column_stride;
    float scalar, high;
    float factor, addend;
    /* Changes row[0 .. count), the elements (m, n) to (m, n + count), in place. Called from whichever thread computes
     * them; must treat each element by itself, as segments fall anyhow. */
    void (*call)(void *context, float *row, int64_t m, int64_t n, int64_t count);
    /* The same for `rows` rows from m on, row r's segment at row[r] + offset; NULL: one after the other by `call`. Rows of
     * few columns are so short that what a call costs would be most of it. */
    void (*call_rows)(void *context, float *const *row, int64_t offset, int64_t m, int64_t rows, int64_t n,
                      int64_t count);
    void *context;
    sb_epilogue_nature nature;
} sb_epilogue_step;

#define SB_EPILOGUE_STEPS 12

typedef struct sb_epilogue {
    int count;
    sb_epilogue_step steps[SB_EPILOGUE_STEPS];
} sb_epilogue;

/* -- Matrix product ---------------------------------------------------------------------------- */

/* The kernels of one instruction set; see gemm_kernels.h. */
typedef struct sb_gemm_kernels sb_gemm_kernels;

/** The kernels for a resolved instruction set (SB_ISA_BEST is taken as scalar). Never NULL. */
const sb_gemm_kernels *sb_gemm_f32_kernels(sb_isa isa);

/* C[m][n] = epilogue(chain over k of A[m][k] * B[k][n]). */
typedef struct sb_gemm_args {
    int64_t m, n, k;
    const float *a;
    int64_t a_row_stride, a_column_stride;
    const float *packed_b; /* what sb_gemm_f32_pack_b wrote with the same kernels; or NULL, and: */
    const float *b;
    int64_t b_row_stride, b_column_stride;
    float *c;
    int64_t c_row_stride, c_column_stride;
    bool continues;              /* chains start from what C holds instead of +0 */
    const sb_epilogue *epilogue; /* NULL: none */
} sb_gemm_args;

/** Bytes of a packed B of k rows and n columns (non-negative); 0 when that overflows, never otherwise. */
size_t sb_gemm_f32_packed_bytes(const sb_gemm_kernels *kernels, int64_t k, int64_t n);

/** Columns of a panel of packed B. */
int64_t sb_gemm_f32_panel(const sb_gemm_kernels *kernels);

/** Packs columns [n0, n1) of the n columns of B for `kernels`. `n0` is a multiple of the panel, `n1` another or n, so that
 * threads can share the work. `packed` has sb_gemm_f32_packed_bytes bytes, aligned to 64. A transposed B is one with
 * swapped strides. */
void sb_gemm_f32_pack_b(const sb_gemm_kernels *kernels, int64_t k, int64_t n, const float *b, int64_t row_stride,
                        int64_t column_stride, int64_t n0, int64_t n1, float *packed);

/** Bytes of workspace that any sb_gemm_f32_run with these args needs; 0 when that overflows. Reads
 * the extents, the strides and whether B is packed. */
size_t sb_gemm_f32_workspace_bytes(const sb_gemm_kernels *kernels, const sb_gemm_args *args);

/** Computes rows [m0, m1) and columns [n0, n1) of C: any rectangle, the same bits. `workspace` is for
 * this call alone, aligned to 64, of sb_gemm_f32_workspace_bytes bytes. */
void sb_gemm_f32_run(const sb_gemm_kernels *kernels, const sb_gemm_args *args, int64_t m0, int64_t m1, int64_t n0,
                     int64_t n1, void *workspace);

/** Whether each element of C is written once only, after the epilogue has read its own element of what it adds. */
bool sb_gemm_f32_in_one_pass(int64_t k);

/** The same by its definition: four plain loops. */
void sb_gemm_f32_reference(const sb_gemm_args *args, int64_t m0, int64_t m1, int64_t n0, int64_t n1);

/** The epilogue of one element by its definition; `y` is the finished chain of element (m, n). */
float sb_epilogue_reference(const sb_epilogue *epilogue, float y, int64_t m, int64_t n);

/* -- Cutting the work -------------------------------------------------------------------------- */

/* m × n cut into a grid of rectangles, numbered row by row. */
typedef struct sb_gemm_split {
    int64_t m, n;
    int64_t m_step, n_step; /* extents of a rectangle, but for the last ones */
    int64_t m_parts, n_parts;
} sb_gemm_split;

/** A grid for `threads` threads that suits these kernels: by columns where there are few rows (each
 * weight is then read once), by rows where there are many (each thread then reads all weights from
 * the shared cache), else both. A little more than one rectangle per thread where the problem is
 * large enough for the loss at the seams not to matter. */
sb_gemm_split sb_gemm_f32_split(const sb_gemm_kernels *kernels, int64_t m, int64_t n, int64_t k, int threads);

/** Rectangle `index`, from 0 to m_parts * n_parts - 1. */
void sb_gemm_split_rectangle(const sb_gemm_split *split, int64_t index, int64_t *m0, int64_t *m1, int64_t *n0,
                             int64_t *n1);

#endif
