/* The moved elements of DeformConv: where taps lie in an image, and sums of four corners for channels that lie side by side. One table
 * per instruction set. */
#ifndef SB_CPU_CONTRACTION_DEFORM_ROWS_H
#define SB_CPU_CONTRACTION_DEFORM_ROWS_H

#include <stdint.h>

#include <samebit/isa.h>

/* Output positions of a block: whole tiles of the products. */
#define SB_DEFORM_BLOCK 56

/* An image with channels innermost; strides in elements. `zeros` stands for its pixels outside: as many as there are channels. */
typedef struct sb_deform_pixels {
    const float *x, *zeros;
    int64_t height, width, row, column;
} sb_deform_pixels;

/* Where one tap lies at each position of a block: the first channels of the pixels around it, in the order of the definition's sum, and
 * their weights. */
typedef struct sb_deform_corners {
    const float *at[4][SB_DEFORM_BLOCK];
    float weights[4][SB_DEFORM_BLOCK];
} sb_deform_corners;

typedef struct sb_deform_kernels {
    /* The corners around (y[i], x[i]), `count` of them. */
    void (*find)(int64_t count, const sb_deform_pixels *pixels, const float *y, const float *x,
                 sb_deform_corners *corners);
    /* values[i * stride + c] is the sum of corners number i for channels `first` + c, c below `channels`, times masks[i], if there are
     * any. */
    void (*sum)(int64_t count, const sb_deform_corners *corners, const float *masks, int64_t first, int64_t channels,
                float *values, int64_t stride);
} sb_deform_kernels;

/** The table of an instruction set that sb_isa_resolve gave. */
const sb_deform_kernels *sb_deform_kernels_for(sb_isa isa);

#endif
