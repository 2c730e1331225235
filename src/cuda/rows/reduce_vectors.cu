/* Reductions of rows of f16 and bf16 of up to 4096 elements, by accesses of 16 bytes: row_vectors.cuh. Threads meet at every
 * SB_CUDA_BARRIER, and where they fold. */
#include "cuda/rows/reduce.cuh"
#include "cuda/rows/row_vectors.cuh"

/* What of an element is joined. */
enum { MAP_SAME, MAP_MAGNITUDE, MAP_SQUARE };

template <int FOLD, int MAP> SB_CUDA_FUNCTION float reduce_join(float lane, float value) {
    return MAP == MAP_SQUARE ? sb_fma_f32(value, value, lane)
                             : row_join<FOLD>(lane, MAP == MAP_MAGNITUDE ? sb_abs_f32(value) : value);
}

/* Fewer threads than a warp are for rows of which each has one group. */
#define MOST_GROUPS (TEAM < 32 ? 1 : SB_REDUCE_BLOCK / SB_REDUCE_LANES)

template <int HALF, int TEAM, int FOLD, int MAP> SB_CUDA_FUNCTION void reduce_rows(const sb_cuda_row_reduction *p) {
    const sb_cuda_rows *rows = &p->rows;
    ROW_VECTORS(rows) {
        int64_t row = base + threadIdx.x / TEAM;
        const bool present = row < used_rows;
        const int length = present ? used_length : 0;
        row = present ? row : base;
        const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row) + 16 * t;
        float lanes[SB_CUDA_EIGHT];
        row_begin<FOLD>(lanes);
        SB_CUDA_UNROLL_BY_4
        for (int g = 0; g < MOST_GROUPS && GROUP_AT(g) < length; g++) {
            float x[SB_CUDA_EIGHT];
            sb_cuda_widen_eight<HALF>(sb_cuda_load_eight(in + GROUP_BYTES(g)), x);
            EACH_LANE lanes[j] = GROUP_AT(g) + j < length ? reduce_join<FOLD, MAP>(lanes[j], x[j]) : lanes[j];
        }
        float total = row_fold<FOLD, TEAM>(lanes, t);
        /* Nothing adds up to +0. */
        total = length == 0 && FOLD == ROW_SUM ? 0 : total;
        if (t == 0 && present) {
            const float result = sb_cuda_finish_f32(p, total, 0);
            uint16_t *out = (uint16_t *)(void *)SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row);
            *out = HALF == SB_CUDA_F16 ? sb_f16_from_f32(result) : sb_bf16_from_f32(result);
        }
    }
}

#define KERNEL(team, name, suffix, HALF, FOLD, MAP)                                                                    \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_reduce_##team##_##name##_##suffix, sb_cuda_row_reduction, p,                  \
                                 SB_CUDA_ROW_VECTOR_THREADS, 1) {                                                      \
        reduce_rows<HALF, team, FOLD, MAP>(p);                                                                         \
    }
#define KERNELS(name, suffix, HALF, FOLD, MAP)                                                                         \
    KERNEL(4, name, suffix, HALF, FOLD, MAP)                                                                           \
    KERNEL(8, name, suffix, HALF, FOLD, MAP)                                                                           \
    KERNEL(16, name, suffix, HALF, FOLD, MAP)                                                                          \
    KERNEL(32, name, suffix, HALF, FOLD, MAP)
#define KERNELS_OF(suffix, HALF)                                                                                       \
    KERNELS(sum, suffix, HALF, ROW_SUM, MAP_SAME)                                                                      \
    KERNELS(magnitudes, suffix, HALF, ROW_SUM, MAP_MAGNITUDE)                                                          \
    KERNELS(squares, suffix, HALF, ROW_SUM, MAP_SQUARE)                                                                \
    KERNELS(max, suffix, HALF, ROW_MAX, MAP_SAME)                                                                      \
    KERNELS(min, suffix, HALF, ROW_MIN, MAP_SAME)
KERNELS_OF(f16, SB_CUDA_F16)
KERNELS_OF(bf16, SB_CUDA_BF16)
