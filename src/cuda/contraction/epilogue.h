/* Element-wise nodes as programs for kernels: the nodes behind a contraction in the body of a Fused node,
 * or a whole body of them.
 *
 * A contraction's family does
 *
 *     supports   sb_cuda_epilogue_plan_create(body, 1, query->inputs, &plan, &error), and asks
 *                sb_cuda_epilogue_plan_is_light; then destroys the plan. Where the op stands alone,
 *                there is no body and no plan
 *     prepare    the same, and keeps the plan as its state
 *     launch     makes y (of the Fused node's output), then sb_cuda_epilogue_start(call, plan, y, roles,
 *                &parameters.epilogue, &work)
 *
 * and its kernel evaluates the program for each element: epilogue.cuh. */
#ifndef SB_CUDA_CONTRACTION_EPILOGUE_H
#define SB_CUDA_CONTRACTION_EPILOGUE_H

#include "cuda/common/call.h"
#include "cuda/contraction/epilogue_parameters.h"

typedef struct sb_cuda_epilogue_plan sb_cuda_epilogue_plan;

/** Compiles `graph`, skipping its first `skip` nodes (0 or 1): the output of node `skip` - 1 is then
 * the program's base. The graph's inputs carry their facts in `inputs`, constants among them.
 * Errors: UNSUPPORTED, with the reason, when a node has no opcode or the program is too large;
 * OUT_OF_MEMORY. The plan does not refer to the graph afterwards. */
sb_status sb_cuda_epilogue_plan_create(const sb_graph *graph, size_t skip, const sb_fact *const *inputs,
                                       sb_cuda_epilogue_plan **plan, sb_error *error);
/** The same for a single element-wise node, as a body of one: `inputs` are its own (NULL where omitted), which
 * are the plan's graph inputs as well, and `output` is the fact of its first output. */
sb_status sb_cuda_epilogue_plan_create_single(const sb_node *node, const sb_fact *const *inputs, const sb_fact *output,
                                              sb_cuda_epilogue_plan **plan, sb_error *error);
/** NULL is allowed. */
void sb_cuda_epilogue_plan_destroy(sb_cuda_epilogue_plan *plan);

/** Whether sb_cuda_epilogue_f32 and sb_cuda_epilogue_f32x4 know everything in the program; says why not, in
 * words for users. */
bool sb_cuda_epilogue_plan_is_light(const sb_cuda_epilogue_plan *plan, char *why);

/** As sb_cuda_epilogue_plan_create for the nodes behind a contraction, for `supports`: whether they
 * compile to a light program, or behind a contraction of f16 or bf16 to what gemm16_nodes.h has. */
bool sb_cuda_epilogue_supports(const sb_kernel_query *query, const sb_graph *body, char *why);

/** The program itself. */
const sb_cuda_epilogue_code *sb_cuda_epilogue_plan_code(const sb_cuda_epilogue_plan *plan);
/** How many inputs it reads. */
int sb_cuda_epilogue_plan_inputs(const sb_cuda_epilogue_plan *plan);
/** Input `index`, as a borrowed tensor that broadcasts to the output by numpy's rule: *operand is a
 * copy without a reference, not to be retained or released. */
void sb_cuda_epilogue_operand(const sb_cuda_epilogue_plan *plan, const sb_call *call, int index, sb_tensor *operand);
/** The sb_cuda_epilogue_dtype of a dtype; -1 for text. */
int sb_cuda_epilogue_dtype_of(sb_dtype dtype);

/* What a dimension of a contraction's output is. Dimensions of one role, in order, make one index, row-major. */
typedef enum sb_cuda_epilogue_role {
    SB_CUDA_EPILOGUE_BATCH,
    SB_CUDA_EPILOGUE_ROW,
    SB_CUDA_EPILOGUE_COLUMN
} sb_cuda_epilogue_role;

/** Describes the program and its operands for an output `y`, whose dimension d has the role roles[d],
 * and notes the operands as read by `work`. An operand whose steps do not fit is copied to workspace
 * first, by a task of its own. `plan` NULL gives the empty program for y's dtype: the base is
 * rounded, and that is all. Where y is to be written in several passes, operands must not lie in its
 * memory. Errors: those of sb_call_workspace and sb_call_copy. */
sb_status sb_cuda_epilogue_start(sb_call *call, const sb_cuda_epilogue_plan *plan, const sb_tensor *y,
                                 const sb_cuda_epilogue_role *roles, sb_cuda_epilogue *epilogue, sb_cuda_work *work);

/** Places a plan's operands alone: fills `inputs`, and sets how many batches are inner ones. As sb_cuda_epilogue_start. */
sb_status sb_cuda_epilogue_place_operands(sb_call *call, const sb_cuda_epilogue_plan *plan, const sb_tensor *y,
                                          const sb_cuda_epilogue_role *roles, sb_cuda_epilogue_input *inputs,
                                          int64_t *inner_batch, sb_cuda_work *work);

#endif
