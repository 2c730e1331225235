/* Weights of convolutions of 16 bits in the order of the chain. */
#include "cuda/common/index.cuh"
#include "cuda/contraction/conv16_parameters.h"

SB_CUDA_KERNEL(sb_cuda_conv16_pack, sb_cuda_conv16_packing, p) {
    SB_CUDA_EACH(index, p->elements) {
        int64_t output = index, inside = sb_cuda_take(&output, p->line);
        int64_t tap = inside, channel = sb_cuda_take(&tap, p->tap);
        uint16_t element = 0;
        if (tap < p->taps && channel < p->channels) {
            int64_t offset = output * p->w_output + channel * p->w_channel;
            SB_CUDA_UNROLL
            for (int d = SB_CUDA_CONV_AXES - 1; d >= 0; d--)
                offset += sb_cuda_take(&tap, p->kernel[d]) * p->w_steps[d];
            element = p->w[offset];
        }
        p->packed[index] = element;
    }
}
