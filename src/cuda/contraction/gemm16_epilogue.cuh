/* From chains to what is stored: the end of every kernel of 16-bit products.
 *
 * A block puts the f32 of its chains into shared memory, and its threads take them from there four
 * at a time, side by side where C's elements are, so that registers hold no whole tile while
 * activations are computed, and memory is written in long pieces. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_EPILOGUE_CUH
#define SB_CUDA_CONTRACTION_GEMM16_EPILOGUE_CUH

#include <samebit/dtype.h>
#include <samebit/gemm.h>

#include "cuda/common/index.cuh"
#include "cuda/common/kernel.cuh"
#include "cuda/contraction/gemm16_parameters.h"
#include "kernel/contraction/epilogue.h"
#include "numerics/convert.h"

/* Eight 16-bit elements that are moved at once; four of them, and four f32. */
#if defined(__CUDACC__)
typedef uint4 sb_gemm16_eight;
#else
typedef struct sb_gemm16_eight {
    uint32_t x, y, z, w;
} __attribute__((aligned(16))) sb_gemm16_eight;
#endif
typedef struct sb_gemm16_four_halves {
    uint16_t element[4];
} __attribute__((aligned(8))) sb_gemm16_four_halves;
typedef struct sb_gemm16_four_floats {
    float element[4];
} __attribute__((aligned(16))) sb_gemm16_four_floats;

/* Which of the 2 * columns columns of a block's tile of B a column of C takes its value from; the gate is the
 * one that many before. Gates and values take turns in eights where B has them apart, so that eight of either
 * come from neighbours. */
SB_CUDA_FUNCTION int sb_gemm16_value_of(int gate, int column) {
    return gate == SB_GATE_NONE ? column : gate == SB_GATE_STACKED ? column / 8 * 16 + 8 + column % 8 : 2 * column + 1;
}
SB_CUDA_FUNCTION int sb_gemm16_gate_before(int gate) {
    return gate == SB_GATE_STACKED ? 8 : 1;
}
/* The column of C, counted from the tile's first, that column `column` of B's tile belongs to. */
SB_CUDA_FUNCTION int sb_gemm16_c_column(int gate, int column) {
    return gate == SB_GATE_NONE ? column : gate == SB_GATE_STACKED ? column / 16 * 8 + column % 8 : column / 2;
}

/* The first of B's columns in eight columns of such a tile whose first column is C's `column`; sets how many of the
 * eight there are. `eight` is a multiple of 8. */
SB_CUDA_FUNCTION int64_t sb_gemm16_b_column(const sb_gemm16 *p, int64_t column, int eight, int64_t *columns) {
    int64_t first = p->gate == SB_GATE_NONE      ? column + eight
                    : p->gate == SB_GATE_STACKED ? column + eight / 16 * 8
                                                 : 2 * column + eight;
    int64_t left = (p->gate == SB_GATE_INTERLEAVED ? 2 * p->n : p->n) - first;
    *columns = left < 0 ? 0 : left > 8 ? 8 : left;
    return p->gate == SB_GATE_STACKED && eight / 8 % 2 != 0 ? first + p->n : first;
}

/* Stores up to four results: of columns side by side, or with `down` of rows below each other. */
SB_CUDA_FUNCTION void sb_gemm16_store_four(const sb_gemm16_output *c, int64_t batch, int64_t row, int64_t column,
                                           bool down, int count, const float *results) {
    const int64_t first = batch * c->batch_stride + row * c->row_stride + column * c->column_stride;
    const int64_t step = down ? c->row_stride : c->column_stride;
    if (c->dtype == SB_F32) {
        float *to = (float *)c->data + first;
        sb_gemm16_four_floats all;
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++)
            all.element[i] = sb_gemm_canonical(results[i]);
        if (count == 4 && step == 1 && ((uintptr_t)to & 15) == 0) {
            *(sb_gemm16_four_floats *)(void *)to = all;
            return;
        }
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++) {
            if (i < count)
                to[i * step] = all.element[i];
        }
        return;
    }
    uint16_t *to = (uint16_t *)c->data + first;
    sb_gemm16_four_halves all;
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++)
        all.element[i] = c->dtype == SB_BF16 ? sb_bf16_from_f32(results[i]) : sb_f16_from_f32(results[i]);
    if (count == 4 && step == 1 && ((uintptr_t)to & 7) == 0) {
        *(sb_gemm16_four_halves *)(void *)to = all;
        return;
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++) {
        if (i < count)
            to[i * step] = all.element[i];
    }
}

/* The epilogue of `rows` rows (a multiple of 4) and `columns` columns (likewise) of C from (row, column) on, as far as
 * they are inside, by `threads` threads of which this is `thread`. chains[r * pitch + v] is that of row r and column v
 * of B's tile, as sb_gemm16_value_of counts them; rows are aligned to 16 bytes. */
SB_CUDA_FUNCTION void sb_gemm16_end_tile(const sb_gemm16 *p, int64_t batch, int64_t row, int64_t column, int rows,
                                         int columns, const float *chains, int pitch, int thread, int threads) {
    const bool down = p->c.row_stride == 1 && p->c.column_stride != 1;
    const bool gated = p->gate != SB_GATE_NONE;
    const int gate_before = sb_gemm16_gate_before(p->gate);
    SB_CUDA_KEEP_LOOP
    for (int four = thread; four < rows * columns / 4; four += threads) {
        const int r = down ? four % (rows / 4) * 4 : four / (columns / 4);
        const int c = down ? four / (rows / 4) : four % (columns / 4) * 4;
        const int64_t left = down ? p->m - (row + r) : p->n - (column + c);
        const int count = left > 4 ? 4 : (int)left;
        if (row + r >= p->m || column + c >= p->n)
            continue;
        float gates[4], results[4];
        if (!down && !gated) {
            const sb_gemm16_four_floats all = *(const sb_gemm16_four_floats *)(const void *)&chains[r * pitch + c];
            SB_CUDA_UNROLL
            for (int i = 0; i < 4; i++)
                gates[i] = results[i] = all.element[i];
        } else {
            SB_CUDA_UNROLL
            for (int i = 0; i < 4; i++) {
                const int at = (down ? r + i : r) * pitch + sb_gemm16_value_of(p->gate, down ? c : c + i);
                results[i] = chains[at];
                gates[i] = gated ? chains[at - gate_before] : results[i];
            }
        }
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++) {
            if (p->has_epilogue && i < count)
                results[i] = sb_gemm_epilogue_apply(&p->epilogue, batch, down ? row + r + i : row + r,
                                                    down ? column + c : column + c + i, gates[i], results[i]);
        }
        sb_gemm16_store_four(&p->c, batch, row + r, column + c, down, count, results);
    }
}

/* Where chains begin that continue from C: the same the other way round, without gates. Zeros where C is not. */
SB_CUDA_FUNCTION void sb_gemm16_begin_tile(const sb_gemm16 *p, int64_t batch, int64_t row, int64_t column, int rows,
                                           int columns, float *chains, int pitch, int thread, int threads) {
    const bool down = p->c.row_stride == 1 && p->c.column_stride != 1;
    const float *from = (const float *)p->c.data + batch * p->c.batch_stride;
    SB_CUDA_KEEP_LOOP
    for (int i = thread; i < rows * columns; i += threads) {
        const int r = down ? i % rows : i / columns, c = down ? i / rows : i % columns;
        const bool inside = row + r < p->m && column + c < p->n;
        chains[r * pitch + c] = inside ? from[(row + r) * p->c.row_stride + (column + c) * p->c.column_stride] : 0.0f;
    }
}

#endif
