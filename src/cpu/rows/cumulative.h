/* Running sums and products of lines, one table of loops per instruction set: what ops/cumulative.c defines, for lines that lie side by side. */
#ifndef SB_CPU_ROWS_CUMULATIVE_H
#define SB_CPU_ROWS_CUMULATIVE_H

#include "base/isa.h"
#include "ops/ordering.h"

/* Lines of `count` elements, `inner` of them side by side: element i of line j is x[i * inner + j], and so is y's, which may be x. */
typedef struct sb_cumulative_lines {
    const sb_cumulative_params *params;
    int64_t count, inner;
    const void *x;
    void *y;
} sb_cumulative_lines;

typedef void sb_cumulative_run(const sb_cumulative_lines *lines);

/* Of numbers that are added or multiplied in f32, in f64, or modulo 2^8, 2^16, 2^32 or 2^64. */
enum {
    SB_CUMULATIVE_F32,
    SB_CUMULATIVE_F64,
    SB_CUMULATIVE_U8,
    SB_CUMULATIVE_U16,
    SB_CUMULATIVE_U32,
    SB_CUMULATIVE_U64,
    SB_CUMULATIVE_TYPES
};

/* [product][type] */
extern sb_cumulative_run *const sb_cumulative_loops_scalar[2][SB_CUMULATIVE_TYPES];
#if SB_HAS_X86_KERNELS
extern sb_cumulative_run *const sb_cumulative_loops_avx2[2][SB_CUMULATIVE_TYPES];
extern sb_cumulative_run *const sb_cumulative_loops_avx512[2][SB_CUMULATIVE_TYPES];
#endif

#endif
