/* What the two ways of computing products share: the chain of every element (chain16.c), and of those alone whose rounding is not
 * certain without it (chain16_near.c). */
#ifndef SB_CPU_CONTRACTION_CHAIN16_INTERNAL_H
#define SB_CPU_CONTRACTION_CHAIN16_INTERNAL_H

#include "cpu/contraction/chain16.h"
#include "cpu/contraction/chain16_kernels.h"

static inline int64_t sb_chain16_groups(int64_t k) {
    return k / SB_CHAIN16_GROUP + (k % SB_CHAIN16_GROUP != 0);
}

/** Adds `count` elements of `size` bytes, rounded up to whole cache lines; false on overflow. */
static inline bool sb_chain16_add_bytes(size_t *total, int64_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4)
        return false;
    return !__builtin_add_overflow(*total, (bytes + 63) / 64 * 64, total) && *total <= SIZE_MAX / 2;
}

/** Packs one panel of at most SB_CHAIN16_PANEL columns, from that at `b` on. */
void sb_chain16_pack_panel(int64_t k, int columns, const uint16_t *b, int64_t row_stride, int64_t column_stride,
                           uint16_t *panel);

/** The panel that begins with column `first`: in packed B, or packed to `room`. */
const uint16_t *sb_chain16_panel_at(const sb_chain16_args *args, int64_t first, uint16_t *room);

/** Copies one row of A, of k elements. `runs` has room for as many as it lies in. */
void sb_chain16_copy_row(const sb_chain16_args *args, int64_t row, const uint16_t **runs, uint16_t *to);

/** Hands the columns [begin, end) of a finished tile, whose lines are `columns` long, to the epilogue and stores them, along whichever
 * direction of C is contiguous. */
void sb_chain16_store_tile(const sb_chain16_args *args, const sb_chain16_kernels *kernels, int64_t first_row,
                           int64_t rows, int64_t first_column, int64_t columns, int64_t begin, int64_t end, float *acc);

/** Bytes that sb_chain16_run_chains needs, a multiple of 64; 0 when that overflows. */
size_t sb_chain16_chain_bytes(const sb_chain16_args *args);

/** sb_chain16_run by the chain of every element. */
void sb_chain16_run_chains(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t m0, int64_t m1,
                           int64_t n0, int64_t n1, void *workspace);

#endif
