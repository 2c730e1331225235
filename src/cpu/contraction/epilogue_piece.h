/* The epilogue over a piece of a row, once for each instruction set: epilogue_piece_isa.c. */
#ifndef SB_CPU_CONTRACTION_EPILOGUE_PIECE_H
#define SB_CPU_CONTRACTION_EPILOGUE_PIECE_H

#include "base/isa.h"
#include "kernel/contraction/epilogue.h"

/* A piece of a row of C, and the chains of its elements. */
typedef struct sb_gemm_piece {
    int64_t batch, row, column; /* of the first element */
    int64_t count;
    float *chains; /* of the elements, or with a gate of their gates; overwritten */
    float *values; /* with a gate, the chains of the values; overwritten */
    void *c;       /* all of C … */
    int64_t index; /* … and where the first element lies in it */
    int64_t column_stride;
} sb_gemm_piece;

/** What sb_gemm_epilogue_apply and sb_gemm_store do, element by element, with the same bits. */
typedef void sb_gemm_epilogue_apply_piece(const sb_gemm_epilogue *epilogue, const sb_gemm_piece *piece);

extern sb_gemm_epilogue_apply_piece sb_gemm_epilogue_apply_piece_scalar;
#if SB_HAS_X86_KERNELS
extern sb_gemm_epilogue_apply_piece sb_gemm_epilogue_apply_piece_avx2, sb_gemm_epilogue_apply_piece_avx512;
#endif

#endif
