/* The 16-bit contraction of the numerics contract on the CPU: C[M, N] = A[M, K] * B[K, N] for bf16 and f16.
 *
 * Every element of C is one chain over k (src/numerics/chain.h), kept in f32, so the result does not depend on how a
 * caller cuts C into rectangles, on strides, on whether B was packed ahead or on the instruction set. A is read through
 * strides, or as runs of elements that may lie anywhere, which makes a convolution an implicit product: row = output
 * position, k = kernel position major, then channel, with +0 for the padding.
 *
 * The interface is that of the f32 product (cpu/contraction/gemm.h), epilogues and splits included: raw
 * pointers, no allocation, any number of threads, each with its own workspace and its own part of C.
 * Strides are in elements and may be anything, except that C's elements must be distinct. C must
 * not overlap any operand but `initial`, when that has its address and strides. */
#ifndef SB_CPU_CONTRACTION_CHAIN16_H
#define SB_CPU_CONTRACTION_CHAIN16_H

#include <stddef.h>
#include <stdint.h>

#include <samebit/dtype.h>
#include <samebit/isa.h>

#include "cpu/contraction/gemm.h"

/** Columns of a panel of packed B. Rectangles should begin at multiples of it: other beginnings are
 * right, but compute columns that they do not store. */
#define SB_CHAIN16_PANEL 64

/* The kernels of one instruction set; see chain16_kernels.h. */
typedef struct sb_chain16_kernels sb_chain16_kernels;

/** The kernels for a resolved instruction set (SB_ISA_BEST is taken as scalar). Never NULL. */
const sb_chain16_kernels *sb_chain16_kernels_of(sb_isa isa);

/** Points at runs [first, first + count) of row `row` of A. Called from the thread that runs the rectangle; what it points
 * at must stay until the call that asked returns. */
typedef void sb_chain16_point(void *context, int64_t row, int64_t first, int64_t count, const uint16_t **runs);

/* C[m][n] = round(epilogue(chain over k of A[m][k] * B[k][n])). */
typedef struct sb_chain16_args {
    sb_dtype dtype; /* of A and B: SB_BF16 or SB_F16 */
    int64_t m, n, k;
    const uint16_t *a;
    int64_t a_row_stride, a_column_stride;
    sb_chain16_point *point; /* when not NULL, it says where A lies, and `a` and its strides are not read: a row is */
    void *point_context;
    int64_t runs, run_length; /* `runs` runs of `run_length` elements, k together; whole groups of 16 are quickest */
    const uint16_t *packed_b; /* what sb_chain16_pack_b wrote; or NULL, and: */
    const uint16_t *b;
    int64_t b_row_stride, b_column_stride;
    const float *initial; /* where the chains start; NULL: from +0 */
    int64_t initial_row_stride, initial_column_stride;
    void *c;
    sb_dtype c_dtype; /* SB_F32, or SB_BF16 or SB_F16: rounded once, to nearest even, after the epilogue */
    int64_t c_row_stride, c_column_stride;
    const sb_epilogue *epilogue; /* in f32; NULL: none */
} sb_chain16_args;

/** Bytes of a packed B of k rows and n columns (non-negative); 0 when that overflows, never otherwise. */
size_t sb_chain16_packed_bytes(int64_t k, int64_t n);

/** Packs columns [n0, n1) of the n columns of B. `n0` is a multiple of SB_CHAIN16_PANEL, `n1`
 * another or n, so that threads can share the work. `packed` has sb_chain16_packed_bytes bytes,
 * aligned to 64. The packed form is the same for every instruction set and both dtypes. */
void sb_chain16_pack_b(int64_t k, int64_t n, const uint16_t *b, int64_t row_stride, int64_t column_stride, int64_t n0,
                       int64_t n1, uint16_t *packed);

/** Packs one panel of at most SB_CHAIN16_PANEL columns that lie anywhere: column j's k elements are adjacent from `columns[j]`
 * on. `panel` gets whole groups of rows, zeros behind the last row and the last column. */
void sb_chain16_pack_columns(int64_t k, int count, const uint16_t *const *columns, uint16_t *panel);

/** Where element (k, n) of a B with `length` rows lies in the packed form, in elements. */
int64_t sb_chain16_packed_place(int64_t length, int64_t k, int64_t n);

/** Bytes of workspace that any sb_chain16_run with these args needs; 0 when that overflows. Reads the
 * extents, the runs and whether B is packed. */
size_t sb_chain16_workspace_bytes(const sb_chain16_args *args);

/** Computes rows [m0, m1) and columns [n0, n1) of C: any rectangle, the same bits. `workspace` is for
 * this call alone, aligned to 64, of sb_chain16_workspace_bytes bytes. */
void sb_chain16_run(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t m0, int64_t m1, int64_t n0,
                    int64_t n1, void *workspace);

/** The same by its definition: plain loops over the reference chain. */
void sb_chain16_reference(const sb_chain16_args *args, int64_t m0, int64_t m1, int64_t n0, int64_t n1);

/** A grid of rectangles for `threads` threads, for sb_gemm_split_rectangle: whole panels of columns first, as long as
 * each rectangle keeps several to share the preparation of its rows; then rows. */
sb_gemm_split sb_chain16_split(int64_t m, int64_t n, int threads);

#endif
