/* Contractions as the operators are defined by them: one chain per output element (numerics/chain.h).
 *
 * f32 and f64: acc = fma(a[k], b[k], acc). f16 and bf16: the 16-bit chain with its f32 accumulator.
 * Integers of 32 and 64 bits: products and sums modulo 2^32 and 2^64. */
#ifndef SB_OPS_CONTRACTION_H
#define SB_OPS_CONTRACTION_H

#include <samebit/dtype.h>

#include <stddef.h>
#include <stdint.h>

/** The dtype of the accumulator: f32 for f16 and bf16, else `dtype` itself. */
sb_dtype sb_contraction_accumulator(sb_dtype dtype);

/** Continues `n` chains over `k` products: acc[j] takes a[i * a_stride] * b[i * b_k_stride + j * b_column_stride] for
 * ascending i. Strides are in elements. `dtype` is f16, bf16, f32, f64 or an integer of 32 or 64 bits; `acc` holds
 * elements of its accumulator dtype. For f16 and bf16 a call is whole groups of 16, so only the last call of a chain
 * may have a `k` that is no multiple of 16. */
void sb_contract_row(sb_dtype dtype, int64_t n, int64_t k, const void *a, int64_t a_stride, const void *b,
                     int64_t b_k_stride, int64_t b_column_stride, void *acc);

/** Stores `count` accumulators as elements of `dtype`, `stride` elements apart, each rounded once. */
void sb_contraction_store(sb_dtype dtype, int64_t count, const void *acc, void *out, int64_t stride);

/** Copies an array of `rank` extents (any strides, in elements of `size` bytes: 1, 2, 4 or 8) to a
 * gapless row-major one. */
void sb_gather_dense(size_t size, int rank, const int64_t *dims, const int64_t *strides, const void *source,
                     void *target);

#endif
