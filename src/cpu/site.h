/* A contraction (MatMul, Gemm, Conv) as a kernel meets it: alone, or as the first node in the body
 * of a Fused node, with element-wise nodes behind it that run on its rows while they are in the
 * cache. */
#ifndef IV_CPU_SITE_H
#define IV_CPU_SITE_H

#include "cpu/gemm.h"
#include "cpu/tile_program.h"
#include "runtime/backend.h"

typedef struct iv_site {
    const iv_node *node;  /* the contraction */
    const iv_graph *body; /* NULL when it stands alone */
} iv_site;

/** The contraction that `node` is or begins with; both belong to the node. */
iv_site iv_site_of(const iv_node *node);

/** What is known of the contraction's input `input`; NULL when it is omitted. */
const iv_fact *iv_site_fact(const iv_site *site, const iv_kernel_query *query, int input);

/** The tensor of the contraction's input `input`, borrowed; NULL when it is omitted. */
iv_tensor *iv_site_tensor(const iv_site *site, const iv_call *call, int input);

/** The program of the nodes behind the contraction, for the caller to destroy; NULL when there are
 * none.
 */
iv_status iv_site_program(const iv_site *site, const iv_kernel_query *query,
                          iv_tile_program **program, iv_error *error);

/** Whether the nodes behind the contraction can run as its epilogue: they compile, and their result
 * has the dtype `dtype`. */
bool iv_site_supports_tail(const iv_site *site, const iv_kernel_query *query, iv_dtype dtype,
                           char *why);

/** The Fused node's input that the nodes behind an f32 contraction add to it whole, and read nowhere
 * else, so that the result may take over its memory; -1 if there is none. */
int iv_site_addend(const iv_site *site, const iv_kernel_query *query);

/* The epilogue of a site in one call: its program with its operands, by row and column of the
 * matrix that the contraction computes. */
typedef struct iv_site_tail {
    iv_tile_program *program;
    iv_dtype dtype;
    int64_t first_row; /* the row of the output at which the matrix begins */
    int row_axes, operands;
    int64_t row_dims[IV_MAX_RANK];
    const char *data[IV_TILE_INPUTS];
    int64_t column_steps[IV_TILE_INPUTS], row_steps[IV_TILE_INPUTS][IV_MAX_RANK]; /* in bytes */
} iv_site_tail;

/** Sets up the tail of a call whose output is `y`: a matrix with the columns along dimension
 * `column_axis` of y (-1: one column) and the rows along the others, row-major. `program` may be
 * NULL. An operand in y's memory is copied, unless it lies there element by element, the tail runs
 * in registers and `one_pass` says that the kernel writes each element once only.
 */
iv_status iv_site_tail_start(iv_call *call, iv_tile_program *program, const iv_tensor *y,
                             int column_axis, bool one_pass, iv_site_tail *tail);

/** Appends the tail to an epilogue, unless it has no program. The tail must outlive its use. */
void iv_site_tail_append(iv_site_tail *tail, iv_epilogue *epilogue);

#endif
