#include "tensor/block.h"

#include <stdbool.h>
#include <string.h>

/* Rows that a transposition takes at once: two lines of f32 of each column, so that the memory's next line is used, and
 * few enough that their lines on the other side stay in the first-level cache for some hundred columns. */
#define ROWS 32

/* ---- both sides adjacent along columns ---- */

static void move_rows(size_t bytes, int64_t rows, sb_block to, sb_block from) {
/* A copy of constant size is a few instructions instead of a call. */
#define MOVE(constant)                                                                                                 \
    for (int64_t r = 0; r < rows; r++)                                                                                 \
        memcpy(to.data + r * to.row, from.data + r * from.row, constant);
    switch (bytes) {
    case 16:
        MOVE(16) break;
    case 32:
        MOVE(32) break;
    case 64:
        MOVE(64) break;
    case 96:
        MOVE(96) break;
    case 128:
        MOVE(128) break;
    default:
        MOVE(bytes) break;
    }
#undef MOVE
}

/* ---- transposition: `to` is adjacent along columns, `from` along rows ---- */

/* Four elements of 4 bytes, at any address, that may be anything. */
typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));

static inline void move_4_by_4(char *to, int64_t to_row, const char *from, int64_t from_column) {
    four a = *(const four *)(const void *)from, b = *(const four *)(const void *)(from + from_column);
    four c = *(const four *)(const void *)(from + 2 * from_column);
    four d = *(const four *)(const void *)(from + 3 * from_column);
    four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(four *)(void *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(four *)(void *)(to + to_row) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(four *)(void *)(to + 2 * to_row) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(four *)(void *)(to + 3 * to_row) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/* Element by element, for any strides: `size` is a constant wherever it matters. */
static inline __attribute__((always_inline)) void move_each(size_t size, int64_t rows, int64_t columns, sb_block to,
                                                            sb_block from) {
    for (int64_t c = 0; c < columns; c++) {
        char *target = to.data + c * to.column;
        const char *source = from.data + c * from.column;
        for (int64_t r = 0; r < rows; r++)
            memcpy(target + r * to.row, source + r * from.row, size);
    }
}

static void move_elements(size_t size, int64_t rows, int64_t columns, sb_block to, sb_block from) {
    switch (size) {
    case 1:
        move_each(1, rows, columns, to, from);
        break;
    case 2:
        move_each(2, rows, columns, to, from);
        break;
    case 4:
        move_each(4, rows, columns, to, from);
        break;
    case 8:
        move_each(8, rows, columns, to, from);
        break;
    default:
        move_each(size, rows, columns, to, from);
        break;
    }
}

static sb_block at(sb_block block, int64_t row, int64_t column) {
    block.data += row * block.row + column * block.column;
    return block;
}

/* Columns that are written together, a line of the cache: rows of 4 KiB and the like, whose lines fall into one set of the first
 * level, lose them before the next columns. */
#define LINE 16

/* At most ROWS rows of elements of 4 bytes. */
static void transpose_4(int64_t rows, int64_t columns, sb_block to, sb_block from) {
    int64_t whole_rows = rows & ~(int64_t)3, whole_columns = columns & ~(int64_t)3;
    for (int64_t first = 0; first < whole_columns; first += LINE) {
        const int64_t end = first + LINE < whole_columns ? first + LINE : whole_columns;
        for (int64_t r = 0; r < whole_rows; r += 4) {
            for (int64_t c = first; c < end; c += 4)
                move_4_by_4(to.data + r * to.row + c * 4, to.row, from.data + r * 4 + c * from.column, from.column);
        }
    }
    if (whole_columns < columns)
        move_elements(4, whole_rows, columns - whole_columns, at(to, 0, whole_columns), at(from, 0, whole_columns));
    if (whole_rows < rows)
        move_elements(4, rows - whole_rows, columns, at(to, whole_rows, 0), at(from, whole_rows, 0));
}

static void transpose(size_t size, int64_t rows, int64_t columns, sb_block to, sb_block from) {
    for (int64_t r = 0; r < rows; r += ROWS) {
        int64_t taken = rows - r < ROWS ? rows - r : ROWS;
        if (size == 4)
            transpose_4(taken, columns, at(to, r, 0), at(from, r, 0));
        else
            move_elements(size, taken, columns, at(to, r, 0), at(from, r, 0));
    }
}

static sb_block turned(sb_block block) {
    return (sb_block){block.data, block.column, block.row};
}

void sb_block_move(size_t size, int64_t rows, int64_t columns, sb_block to, sb_block from) {
    const int64_t step = (int64_t)size;
    if (to.column == step && from.column == step)
        move_rows(size * (size_t)columns, rows, to, from);
    else if (to.row == step && from.row == step)
        move_rows(size * (size_t)rows, columns, turned(to), turned(from));
    else if (to.column == step && from.row == step)
        transpose(size, rows, columns, to, from);
    else if (to.row == step && from.column == step)
        transpose(size, columns, rows, turned(to), turned(from));
    else if (to.row == step) /* the side that is written goes innermost */
        move_elements(size, rows, columns, to, from);
    else
        move_elements(size, columns, rows, turned(to), turned(from));
}
