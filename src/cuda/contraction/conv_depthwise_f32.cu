/* Convolutions in f32 of groups of one channel, a step along the last axis: a block brings what tiles of some channels see into
 * shared memory, where a thread finds four neighbouring taps of four neighbouring positions by two accesses of 16 bytes, those before
 * included. Threads of a block wait for each other at each SB_CUDA_BARRIER. */
#include "cuda/common/index.cuh"
#include "cuda/contraction/patch.cuh"
#include "cuda/contraction/warp_products.cuh"
#include "numerics/scalar.h"

#define ROWS SB_CUDA_DEPTHWISE_ROWS
/* Neighbours of an access. */
#define FOUR 4

/* Where a block's tile lies: its first plane (of samples and outputs), row and column. */
typedef struct tile_place {
    int64_t plane;
    int row, column;
} tile_place;

SB_CUDA_FUNCTION tile_place place_of(const sb_cuda_depthwise *p, int64_t item) {
    tile_place place;
    place.column = (int)sb_cuda_take(&item, p->across) * p->columns;
    place.row = (int)sb_cuda_take(&item, p->down) * p->rows;
    place.plane = item * p->planes_at_once;
    return place;
}

/* What the planes' tiles see, zeros in the padding: a warp takes a row. */
SB_CUDA_FUNCTION void fetch_patches(const sb_cuda_depthwise *p, const tile_place *place, float *patches) {
    const sb_cuda_convolution *conv = &p->conv;
    const int lane = (int)threadIdx.x % 32;
    SB_CUDA_KEEP_LOOP
    for (int line = (int)threadIdx.x / 32; line < p->planes_at_once * p->patch_rows;
         line += SB_CUDA_DEPTHWISE_THREADS / 32) {
        const int own = line / p->patch_rows, row = line - own * p->patch_rows;
        const int y = place->row * conv->stride[1] - conv->begin[1] + row, x = place->column - conv->begin[2];
        int64_t sample = place->plane + own;
        const bool there = sample < p->planes && (unsigned)y < (unsigned)conv->in[1];
        const int64_t output = sb_cuda_take(&sample, conv->base.batches * conv->base.m);
        const int64_t group = conv->base.m > 1 ? output / conv->base.m : output;
        const float *from = conv->x + sample * conv->x_sample + group * conv->x_group + y * conv->x_steps[1];
        SB_CUDA_KEEP_LOOP
        for (int column = lane; column < p->patch_pitch; column += 32) {
            const bool inside = there && (unsigned)(x + column) < (unsigned)conv->in[2];
            sb_cuda_copy_4_or_zero(patches + line * p->patch_pitch + column,
                                   inside ? from + (x + column) * conv->x_steps[2] : conv->x, inside);
        }
    }
}

SB_CUDA_FUNCTION void fetch_weights(const sb_cuda_depthwise *p, const tile_place *place, float *weights) {
    const sb_cuda_convolution *conv = &p->conv;
    const int height = (int)conv->kernel[1].divisor, width = (int)conv->kernel[2].divisor;
    SB_CUDA_KEEP_LOOP
    for (int index = (int)threadIdx.x; index < p->planes_at_once * height * width; index += SB_CUDA_DEPTHWISE_THREADS) {
        const int line = index / width, column = index - line * width, own = line / height, row = line - own * height;
        int64_t sample = place->plane + own;
        if (sample >= p->planes)
            continue;
        const int64_t output = sb_cuda_take(&sample, conv->base.batches * conv->base.m);
        sb_cuda_copy_4(weights + line * p->weight_pitch + column, conv->base.a.data + output * conv->base.a.step +
                                                                      row * conv->w_steps[1] +
                                                                      column * conv->w_steps[2]);
    }
}

/* Up to four taps, those that are there, for the thread's positions; `near` has what the first position sees of four taps, and what the
 * one behind the last does. */
SB_CUDA_FUNCTION void continue_chains(const float *weights, int taps, const float near[ROWS][2 * FOUR],
                                      float chains[ROWS][FOUR]) {
    SB_CUDA_UNROLL
    for (int tap = 0; tap < FOUR; tap++) {
        if (tap < taps) {
            SB_CUDA_UNROLL
            for (int r = 0; r < ROWS; r++) {
                SB_CUDA_UNROLL
                for (int j = 0; j < FOUR; j++)
                    chains[r][j] = sb_fma_f32(near[r][tap + j], weights[tap], chains[r][j]);
            }
        }
    }
}

