/* What the kernels of convolutions of f16 and bf16 in small groups of channels take, for the host and for the device. */
#ifndef SB_CUDA_CONTRACTION_CONV16_GROUPED_PARAMETERS_H
#define SB_CUDA_CONTRACTION_CONV16_GROUPED_PARAMETERS_H

#include "cuda/contraction/conv16_parameters.h"

/* A warp computes sixteen channels. */
#define SB_CUDA_CONV16_PAIR 16
#define SB_CUDA_CONV16_MOST_PAIRS 4
#define SB_CUDA_CONV16_MOST_WARPS 8
/* Kernel positions of which a thread knows the places, in each step of the chain of a group of one channel. */
#define SB_CUDA_CONV16_SLOTS 4

/* A group's outputs are as many as its inputs. Rows and columns are those of images; with one axis there is one row. Input
 * and output have their channels last. A block computes a tile: the outputs of up to four times sixteen channels at
 * tile_rows by tile_columns positions. */
typedef struct sb_cuda_conv16_grouped {
    int64_t tiles;
    int32_t channel_tiles, row_tiles, column_tiles;
    int32_t channels, group; /* of the image, a multiple of 8; of a group */
    int32_t pairs, parts;    /* sixteens of channels of a tile; warps that share the positions of one */
    int32_t taps, steps;     /* kernel positions; groups of 16 of the chain */
    int32_t tile_rows;
    int32_t reach_rows;   /* input rows that a tile's outputs see */
    int32_t pitch, plane; /* eights in shared memory from row to row, and from eight channels to the next eight */
    int32_t in[2], out[2], stride[2], dilation[2], begin[2];
    int32_t unused;
    sb_cuda_divisor tile_columns, reach_columns, kernel_columns;
    int32_t unused_too;
    int64_t x_sample, x_steps[2], bias_step; /* in elements */
    const uint16_t *x, *bias;                /* bias may be NULL */
    uint16_t *y;
    sb_cuda_weights16 w;
} sb_cuda_conv16_grouped;

/* Shared memory holds, from its beginning: eight zeros; the tile's input, eight channels of a position side by side, in
 * planes; the weights as the steps take them, 16 bytes for each thread, step and sixteen channels; and the places of the
 * kernel positions, 4 bytes for each slot of four threads and each step. */
static inline int64_t sb_cuda_conv16_grouped_shared(const sb_cuda_conv16_grouped *p, int slots) {
    return 16 * (1 + (int64_t)2 * p->pairs * p->plane + (int64_t)p->pairs * p->steps * 32 + (int64_t)p->steps * slots);
}

#endif
