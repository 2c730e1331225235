/* Pages of a cache: where keys of several sequences lie, once for the definitions and for kernels.
 *
 * A cache is [pages, rows of a page, …]. Key p of sequence s is row p mod (rows of a page) of the page that the table names at
 * [s, ⌊p / rows of a page⌋]. Numbers of pages are held within those that there are, so that whatever a table says, the same
 * elements are looked at everywhere.
 *
 * The new rows of several sequences lie behind each other: row i belongs to the last sequence, but for the first, that begins
 * at i or before (a begin below 0 is 0); else to the first. A sequence may be nobody's, so that there are more rows than are needed. */
#ifndef SB_OPS_PAGES_H
#define SB_OPS_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numerics/scalar.h"

/* What stands for the first new key of a sequence that is nobody's: its rows go nowhere. */
#define SB_PAGES_NOBODY (-1)

/* `table`, s64 [sequences, columns], and `begins`, s64 [sequences], with steps in elements. */
typedef struct sb_pages {
    const char *table, *begins; /* without a table: there are no pages */
    int64_t table_row, table_column, begins_step;
    int64_t pages, rows; /* pages of the cache, and rows of each */
    int64_t sequences, columns;
    int64_t new_rows; /* of all sequences together */
    bool ascends;     /* begins can be read where this is made, and ascend from the second on: false is always right */
} sb_pages;

/* How many keys a sequence has room for. */
static SB_HD int64_t sb_pages_room(const sb_pages *pages) {
    return pages->pages > 0 ? pages->columns * pages->rows : 0;
}

/* Where a sequence's new rows begin, not below 0. */
static SB_HD int64_t sb_pages_begin(const sb_pages *pages, int64_t sequence) {
    const int64_t begin = ((const int64_t *)(const void *)pages->begins)[sequence * pages->begins_step];
    return begin > 0 ? begin : 0;
}

/* The sequence of a new row, how many new rows of that stand before it, and how many from it on. */
typedef struct sb_pages_place {
    int64_t sequence, before, left;
} sb_pages_place;

/* sb_pages_of_row where begins ascend. */
static SB_HD sb_pages_place sb_pages_halve(const sb_pages *pages, int64_t row) {
    int64_t last = pages->sequences - 1, end = pages->new_rows;
    sb_pages_place place = {0, row, 0};
    while (place.sequence < last) {
        const int64_t middle = last - (last - place.sequence) / 2;
        if (sb_pages_begin(pages, middle) > row)
            last = middle - 1;
        else
            place.sequence = middle;
    }
    if (place.sequence + 1 < pages->sequences && sb_pages_begin(pages, place.sequence + 1) < end)
        end = sb_pages_begin(pages, place.sequence + 1);
    if (place.sequence > 0)
        place.before = row - sb_pages_begin(pages, place.sequence);
    place.left = end - row;
    return place;
}

static SB_HD sb_pages_place sb_pages_of_row(const sb_pages *pages, int64_t row) {
    sb_pages_place place;
    int64_t end = pages->new_rows;
    if (pages->ascends)
        return sb_pages_halve(pages, row);
    place.sequence = pages->sequences - 1;
    while (place.sequence > 0 && sb_pages_begin(pages, place.sequence) > row) {
        const int64_t begin = sb_pages_begin(pages, place.sequence);
        end = begin < end ? begin : end;
        place.sequence--;
    }
    place.before = place.sequence > 0 ? row - sb_pages_begin(pages, place.sequence) : row;
    place.left = end - row;
    return place;
}

/* What the table names at a column, which may be any number, and the page that is meant. */
static SB_HD int64_t sb_pages_entry(const sb_pages *pages, int64_t sequence, int64_t column) {
    return ((const int64_t *)(const void *)pages->table)[sequence * pages->table_row + column * pages->table_column];
}
static SB_HD int64_t sb_pages_hold(const sb_pages *pages, int64_t page) {
    return page < 0 ? 0 : page < pages->pages ? page : pages->pages - 1;
}

/* The page of a sequence's key, which it has room for, and the row there. */
static SB_HD int64_t sb_pages_find(const sb_pages *pages, int64_t sequence, int64_t key, int64_t *row) {
    const int64_t column = key / pages->rows;
    *row = key - column * pages->rows;
    return sb_pages_hold(pages, sb_pages_entry(pages, sequence, column));
}

#endif
