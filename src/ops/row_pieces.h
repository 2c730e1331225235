/* Rows that a dense loop cannot take as they are, because elements have gaps between them or need
 * converting first: piece by piece through buffers in the first-level cache. One loop per formula
 * is then enough, which keeps compiling short and vectorises rows of any stride. */
#ifndef SB_OPS_ROW_PIECES_H
#define SB_OPS_ROW_PIECES_H

#include "tensor/walk.h"

/* How to run `dense`, a loop that knows elements without gaps. */
typedef struct sb_row_pieces {
    sb_walk_row *dense;
    void *context;         /* of `dense` */
    int inputs;            /* 1 or 2 */
    int in_size, out_size; /* bytes per element that `dense` reads and writes */
    /* From an input's elements to those that `dense` reads, and from those that it writes to the
     * output's: loops that take any steps. NULL: they are the same. */
    sb_walk_row *load, *store;
} sb_row_pieces;

/** Runs a row: an sb_walk_row with `how` for its context. No input may overlap the output, unless
 * it lies exactly there. Pure; any thread. */
void sb_run_pieces(const sb_row_pieces *how, int64_t count, char *const *data, const int64_t *steps);

#endif
