/* Convolutions in f32 without tiles, for groups with few channels. And weights in the order of the chain. */
#include "cuda/common/index.cuh"
#include "cuda/contraction/patch.cuh"
#include "numerics/scalar.h"

/* A thread takes four positions of a channel. Groups with one channel have nothing that threads
 * could share but what the cache holds. */
SB_CUDA_KERNEL(sb_cuda_conv_f32_narrow, sb_cuda_convolution, p) {
    const sb_cuda_contraction *base = &p->base;
    int64_t samples = base->n / p->positions.divisor, outputs = base->batches * base->m;
    SB_CUDA_EACH(index, samples * outputs * p->quads) {
        int64_t sample = index, position = sb_cuda_take(&sample, p->quads) * 4;
        int64_t output = sb_cuda_take(&sample, outputs), group = output;
        int64_t row = sb_cuda_take(&group, base->m);
        int left = (int)(p->positions.divisor - position), count = left < 4 ? left : 4;
        const float *x = p->x + sample * p->x_sample + group * p->x_group;
        const float *w = base->a.data + output * base->a.step;
        int start[4][SB_CUDA_CONV_AXES];
        float chains[4];
        SB_CUDA_UNROLL
        for (int j = 0; j < 4; j++) {
            uint32_t rest = (uint32_t)position + (uint32_t)(j < count ? j : 0);
            SB_CUDA_UNROLL
            for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--) {
                uint32_t quotient = sb_cuda_divide(rest, &p->out[d]);
                start[j][d] = (int)(rest - quotient * p->out[d].divisor) * p->stride[d] - p->begin[d];
                rest = quotient;
            }
            chains[j] = 0.0f;
        }
        int tap[SB_CUDA_CONV_AXES];
        int64_t end = base->k / p->channels;
        SB_PATCH_EACH tap[d] = 0;
        SB_CUDA_KEEP_LOOP
        for (int64_t t = 0; t < end; t++) {
            const float *from[4], *weight = w;
            bool inside[4];
            SB_CUDA_UNROLL
            for (int j = 0; j < 4; j++) {
                int64_t offset = 0;
                inside[j] = true;
                SB_PATCH_EACH {
                    int at = start[j][d] + tap[d] * p->dilation[d];
                    inside[j] = inside[j] && (unsigned)at < (unsigned)p->in[d];
                    offset += at * p->x_steps[d];
                }
                from[j] = x + (inside[j] ? offset : 0);
            }
            SB_PATCH_EACH weight += tap[d] * p->w_steps[d];
            SB_CUDA_KEEP_LOOP
            for (int c = 0; c < p->channels; c++) {
                float factor = weight[c * base->a.k_step];
                SB_CUDA_UNROLL
                for (int j = 0; j < 4; j++)
                    chains[j] = sb_fma_f32(inside[j] ? from[j][c * p->x_channel] : 0.0f, factor, chains[j]);
            }
            bool carry = true;
            SB_CUDA_UNROLL
            for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--) {
                tap[d] += carry;
                carry = tap[d] == (int)p->kernel[d].divisor;
                tap[d] = carry ? 0 : tap[d];
            }
        }
        sb_cuda_epilogue_place place;
        sb_cuda_epilogue_begin(&base->epilogue, sample, &place);
        place.row = group * base->m + row;
        place.column = position;
        sb_tile_store(base, &place, base->y + sample * p->y_sample + place.row * base->y_row + position, 4, count,
                      base->vectors, chains);
    }
}

/* A block of 256 threads takes squares of 32 by 32: it reads along taps and channels, as weights
 * mostly lie, and writes along outputs. */
SB_CUDA_BLOCK_KERNEL(sb_cuda_conv_f32_pack, sb_cuda_pack_weights, p) {
    SB_CUDA_SHARED float square[32][33];
    const int lane = (int)threadIdx.x % 32, line = (int)threadIdx.x / 32;
    const int64_t length = p->channels * p->taps;
    for (int64_t index = blockIdx.x; index < p->groups * p->output_squares * p->input_squares; index += gridDim.x) {
        int64_t group = index, first_input = sb_cuda_take(&group, p->input_squares) * 32;
        int64_t first_output = sb_cuda_take(&group, p->output_squares) * 32;
        int64_t channel = first_input + lane, rest = sb_cuda_take(&channel, p->taps);
        int64_t offset = channel * p->w_channel;
        for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--)
            offset += sb_cuda_take(&rest, p->kernel[d]) * p->w_steps[d];
        for (int i = line; i < 32; i += 8) {
            int64_t output = first_output + i;
            if (output < p->outputs && first_input + lane < length)
                square[lane][i] = p->w[(group * p->outputs + output) * p->w_output + offset];
        }
        SB_CUDA_BARRIER();
        for (int i = line; i < 32; i += 8) {
            channel = first_input + i;
            int64_t tap = sb_cuda_take(&channel, p->taps);
            /* Zeros fill the rows, which are fetched 16 bytes at a time. */
            if (first_output + lane < p->pitch && first_input + i < length)
                p->packed[((group * p->taps + tap) * p->channels + channel) * p->pitch + first_output + lane] =
                    first_output + lane < p->outputs ? square[i][lane] : 0.0f;
        }
        SB_CUDA_BARRIER();
    }
}