/* The chains of a thread, whose first position sees `patch` first. */
SB_CUDA_FUNCTION void compute(const sb_cuda_depthwise *p, const float *patch, const float *weights,
                              float chains[ROWS][FOUR]) {
    const sb_cuda_convolution *conv = &p->conv;
    const int height = (int)conv->kernel[1].divisor, width = (int)conv->kernel[2].divisor;
    SB_CUDA_UNROLL
    for (int r = 0; r < ROWS; r++) {
        SB_CUDA_UNROLL
        for (int j = 0; j < FOUR; j++)
            chains[r][j] = 0.0f;
    }
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < height; i++) {
        const float *from = patch + i * conv->dilation[1] * p->patch_pitch, *weight = weights + i * p->weight_pitch;
        const int below = conv->stride[1] * p->patch_pitch;
        float near[ROWS][2 * FOUR], four[FOUR];
        SB_CUDA_UNROLL
        for (int r = 0; r < ROWS; r++)
            sb_tile_take(from + r * below, FOUR, near[r]);
        SB_CUDA_KEEP_LOOP
        for (int tap = 0; tap < width; tap += FOUR) {
            SB_CUDA_UNROLL
            for (int r = 0; r < ROWS; r++)
                sb_tile_take(from + r * below + tap + FOUR, FOUR, near[r] + FOUR);
            sb_tile_take(weight + tap, FOUR, four);
            if (tap + FOUR <= width)
                continue_chains(four, FOUR, near, chains);
            else
                continue_chains(four, width - tap, near, chains);
            SB_CUDA_UNROLL
            for (int r = 0; r < ROWS; r++) {
                SB_CUDA_UNROLL
                for (int j = 0; j < FOUR; j++)
                    near[r][j] = near[r][j + FOUR];
            }
        }
    }
}

/* Finishes and stores a thread's chains, a row at a time, so that there is one evaluator. */
SB_CUDA_FUNCTION void finish(const sb_cuda_depthwise *p, int64_t plane, int row, int column, float chains[ROWS][FOUR]) {
    const sb_cuda_convolution *conv = &p->conv;
    const sb_cuda_contraction *base = &conv->base;
    const int height = (int)conv->out[1].divisor, width = (int)conv->out[2].divisor;
    const int count = width - column < FOUR ? width - column : FOUR;
    int64_t sample = plane;
    const int64_t output = sb_cuda_take(&sample, base->batches * base->m);
    SB_CUDA_KEEP_LOOP
    for (int r = 0; r < ROWS && row + r < height; r++) {
        sb_cuda_epilogue_place place;
        sb_cuda_epilogue_begin(&base->epilogue, sample, &place);
        place.row = output;
        place.column = (int64_t)(row + r) * width + column;
        sb_tile_store(base, &place, base->y + sample * conv->y_sample + output * base->y_row + place.column, FOUR,
                      count, base->vectors && width % FOUR == 0, chains[0]);
        SB_CUDA_UNROLL
        for (int i = 0; i + 1 < ROWS; i++) {
            SB_CUDA_UNROLL
            for (int j = 0; j < FOUR; j++)
                chains[i][j] = chains[i + 1][j];
        }
    }
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_conv_f32_depthwise, sb_cuda_depthwise, p, SB_CUDA_DEPTHWISE_THREADS, 4) {
    SB_CUDA_DYNAMIC_SHARED(memory);
    const sb_cuda_convolution *conv = &p->conv;
    float *patches = (float *)(void *)memory, *weights = patches + p->planes_at_once * p->patch_rows * p->patch_pitch;
    const int quads = p->columns / FOUR, threads = quads * (p->rows / ROWS);
    const int own = (int)threadIdx.x / threads, rest = (int)threadIdx.x - own * threads;
    const int row = rest / quads * ROWS, column = rest % quads * FOUR;
    SB_CUDA_KEEP_LOOP
    for (int64_t item = blockIdx.x; item < p->items; item += gridDim.x) {
        const tile_place place = place_of(p, item);
        fetch_patches(p, &place, patches);
        fetch_weights(p, &place, weights);
        SB_CUDA_COPIES_END();
        SB_CUDA_COPIES_WAIT(0);
        SB_CUDA_BARRIER();
        if (own < p->planes_at_once && place.plane + own < p->planes && place.row + row < (int)conv->out[1].divisor &&
            place.column + column < (int)conv->out[2].divisor) {
            float chains[ROWS][FOUR];
            compute(p, patches + (own * p->patch_rows + row * conv->stride[1]) * p->patch_pitch + column,
                    weights + own * (int)conv->kernel[1].divisor * p->weight_pitch, chains);
            finish(p, place.plane + own, place.row + row, place.column + column, chains);
        }
        SB_CUDA_BARRIER(); /* the patches are not needed any more */
    }
}
