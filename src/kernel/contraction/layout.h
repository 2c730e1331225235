/* Which bytes a matrix touches: whether two share some, and whether one holds an element twice. */
#ifndef SB_KERNEL_CONTRACTION_LAYOUT_H
#define SB_KERNEL_CONTRACTION_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samebit/gemm.h>

#include "kernel/contraction/batches.h"

#define SB_GEMM_LAYOUT_RANK (SB_GEMM_BATCH_RANK + 2)

/* The bytes of a batch of matrices with at least one element: `size` bytes at every sum of `first`
 * and multiples of the steps. Only dimensions with more than one index, the smallest step first. */
typedef struct sb_gemm_layout {
    uintptr_t first; /* the lowest address */
    uint64_t span;   /* from there to the end of the last element */
    uint64_t size;   /* of an element */
    int rank;
    uint64_t steps[SB_GEMM_LAYOUT_RANK], counts[SB_GEMM_LAYOUT_RANK];
} sb_gemm_layout;

/** The layout of `batches` matrices of rows × columns, all at least 1; `row_stride` takes the place
 * of the matrix's own. False when an offset in bytes exceeds int64 or an address wraps around. */
bool sb_gemm_layout_of(const sb_matrix *matrix, int64_t row_stride, int64_t batches, sb_gemm_layout *layout);

/** The same of batches over `rank` dimensions (SB_GEMM_BATCH_RANK at most), `steps` elements apart along each. */
bool sb_gemm_layout_of_batches(const sb_matrix *matrix, int64_t row_stride, int rank, const int64_t *dims,
                               const int64_t *steps, sb_gemm_layout *layout);

/** Whether no element shares a byte with another: each step is larger than what the smaller ones
 * span. The rule holds for every layout that comes from slicing and transposing a packed tensor; a
 * few others without a common byte do not fulfil it, and count as overlapping. */
bool sb_gemm_layout_is_distinct(const sb_gemm_layout *layout);

/** Whether the two are known to share no byte: they lie apart as a whole, or, seen modulo a common
 * divisor of their larger steps, every repetition of one lies between repetitions of the other (as
 * two slices of columns of one buffer do). Sufficient, not necessary: other ways of interleaving
 * count as overlapping. */
bool sb_gemm_layouts_are_apart(const sb_gemm_layout *one, const sb_gemm_layout *other);

/** The same matrices in the same order over as few dimensions as there can be: those of one matrix go, and those that both
 * operands go through evenly become one. */
sb_gemm_batches sb_gemm_batches_merged(const sb_gemm_batches *batches);

#endif
