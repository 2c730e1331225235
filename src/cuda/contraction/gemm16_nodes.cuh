/* The body of an evaluator of the nodes behind a product (gemm16_nodes_parameters.h). Included by a source that defines
 *
 *     SB_NODES_NAME      the function's name
 *     SB_NODES_WIDTH     how many elements it takes at once
 *     SB_NODES_SUFFIX    f16 or bf16: what everything is rounded to
 *     SB_NODES_CONTEXT   a type that knows where the elements are
 *     SB_NODES_LOAD      void load(context, const sb_cuda_epilogue_input *input, float values[width])
 *     SB_NODES_HEAVY     1 where it knows heavy programs too
 *
 * all of which this file undefines again. The function takes the rounded chains in `values` and leaves the results there. */

#define NODES2(a, b) a##b
#define NODES1(a, b) NODES2(a, b)
#define EACH SB_CUDA_UNROLL for (int j = 0; j < SB_NODES_WIDTH; j++)
#define OPERATION(name, result)                                                                                        \
    case SB_GEMM16_NODE_##name:                                                                                        \
        EACH values[j] = result;                                                                                       \
        break;

SB_CUDA_FUNCTION void SB_NODES_NAME(const sb_gemm16_nodes *program, SB_NODES_CONTEXT context, float *values) {
#if SB_NODES_HEAVY
    float kept[SB_NODES_WIDTH];
    EACH kept[j] = values[j];
#endif
    SB_CUDA_KEEP_LOOP
    for (int at = 0; at < program->count; at++) {
        const sb_gemm16_node *step = &program->steps[at];
        float other[SB_NODES_WIDTH];
        if (step->input >= SB_GEMM16_NODE_OWN) {
#if SB_NODES_HEAVY
            const bool own = step->input == SB_GEMM16_NODE_OWN;
            EACH other[j] = own ? values[j] : kept[j];
#endif
        } else if (step->input != 0) {
            SB_NODES_LOAD(context, &program->inputs[step->input - 1], other);
        } else {
            EACH other[j] = step->a;
        }
        switch (step->operation) {
            OPERATION(ADD, values[j] + other[j])
            OPERATION(SUB, values[j] - other[j])
            OPERATION(SUB_FROM, other[j] - values[j])
            OPERATION(MUL, values[j] * other[j])
            OPERATION(DIV, values[j] / other[j])
            OPERATION(DIV_INTO, other[j] / values[j])
            OPERATION(RELU, sb_unary_Relu_f32(values[j], 0, 0))
            OPERATION(QUOTIENT, sb_cuda_quotient_f16(values[j], step->a, step->b))
#if SB_NODES_HEAVY
            OPERATION(ERF, sb_cuda_erf_16(values[j]))
            OPERATION(SIGMOID, sb_sigmoid_f32(values[j]))
            OPERATION(TANH, sb_tanh_f32(values[j]))
            OPERATION(GELU, sb_unary_Gelu_f32(values[j], 0, 0))
            OPERATION(GELU_TANH, sb_unary_GeluTanh_f32(values[j], 0, 0))
            OPERATION(SWISH, sb_unary_Swish_f32(values[j], step->a, 0))
#endif
        default:
            EACH {
                const float raised = values[j] < other[j] ? other[j] : values[j];
                values[j] = raised > step->b ? step->b : raised;
            }
        }
        EACH values[j] = NODES1(sb_rounded_, SB_NODES_SUFFIX)(values[j]);
#if SB_NODES_HEAVY
        if (step->keeps) {
            EACH kept[j] = values[j];
        }
#endif
    }
}

#undef NODES1
#undef NODES2
#undef EACH
#undef OPERATION
#undef SB_NODES_NAME
#undef SB_NODES_WIDTH
#undef SB_NODES_SUFFIX
#undef SB_NODES_CONTEXT
#undef SB_NODES_LOAD
#undef SB_NODES_HEAVY
