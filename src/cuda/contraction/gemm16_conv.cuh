/* Where the rows of a convolution's product come from: the pixels of its input that kernel positions see. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_CONV_CUH
#define SB_CUDA_CONTRACTION_GEMM16_CONV_CUH

#include "cuda/common/words.cuh"
#include "cuda/contraction/gemm16_hopper_tile.cuh"

#if SB_HOPPER
/* What kernel position (0, 0) sees first of a tile's rows; and the next 64 k. */
typedef struct sb_gemm16_pixels {
    int x, y, sample;
    int channel, tap_x, tap_y; /* channels behind the last are zeros, as they are behind the last kernel position */
} sb_gemm16_pixels;

SB_CUDA_FUNCTION sb_gemm16_pixels sb_gemm16_pixels_of(const sb_gemm16_conv *p, int batch, int row) {
    sb_gemm16_pixels at = {0, 0, 0, 0, 0, 0};
    const uint32_t line = sb_cuda_divide((uint32_t)row, &p->width), sample = sb_cuda_divide(line, &p->height);
    at.x = ((int)row - (int)(line * p->width.divisor)) * p->stride[0] - p->begin[0];
    at.y = (int)(line - sample * p->height.divisor) * p->stride[1] - p->begin[1];
    at.sample = batch + (int)sample;
    return at;
}

/* Goes on by 64 k. */
SB_CUDA_FUNCTION void sb_gemm16_next_pixels(const sb_gemm16_conv *p, sb_gemm16_pixels *at) {
    at->channel += 64;
    if (at->channel < p->channels || at->tap_y == p->kernel[1])
        return;
    if (++at->tap_x == p->kernel[0]) {
        at->tap_x = 0;
        at->tap_y++;
    }
    if (at->tap_y < p->kernel[1])
        at->channel = 0;
}

/* What the tile's rows see of 64 channels goes to `shared`, and its bytes to the barrier. */
SB_CUDA_FUNCTION void sb_gemm16_load_pixels(const sb_gemm16_conv *p, const sb_gemm16_pixels *at, uint32_t shared,
                                            uint32_t barrier) {
    const bool is_behind = at->tap_y == p->kernel[1];
    sb_tensor_load_pixels(shared, &p->product.a, barrier, at->channel, at->x, at->y, at->sample,
                          at->tap_x * p->dilation[0], is_behind ? 0 : at->tap_y * p->dilation[1]);
}
#endif

#endif
