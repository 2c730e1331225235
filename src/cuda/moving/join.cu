/* Joining what lies side by side in memory: a thread finds for its unit of the output which input has it. One kernel for each size
 * of a unit. */
#include "cuda/common/index.cuh"
#include "cuda/moving/moving_parameters.h"

#define JOIN(bits, type)                                                                                               \
    SB_CUDA_KERNEL(sb_cuda_join_##bits, sb_cuda_line_join, p) {                                                        \
        SB_CUDA_EACH(index, p->units) {                                                                                \
            int64_t line = index;                                                                                      \
            const int64_t at = sb_cuda_take(&line, p->width);                                                          \
            int which = 0;                                                                                             \
            SB_CUDA_UNROLL                                                                                             \
            for (int half = SB_CUDA_JOINED / 2; half > 0; half /= 2)                                                   \
                which += at >= p->starts[which + half] ? half : 0;                                                     \
            const char *from = p->in[which] + line * p->in_steps[which];                                               \
            ((type *)(void *)(p->out + line * p->out_step))[at] =                                                      \
                ((const type *)(const void *)from)[at - p->starts[which]];                                             \
        }                                                                                                              \
    }
SB_CUDA_SIZES(JOIN)
JOIN(128, sb_cuda_16_bytes)
