#include "cuda/contraction/conv_depthwise.h"

#include <stddef.h>

/* What a block shall need no more of, so that a multiprocessor has room for four. */
#define MOST_FLOATS (48 * 1024 / (int)sizeof(float))
/* The widest tile: 16 threads. */
#define WIDEST 64
#define FOUR 4
/* Tiles that would fit are not made smaller than this: they see the rows around them once more each. */
#define FEWEST_ROWS 4
/* With fewer products a plane a tile is not worth its barriers: 3x3 over 7x7 took 8.3 us where threads by themselves take 5.8, 5x5 over 14x14 11.6 for 13.9
 * (docs/results/2026-11-27-gpu-kernels.md). */
#define FEWEST_PRODUCTS 1000

static int64_t parts(int64_t extent, int64_t part) {
    return (extent + part - 1) / part;
}

static int64_t rounded(int64_t extent, int64_t to) {
    return parts(extent, to) * to;
}

static int64_t shared_floats(const sb_cuda_depthwise *p) {
    int64_t patch = (int64_t)p->patch_rows * p->patch_pitch;
    return p->planes_at_once * (patch + (int64_t)p->conv.kernel[1].divisor * p->weight_pitch);
}

unsigned sb_cuda_depthwise_shared(const sb_cuda_depthwise *p) {
    return (unsigned)((size_t)shared_floats(p) * sizeof(float));
}

/* Tiles of up to `rows` rows, as equal as they can be, of as many planes as there are threads for, as long as they fit and no
 * multiprocessor is left without any. */
static bool set_rows(sb_cuda_depthwise *p, int64_t rows, int multiprocessors) {
    const sb_cuda_convolution *conv = &p->conv;
    int64_t height = conv->out[1].divisor, quads = p->columns / FOUR;
    p->down = parts(height, rows);
    p->rows = (int32_t)rounded(parts(height, p->down), SB_CUDA_DEPTHWISE_ROWS);
    int64_t patch_rows =
        (int64_t)(p->rows - 1) * conv->stride[1] + ((int64_t)conv->kernel[1].divisor - 1) * conv->dilation[1] + 1;
    if (patch_rows > MOST_FLOATS)
        return false;
    p->patch_rows = (int32_t)patch_rows;
    for (int64_t planes = SB_CUDA_DEPTHWISE_THREADS / (quads * (p->rows / SB_CUDA_DEPTHWISE_ROWS));; planes /= 2) {
        p->planes_at_once = (int32_t)planes;
        p->items = parts(p->planes, planes) * p->down * p->across;
        bool fits = shared_floats(p) <= MOST_FLOATS;
        if (planes == 1 || (fits && p->items >= multiprocessors))
            return fits;
    }
}

bool sb_cuda_depthwise_plan(sb_cuda_depthwise *p, int multiprocessors) {
    const sb_cuda_convolution *conv = &p->conv;
    int64_t width = conv->out[2].divisor, samples = conv->base.n / conv->positions.divisor;
    bool is_flat = conv->in[0] == 1 && conv->out[0].divisor == 1 && conv->kernel[0].divisor == 1 && conv->begin[0] == 0;
    if (!is_flat || conv->channels != 1 || conv->base.k == 0 || conv->stride[2] != 1 || conv->dilation[2] != 1)
        return false;
    int64_t taps = rounded(conv->kernel[2].divisor, FOUR);
    if ((int64_t)conv->positions.divisor * conv->base.k < FEWEST_PRODUCTS)
        return false;
    if (taps > MOST_FLOATS || (int64_t)conv->kernel[1].divisor > MOST_FLOATS)
        return false;
    p->planes = samples * conv->base.batches * conv->base.m;
    p->columns = (int32_t)(width < WIDEST ? rounded(width, FOUR) : WIDEST);
    p->across = parts(width, p->columns);
    p->weight_pitch = (int32_t)taps;
    p->patch_pitch = (int32_t)(p->columns + taps);
    /* Fewer rows where tiles do not fit, or leave multiprocessors without one. */
    int64_t rows = SB_CUDA_DEPTHWISE_ROWS * (SB_CUDA_DEPTHWISE_THREADS / (p->columns / FOUR));
    while (rows > SB_CUDA_DEPTHWISE_ROWS &&
           (!set_rows(p, rows, multiprocessors) || (p->items < multiprocessors && rows > FEWEST_ROWS)))
        rows = rounded(rows / 2, SB_CUDA_DEPTHWISE_ROWS);
    return set_rows(p, rows, multiprocessors);
}
