/* Element-wise nodes as programs for kernels: the nodes behind a contraction in the body of a Fused
 * node, or a whole web of them.
 *
 * A contraction's family does
 *
 *     supports   iv_cuda_tail_plan_create(body, 1, query->inputs, &plan, &error), and asks
 *                iv_cuda_tail_plan_is_light; then destroys the plan. Where the op stands alone,
 *                there is no body and no plan
 *     prepare    the same, and keeps the plan as its state
 *     launch     makes y (of the Fused node's output), then iv_cuda_tail_start(call, plan, y, roles,
 *                &parameters.tail, &work)
 *
 * and its kernel evaluates the program for each element: kernels/tail.cuh. */
#ifndef IV_CUDA_TAIL_H
#define IV_CUDA_TAIL_H

#include "cuda/call.h"
#include "cuda/kernels/tail_parameters.h"

typedef struct iv_cuda_tail_plan iv_cuda_tail_plan;

/** Compiles `graph`, skipping its first `skip` nodes (0 or 1): the output of node `skip` - 1 is then
 * the program's base. The graph's inputs carry their facts in `inputs`, constants among them.
 * Errors: UNSUPPORTED, with the reason, when a node has no opcode or the program is too large;
 * OUT_OF_MEMORY. The plan does not refer to the graph afterwards. */
iv_status iv_cuda_tail_plan_create(const iv_graph *graph, size_t skip, const iv_fact *const *inputs,
                                   iv_cuda_tail_plan **plan, iv_error *error);
/** The same for a single element-wise node, as a web: `inputs` are its own (NULL where omitted), which
 * are the plan's graph inputs as well, and `output` is the fact of its first output. */
iv_status iv_cuda_tail_plan_create_single(const iv_node *node, const iv_fact *const *inputs,
                                          const iv_fact *output, iv_cuda_tail_plan **plan,
                                          iv_error *error);
/** NULL is allowed. */
void iv_cuda_tail_plan_destroy(iv_cuda_tail_plan *plan);

/** Whether iv_cuda_tail_f32 and iv_cuda_tail_f32x4 know everything in the program; says why not, in
 * words for users. */
bool iv_cuda_tail_plan_is_light(const iv_cuda_tail_plan *plan, char *why);

/** As iv_cuda_tail_plan_create for the nodes behind a contraction, for `supports`: whether they
 * compile to a light program. */
bool iv_cuda_tail_supports(const iv_kernel_query *query, const iv_graph *body, char *why);

/** The program itself. */
const iv_cuda_tail_code *iv_cuda_tail_plan_code(const iv_cuda_tail_plan *plan);
/** How many inputs it reads. */
int iv_cuda_tail_plan_inputs(const iv_cuda_tail_plan *plan);
/** Input `index`, as a borrowed tensor that broadcasts to the output by numpy's rule: *operand is a
 * copy without a reference, not to be retained or released. */
void iv_cuda_tail_operand(const iv_cuda_tail_plan *plan, const iv_call *call, int index,
                          iv_tensor *operand);
/** The iv_cuda_tail_dtype of a dtype; -1 for text. */
int iv_cuda_tail_dtype_of(iv_dtype dtype);

/* What a dimension of a contraction's output is. Dimensions of one role, in order, make one index,
 * row-major. */
typedef enum iv_cuda_tail_role {
    IV_CUDA_TAIL_BATCH,
    IV_CUDA_TAIL_ROW,
    IV_CUDA_TAIL_COLUMN
} iv_cuda_tail_role;

/** Describes the program and its operands for an output `y`, whose dimension d has the role roles[d],
 * and notes the operands as read by `work`. An operand whose steps do not fit is copied to scratch
 * memory first, by a task of its own. `plan` NULL gives the empty program for y's dtype: the base is
 * rounded, and that is all. Where y is to be written in several passes, operands must not lie in its
 * memory. Errors: those of iv_call_scratch and iv_call_copy. */
iv_status iv_cuda_tail_start(iv_call *call, const iv_cuda_tail_plan *plan, const iv_tensor *y,
                             const iv_cuda_tail_role *roles, iv_cuda_tail *tail, iv_cuda_work *work);

#endif
