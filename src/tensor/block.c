#include "tensor/block.h"

#include <stdbool.h>
#include <string.h>

/* Rows that a transposition takes at once: two lines of f32 of each column, so that the memory's next line is used, and
 * few enough that their lines on the other side stay in the first-level cache for some hundred columns. */
#define ROWS 32
/* Of bytes: a line. */
#define ROWS_OF_BYTES 64

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

/* Sixteen elements of a byte. */
typedef uint8_t sixteen __attribute__((vector_size(16), aligned(1), may_alias));

/* Vectors that are eight apart are interleaved, four times: bit by bit the number of a vector becomes that of a place in it. */
static inline void move_16_by_16(char *to, int64_t to_row, const char *from, int64_t from_column) {
    sixteen here[16], there[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        here[i] = *(const sixteen *)(const void *)(from + i * from_column);
#pragma GCC unroll 4
    for (int stage = 0; stage < 4; stage++) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            there[2 * i] =
                __builtin_shufflevector(here[i], here[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            there[2 * i + 1] = __builtin_shufflevector(here[i], here[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                                       29, 14, 30, 15, 31);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            here[i] = there[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        *(sixteen *)(void *)(to + i * to_row) = here[i];
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

/* Bytes of columns that are written together, a line of the cache: rows of 4 KiB and the like, whose lines fall into one set of the
 * first level, lose them before the next columns. */
#define LINE 64

/* At most ROWS or ROWS_OF_BYTES rows of elements of `size` bytes, 4 or 1, a constant: squares of 16 bytes a side, and the rest. */
static inline __attribute__((always_inline)) void transpose_squares(const int64_t size, int64_t rows, int64_t columns,
                                                                    sb_block to, sb_block from) {
    const int64_t side = 16 / size, line = LINE / size;
    const int64_t whole_rows = rows & ~(side - 1), whole_columns = columns & ~(side - 1);
    for (int64_t first = 0; first < whole_columns; first += line) {
        const int64_t end = first + line < whole_columns ? first + line : whole_columns;
        for (int64_t r = 0; r < whole_rows; r += side) {
            for (int64_t c = first; c < end; c += side)
                (size == 4 ? move_4_by_4 : move_16_by_16)(to.data + r * to.row + c * size, to.row,
                                                          from.data + r * size + c * from.column, from.column);
        }
    }
    if (whole_columns < columns)
        move_elements((size_t)size, whole_rows, columns - whole_columns, at(to, 0, whole_columns),
                      at(from, 0, whole_columns));
    if (whole_rows < rows)
        move_elements((size_t)size, rows - whole_rows, columns, at(to, whole_rows, 0), at(from, whole_rows, 0));
}

static void transpose(size_t size, int64_t rows, int64_t columns, sb_block to, sb_block from) {
    const int64_t most = size == 1 ? ROWS_OF_BYTES : ROWS;
    for (int64_t r = 0; r < rows; r += most) {
        int64_t taken = rows - r < most ? rows - r : most;
        if (size == 4)
            transpose_squares(4, taken, columns, at(to, r, 0), at(from, r, 0));
        else if (size == 1)
            transpose_squares(1, taken, columns, at(to, r, 0), at(from, r, 0));
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
