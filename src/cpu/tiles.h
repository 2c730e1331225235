/* Walks in rectangles: where rows are short, or lie across the memory of some operand.
 *
 * A row loop costs some 10 ns a call, and a program of several nodes that for each of them: rows of 16 elements, such as
 * the pixels of half of 32 channels, took six times the time of long ones. And an operand in another order of dimensions
 * (channels last beside channels first) has each element of a row in another line of the cache. Both are packed a
 * rectangle at a time, and the loop sees long rows without gaps. */
#ifndef SB_CPU_TILES_H
#define SB_CPU_TILES_H

#include "tensor/walk.h"

typedef struct sb_tiles {
    const sb_walk *walk;
    sb_walk_row *row;
    void *context;
    int partner;                     /* the dimension beside the innermost one */
    int64_t rows, columns;           /* of a rectangle: of the partner, and of the innermost dimension */
    bool joined;                     /* the rows of a rectangle go through the loop as one */
    int64_t count;                   /* of rectangles */
    int64_t elements;                /* of a whole rectangle */
    size_t sizes[SB_WALK_OPERANDS];  /* of an element of each operand */
    bool packed[SB_WALK_OPERANDS];   /* in a rectangle of its own while the loop sees it */
    size_t places[SB_WALK_OPERANDS]; /* of those rectangles in the thread's memory */
} sb_tiles;

/** Whether `walk`, whose operand i has elements of sizes[i] bytes, goes better by rectangles. Then `tiles` says which;
 * `walk` has to outlive it. Operand 0 is written, and overlaps none of the others. */
bool sb_tiles_start(sb_tiles *tiles, const sb_walk *walk, const size_t *sizes, sb_walk_row *row, void *context);

/** Computes rectangles [begin, end) of tiles->count: an sb_worker_task with the tiles as context. */
void sb_tiles_run(void *tiles, int64_t begin, int64_t end);

#endif
