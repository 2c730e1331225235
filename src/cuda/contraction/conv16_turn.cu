/* Channels last: what convolutions of 16 bits read by the copy engine, made of tensors that lie otherwise. */
#include "cuda/common/box.cuh"
#include "cuda/common/index.cuh"
#include "cuda/contraction/conv16_parameters.h"
#include "cuda/contraction/gemm16_epilogue.cuh"

#define SQUARE 64
#define THREADS 256
/* Odd in words, so that channels of a position are in different banks. */
#define PITCH (SQUARE + 2)

/* The place of a position in x. */
SB_CUDA_FUNCTION int64_t find_position(const sb_cuda_conv16_turning *p, int position) {
    int64_t offset = 0;
    uint32_t rest = (uint32_t)position;
    SB_CUDA_UNROLL
    for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--) {
        const uint32_t quotient = sb_cuda_divide(rest, &p->in[d]);
        offset += (int64_t)(rest - quotient * p->in[d].divisor) * p->x_steps[d];
        rest = quotient;
    }
    return offset;
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_conv16_turn, sb_cuda_conv16_turning, p, THREADS, 4) {
    SB_CUDA_SHARED uint16_t square[SQUARE * PITCH];
    const int thread = (int)threadIdx.x;
    SB_CUDA_KEEP_LOOP
    for (int64_t index = blockIdx.x; index < p->tiles; index += gridDim.x) {
        int64_t sample = index;
        const int channel = (int)sb_cuda_take(&sample, p->channel_tiles) * SQUARE;
        const int position = (int)sb_cuda_take(&sample, p->position_tiles) * SQUARE;
        const uint16_t *x = p->x + sample * p->x_sample;
        if (p->eights) {
            SB_CUDA_UNROLL
            for (int i = 0; i < SQUARE * SQUARE / 8 / THREADS; i++) {
                const int c = thread / 8 + i * (THREADS / 8), eight = thread % 8 * 8;
                if (channel + c >= p->channels || position + eight >= p->positions)
                    continue;
                const sb_gemm16_eight all =
                    *(const sb_gemm16_eight *)(const void *)(x + (channel + c) * p->x_channel + position + eight);
                uint32_t *to = (uint32_t *)(void *)&square[c * PITCH + eight];
                to[0] = all.x;
                to[1] = all.y;
                to[2] = all.z;
                to[3] = all.w;
            }
        } else if (position + thread % SQUARE < p->positions) {
            const uint16_t *from = x + find_position(p, position + thread % SQUARE);
            SB_CUDA_UNROLL
            for (int i = 0; i < SQUARE * SQUARE / THREADS; i++) {
                const int c = thread / SQUARE + i * (THREADS / SQUARE);
                if (channel + c < p->channels)
                    square[c * PITCH + thread % SQUARE] = from[(channel + c) * p->x_channel];
            }
        }
        SB_CUDA_BARRIER();
        SB_CUDA_UNROLL
        for (int i = 0; i < SQUARE * SQUARE / 8 / THREADS; i++) {
            const int at = thread / 8 + i * (THREADS / 8), eight = thread % 8 * 8;
            if (channel + eight >= p->channels || position + at >= p->positions)
                continue;
            const uint16_t *e = &square[eight * PITCH + at];
            const sb_gemm16_eight all = {e[0] | (uint32_t)e[PITCH] << 16, e[2 * PITCH] | (uint32_t)e[3 * PITCH] << 16,
                                         e[4 * PITCH] | (uint32_t)e[5 * PITCH] << 16,
                                         e[6 * PITCH] | (uint32_t)e[7 * PITCH] << 16};
            *(sb_gemm16_eight *)(void *)(p->to + (sample * p->positions + position + at) * p->channels + channel +
                                         eight) = all;
        }
        SB_CUDA_BARRIER();
    }
}
