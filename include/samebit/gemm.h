/* Products of f16 and bf16 matrices, forward and backward, and what goes with them.
 *
 *     C = round(epilogue(A · B))
 *
 * Every element is one chain of the contract for 16-bit contractions (docs/numerics.md, section 7), kept in f32, then
 * the epilogue in f32, then one rounding. So a row has the same bits alone, in any batch, in any part of a batch, on
 * the CPU and on any GPU that has the chain. How a product is scheduled never shows.
 *
 * Matrices are described, not owned: addresses, extents and strides. On a device they are addresses of its memory; the
 * work is given to a stream, and the call returns at once. On the CPU they are the process's own memory, and the call
 * returns when it is done. */
#ifndef SAMEBIT_GEMM_H
#define SAMEBIT_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samebit/device.h>
#include <samebit/dtype.h>
#include <samebit/isa.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where ---- */

/** Where products are computed: the CPU's threads, or a device, with its kernels loaded. One thread at a time. */
typedef struct sb_engine sb_engine;

/** Start from SB_ENGINE_OPTIONS_DEFAULT. */
typedef struct sb_engine_options {
    size_t struct_bytes; /**< sizeof(sb_engine_options): lets the struct grow */
    sb_device *device;   /**< which the engine keeps in use; NULL: the CPU */
    int threads;         /**< on the CPU, the caller's included; 0: one per processor */
    sb_isa isa;          /**< on the CPU; SB_ISA_BEST: the best there is */
} sb_engine_options;

#define SB_ENGINE_OPTIONS_DEFAULT                                                                                      \
    { sizeof(sb_engine_options), NULL, 0, SB_ISA_BEST }

/** Makes an engine; on a device it loads all kernels, so that every later call may be captured in a graph. `options`
 * may be NULL. The caller destroys it. Errors: INVALID_ARGUMENT, UNSUPPORTED when there are no kernels for the
 * device, DEVICE, OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_engine_create(const sb_engine_options *options, sb_engine **engine, sb_error *error);
/** Ends an engine. What it gave to streams still runs. NULL is allowed. */
SB_API void sb_engine_destroy(sb_engine *engine);

/* ---- matrices ---- */

/** A matrix, or a batch of them. Element (row, column) of matrix `batch` lies
 * `batch * batch_stride + row * row_stride + column * column_stride` elements behind `data`. Strides may be anything
 * for what is read; what is written must not contain an element twice. `data` must be aligned to the size of an
 * element, and may be NULL when there is no element. */
typedef struct sb_matrix {
    sb_dtype dtype;
    void *data;
    int64_t rows, columns;
    int64_t row_stride, column_stride; /**< in elements */
    int64_t batch_stride;              /**< in elements; 0: all batches read the same matrix */
} sb_matrix;

/* ---- what ---- */

/** What the epilogue applies to each element. The functions are those of the operators
 * (docs/numerics.md, section 4). */
typedef enum sb_activation {
    SB_ACTIVATION_NONE = 0,
    SB_ACTIVATION_RELU = 1,     /**< y < 0 ? +0 : y */
    SB_ACTIVATION_SILU = 2,     /**< y * sigmoid(y) */
    SB_ACTIVATION_GELU = 3,     /**< by the error function */
    SB_ACTIVATION_GELU_TANH = 4 /**< by the hyperbolic tangent */
} sb_activation;

/** Gated products: B has two columns, a gate and a value, for each column of C, which is activation(gate) * value. */
typedef enum sb_gate {
    SB_GATE_NONE = 0,
    SB_GATE_STACKED = 1,    /**< first all gates, then all values */
    SB_GATE_INTERLEAVED = 2 /**< gate, value, gate, value, … */
} sb_gate;

/** Where samples begin and end among the rows that a gradient sums over. See sb_row_map_create. */
typedef struct sb_row_map sb_row_map;

