/* Sums in the order of numerics/reduce.h: a block of 256 threads takes a row, thread j is lane j.
 *
 * Rows are cut into blocks of 4096 values. Lane j starts as value j of a block and adds the values
 * j + 256, j + 512, …; then lanes are folded by halves, where a lane without a value is left out;
 * blocks are added in ascending order. A lane has a value when the block has more values than the
 * lane's number, so after a fold to `half` lanes min(present, half) have one. */
#include "cuda/kernels/box.cuh"
#include "numerics/convert.h"
#include "numerics/reduce.h"
#include "ops/type_lists.h"

/* Where number `index` of the dimensions lies; at least one dimension. */
IV_CUDA_FUNCTION int64_t place(int64_t index, int rank, const int64_t *dims, const int64_t *steps) {
    int64_t offset = 0;
    IV_CUDA_KEEP_LOOP
    for (int d = rank - 1; d > 0; d--) {
        int64_t quotient =
            index <= UINT32_MAX ? (uint32_t)index / (uint32_t)dims[d] : index / dims[d];
        offset += (index - quotient * dims[d]) * steps[d];
        index = quotient;
    }
    return offset + index * steps[0];
}

#define KERNEL(name, kind, suffix, type, real, real_suffix, load, store, finish)                   \
    IV_CUDA_KERNEL(iv_cuda_##name##_##suffix, iv_cuda_reduction, p) {                              \
        IV_CUDA_SHARED real lanes[IV_REDUCE_LANES];                                                \
        int lane = (int)threadIdx.x;                                                               \
        for (int64_t row = blockIdx.x; row < p->rows; row += gridDim.x) {                          \
            const char *first = p->in + place(row, p->outer_rank, p->outer_dims, p->outer_steps);  \
            real total = 0;                                                                        \
            for (int64_t start = 0; start < p->length; start += IV_REDUCE_BLOCK) {                 \
                int64_t left = p->length - start;                                                  \
                int size = left < IV_REDUCE_BLOCK ? (int)left : IV_REDUCE_BLOCK;                   \
                real sum = 0;                                                                      \
                for (int at = lane; at < size; at += IV_REDUCE_LANES) {                            \
                    real value = load(IV_CUDA_CONST_ELEMENT(                                       \
                        type, first,                                                               \
                        place(start + at, p->inner_rank, p->inner_dims, p->inner_steps)));         \
                    sum = at == lane ? IV_REDUCE_FIRST_##kind(value)                               \
                                     : IV_REDUCE_NEXT_##kind##_##real_suffix(value, sum);          \
                }                                                                                  \
                lanes[lane] = sum;                                                                 \
                int present = size < IV_REDUCE_LANES ? size : IV_REDUCE_LANES;                     \
                for (int half = IV_REDUCE_LANES / 2; half > 0; half /= 2) {                        \
                    IV_CUDA_BARRIER();                                                             \
                    if (lane < half && lane + half < present)                                      \
                        lanes[lane] += lanes[lane + half];                                         \
                    present = present < half ? present : half;                                     \
                }                                                                                  \
                if (lane == 0)                                                                     \
                    total = start == 0 ? lanes[0] : total + lanes[0];                              \
                IV_CUDA_BARRIER();                                                                 \
            }                                                                                      \
            if (lane == 0)                                                                         \
                IV_CUDA_ELEMENT(type, p->out,                                                      \
                                place(row, p->outer_rank, p->outer_dims, p->out_steps)) =          \
                    store(finish(total));                                                          \
        }                                                                                          \
    }
#define MEAN_f32(total) iv_div_f32(total, (float)p->length)
#define MEAN_f64(total) iv_div_f64(total, (double)p->length)
#define ROOT_f32(total) iv_sqrt_f32(total)
#define ROOT_f64(total) iv_sqrt_f64(total)
#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                       \
    KERNEL(sum, SUM, suffix, type, real, real_suffix, load, store, IV_SAME)                        \
    KERNEL(mean, SUM, suffix, type, real, real_suffix, load, store, MEAN_##real_suffix)            \
    KERNEL(sum_of_squares, SQUARES, suffix, type, real, real_suffix, load, store, IV_SAME)         \
    KERNEL(l2_norm, SQUARES, suffix, type, real, real_suffix, load, store, ROOT_##real_suffix)
IV_FLOAT_TYPES(KERNELS, )
