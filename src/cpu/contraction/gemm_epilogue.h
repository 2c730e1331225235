/* The epilogue's steps on vectors, for the sources that are compiled once per instruction set. */
#ifndef SB_CPU_CONTRACTION_GEMM_EPILOGUE_H
#define SB_CPU_CONTRACTION_GEMM_EPILOGUE_H

#include "cpu/contraction/gemm.h"
#include "cpu/simd.h"

/* A vector of `lanes` (a whole vector or fewer) elements of a row vector. */
SB_VF_INLINE vf sb_epilogue_load(const float *p, int64_t lanes, const bool whole) {
    return whole ? vf_load(p) : vf_load_first(p, lanes);
}

/* A block of finished chains in registers: rows from m, and from n either whole vectors of columns or `columns` of
 * them. Rows behind `last_row` (counted in the block) are computed like it. */
typedef struct sb_epilogue_block {
    int64_t m, n, columns;
    int64_t last_row;
} sb_epilogue_block;

/* One step on `rows` × `vectors` accumulators, of which a row's begin `stride` behind the last row's. The kind of step
 * is looked at once: inside the loops gcc made a jump for each accumulator. */
SB_VF_INLINE void sb_epilogue_apply(const sb_epilogue_step *step, const sb_epilogue_block *block, vf *acc,
                                    const int stride, const int rows, const int vectors, const bool whole) {
#define EACH(result)                                                                                                   \
    SB_UNROLL for (int r = 0; r < rows; r++) SB_UNROLL for (int v = 0; v < vectors; v++) {                             \
        const int64_t n = block->n + v * SB_VF_LANES, left = block->columns - v * SB_VF_LANES;                         \
        const int64_t lanes = left < 0 ? 0 : left > SB_VF_LANES ? SB_VF_LANES : left;                                  \
        const int64_t m = block->m + (r < block->last_row ? r : block->last_row);                                      \
        const vf y = acc[r * stride + v];                                                                              \
        (void)m, (void)n, (void)lanes;                                                                                 \
        acc[r * stride + v] = result;                                                                                  \
    }                                                                                                                  \
    break
#define LOAD(p) sb_epilogue_load(p, lanes, whole)
    switch (step->kind) {
    case SB_EPILOGUE_SCALE_SHIFT_COLUMNS:
        EACH(vf_fma(y, LOAD(step->vector + n), LOAD(step->shift + n)));
    case SB_EPILOGUE_ADD_COLUMNS:
        EACH(vf_add(y, LOAD(step->vector + n)));
    case SB_EPILOGUE_MUL_COLUMNS:
        EACH(vf_mul(y, LOAD(step->vector + n)));
    case SB_EPILOGUE_ADD_ROWS:
        EACH(vf_add(y, vf_set(step->vector[m])));
    case SB_EPILOGUE_ADD_MATRIX:
        /* A product with 1 or -1 is exact: the sum, or the difference, rounded once. */
        EACH(vf_fma(vf_set(step->scalar), LOAD(step->vector + m * step->row_stride + n), y));
    case SB_EPILOGUE_MUL_MATRIX:
        EACH(vf_mul(y, LOAD(step->vector + m * step->row_stride + n)));
    case SB_EPILOGUE_ADD_SCALAR:
        EACH(vf_add(y, vf_set(step->scalar)));
    case SB_EPILOGUE_MUL_SCALAR:
        EACH(vf_mul(y, vf_set(step->scalar)));
    case SB_EPILOGUE_DIV_SCALAR:
        EACH(vf_div(y, vf_set(step->scalar)));
    case SB_EPILOGUE_GATE:
        EACH(vf_mul(y, vf_at_most(vf_set(step->high),
                                  vf_at_least(vf_set(step->scalar),
                                              vf_add(vf_mul(vf_set(step->factor), y), vf_set(step->addend))))));
    case SB_EPILOGUE_RELU:
        EACH(vf_at_least(vf_zero(), y));
    case SB_EPILOGUE_CLIP:
        EACH(vf_at_most(vf_set(step->high), vf_at_least(vf_set(step->scalar), y)));
    case SB_EPILOGUE_CALL:
        break;
    }
#undef LOAD
#undef EACH
}

#endif
