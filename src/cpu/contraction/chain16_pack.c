/* The packed form of B (chain16.h). */
#include <string.h>

#include "cpu/contraction/chain16_internal.h"

size_t sb_chain16_packed_bytes(int64_t k, int64_t n) {
    int64_t rows, columns, elements;
    size_t bytes = 64;
    if (__builtin_add_overflow(k, SB_CHAIN16_GROUP - 1, &rows) ||
        __builtin_add_overflow(n, SB_CHAIN16_PANEL - 1, &columns) ||
        __builtin_mul_overflow(rows / SB_CHAIN16_GROUP * SB_CHAIN16_GROUP,
                               columns / SB_CHAIN16_PANEL * SB_CHAIN16_PANEL, &elements) ||
        !sb_chain16_add_bytes(&bytes, elements, sizeof(uint16_t)))
        return 0;
    return bytes;
}

/* Vectors that every machine has. */
typedef uint16_t halves __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint32_t words __attribute__((vector_size(16), aligned(2), may_alias));
enum { LINES = 8 }; /* halves of a vector */

/* Rows k … k + 7 of the columns `at` … `at` + 3 and those 16 behind them, whose elements share 32-bit words. NULL is a column of
 * zeros. */
static void transpose_words(const uint16_t *const *columns, int at, int64_t k, uint16_t *panel) {
    words low[4], high[4];
    for (int i = 0; i < 4; i++) {
        const uint16_t *left = columns[at + i], *right = columns[at + 16 + i];
        const halves a = left != NULL ? *(const halves *)(const void *)(left + k) : (halves){0};
        const halves b = right != NULL ? *(const halves *)(const void *)(right + k) : (halves){0};
        low[i] = (words)__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        high[i] = (words)__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    uint16_t *to = panel + k * SB_CHAIN16_PANEL + sb_chain16_place(at);
    for (int half = 0; half < 2; half++, to += 4 * SB_CHAIN16_PANEL) {
        const words *x = half == 0 ? low : high;
        const words even = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
        const words even_next = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
        const words odd = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
        const words odd_next = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
        *(words *)(void *)to = __builtin_shufflevector(even, even_next, 0, 1, 4, 5);
        *(words *)(void *)(to + SB_CHAIN16_PANEL) = __builtin_shufflevector(even, even_next, 2, 3, 6, 7);
        *(words *)(void *)(to + 2 * SB_CHAIN16_PANEL) = __builtin_shufflevector(odd, odd_next, 0, 1, 4, 5);
        *(words *)(void *)(to + 3 * SB_CHAIN16_PANEL) = __builtin_shufflevector(odd, odd_next, 2, 3, 6, 7);
    }
}

void sb_chain16_pack_columns(int64_t k, int count, const uint16_t *const *columns, uint16_t *panel) {
    const uint16_t *column[SB_CHAIN16_PANEL] = {NULL};
    const int64_t whole = k - k % LINES, rows = sb_chain16_groups(k) * SB_CHAIN16_GROUP;
    memcpy(column, columns, (size_t)count * sizeof *column);
    for (int64_t row = 0; row < whole; row += LINES) {
        for (int at = 0; at < SB_CHAIN16_PANEL; at = (at & 15) == 12 ? at + 20 : at + 4)
            transpose_words(column, at, row, panel);
    }
    memset(panel + whole * SB_CHAIN16_PANEL, 0, (size_t)((rows - whole) * SB_CHAIN16_PANEL) * sizeof *panel);
    for (int64_t row = whole; row < k; row++) {
        for (int j = 0; j < count; j++)
            panel[row * SB_CHAIN16_PANEL + sb_chain16_place(j)] = columns[j][row];
    }
}

/* A row of a panel, from its columns in their order. */
static void interleave(const uint16_t *line, uint16_t *panel) {
    for (int at = 0; at < SB_CHAIN16_PANEL; at = (at & 8) != 0 ? at + 24 : at + LINES) {
        const halves a = *(const halves *)(const void *)(line + at);
        const halves b = *(const halves *)(const void *)(line + at + 16);
        uint16_t *to = panel + sb_chain16_place(at);
        *(halves *)(void *)to = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        *(halves *)(void *)(to + LINES) = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
}

void sb_chain16_pack_panel(int64_t k, int columns, const uint16_t *b, int64_t row_stride, int64_t column_stride,
                           uint16_t *panel) {
    if (row_stride == 1 && column_stride != 1) {
        const uint16_t *column[SB_CHAIN16_PANEL];
        for (int j = 0; j < columns; j++)
            column[j] = b + j * column_stride;
        sb_chain16_pack_columns(k, columns, column, panel);
        return;
    }
    uint16_t line[SB_CHAIN16_PANEL] = {0};
    for (int64_t row = 0; row < k; row++, panel += SB_CHAIN16_PANEL, b += row_stride) {
        const bool is_whole = column_stride == 1 && columns == SB_CHAIN16_PANEL;
        const uint16_t *from = is_whole ? b : line;
        for (int j = 0; j < columns && !is_whole; j++)
            line[j] = b[j * column_stride];
        interleave(from, panel);
    }
    int64_t padding = sb_chain16_groups(k) * SB_CHAIN16_GROUP - k;
    memset(panel, 0, (size_t)padding * SB_CHAIN16_PANEL * sizeof(uint16_t));
}

void sb_chain16_pack_b(int64_t k, int64_t n, const uint16_t *b, int64_t row_stride, int64_t column_stride, int64_t n0,
                       int64_t n1, uint16_t *packed) {
    int64_t padded = sb_chain16_groups(k) * SB_CHAIN16_GROUP;
    for (int64_t first = n0; first < n1; first += SB_CHAIN16_PANEL) {
        int columns = n - first < SB_CHAIN16_PANEL ? (int)(n - first) : SB_CHAIN16_PANEL;
        sb_chain16_pack_panel(k, columns, b + first * column_stride, row_stride, column_stride,
                              packed + first * padded);
    }
}

int64_t sb_chain16_packed_place(int64_t length, int64_t k, int64_t n) {
    int64_t within = n % SB_CHAIN16_PANEL;
    return (n - within) * sb_chain16_groups(length) * SB_CHAIN16_GROUP + k * SB_CHAIN16_PANEL +
           sb_chain16_place((int)within);
}
