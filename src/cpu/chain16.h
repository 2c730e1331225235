/* The 16-bit contraction of the numerics contract on the CPU: C[M, N] = A[M, K] * B[K, N] for bf16
 * and f16.
 *
 * Every element of C is one chain over k (src/numerics/chain.h), kept in f32, so the result does
 * not depend on how a caller cuts C into rectangles or on the instruction set. B is packed once; A
 * is read through strides or a callback, which makes a convolution an implicit product: row =
 * output position, k = kernel position major, then channel, with +0 for the padding.
 *
 * Nothing here allocates or fails once the sizes are known: the caller brings the memory. */
#ifndef IV_CPU_CHAIN16_H
#define IV_CPU_CHAIN16_H

#include <stddef.h>
#include <stdint.h>

#include <invar/dtype.h>
#include <invar/isa.h>

#include "base/error.h"

/** Columns of a panel of packed B. Rectangles should begin at multiples of it: other beginnings are
 * right, but compute columns that they do not store. */
#define IV_CHAIN16_PANEL 64

/** Writes elements [k, k + count) of row `row` of A to `out`. Called from the thread that runs the
 * rectangle. */
typedef void iv_chain16_gather(void *context, int64_t row, int64_t k, int64_t count, uint16_t *out);

/** Changes `count` finished sums of row `row`, from column `column` on, in f32, before they are
 * rounded or stored. Every element of a rectangle is handed over exactly once, in segments of any
 * length. */
typedef void iv_chain16_epilogue(void *context, int64_t row, int64_t column, int64_t count,
                                 float *acc);

/** One contraction. Strides are in elements, of any sign. The task and all it points to must
 * outlive the calls that use it; several threads may run rectangles of one task that do not
 * overlap. */
typedef struct iv_chain16_task {
    iv_isa isa;     /* resolved: not IV_ISA_BEST */
    iv_dtype dtype; /* of A and B: IV_BF16 or IV_F16 */
    int64_t n, k;

    const uint16_t *a; /* not read when there is a `gather` */
    int64_t a_row_stride, a_k_stride;
    iv_chain16_gather *gather; /* or NULL */
    void *gather_context;

    const uint16_t *packed_b; /* from iv_chain16_pack_b */

    const float *initial; /* where the chains start, or NULL: +0 */
    int64_t initial_row_stride, initial_column_stride;

    iv_chain16_epilogue *epilogue; /* or NULL */
    void *epilogue_context;

    void *c; /* may be `initial` when the strides agree */
    iv_dtype
        c_dtype; /* IV_F32: the sums as they are; IV_BF16, IV_F16: rounded once, to nearest even */
    int64_t c_row_stride, c_column_stride;
} iv_chain16_task;

/** Bytes of a packed B, to be allocated by the caller with an alignment of 64. INVALID_ARGUMENT
 * when an extent is negative or the size overflows. */
iv_status iv_chain16_packed_bytes(int64_t k, int64_t n, size_t *bytes, iv_error *error);

/** Packs columns [column_begin, column_end) of B[K, N], whose element (k, j) is b[k * k_stride + j
 * * column_stride].
 *
 * `column_begin` is a multiple of IV_CHAIN16_PANEL, `column_end` another or `n`, so that threads
 * can share the work. The packed form is the same for every instruction set and for both dtypes. */
void iv_chain16_pack_b(int64_t k, int64_t n, const uint16_t *b, int64_t k_stride,
                       int64_t column_stride, int64_t column_begin, int64_t column_end,
                       uint16_t *packed);

/** Bytes of scratch memory, aligned to 64, that one call over at most `rows` rows needs. Errors as
 * above. */
iv_status iv_chain16_scratch_bytes(int64_t rows, int64_t k, size_t *bytes, iv_error *error);

/** Computes rows [row_begin, row_end) × columns [column_begin, column_end) of C. `scratch` belongs
 * to the call while it runs. With K = 0 the sums are what the chains start from. */
void iv_chain16_run(const iv_chain16_task *task, int64_t row_begin, int64_t row_end,
                    int64_t column_begin, int64_t column_end, void *scratch);

#endif
