/* The moved elements of DeformConv: sums of four corners, for channels that lie side by side. One table per instruction set. */
#ifndef SB_CPU_CONTRACTION_DEFORM_ROWS_H
#define SB_CPU_CONTRACTION_DEFORM_ROWS_H

#include <stdint.h>

#include <samebit/isa.h>

/* Where one tap of one output position lies: the first channels of the pixels around it (of zeros, where there is none), in the order of
 * the definition's sum, their weights, and what the sum is multiplied by. */
typedef struct sb_deform_corners {
    const float *at[4];
    float weights[4];
    float mask;
} sb_deform_corners;

/* values[i * stride + c] is the sum of corners[i] for channels `first` + c, c below `channels`, times the mask where `masked` says so. */
typedef void sb_deform_rows(int64_t count, const sb_deform_corners *corners, int64_t first, int64_t channels,
                            int masked, float *values, int64_t stride);

/** The function of an instruction set that sb_isa_resolve gave. */
sb_deform_rows *sb_deform_rows_for(sb_isa isa);

#endif
