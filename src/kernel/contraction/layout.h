/* Which bytes a matrix touches: whether two share some, and whether one holds an element twice. */
#ifndef SB_KERNEL_CONTRACTION_LAYOUT_H
#define SB_KERNEL_CONTRACTION_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samebit/gemm.h>

/* The bytes of a batch of matrices with at least one element: `size` bytes at every sum of `first`
 * and multiples of the steps. Only dimensions with more than one index, the smallest step first. */
typedef struct sb_gemm_layout {
    uintptr_t first; /* the lowest address */
    uint64_t span;   /* from there to the end of the last element */
    uint64_t size;   /* of an element */
    int rank;        /* 0 to 3 */
    uint64_t steps[3], counts[3];
} sb_gemm_layout;

/** The layout of `batches` matrices of rows × columns, all at least 1; `row_stride` takes the place
 * of the matrix's own. False when an offset in bytes exceeds int64 or an address wraps around. */
bool sb_gemm_layout_of(const sb_matrix *matrix, int64_t row_stride, int64_t batches, sb_gemm_layout *layout);

/** Whether no element shares a byte with another: each step is larger than what the smaller ones
 * span. The rule holds for every layout that comes from slicing and transposing a packed tensor; a
 * few others without a common byte do not fulfil it, and count as overlapping. */
bool sb_gemm_layout_is_distinct(const sb_gemm_layout *layout);

/** Whether the two are known to share no byte: they lie apart as a whole, or, seen modulo a common
 * divisor of their larger steps, every repetition of one lies between repetitions of the other (as
 * two slices of columns of one buffer do). Sufficient, not necessary: other ways of interleaving
 * count as overlapping. */
bool sb_gemm_layouts_are_apart(const sb_gemm_layout *one, const sb_gemm_layout *other);

#endif
