/* Products of f16 and bf16 matrices, forward and backward, and what goes with them.
 *
 *     C = round(epilogue(A · B))
 *
 * Every element is one chain of the contract for 16-bit contractions (docs/numerics.md, section 7; or of an engine's other one,
 * iv_chain), kept in f32, then the epilogue in f32, then one rounding. So a row has the same bits alone, in any
 * batch, in any part of a batch, on the CPU and on any GPU that has the chain. How a product is
 * scheduled never shows.
 *
 * Matrices are described, not owned: addresses, extents and strides. On a device they are addresses
 * of its memory; the work is given to a stream, and the call returns at once. On the CPU they are
 * the process's own memory, and the call returns when it is done. */
#ifndef INVAR_GEMM_H
#define INVAR_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <invar/device.h>
#include <invar/isa.h>
#include <invar/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where ---- */

/** Where products are computed: the CPU's threads, or a device, with its kernels loaded. One thread at a time. */
typedef struct iv_engine iv_engine;

/** How an engine's products add up. The first is the contract of this library. */
typedef enum iv_chain {
    IV_CHAIN_HOPPER = 0, /**< steps of 16 k, aligned to 25 bits: the contract; quick on the CPU and on compute capability 9.0 */
    IV_CHAIN_AMPERE = 1  /**< not the contract: steps of 8 k, aligned to 24 bits, as the tensor cores of compute capability 8.0 to
                              8.9 add up by published models. Quick there; the CPU and other devices emulate it, slowly */
} iv_chain;

/** Start from IV_ENGINE_OPTIONS_DEFAULT. */
typedef struct iv_engine_options {
    size_t struct_bytes; /**< sizeof(iv_engine_options): lets the struct grow */
    iv_device *device;   /**< which the engine keeps in use; NULL: the CPU */
    int threads;         /**< on the CPU, the caller's included; 0: one per processor */
    iv_isa isa;          /**< on the CPU; IV_ISA_BEST: the best there is */
    iv_chain chain;      /**< of all its products; the one thing here that changes bits */
} iv_engine_options;

#define IV_ENGINE_OPTIONS_DEFAULT                                                                  \
    { sizeof(iv_engine_options), NULL, 0, IV_ISA_BEST, IV_CHAIN_HOPPER }

/** Makes an engine; on a device it loads all kernels, so that every later call may be captured in a graph. `options` may be
 * NULL. The caller destroys it. Errors: INVALID_ARGUMENT, UNSUPPORTED when there are no kernels for the device, DEVICE,
 * OUT_OF_MEMORY. */
IV_API IV_MUST_CHECK iv_status iv_engine_create(const iv_engine_options *options, iv_engine **engine,
                                                iv_error *error);
/** Ends an engine. What it gave to streams still runs. NULL is allowed. */
IV_API void iv_engine_destroy(iv_engine *engine);

/* ---- matrices ---- */

/** A matrix, or a batch of them. Element (row, column) of matrix `batch` lies `batch * batch_stride + row * row_stride +
 * column * column_stride` elements behind `data`. Strides may be anything for what is read; what is written must not
 * contain an element twice. `data` must be aligned to the size of an element, and may be NULL when there is no element. */
typedef struct iv_matrix {
    iv_dtype dtype;
    void *data;
    int64_t rows, columns;
    int64_t row_stride, column_stride; /**< in elements */
    int64_t batch_stride;              /**< in elements; 0: all batches read the same matrix */
} iv_matrix;

/* ---- what ---- */

/** What the epilogue applies to each element. The functions are those of the operators (docs/numerics.md, section 4). */
typedef enum iv_activation {
    IV_ACTIVATION_NONE = 0,
    IV_ACTIVATION_RELU = 1,      /**< y < 0 ? +0 : y */
    IV_ACTIVATION_SILU = 2,      /**< y * sigmoid(y) */
    IV_ACTIVATION_GELU = 3,      /**< by the error function */
    IV_ACTIVATION_GELU_TANH = 4  /**< by the hyperbolic tangent */
} iv_activation;

