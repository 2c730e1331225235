/* Samples among the rows that a product sums over, as the groups that its chains take. See
 * sb_row_map_create in <samebit/gemm.h>. Kernels include this too. */
#ifndef SB_KERNEL_CONTRACTION_ROW_MAP_H
#define SB_KERNEL_CONTRACTION_ROW_MAP_H

#include <stdint.h>

#include <samebit/gemm.h>

/* One step of a chain: k from `row` to `row + count`, filled with zeros to 16. Also what kernels
 * read, so the layout is fixed. */
typedef struct sb_row_group {
    int64_t row;
    int64_t count; /* 1 to 16 */
} sb_row_group;

/* Immutable. Groups come in the order of rows, cover each row once and never hold rows of two
 * samples; samples without rows have none. */
struct sb_row_map {
    uint64_t engine; /* sb_engine.number */
    int64_t rows;
    int64_t count;        /* of groups */
    sb_row_group *groups; /* `count` of them, on the host */
    /* The same array, there since before sb_row_map_create returned; NULL without groups and on the CPU. */
    const sb_row_group *device_groups;
    void *block;                        /* where it lies: the back end's … */
    void (*release_block)(void *block); /* … to let go of */
};

/** Groups that `length` rows of one sample take. */
static inline int64_t sb_row_groups_of(int64_t length) {
    return length / 16 + (length % 16 != 0);
}

#endif
