/* Element-wise operators of one and two inputs. */
#include <stdio.h>

#include "cuda/call.h"
#include "cuda/compute.h"
#include "cuda/list.h"
#include "ops/binary.h"
#include "ops/list.h"
#include "ops/unary.h"

static bool is_of(const iv_node *node, const iv_op *family, int count) {
    return node->op >= family && node->op < family + count;
}

static bool is_unary(const iv_node *node) {
    return is_of(node, iv_ops_unary, IV_UNARY_ROW_GeluTanh);
}

static bool is_binary(const iv_node *node) {
    return is_of(node, iv_ops_binary, IV_BINARY_ROW_Fmod);
}

/* The name that the kernels know the operator by, where its attributes choose among several. */
static const char *kernel_op(const iv_node *node) {
    const char *name = node->op->name;
    if (is_unary(node))
        return ((const iv_unary_params *)node->params)->by_tanh ? "GeluTanh" : name;
    bool variant = ((const iv_binary_params *)node->params)->variant;
    if (node->op == &iv_ops_binary[IV_BINARY_ROW_Mod])
        return variant ? "Fmod" : name;
    if (node->op == &iv_ops_binary[IV_BINARY_ROW_BitShift])
        return variant ? "ShiftRight" : "ShiftLeft";
    return name;
}

/* Inference has checked that the operator exists for the dtype, and every such pair has a kernel. */
static bool supports_elementwise(const iv_kernel_query *query, char *why) {
    return is_unary(query->node) || is_binary(query->node);
}

static iv_status launch_elementwise(iv_call *call) {
    int inputs = is_unary(call->node) ? 1 : 2;
    iv_tensor *out, right;
    const iv_tensor *tensors[2] = {iv_call_input(call, 0), &right};
    iv_cuda_elementwise_options options = {.fault = call->target->fault};
    const iv_cuda_kernel *kernel;
    if (inputs == 2) {
        iv_binary_align(call, &right);
    } else {
        const iv_unary_params *params = call->node->params;
        options.a = params->a;
        options.b = params->b;
    }
    IV_TRY(iv_call_output(call, 0, &out));
    IV_TRY(iv_cuda_find_elementwise(call->target->queue->stream->device, kernel_op(call->node), inputs,
                                    tensors[0]->dtype, &kernel, call->error));
    return iv_cuda_launch_elementwise(call->target->queue, call->target->step, kernel, &options, out,
                                      inputs, tensors, call->error);
}

const iv_kernel iv_cuda_kernels_elementwise[] = {
    {.op = IV_ANY_OP,
     .name = "elementwise",
     .supports = supports_elementwise,
     .launch = launch_elementwise},
    {0},
};
