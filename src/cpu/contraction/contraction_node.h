/* A contraction (MatMul, Gemm, Conv) as a kernel meets it: alone, or as the first node in the body
 * of a Fused node, with element-wise nodes behind it that run on its rows while they are in the
 * cache. */
#ifndef SB_CPU_CONTRACTION_CONTRACTION_NODE_H
#define SB_CPU_CONTRACTION_CONTRACTION_NODE_H

#include "cpu/contraction/gemm.h"
#include "cpu/elementwise/tile_program.h"
#include "kernel/kernel.h"

typedef struct sb_contraction_node {
    const sb_node *node;  /* the contraction */
    const sb_graph *body; /* NULL when it stands alone */
} sb_contraction_node;

/** The contraction that `node` is or begins with; both belong to the node. */
sb_contraction_node sb_contraction_node_of(const sb_node *node);

/** What is known of the contraction's input `input`; NULL when it is omitted. */
const sb_fact *sb_contraction_node_fact(const sb_contraction_node *contraction, const sb_kernel_query *query,
                                        int input);

/** The tensor of the contraction's input `input`, borrowed; NULL when it is omitted. */
sb_tensor *sb_contraction_node_tensor(const sb_contraction_node *contraction, const sb_call *call, int input);

/** The program of the nodes behind the contraction, for the caller to destroy; NULL when there are
 * none.
 */
sb_status sb_contraction_node_program(const sb_contraction_node *contraction, const sb_kernel_query *query,
                                      sb_tile_program **program, sb_error *error);

/** Whether the nodes behind the contraction can run as its epilogue: they compile, and their result
 * has the dtype `dtype`. */
bool sb_contraction_node_supports_epilogue(const sb_contraction_node *contraction, const sb_kernel_query *query,
                                           sb_dtype dtype, char *why);

/** The Fused node's input that the nodes behind an f32 contraction add to it whole, and read nowhere
 * else, so that the result may take over its memory; -1 if there is none. */
int sb_contraction_node_addend(const sb_contraction_node *contraction, const sb_kernel_query *query);

/* The epilogue of a contraction in one call: its program with its operands, by row and column of the
 * matrix that the contraction computes. */
typedef struct sb_fused_epilogue {
    sb_tile_program *program;
    sb_dtype dtype;
    int64_t first_row; /* the row of the output at which the matrix begins */
    int row_axes, operands;
    int64_t row_dims[SB_MAX_RANK];
    const char *data[SB_TILE_INPUTS];
    int64_t column_steps[SB_TILE_INPUTS], row_steps[SB_TILE_INPUTS][SB_MAX_RANK]; /* in bytes */
} sb_fused_epilogue;

/** Sets up the epilogue of a call whose output is `y`: a matrix with the columns along dimension
 * `column_axis` of y (-1: one column) and the rows along the others, row-major. `program` may be
 * NULL. An operand in y's memory is copied, unless it lies there element by element, the epilogue runs
 * in registers and `one_pass` says that the kernel writes each element once only.
 */
sb_status sb_fused_epilogue_start(sb_call *call, sb_tile_program *program, const sb_tensor *y, int column_axis,
                                  bool one_pass, sb_fused_epilogue *fused);

/** Appends it to the epilogue of a kernel, unless it has no program. It must outlive its use. */
void sb_fused_epilogue_append(sb_fused_epilogue *fused, sb_epilogue *epilogue);

#endif
