/* Element-wise operators of one and two inputs. */
#include <stdio.h>

#include "cuda/common/call.h"
#include "cuda/common/compute.h"
#include "cuda/elementwise/fixed.h"
#include "cuda/list.h"
#include "ops/binary.h"
#include "ops/list.h"
#include "ops/unary.h"

static bool is_of(const sb_node *node, const sb_op *family, int count) {
    return node->op >= family && node->op < family + count;
}

static bool is_unary(const sb_node *node) {
    return is_of(node, sb_ops_unary, SB_UNARY_ROW_GeluTanh);
}

static bool is_binary(const sb_node *node) {
    return is_of(node, sb_ops_binary, SB_BINARY_ROW_Fmod);
}

/* The name that the kernels know the operator by, where its attributes choose among several. */
static const char *kernel_op(const sb_node *node) {
    const char *name = node->op->name;
    if (is_unary(node))
        return ((const sb_unary_params *)node->params)->by_tanh ? "GeluTanh" : name;
    bool variant = ((const sb_binary_params *)node->params)->variant;
    if (node->op == &sb_ops_binary[SB_BINARY_ROW_Mod])
        return variant ? "Fmod" : name;
    if (node->op == &sb_ops_binary[SB_BINARY_ROW_BitShift])
        return variant ? "ShiftRight" : "ShiftLeft";
    return name;
}

/* Inference has checked that the operator exists for the dtype, and every such pair has a kernel. */
static bool supports_elementwise(const sb_kernel_query *query, char *why) {
    return is_unary(query->node) || is_binary(query->node);
}

/* Whether data can be wrong: a divisor of integers can be 0. */
static bool can_fault(const sb_node *node, const sb_tensor *input) {
    bool divides = node->op == &sb_ops_binary[SB_BINARY_ROW_Div] || node->op == &sb_ops_binary[SB_BINARY_ROW_Mod];
    return divides && !sb_dtype_is_float(input->dtype);
}

/* By the kernel of eight elements a thread, where there is one and it has elements that lie like these. */
static sb_status launch_fixed(sb_call *call, const sb_cuda_elementwise_options *options, const sb_tensor *out,
                              int inputs, const sb_tensor *const *tensors, bool *done) {
    const sb_tensor *operands[3] = {out, tensors[0], tensors[inputs - 1]};
    sb_cuda_fixed_match match;
    sb_walk walk;
    *done = false;
    if (sb_tensor_elements(out) == 0 || out->dtype != tensors[0]->dtype ||
        !sb_cuda_fixed_find_operator(kernel_op(call->node), out->dtype, options->a, options->b, &match))
        return SB_OK;
    sb_walk_start(&walk, out->rank, out->dims, 1 + inputs, operands);
    return sb_cuda_fixed_launch(call, &match, out->dtype, &walk, operands, done);
}

static sb_status launch_elementwise(sb_call *call) {
    bool done;
    int inputs = is_unary(call->node) ? 1 : 2;
    sb_tensor *out, right;
    const sb_tensor *tensors[2] = {sb_call_input(call, 0), &right};
    sb_cuda_elementwise_options options = {.fault = can_fault(call->node, tensors[0]) ? sb_call_fault(call) : NULL};
    sb_cuda_operation operation;
    if (inputs == 2) {
        sb_binary_align(call, &right);
    } else {
        const sb_unary_params *params = call->node->params;
        options.a = params->a;
        options.b = params->b;
    }
    SB_TRY(sb_cuda_output_like(call, 0, inputs, tensors, &out));
    SB_TRY(launch_fixed(call, &options, out, inputs, tensors, &done));
    if (done)
        return SB_OK;
    SB_TRY(sb_cuda_find_elementwise(sb_cuda_call_device(call), kernel_op(call->node), inputs, tensors[0]->dtype,
                                    &operation, call->error));
    return sb_cuda_launch_elementwise(sb_cuda_call_queue(call), call->target->step, &operation, &options, out, inputs,
                                      tensors, call->error);
}

const sb_kernel sb_cuda_kernels_elementwise[] = {
    {.op = SB_ANY_OP, .name = "elementwise", .supports = supports_elementwise, .launch = launch_elementwise},
    {0},
};
