/* Resize and Upsample: tables of the axes, then elements moved by them, or one pass for each axis. */
#include "cuda/kernels/resize_parameters.h"
#include "cuda/kernels/index.cuh"
#include "ops/number.h"

IV_CUDA_KERNEL(iv_cuda_resize_axis, iv_cuda_resize_plan, p) {
    IV_CUDA_EACH(position, p->axis.out)
        iv_resize_position(&p->axis, &p->rule, position);
}

#define NEAREST(size, type)                                                                        \
    IV_CUDA_KERNEL(iv_cuda_resize_nearest_##size, iv_cuda_resize_nearest, p) {                     \
        IV_CUDA_EACH(index, p->elements) {                                                         \
            int64_t rest = index, offset = 0;                                                      \
            IV_CUDA_KEEP_LOOP                                                                      \
            for (int d = p->rank - 1; d >= 0; d--) {                                               \
                int64_t at = d > 0 ? iv_cuda_take(&rest, p->dims[d]) : rest;                       \
                offset += (p->first[d] ? p->first[d][at] : at) * p->steps[d];                      \
            }                                                                                      \
            ((type *)(void *)p->out)[index] = IV_CUDA_CONST_ELEMENT(type, p->in, offset);          \
        }                                                                                          \
    }
IV_CUDA_SIZES(NEAREST)

#define PASS(suffix, type)                                                                         \
    IV_CUDA_KERNEL(iv_cuda_resize_pass_##suffix, iv_cuda_resize_pass, p) {                         \
        IV_CUDA_EACH(index, p->elements) {                                                         \
            int64_t outer = index, inner = iv_cuda_take(&outer, p->inner);                         \
            int64_t x = iv_cuda_take(&outer, p->axis.out), first = p->axis.first[x];               \
            const double *weights = p->axis.weights + x * p->axis.taps;                            \
            const type *from = (const type *)p->in + outer * p->axis.in * p->inner + inner;        \
            type sum = (type)0;                                                                    \
            for (int t = 0; t < p->axis.taps; t++)                                                 \
                sum = iv_fma_##suffix((type)weights[t],                                            \
                                      from[iv_resize_inside(first + t, p->axis.in) * p->inner],    \
                                      sum);                                                        \
            ((type *)p->out)[index] = sum;                                                         \
        }                                                                                          \
    }
PASS(f32, float)
PASS(f64, double)

IV_CUDA_KERNEL(iv_cuda_resize_load, iv_cuda_resize_convert, p) {
    IV_CUDA_EACH(index, p->elements)
        ((float *)p->out)[index] = (float)iv_number_load(p->dtype, p->in, index);
}

IV_CUDA_KERNEL(iv_cuda_resize_store, iv_cuda_resize_convert, p) {
    IV_CUDA_EACH(index, p->elements)
        iv_number_store(p->dtype, p->out, index, ((const float *)p->in)[index]);
}

#define OUTSIDE(size, type)                                                                        \
    IV_CUDA_KERNEL(iv_cuda_resize_outside_##size, iv_cuda_resize_outside, p) {                     \
        IV_CUDA_EACH(index, p->elements) {                                                         \
            int64_t rest = index;                                                                  \
            int outside = 0;                                                                       \
            IV_CUDA_KEEP_LOOP                                                                      \
            for (int d = p->rank - 1; d >= 0; d--) {                                               \
                int64_t at = d > 0 ? iv_cuda_take(&rest, p->dims[d]) : rest;                       \
                outside |= p->outside[d] && p->outside[d][at];                                     \
            }                                                                                      \
            if (outside)                                                                           \
                ((type *)(void *)p->out)[index] = (type)p->value;                                  \
        }                                                                                          \
    }
IV_CUDA_SIZES(OUTSIDE)
