/* Rows of f16 or bf16 in registers, by accesses of 16 bytes, and their sums in the order of numerics/reduce.h.
 *
 * Lane j of 256 has the values j, j + 256, … of the row. Here thread t of a team has the lanes 8 t to 8 t + 7, which are
 * neighbours in memory. Folding by halves is then among threads first: two that are a half apart have eight lanes each to be
 * joined to eight; each takes half of them over, and so there are half as many with every fold, until a thread has one. */
#ifndef SB_CUDA_ROWS_ROW_VECTORS_CUH
#define SB_CUDA_ROWS_ROW_VECTORS_CUH

#include "cuda/common/halves.cuh"
#include "cuda/rows/row_vectors_parameters.h"
#include "cuda/rows/rows.cuh"

#define EACH_GROUP SB_CUDA_UNROLL for (int g = 0; g < GROUPS; g++)
#define EACH_LANE SB_CUDA_UNROLL for (int j = 0; j < SB_CUDA_EIGHT; j++)

/* How lanes are joined; ROW_LARGER does not tell zeros apart, which ROW_MAX and ROW_MIN do. */
enum { ROW_SUM, ROW_LARGER, ROW_MAX, ROW_MIN };

/* The larger one; a NaN wins. Of zeros it may be either, which softmax does not see: where a zero of either sign is the
 * highest element, all zeros' powers are 1, and what is left of a zero can be -0 only where there are two of them, so that
 * the sum's logarithm is not 0. */
SB_CUDA_FUNCTION float row_larger(float a, float b) {
#if defined(__CUDA_ARCH__)
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
#else
    return a > b || a != a ? a : b;
#endif
}

template <int FOLD> SB_CUDA_FUNCTION float row_join(float a, float b) {
    return FOLD == ROW_SUM      ? a + b
           : FOLD == ROW_LARGER ? row_larger(a, b)
           : FOLD == ROW_MAX    ? sb_max_f32(a, b)
                                : sb_min_f32(a, b);
}

/* Begins lanes by what changes nothing that joins it, so that lanes without elements need no care. */
template <int FOLD> SB_CUDA_FUNCTION void row_begin(float *lanes) {
    EACH_LANE lanes[j] = FOLD == ROW_SUM ? -0.0f : FOLD == ROW_MIN ? sb_infinity_f32() : -sb_infinity_f32();
}

/* The total of the lanes of a team's threads, for every thread; all threads of the warp come here. */
template <int FOLD, int TEAM> SB_CUDA_FUNCTION float row_fold(float *lanes, int t) {
    int held = SB_CUDA_EIGHT;
    SB_CUDA_UNROLL
    for (int half = TEAM / 2; half > 0; half /= 2) {
        const bool split = held > 1, upper = (t & half) != 0;
        held = split ? held / 2 : held;
        SB_CUDA_UNROLL
        for (int i = 0; i < held; i++) {
            const float kept = split && upper ? lanes[i + held] : lanes[i];
            const float given = split && !upper ? lanes[i + held] : lanes[i];
            lanes[i] = row_join<FOLD>(kept, sb_cuda_shuffle_exchange_f32(given, half));
        }
    }
    /* The last three folds, of eight lanes to one: first of those that lie in different threads now. */
    SB_CUDA_UNROLL
    for (int half = TEAM / 2, lane = SB_CUDA_EIGHT / 2; lane >= held; half /= 2, lane /= 2) {
        SB_CUDA_UNROLL
        for (int i = 0; i < held; i++)
            lanes[i] = row_join<FOLD>(lanes[i], sb_cuda_shuffle_exchange_f32(lanes[i], half));
    }
    SB_CUDA_UNROLL
    for (int half = held / 2; half > 0; half /= 2) {
        SB_CUDA_UNROLL
        for (int i = 0; i < half; i++)
            lanes[i] = row_join<FOLD>(lanes[i], lanes[i + half]);
    }
    return lanes[0];
}

/* A team's threads and rows. All threads of a block go through the loop equally often; the team's row is `row`, and
 * `length` of its elements are used, none past the last row. This thread has GROUPS times eight neighbours of them, the
 * first ones at element 8 t, the next ones 8 TEAM further on; `in` and `out` are where the first ones lie. */
#define ROW_VECTORS(rows)                                                                                              \
    const int t = (int)threadIdx.x & (TEAM - 1);                                                                       \
    const int64_t per_block = (int64_t)(blockDim.x / TEAM), used_rows = SB_CUDA_ROWS_COUNT(rows);                      \
    const int used_length = (int)SB_CUDA_ROWS_LENGTH(rows);                                                            \
    for (int64_t base = blockIdx.x * per_block; base < used_rows; base += (int64_t)gridDim.x * per_block)
#define ROW_VECTOR(rows)                                                                                               \
    int64_t row = base + threadIdx.x / TEAM;                                                                           \
    const int length = row < used_rows ? used_length : 0;                                                              \
    row = row < used_rows ? row : base;                                                                                \
    const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row) + 16 * t;                                            \
    char *out = (char *)SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row) + 16 * t
/* Of group g: the number of its first element in the row, and how many bytes that is behind the thread's first. */
#define GROUP_AT(g) (8 * (t + TEAM * (g)))
#define GROUP_BYTES(g) (16 * TEAM * (g))

/* A group of a row of which some elements are used; what is behind them is any. */
SB_CUDA_FUNCTION sb_cuda_eight row_load(const char *from, int at, int length) {
    sb_cuda_eight none = {{0, 0, 0, 0}};
    return at < length ? sb_cuda_load_eight(from) : none;
}

SB_CUDA_FUNCTION void row_store(char *to, int at, int length, sb_cuda_eight eight) {
    if (at + SB_CUDA_EIGHT <= length) {
        sb_cuda_store_eight(to, eight);
        return;
    }
    EACH_LANE {
        if (at + j < length)
            ((uint16_t *)(void *)to)[j] = sb_cuda_of_eight(eight, j);
    }
}

#endif
