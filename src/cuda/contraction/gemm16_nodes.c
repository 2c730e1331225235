/* From the compiled program of a body to the nodes behind a product of f16 or bf16, where it is no more than these. */
#include "cuda/contraction/gemm16_nodes.h"

#include <stdio.h>
#include <string.h>

#include "cuda/contraction/epilogue_compiler.h"
#include "numerics/convert.h"

/* The operation of an opcode of two operands, by whether the value comes first; -1 where there is none. */
static int operation_of(int opcode, bool first) {
    switch (opcode) {
    case SB_CUDA_EPILOGUE_Add:
        return SB_GEMM16_NODE_ADD;
    case SB_CUDA_EPILOGUE_Mul:
        return SB_GEMM16_NODE_MUL;
    case SB_CUDA_EPILOGUE_Sub:
        return first ? SB_GEMM16_NODE_SUB : SB_GEMM16_NODE_SUB_FROM;
    case SB_CUDA_EPILOGUE_Div:
        return first ? SB_GEMM16_NODE_DIV : SB_GEMM16_NODE_DIV_INTO;
    default:
        return -1;
    }
}

/* Steps of the value of the step before and of one other number. */
static bool translate_pair(const sb_cuda_epilogue_plan *plan, const sb_cuda_epilogue_step *step,
                           sb_gemm16_node *translated) {
    bool first = step->sources[0] == SB_CUDA_EPILOGUE_PREVIOUS, second = step->sources[1] == SB_CUDA_EPILOGUE_PREVIOUS;
    int other = step->sources[first ? 1 : 0], operation = operation_of(step->opcode, first);
    if (operation < 0 || first == second)
        return false;
    translated->operation = (uint8_t)operation;
    if (other == SB_CUDA_EPILOGUE_IMMEDIATE_A || other == SB_CUDA_EPILOGUE_IMMEDIATE_B) {
        translated->a = other == SB_CUDA_EPILOGUE_IMMEDIATE_A ? step->a : step->b;
        return true;
    }
    int input = other - SB_CUDA_EPILOGUE_INPUT;
    translated->input = (uint8_t)(input + 1);
    return input >= 0 && sb_cuda_epilogue_dtype_of(plan->inputs[input].dtype) == plan->code.base_rounding;
}

static bool translate(const sb_cuda_epilogue_plan *plan, const sb_cuda_epilogue_step *step,
                      sb_gemm16_node *translated) {
    *translated = (sb_gemm16_node){.operation = SB_GEMM16_NODE_RELU, .a = step->a, .b = step->b};
    if (step->rounding != plan->code.base_rounding || step->keep != 0)
        return false;
    bool first = step->sources[0] == SB_CUDA_EPILOGUE_PREVIOUS;
    if (step->opcode == SB_CUDA_EPILOGUE_Relu)
        return first;
    if (step->opcode == SB_CUDA_EPILOGUE_Clip) {
        translated->operation = SB_GEMM16_NODE_CLIP;
        return first && step->sources[1] == SB_CUDA_EPILOGUE_IMMEDIATE_A &&
               step->sources[2] == SB_CUDA_EPILOGUE_IMMEDIATE_B;
    }
    if (step->opcode == SB_CUDA_EPILOGUE_Neg) {
        translated->operation = SB_GEMM16_NODE_MUL;
        translated->a = -1.0f;
        return first;
    }
    return translate_pair(plan, step, translated);
}

/* Whether a node's number is one of the dtype, as kernels have it. */
static bool has_number(const sb_gemm16_node *node, sb_dtype dtype) {
    float exact = dtype == SB_F16 ? sb_f16_to_f32(sb_f16_from_f32(node->a)) : sb_bf16_to_f32(sb_bf16_from_f32(node->a));
    return node->input != 0 || node->operation == SB_GEMM16_NODE_CLIP || exact == node->a || node->a != node->a;
}

bool sb_gemm16_nodes_fit(const sb_cuda_epilogue_plan *plan, sb_dtype dtype, char *why) {
    const sb_cuda_epilogue_code *code = &plan->code;
    sb_gemm16_node step;
    bool fits = code->base_rounding == sb_cuda_epilogue_dtype_of(dtype) && code->base_keep == 0 &&
                code->count <= SB_GEMM16_NODES;
    for (int i = 0; i < code->count && fits; i++)
        fits = translate(plan, &code->steps[i], &step) && has_number(&step, dtype);
    if (!fits)
        snprintf(why, SB_WHY_BYTES, "behind a product of %s, nodes must each read the result of the one before, once",
                 sb_dtype_name(dtype));
    return fits;
}

sb_status sb_gemm16_nodes_start(sb_call *call, const sb_cuda_epilogue_plan *plan, const sb_tensor *y,
                                const sb_cuda_epilogue_role *roles, sb_gemm16_nodes *nodes, sb_cuda_work *work) {
    memset(nodes, 0, sizeof *nodes);
    nodes->count = plan->code.count;
    for (int i = 0; i < nodes->count; i++)
        translate(plan, &plan->code.steps[i], &nodes->steps[i]);
    return sb_cuda_epilogue_place_operands(call, plan, y, roles, nodes->inputs, &nodes->inner_batch, work);
}
