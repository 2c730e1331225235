/* LayerNormalization and RMSNormalization of many rows of f16 and bf16 that are longer than a block keeps in registers (normalize_row.cuh): a
 * warp copies its row to shared memory and goes through it from there, by loops over eights, beside the factors that a block copies once.
 * Sums are those of row_vectors.cuh, of parts of 4,096. Threads meet where factors have come, and where they fold.
 * A module for each of bf16, f16. */
#include "cuda/common/asynchronous.cuh"
#include "cuda/common/dynamic_shared.cuh"
#include "cuda/rows/row_vectors.cuh"

/* Begins to copy `bytes`, a multiple of 16, of which thread `own` of `threads` has every so manieth piece. */
SB_CUDA_FUNCTION void begin_copy(char *to, const char *from, int bytes, int own, int threads) {
    SB_CUDA_KEEP_LOOP
    for (int at = 16 * own; at < bytes; at += 16 * threads)
        sb_cuda_copy_16((float *)(void *)(to + at), (const float *)(const void *)(from + at));
}

/* Eight elements, without the mean. */
template <int HALF> SB_CUDA_FUNCTION void load_rest(const char *from, float mean, float x[SB_CUDA_EIGHT]) {
    sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(from), x);
    EACH_LANE x[j] = x[j] - mean;
}

template <bool SQUARES> SB_CUDA_FUNCTION float join_lane(float x, float lane) {
    return SQUARES ? sb_fma_f32(x, x, lane) : lane + x;
}

/* The sum of a row's elements without `mean`, or of their squares, for every thread of the warp. */
template <int HALF, bool SQUARES> SB_CUDA_FUNCTION float sum_row(const char *row, int length, float mean) {
    const int t = (int)threadIdx.x % 32;
    float total = 0, lanes[SB_CUDA_EIGHT], x[SB_CUDA_EIGHT];
    SB_CUDA_KEEP_LOOP
    for (int begin = 0; begin < length; begin += SB_REDUCE_BLOCK) {
        const int end = length - begin < SB_REDUCE_BLOCK ? length : begin + SB_REDUCE_BLOCK;
        int at = begin + SB_CUDA_EIGHT * t;
        row_begin<ROW_SUM>(lanes);
        SB_CUDA_KEEP_LOOP
        for (; at + SB_CUDA_EIGHT <= end; at += SB_REDUCE_LANES) {
            load_rest<HALF>(row + 2 * at, mean, x);
            EACH_LANE lanes[j] = join_lane<SQUARES>(x[j], lanes[j]);
        }
        if (SB_CUDA_SELDOM(at < end)) {
            load_rest<HALF>(row + 2 * at, mean, x);
            EACH_LANE lanes[j] = at + j < end ? join_lane<SQUARES>(x[j], lanes[j]) : lanes[j];
        }
        const float part = row_fold<ROW_SUM, 32>(lanes, t);
        total = begin == 0 ? part : total + part;
    }
    return total;
}

template <int HALF>
SB_CUDA_FUNCTION void give_row(const char *row, const char *scales, const char *biases, int length, float mean,
                               float inverse, char *out) {
    SB_CUDA_KEEP_LOOP
    for (int at = SB_CUDA_EIGHT * ((int)threadIdx.x % 32); at < length; at += SB_REDUCE_LANES) {
        float x[SB_CUDA_EIGHT], factors[SB_CUDA_EIGHT];
        load_rest<HALF>(row + 2 * at, mean, x);
        sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(scales + 2 * at), factors);
        EACH_LANE x[j] = x[j] * inverse * factors[j];
        if (biases != NULL) {
            sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(biases + 2 * at), factors);
            EACH_LANE x[j] = x[j] + factors[j];
        }
        row_store(out + 2 * at, at, length, sb_cuda_round_eight<HALF>(x));
    }
}

template <int HALF> SB_CUDA_FUNCTION void normalize_copied(const sb_cuda_normalization *p, char *memory) {
    const sb_cuda_rows *rows = &p->rows;
    const int warps = (int)blockDim.x / 32, warp = (int)threadIdx.x / 32, bytes = 2 * (int)rows->length;
    const int length = (int)SB_CUDA_ROWS_LENGTH(rows);
    const int64_t used_rows = SB_CUDA_ROWS_COUNT(rows);
    const bool has_bias = rows->data[SB_CUDA_ROW_BIAS] != NULL, has_mean = p->kind == SB_CUDA_NORM_MOMENTS;
    char *const biases = memory + bytes, *const own = memory + bytes * (warp + (has_bias ? 2 : 1));
    int64_t row = (int64_t)blockIdx.x * warps + warp;
    if (row < used_rows)
        begin_copy(own, SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row), bytes, (int)threadIdx.x % 32, 32);
    begin_copy(memory, rows->data[SB_CUDA_ROW_SCALE], bytes, (int)threadIdx.x, (int)blockDim.x);
    if (has_bias)
        begin_copy(biases, rows->data[SB_CUDA_ROW_BIAS], bytes, (int)threadIdx.x, (int)blockDim.x);
    SB_CUDA_COPIES_END();
    SB_CUDA_COPIES_WAIT(0);
    SB_CUDA_BARRIER();
    SB_CUDA_KEEP_LOOP
    while (row < used_rows) {
        char *out = (char *)SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row);
        const float mean = has_mean ? sb_div_f32(sum_row<HALF, false>(own, length, 0), (float)length) : 0;
        const float total = sum_row<HALF, true>(own, length, mean);
        const float inverse = sb_rsqrt_f32(sb_div_f32(total, (float)length) + p->epsilon);
        give_row<HALF>(own, memory, has_bias ? biases : NULL, length, mean, inverse, out);
        row += (int64_t)gridDim.x * warps;
        if (row < used_rows)
            begin_copy(own, SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row), bytes, (int)threadIdx.x % 32, 32);
        SB_CUDA_COPIES_END();
        SB_CUDA_COPIES_WAIT(0);
    }
}

#define KERNEL(suffix, HALF)                                                                                           \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_copied_##suffix, sb_cuda_normalization, p,                          \
                                 SB_CUDA_COPIED_ROWS * 32, 1) {                                                        \
        SB_CUDA_DYNAMIC_SHARED(memory);                                                                                \
        normalize_copied<HALF>(p, (char *)memory);                                                                     \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
KERNEL(f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
KERNEL(bf16, SB_CUDA_BF16)
#endif
