/* Moving rectangles of elements between any strides: what copies of tensors are made of. */
#ifndef SB_TENSOR_BLOCK_H
#define SB_TENSOR_BLOCK_H

#include <stddef.h>
#include <stdint.h>

/* A rectangle in memory: element (r, c) lies at data + r * row + c * column (bytes, of any sign, 0 for what repeats). */
typedef struct sb_block {
    char *data;
    int64_t row, column;
} sb_block;

/** Copies rows x columns elements of `size` bytes (1, 2, 4, 8 or more), whatever they are, to places of their own that
 * overlap nothing that is read. Where the one side's columns and the other side's rows are adjacent, it goes in pieces
 * that use each line of the cache whole. Safe from many threads on disjoint targets. */
void sb_block_move(size_t size, int64_t rows, int64_t columns, sb_block to, sb_block from);

#endif
