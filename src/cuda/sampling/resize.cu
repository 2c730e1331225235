/* Resize and Upsample: tables of the axes, then elements moved by them, or one pass for each axis. */
#include "cuda/common/index.cuh"
#include "cuda/sampling/resize_parameters.h"
#include "ops/number.h"

SB_CUDA_KERNEL(sb_cuda_resize_axis, sb_cuda_resize_plan, p) {
    SB_CUDA_EACH(position, p->axis.out)
    sb_resize_position(&p->axis, &p->rule, position);
}

#define NEAREST(size, type)                                                                                            \
    SB_CUDA_KERNEL(sb_cuda_resize_nearest_##size, sb_cuda_resize_nearest, p) {                                         \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t rest = index, offset = 0;                                                                          \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int d = p->rank - 1; d >= 0; d--) {                                                                   \
                int64_t at = d > 0 ? sb_cuda_take(&rest, p->dims[d]) : rest;                                           \
                offset += (p->first[d] ? p->first[d][at] : at) * p->steps[d];                                          \
            }                                                                                                          \
            ((type *)(void *)p->out)[index] = SB_CUDA_CONST_ELEMENT(type, p->in, offset);                              \
        }                                                                                                              \
    }
SB_CUDA_SIZES(NEAREST)

#define PASS(suffix, type)                                                                                             \
    SB_CUDA_KERNEL(sb_cuda_resize_pass_##suffix, sb_cuda_resize_pass, p) {                                             \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t outer = index, inner = sb_cuda_take(&outer, p->inner);                                             \
            int64_t x = sb_cuda_take(&outer, p->axis.out), first = p->axis.first[x];                                   \
            const double *weights = p->axis.weights + x * p->axis.taps;                                                \
            const type *from = (const type *)p->in + outer * p->axis.in * p->inner + inner;                            \
            type sum = (type)0;                                                                                        \
            for (int t = 0; t < p->axis.taps; t++)                                                                     \
                sum =                                                                                                  \
                    sb_fma_##suffix((type)weights[t], from[sb_resize_inside(first + t, p->axis.in) * p->inner], sum);  \
            ((type *)p->out)[index] = sum;                                                                             \
        }                                                                                                              \
    }
PASS(f32, float)
PASS(f64, double)

SB_CUDA_KERNEL(sb_cuda_resize_load, sb_cuda_resize_convert, p) {
    SB_CUDA_EACH(index, p->elements)
    ((float *)p->out)[index] = (float)sb_number_load(p->dtype, p->in, index);
}

SB_CUDA_KERNEL(sb_cuda_resize_store, sb_cuda_resize_convert, p) {
    SB_CUDA_EACH(index, p->elements)
    sb_number_store(p->dtype, p->out, index, ((const float *)p->in)[index]);
}

#define OUTSIDE(size, type)                                                                                            \
    SB_CUDA_KERNEL(sb_cuda_resize_outside_##size, sb_cuda_resize_outside, p) {                                         \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t rest = index;                                                                                      \
            int outside = 0;                                                                                           \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int d = p->rank - 1; d >= 0; d--) {                                                                   \
                int64_t at = d > 0 ? sb_cuda_take(&rest, p->dims[d]) : rest;                                           \
                outside |= p->outside[d] && p->outside[d][at];                                                         \
            }                                                                                                          \
            if (outside)                                                                                               \
                ((type *)(void *)p->out)[index] = (type)p->value;                                                      \
        }                                                                                                              \
    }
SB_CUDA_SIZES(OUTSIDE)
