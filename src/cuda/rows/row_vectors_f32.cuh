/* Rows of f32 in registers, as row_vectors.cuh has those of 16 bits: a group of eight elements is two accesses. */
#ifndef SB_CUDA_ROWS_ROW_VECTORS_F32_CUH
#define SB_CUDA_ROWS_ROW_VECTORS_F32_CUH

#include "cuda/common/words.cuh"
#include "cuda/rows/row_vectors.cuh"

/* The team's row, as ROW_VECTOR says; `in` and `out` are where the row begins. */
#define ROW_VECTOR_F32(rows)                                                                                           \
    int64_t row = base + threadIdx.x / TEAM;                                                                           \
    const int length = row < used_rows ? used_length : 0;                                                              \
    row = row < used_rows ? row : base;                                                                                \
    const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);                                                     \
    char *out = (char *)SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row)
/* Eight elements at `from`, of which those from `length` on are any. */
SB_CUDA_FUNCTION void row_load_f32(const char *from, int at, int length, float *x) {
    const sb_cuda_words4 none = {0, 0, 0, 0};
    sb_cuda_words4 words[2] = {none, none};
    if (at < length) {
        words[0] = ((const sb_cuda_words4 *)(const void *)from)[0];
        words[1] = ((const sb_cuda_words4 *)(const void *)from)[1];
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < 2; i++) {
        x[4 * i] = sb_bits_to_f32(words[i].x);
        x[4 * i + 1] = sb_bits_to_f32(words[i].y);
        x[4 * i + 2] = sb_bits_to_f32(words[i].z);
        x[4 * i + 3] = sb_bits_to_f32(words[i].w);
    }
}

SB_CUDA_FUNCTION void row_store_f32(char *to, int at, int length, const float *x) {
    if (at + SB_CUDA_EIGHT <= length) {
        SB_CUDA_UNROLL
        for (int i = 0; i < 2; i++) {
            const sb_cuda_words4 words = {sb_bits_from_f32(x[4 * i]), sb_bits_from_f32(x[4 * i + 1]),
                                          sb_bits_from_f32(x[4 * i + 2]), sb_bits_from_f32(x[4 * i + 3])};
            ((sb_cuda_words4 *)(void *)to)[i] = words;
        }
        return;
    }
    EACH_LANE {
        if (at + j < length)
            ((float *)(void *)to)[j] = x[j];
    }
}

/* Bytes from the row's beginning to the thread's group g. */
#define GROUP_PLACE(g) (4 * GROUP_AT(g))

#endif
