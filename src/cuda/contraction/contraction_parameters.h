/* What the tiled kernels of contractions take, for the host and for the device. */
#ifndef SB_CUDA_CONTRACTION_CONTRACTION_PARAMETERS_H
#define SB_CUDA_CONTRACTION_CONTRACTION_PARAMETERS_H

#include "cuda/common/divisor.h"
#include "cuda/common/parameters.h"
#include "cuda/contraction/epilogue_parameters.h"

/* How a block's threads fetch a tile of an operand, whose elements (i, k) lie at i * step + k * k_step. */
typedef enum sb_cuda_fetch {
    SB_CUDA_FETCH_MN_MAJOR, /* neighbours in a warp have neighbouring i: for a step of 1 */
    SB_CUDA_FETCH_K_MAJOR,  /* eight neighbours have neighbouring k: for a k_step of 1 */
    SB_CUDA_FETCH_VECTORS   /* four elements at once: step 1, everything else a multiple of 16 bytes */
} sb_cuda_fetch;

typedef struct sb_cuda_operand {
    const float *data;
    int64_t step, k_step; /* in elements */
    int32_t fetch;        /* an sb_cuda_fetch */
    int32_t unused;
} sb_cuda_operand;

/* Matrices of m rows and n columns, one for each batch: element (i, j) is the chain over k, then
 * times alpha unless alpha is 1, plus the addend, times beta unless beta is 1, if there is one;
 * then the epilogue. Steps are in elements. */
typedef struct sb_cuda_contraction {
    int64_t batches, m, n, k;
    /* Of kernels that are bounded: where it says how many of them are used; NULL: all. Chains end at the used k, and
     * tiles behind the used rows or columns are left out. */
    const int64_t *used_m, *used_n, *used_k;
    int64_t m_tiles, n_tiles;
    sb_cuda_operand a, b;
    float *y;
    int64_t y_row, y_column;
    const float *addend; /* may be NULL */
    int64_t addend_row, addend_column;
    float alpha, beta;
    int32_t plain;   /* nothing happens to the finished chain */
    int32_t vectors; /* four columns of y that begin at a multiple of 4 may be stored at once */
    sb_cuda_epilogue epilogue;
} sb_cuda_contraction;

/* Matrix products; batches are row-major over `dims`. y's batches lie y_batch apart. */
typedef struct sb_cuda_matmul {
    sb_cuda_contraction base;
    int32_t rank, unused;
    int64_t dims[SB_CUDA_RANK], a_steps[SB_CUDA_RANK], b_steps[SB_CUDA_RANK];
    int64_t y_batch;
} sb_cuda_matmul;

/* Spatial axes of the tiled convolution; fewer are preceded by extents of 1. */
#define SB_CUDA_CONV_AXES 3

/* Convolutions as products: rows are the output channels of a group, columns the output positions
 * of all samples, k runs over kernel positions and at each over the group's input channels; a batch
 * is a group. `b` of the base is not used: column j and k give an element of x or, in the padding,
 * +0. A row of y is a channel's positions. */
typedef struct sb_cuda_convolution {
    sb_cuda_contraction base;
    const float *x;
    int64_t x_sample, x_group, x_channel, x_steps[SB_CUDA_CONV_AXES]; /* in elements */
    int64_t a_group;                                                  /* from group to group */
    int64_t y_sample;
    int64_t w_steps[SB_CUDA_CONV_AXES]; /* where weights are not packed: a's steps are those of outputs and channels */
    int32_t channels;                   /* of a group's input; at least 1 */
    int32_t in[SB_CUDA_CONV_AXES], stride[SB_CUDA_CONV_AXES], dilation[SB_CUDA_CONV_AXES];
    int32_t begin[SB_CUDA_CONV_AXES];
    sb_cuda_divisor positions, out[SB_CUDA_CONV_AXES], kernel[SB_CUDA_CONV_AXES];
    sb_cuda_divisor chain; /* the channels again */
    int64_t quads;         /* of positions of a channel, for kernels whose threads take four */
} sb_cuda_convolution;

/* Threads of a block of depthwise convolutions, and rows of four positions that each of them has. */
#define SB_CUDA_DEPTHWISE_THREADS 128
#define SB_CUDA_DEPTHWISE_ROWS 2

/* Convolutions of groups of one channel, over the last two axes; along the last one, kernels move by one and have no gaps. A plane is
 * an output of a sample. A block takes tiles of `rows` by `columns` positions of `planes_at_once` planes, which lie at the same place in
 * each; its shared memory has what they see, and then the weights. */
typedef struct sb_cuda_depthwise {
    sb_cuda_convolution conv;
    int64_t planes, items;
    int64_t down, across; /* tiles of a plane */
    int32_t planes_at_once, rows, columns;
    int32_t patch_rows, patch_pitch, weight_pitch; /* of a plane; pitches are multiples of four */
} sb_cuda_depthwise;

/* Convolutions of any dtype, over any number of axes with extents of any size: a thread takes one element. */
typedef struct sb_cuda_any_convolution {
    int64_t elements, outputs, positions;
    int64_t channels, taps, group_outputs;
    const void *x, *w, *bias; /* bias: may be NULL */
    void *y;
    int64_t x_sample, x_channel, w_output, w_channel, bias_step;
    int32_t rank, unused;
    int64_t x_steps[SB_CUDA_RANK], w_steps[SB_CUDA_RANK];
    int64_t in[SB_CUDA_RANK], out[SB_CUDA_RANK], kernel[SB_CUDA_RANK];
    int64_t stride[SB_CUDA_RANK], dilation[SB_CUDA_RANK], begin[SB_CUDA_RANK];
    sb_cuda_epilogue epilogue;
} sb_cuda_any_convolution;

/* Matrix products of any dtype: a thread takes one element. y is packed. */
typedef struct sb_cuda_any_matmul {
    int64_t elements, m, n, k;
    int32_t rank, unused;
    int64_t dims[SB_CUDA_RANK], a_steps[SB_CUDA_RANK], b_steps[SB_CUDA_RANK];
    int64_t a_row, a_k, b_k, b_column, addend_row, addend_column;
    const int64_t *used_m, *used_n, *used_k; /* as in sb_cuda_contraction */
    const void *a, *b, *addend;              /* addend: may be NULL */
    void *y;
    float alpha, beta;
} sb_cuda_any_matmul;

/* Weights w[output][channel][tap...] of each group become a matrix [tap][channel][output], whose
 * rows lie `pitch` elements apart. */
typedef struct sb_cuda_pack_weights {
    int64_t groups, outputs, channels, taps, pitch;
    int64_t w_output, w_channel, w_steps[SB_CUDA_CONV_AXES];
    int64_t kernel[SB_CUDA_CONV_AXES];
    int64_t output_squares, input_squares; /* squares of 32: of outputs, of channels and taps */
    const float *w;
    float *packed;
} sb_cuda_pack_weights;

#endif