/** A product. Start from SB_GEMM_DEFAULT, which has one batch and no epilogue.
 *
 * With A of M × K, B of K × N (K × 2N with a gate), C of M × N, each element is
 *
 *     y = the chain over k of A[m][k] · B[k][n], which begins with +0, or with C[m][n] for `accumulate`
 *     y = y * scale            unless scale is 1
 *     y = y + bias[n]          if there is a bias (of the gate and of the value each its own)
 *     y = activation(y)        or activation(gate) * value
 *     y = y + residual[m][n]   if there is one
 *     C[m][n] = y, rounded once to nearest even if C is of 16 bits
 *
 * in f32, each line with one rounding for each operation. K = 0 gives the epilogue of the beginning. */
typedef struct sb_gemm {
    size_t struct_bytes; /**< sizeof(sb_gemm): lets the struct grow */
    sb_matrix a, b;      /**< both SB_BF16 or both SB_F16; any strides, so any of them may be transposed */
    sb_matrix c; /**< SB_F32 or A's dtype; overlaps nothing else that is read, but for a residual that is C itself */
    int64_t batches; /**< from 0 */
    float scale;
    sb_matrix bias; /**< 1 × columns of B; SB_F32 or A's dtype; `data` NULL: none. Its row_stride is not read */
    sb_activation activation;
    sb_gate gate;
    sb_matrix residual;     /**< M × N; SB_F32 or A's dtype; `data` NULL: none */
    bool accumulate;        /**< the chains continue from C, which is SB_F32 then; no epilogue */
    const sb_row_map *rows; /**< how k is cut into groups, NULL: into 16 from 0; its rows are K */
    /** NULL: chosen; else one of sb_gemm_schedule_name, and UNSUPPORTED when it cannot run
     * this product. None changes a bit. */
    const char *schedule;
} sb_gemm;

#define SB_GEMM_DEFAULT                                                                                                \
    { .struct_bytes = sizeof(sb_gemm), .batches = 1, .scale = 1.0f }

/** Computes a product: on the CPU before it returns, on a device in `stream` (a CUstream of its primary context; NULL:
 * the legacy stream), which may be being captured. Everything is checked before anything is launched: a failure changes
 * nothing. Errors: INVALID_ARGUMENT, SHAPE (dtypes too), UNSUPPORTED, DEVICE, OUT_OF_MEMORY, each with what is wrong,
 * where, and what to do. */
SB_API SB_MUST_CHECK sb_status sb_gemm_run(sb_engine *engine, void *stream, const sb_gemm *gemm, sb_error *error);

/** The schedules of an engine: "chain", "definition"; on a device "tile-128x256", "swapped-64x8", "general", …. */
SB_API int sb_gemm_schedule_count(const sb_engine *engine);
/** Static storage; NULL when `index` is out of range. */
SB_API const char *sb_gemm_schedule_name(const sb_engine *engine, int index);
/** The schedule that sb_gemm_run would choose, or INVALID_ARGUMENT and so on as it would report. Static storage. */
SB_API SB_MUST_CHECK sb_status sb_gemm_choose(sb_engine *engine, const sb_gemm *gemm, const char **schedule,
                                              sb_error *error);

/* ---- samples ---- */

/** Describes which rows belong to which sample, for gradients of weights (dB = Aᵀ · dC: the rows are the product's K).
 *
 * Each sample's rows are padded with zeros to a multiple of 16 inside the kernel, so that no group of 16 holds rows of
 * two samples: the gradient is then the same however samples are put together into batches, chunks and micro-batches,
 * as long as their order is kept. `lengths` has `samples` row counts, each at least 0. The map is immutable and on the
 * engine's device when this returns. The caller releases it, after the work that uses it is done. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE. */
SB_API SB_MUST_CHECK sb_status sb_row_map_create(sb_engine *engine, int64_t samples, const int64_t *lengths,
                                                 sb_row_map **map, sb_error *error);
/** NULL is allowed. */
SB_API void sb_row_map_release(sb_row_map *map);
/** The sum of the lengths. */
SB_API int64_t sb_row_map_rows(const sb_row_map *map);

#ifdef __cplusplus
}
#endif
#endif
