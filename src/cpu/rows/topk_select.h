/* The best k of a line of keys (cpu/rows/best.h), in order: larger keys first, and of equal ones the lower index. */
#ifndef SB_CPU_ROWS_TOPK_SELECT_H
#define SB_CPU_ROWS_TOPK_SELECT_H

#include <stddef.h>

#include "cpu/rows/best.h"

/** Bytes of memory that sb_topk_select takes for lines of so many keys; SIZE_MAX where that overflows. */
size_t sb_topk_select_bytes(int64_t length, int64_t k);

/** Writes the indices of the best k of `length` keys, at most INT32_MAX, to `indices`, in order. 1 <= k <= length. */
void sb_topk_select(const sb_best_kernels *kernels, int64_t length, const int32_t *keys, int64_t k, int64_t *indices,
                    void *memory);

#endif