/** Gated products: B has two columns, a gate and a value, for each column of C, which is activation(gate) * value. */
typedef enum iv_gate {
    IV_GATE_NONE = 0,
    IV_GATE_STACKED = 1,    /**< first all gates, then all values */
    IV_GATE_INTERLEAVED = 2 /**< gate, value, gate, value, … */
} iv_gate;

/** Where samples begin and end among the rows that a gradient sums over. See iv_row_map_create. */
typedef struct iv_row_map iv_row_map;

/** A product. Start from IV_GEMM_DEFAULT, which has one batch and no epilogue.
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
typedef struct iv_gemm {
    size_t struct_bytes;      /**< sizeof(iv_gemm): lets the struct grow */
    iv_matrix a, b;           /**< both IV_BF16 or both IV_F16; any strides, so any of them may be transposed */
    iv_matrix c;              /**< IV_F32 or A's dtype; overlaps nothing else that is read, but for a residual that is C itself */
    int64_t batches;          /**< from 0 */
    float scale;
    iv_matrix bias;           /**< 1 × columns of B; IV_F32 or A's dtype; `data` NULL: none. Its row_stride is not read */
    iv_activation activation;
    iv_gate gate;
    iv_matrix residual;       /**< M × N; IV_F32 or A's dtype; `data` NULL: none */
    bool accumulate;          /**< the chains continue from C, which is IV_F32 then; no epilogue */
    const iv_row_map *rows;   /**< how k is cut into groups, NULL: into 16 from 0; its rows are K */
    const char *schedule;     /**< NULL: chosen; else one of iv_gemm_schedule_name, and UNSUPPORTED when it cannot run this
                                 product. None changes a bit */
} iv_gemm;

#define IV_GEMM_DEFAULT                                                                            \
    { .struct_bytes = sizeof(iv_gemm), .batches = 1, .scale = 1.0f }

/** Computes a product: on the CPU before it returns, on a device in `stream` (a CUstream of its primary context; NULL: the
 * legacy stream), which may be being captured. Everything is checked before anything is launched: a failure changes nothing.
 * Errors: INVALID_ARGUMENT, SHAPE (dtypes too), UNSUPPORTED, DEVICE, OUT_OF_MEMORY, each with what is wrong, where, and what to do. */
IV_API IV_MUST_CHECK iv_status iv_gemm_run(iv_engine *engine, void *stream, const iv_gemm *gemm,
                                           iv_error *error);

/** The schedules of an engine: "chain", "definition"; on a device "tile-128x256", "turned-64x8", "general", …; with
 * IV_CHAIN_AMPERE "definition", on a device "general" and "general-small". */
IV_API int iv_gemm_schedule_count(const iv_engine *engine);
/** Static storage; NULL when `index` is out of range. */
IV_API const char *iv_gemm_schedule_name(const iv_engine *engine, int index);
/** The schedule that iv_gemm_run would choose, or INVALID_ARGUMENT and so on as it would report. Static storage. */
IV_API IV_MUST_CHECK iv_status iv_gemm_choose(iv_engine *engine, const iv_gemm *gemm, const char **schedule,
                                              iv_error *error);

/* ---- samples ---- */

/** Describes which rows belong to which sample, for gradients of weights (dB = Aᵀ · dC: the rows are the product's K).
 *
 * Each sample's rows are padded with zeros to a multiple of 16 inside the kernel, so that no group of 16 holds rows of two
 * samples: the gradient is then the same however samples are put together into batches, chunks and micro-batches, as long as
 * their order is kept. `lengths` has `samples` row counts, each at least 0. The map is immutable and on the engine's device
 * when this returns. The caller releases it, after the work that uses it is done. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY,
 * DEVICE. */
IV_API IV_MUST_CHECK iv_status iv_row_map_create(iv_engine *engine, int64_t samples, const int64_t *lengths,
                                                 iv_row_map **map, iv_error *error);
/** NULL is allowed. */
IV_API void iv_row_map_release(iv_row_map *map);
/** The sum of the lengths. */
IV_API int64_t iv_row_map_rows(const iv_row_map *map);

#ifdef __cplusplus
}
#endif
#endif
