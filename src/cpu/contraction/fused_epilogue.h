/* The element-wise nodes behind a contraction in a fused body, as an epilogue of the CPU's kernels. */
#ifndef SB_CPU_CONTRACTION_FUSED_EPILOGUE_H
#define SB_CPU_CONTRACTION_FUSED_EPILOGUE_H

#include "cpu/contraction/gemm.h"
#include "cpu/elementwise/tile_program.h"
#include "kernel/contraction/contraction_node.h"

/** The program of the nodes behind the contraction, for the caller to destroy; NULL when there are none. */
sb_status sb_contraction_node_program(const sb_contraction_node *contraction, const sb_kernel_query *query,
                                      sb_tile_program **program, sb_error *error);

/** Whether the nodes behind the contraction can run as its epilogue: they compile, and their result
 * has the dtype `dtype`. */
bool sb_contraction_node_supports_epilogue(const sb_contraction_node *contraction, const sb_kernel_query *query,
                                           sb_dtype dtype, char *why);

/* The epilogue of a contraction in one call: its program with its operands, by row and column of the
 * matrix that the contraction computes. */
typedef struct sb_fused_epilogue {
    sb_tile_program *program;
    sb_dtype dtype;
    sb_walk_row *round, *widen; /* from f32 to the dtype, and back */
    int64_t first_row;          /* the row of the output at which the matrix begins */
    int row_axes, operands;
    int64_t row_dims[SB_MAX_RANK];
    const char *data[SB_TILE_INPUTS];
    int64_t sizes[SB_TILE_INPUTS];                                                /* of an element, in bytes */
    bool varies[SB_TILE_INPUTS];                                                  /* from row to row */
    int64_t column_steps[SB_TILE_INPUTS], row_steps[SB_TILE_INPUTS][SB_MAX_RANK]; /* in bytes */
} sb_fused_epilogue;

/** Sets up the epilogue of a call whose output is `y`: a matrix with the columns along dimension `column_axis` of y
 * (-1: one column) and the rows along the others, row-major. `program` may be NULL. An operand in y's memory is copied,
 * unless it lies there element by element, the epilogue runs in registers and `one_pass` says that the kernel writes
 * each element once only. */
sb_status sb_fused_epilogue_start(sb_call *call, sb_tile_program *program, const sb_tensor *y, int column_axis,
                                  bool one_pass, sb_fused_epilogue *fused);

/** Appends it to the epilogue of a kernel, unless it has no program. It must outlive its use. */
void sb_fused_epilogue_append(sb_fused_epilogue *fused, sb_epilogue *epilogue);

/** What a kernel of f16 or bf16 may do instead, once it has stored a row: runs the program over elements n to n + count of
 * the matrix's row m, which lie side by side at `row` and are its base. In pieces of a tile's width, as an epilogue, it took
 * half as long again as a product of 64 k. */
void sb_fused_epilogue_finish_16(const sb_fused_epilogue *fused, int64_t m, int64_t n, int64_t count, uint16_t *row);

#endif
