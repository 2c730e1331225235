/* What is made ahead of the weights of a product by sums of integers. */
#ifndef SB_CPU_CONTRACTION_INTEGER_PRODUCT_WEIGHTS_H
#define SB_CPU_CONTRACTION_INTEGER_PRODUCT_WEIGHTS_H

#include "base/workers.h"
#include "cpu/contraction/integer_product.h"
#include "ops/integer_product.h"

/* Where its parts lie: the weights in f32 as products have them; integers; of each column the unit; and of each chunk and
 * column the sum of integers up to its end, and √(Σ w² m²). Offsets in bytes. */
typedef struct sb_integer_parts {
    int64_t k, columns, chunk, chunks, pitch; /* columns up to a multiple of SB_INTEGER_COLUMNS; k to one of 4 */
    size_t integers, units, sums, norms, bytes;
} sb_integer_parts;

/** False: their size overflows. */
bool sb_integer_weights_parts(sb_isa isa, const sb_integer_weights *shape, sb_integer_parts *parts);

/** Makes all of it at `to`, aligned to 64; `workers` may be NULL. False: the weights are not made of integers. */
bool sb_integer_weights_pack(sb_isa isa, const sb_integer_weights *shape, const float *weights, sb_workers *workers,
                             void *to);

/** Writes the weights again, bit for bit. */
void sb_integer_weights_unpack(sb_isa isa, const sb_integer_weights *shape, const void *from, float *weights);

#endif
