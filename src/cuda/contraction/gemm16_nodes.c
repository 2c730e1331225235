/* From the compiled program of a body to the nodes behind a product of f16 or bf16, where it is no more than these. */
#include "cuda/contraction/gemm16_nodes.h"

#include <stdio.h>
#include <string.h>

#include "cuda/contraction/epilogue_compiler.h"

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

/* The one value that may be kept. */
#define KEPT SB_CUDA_EPILOGUE_REGISTER

/* Where an operand of step `at` comes from: what the step before has kept is its value all the same. */
static int source_of(const sb_cuda_epilogue_plan *plan, int at, int operand) {
    int keep = at > 0 ? plan->code.steps[at - 1].keep : plan->code.base_keep;
    int source = plan->code.steps[at].sources[operand];
    return source == KEPT && keep == KEPT ? SB_CUDA_EPILOGUE_PREVIOUS : source;
}

/* A quotient by a number takes few instructions where both have 11 bits (fixed_formulas.h). */
static void divide_quickly(const sb_cuda_epilogue_plan *plan, sb_gemm16_node *node) {
    if (node->operation != SB_GEMM16_NODE_DIV || plan->code.base_rounding != SB_CUDA_EPILOGUE_F16 || node->a == 0)
        return;
    node->operation = SB_GEMM16_NODE_QUOTIENT;
    node->b = 1.0f / node->a;
}

/* Steps of the value of the step before and of one other number. */
static bool translate_pair(const sb_cuda_epilogue_plan *plan, int at, sb_gemm16_node *translated) {
    const sb_cuda_epilogue_step *step = &plan->code.steps[at];
    bool first = source_of(plan, at, 0) == SB_CUDA_EPILOGUE_PREVIOUS;
    int other = source_of(plan, at, first ? 1 : 0), operation = operation_of(step->opcode, first);
    if (operation < 0 || (!first && source_of(plan, at, 1) != SB_CUDA_EPILOGUE_PREVIOUS))
        return false;
    translated->operation = (uint8_t)operation;
    if (other == SB_CUDA_EPILOGUE_PREVIOUS || other == KEPT) {
        translated->input = other == KEPT ? SB_GEMM16_NODE_KEPT : SB_GEMM16_NODE_OWN;
        return true;
    }
    if (other == SB_CUDA_EPILOGUE_IMMEDIATE_A || other == SB_CUDA_EPILOGUE_IMMEDIATE_B) {
        translated->a = other == SB_CUDA_EPILOGUE_IMMEDIATE_A ? step->a : step->b;
        divide_quickly(plan, translated);
        return true;
    }
    int input = other - SB_CUDA_EPILOGUE_INPUT;
    translated->input = (uint8_t)(input + 1);
    return input >= 0 && sb_cuda_epilogue_dtype_of(plan->inputs[input].dtype) == plan->code.base_rounding;
}

/* The operation of an opcode of one operand; -1 where there is none. */
static int function_of(int opcode) {
    switch (opcode) {
    case SB_CUDA_EPILOGUE_Relu:
        return SB_GEMM16_NODE_RELU;
    case SB_CUDA_EPILOGUE_Erf:
        return SB_GEMM16_NODE_ERF;
    case SB_CUDA_EPILOGUE_Sigmoid:
        return SB_GEMM16_NODE_SIGMOID;
    case SB_CUDA_EPILOGUE_Tanh:
        return SB_GEMM16_NODE_TANH;
    case SB_CUDA_EPILOGUE_Gelu:
        return SB_GEMM16_NODE_GELU;
    case SB_CUDA_EPILOGUE_GeluTanh:
        return SB_GEMM16_NODE_GELU_TANH;
    case SB_CUDA_EPILOGUE_Swish:
        return SB_GEMM16_NODE_SWISH;
    default:
        return -1;
    }
}

static bool translate(const sb_cuda_epilogue_plan *plan, int at, sb_gemm16_node *translated) {
    const sb_cuda_epilogue_step *step = &plan->code.steps[at];
    *translated = (sb_gemm16_node){.a = step->a, .b = step->b, .keeps = step->keep != 0};
    if (step->rounding != plan->code.base_rounding || (step->keep != 0 && step->keep != KEPT))
        return false;
    bool first = source_of(plan, at, 0) == SB_CUDA_EPILOGUE_PREVIOUS;
    int function = function_of(step->opcode);
    if (function >= 0) {
        translated->operation = (uint8_t)function;
        return first;
    }
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
    return translate_pair(plan, at, translated);
}

bool sb_gemm16_nodes_fit(const sb_cuda_epilogue_plan *plan, sb_dtype dtype, char *why) {
    const sb_cuda_epilogue_code *code = &plan->code;
    sb_gemm16_node step;
    bool fits = code->base_rounding == sb_cuda_epilogue_dtype_of(dtype) &&
                (code->base_keep == 0 || code->base_keep == KEPT) && code->count <= SB_GEMM16_NODES;
    for (int i = 0; i < code->count && fits; i++)
        fits = translate(plan, i, &step);
    if (!fits)
        snprintf(
            why, SB_WHY_BYTES,
            "behind a product of %s, nodes must each read the result of the one before, and one earlier one at most",
            sb_dtype_name(dtype));
    return fits;
}

sb_status sb_gemm16_nodes_start(sb_call *call, const sb_cuda_epilogue_plan *plan, const sb_tensor *y,
                                const sb_cuda_epilogue_role *roles, sb_gemm16_nodes *nodes, sb_cuda_work *work) {
    memset(nodes, 0, sizeof *nodes);
    nodes->count = plan->code.count;
    nodes->keeps_chain = plan->code.base_keep != 0;
    nodes->heavy = nodes->keeps_chain;
    for (int i = 0; i < nodes->count; i++) {
        sb_gemm16_node *node = &nodes->steps[i];
        translate(plan, i, node);
        nodes->heavy |=
            node->operation >= SB_GEMM16_NODE_FIRST_HEAVY || node->keeps || node->input == SB_GEMM16_NODE_OWN;
    }
    return sb_cuda_epilogue_place_operands(call, plan, y, roles, nodes->inputs, &nodes->inner_batch, work);
}
