/* Row kernels of pooling: f32 with channels innermost, one table per instruction set. */
#ifndef SB_CPU_WINDOWS_POOL_ROWS_H
#define SB_CPU_WINDOWS_POOL_ROWS_H

#include <stdint.h>

#include <samebit/isa.h>

/* Windows of one shape, one behind the other: window p begins at x + p * step and has `count` elements of each channel. */
typedef struct sb_pool_run {
    int64_t channels, count, windows, step;
    const float *x;
    const int64_t *offsets;
} sb_pool_run;

typedef struct sb_pool_kernels {
    /* y[p * channels + c] = the contract's maximum of x[p * step + offsets[i] + c]; minus infinity when `count` is 0. */
    void (*max)(const sb_pool_run *run, float *y);
    /* y[p * channels + c] = (+0 + x[p * step + offsets[0] + c] + x[p * step + offsets[1] + c] + …) / divisor. */
    void (*average)(const sb_pool_run *run, float divisor, float *y);
} sb_pool_kernels;

/** The table of an instruction set that sb_isa_resolve gave. */
const sb_pool_kernels *sb_pool_kernels_for(sb_isa isa);

#endif
