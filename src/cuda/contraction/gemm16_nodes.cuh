/* The body of an evaluator of the nodes behind a product (gemm16_nodes_parameters.h). Included by a source that defines
 *
 *     SB_NODES_NAME      the function's name
 *     SB_NODES_PAIRS     how many pairs of elements it takes at once
 *     SB_NODES_HALF      SB_CUDA_F16 or SB_CUDA_BF16: what everything is rounded to
 *     SB_NODES_CONTEXT   a type that knows where the elements are
 *     SB_NODES_LOAD      void load(context, const sb_cuda_epilogue_input *input, uint32_t pairs[])
 *
 * all of which this file undefines again. The function takes the rounded chains in `pairs` and leaves the results there. Every
 * node's result has 16 bits, so pairs are what registers hold between nodes, and most nodes are one instruction a pair. */

#define EACH SB_CUDA_UNROLL for (int j = 0; j < SB_NODES_PAIRS; j++)
#define OF_PAIRS(name, result)                                                                                         \
    case SB_GEMM16_NODE_##name:                                                                                        \
        EACH pairs[j] = result;                                                                                        \
        break;
/* Of each element by itself: `value`, and `more`, the other one. */
#define OF_VALUES(result)                                                                                              \
    EACH {                                                                                                             \
        float values[2], others[2];                                                                                    \
        sb_cuda_widen_pair<SB_NODES_HALF>(pairs[j], &values[0], &values[1]);                                           \
        sb_cuda_widen_pair<SB_NODES_HALF>(other[j], &others[0], &others[1]);                                           \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < 2; i++) {                                                                                  \
            const float value = values[i], more = others[i];                                                           \
            (void)more;                                                                                                \
            values[i] = result;                                                                                        \
        }                                                                                                              \
        pairs[j] = sb_cuda_round_pair<SB_NODES_HALF>(values[0], values[1]);                                            \
    }

SB_CUDA_FUNCTION void SB_NODES_NAME(const sb_gemm16_nodes *program, SB_NODES_CONTEXT context, uint32_t *pairs) {
    SB_CUDA_KEEP_LOOP
    for (int at = 0; at < program->count; at++) {
        const sb_gemm16_node *step = &program->steps[at];
        uint32_t other[SB_NODES_PAIRS];
        if (step->input != 0) {
            SB_NODES_LOAD(context, &program->inputs[step->input - 1], other);
        } else {
            const uint32_t number = sb_cuda_round_pair<SB_NODES_HALF>(step->a, step->a); /* exact */
            EACH other[j] = number;
        }
        switch (step->operation) {
            OF_PAIRS(ADD, sb_cuda_add_pair<SB_NODES_HALF>(pairs[j], other[j]))
            OF_PAIRS(SUB, sb_cuda_subtract_pair<SB_NODES_HALF>(pairs[j], other[j]))
            OF_PAIRS(SUB_FROM, sb_cuda_subtract_pair<SB_NODES_HALF>(other[j], pairs[j]))
            OF_PAIRS(MUL, sb_cuda_multiply_pair<SB_NODES_HALF>(pairs[j], other[j]))
        case SB_GEMM16_NODE_DIV:
            OF_VALUES(value / more)
            break;
        case SB_GEMM16_NODE_DIV_INTO:
            OF_VALUES(more / value)
            break;
        case SB_GEMM16_NODE_RELU:
            OF_VALUES(sb_unary_Relu_f32(value, 0, 0))
            break;
        default: {
            const float least = step->a, most = step->b;
            OF_VALUES(value < least ? least > most ? most : least : value > most ? most : value)
        }
        }
    }
}

#undef EACH
#undef OF_PAIRS
#undef OF_VALUES
#undef SB_NODES_NAME
#undef SB_NODES_PAIRS
#undef SB_NODES_HALF
#undef SB_NODES_CONTEXT
#undef SB_NODES_LOAD
