/* Sums of f16 and bf16 over rows whose elements lie below each other: eight neighbouring rows, such as channels that lie last,
 * are read at once, by accesses of 16 bytes, in the order of numerics/reduce.h.
 *
 * A block has a few such eights and all lanes that are used of the 256: thread t has lane t / eights. Lanes begin as -0, to
 * which anything adds up to itself, so lanes without an element need no care, neither where they fold. */
#include "cuda/common/halves.cuh"
#include "cuda/common/index.cuh"
#include "cuda/rows/reduce_columns_parameters.h"
#include "numerics/reduce.h"

#define EACH_ROW SB_CUDA_UNROLL for (int j = 0; j < SB_CUDA_EIGHT; j++)

/* Elements of a lane that are asked for before one is waited for. */
#define AHEAD 4

/* Adds a lane's elements of a block of 4096, of which there are `count` and whose first eight lie at `x`. */
template <int HALF>
SB_CUDA_FUNCTION void add_block(const sb_cuda_column_reduction *p, const char *x, int count, int lane, float *sums) {
    SB_CUDA_KEEP_LOOP
    for (int start = lane; start < count; start += AHEAD * SB_REDUCE_LANES) {
        sb_cuda_eight values[AHEAD];
        SB_CUDA_UNROLL
        for (int i = 0; i < AHEAD; i++) {
            const int at = start + i * SB_REDUCE_LANES;
            values[i] = at < count ? sb_cuda_load_eight(x + at * p->step) : sb_cuda_eight_times(0x8000);
        }
        SB_CUDA_UNROLL
        for (int i = 0; i < AHEAD; i++) {
            float wide[SB_CUDA_EIGHT];
            sb_cuda_widen_eight<HALF>(values[i], wide);
            EACH_ROW sums[j] = sums[j] + wide[j];
        }
    }
}

/* Folds lanes by halves; those of thread 0 of each eight are the totals then. */
SB_CUDA_FUNCTION void fold(const sb_cuda_column_reduction *p, int lane, float (*shared)[SB_CUDA_EIGHT], float *sums) {
    SB_CUDA_KEEP_LOOP
    for (int half = p->lanes / 2; half > 0; half /= 2) {
        if (lane >= half && lane < 2 * half) {
            EACH_ROW shared[threadIdx.x][j] = sums[j];
        }
        SB_CUDA_BARRIER();
        if (lane < half) {
            EACH_ROW sums[j] = sums[j] + shared[threadIdx.x + (unsigned)(half * p->eights)][j];
        }
        SB_CUDA_BARRIER();
    }
}

template <int HALF>
SB_CUDA_FUNCTION void sum_columns(const sb_cuda_column_reduction *p, float (*shared)[SB_CUDA_EIGHT]) {
    const int lane = (int)threadIdx.x / p->eights, own = (int)threadIdx.x % p->eights;
    const int64_t tiles = (p->groups + p->eights - 1) / p->eights;
    SB_CUDA_KEEP_LOOP
    for (int64_t index = blockIdx.x; index < p->batches * tiles; index += gridDim.x) {
        int64_t batch = index;
        const int64_t group = sb_cuda_take(&batch, tiles) * p->eights + own;
        const bool present = group < p->groups;
        const char *x = p->x + batch * p->x_batch + (present ? group : 0) * 16;
        float totals[SB_CUDA_EIGHT];
        EACH_ROW totals[j] = -0.0f;
        SB_CUDA_KEEP_LOOP
        for (int64_t start = 0; start < p->length; start += SB_REDUCE_BLOCK) {
            const int64_t left = p->length - start;
            float sums[SB_CUDA_EIGHT];
            EACH_ROW sums[j] = -0.0f;
            add_block<HALF>(p, x + start * p->step, left < SB_REDUCE_BLOCK ? (int)left : SB_REDUCE_BLOCK, lane, sums);
            fold(p, lane, shared, sums);
            EACH_ROW totals[j] = totals[j] + sums[j];
        }
        if (lane != 0 || !present)
            continue;
        if (p->mean) {
            EACH_ROW totals[j] = sb_div_f32(totals[j], (float)p->length);
        }
        sb_cuda_store_eight(p->y + batch * p->y_batch + group * 16, sb_cuda_round_eight<HALF>(totals));
    }
}

#define KERNEL(suffix, half)                                                                                           \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_reduce_columns_##suffix, sb_cuda_column_reduction, p, SB_CUDA_COLUMN_THREADS, \
                                 2) {                                                                                  \
        SB_CUDA_SHARED float shared[SB_CUDA_COLUMN_THREADS][SB_CUDA_EIGHT];                                            \
        sum_columns<half>(p, shared);                                                                                  \
    }
KERNEL(f16, SB_CUDA_F16)
KERNEL(bf16, SB_CUDA_BF16)
