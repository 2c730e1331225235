/* The body of an evaluator of element-wise programs. Included by a source that defines
 *
 *     SB_EVALUATOR_NAME        the function's name
 *     SB_EVALUATOR_WIDTH       how many elements it takes at once
 *     SB_EVALUATOR_HEAVY       1 for all opcodes, 0 for the light ones
 *     SB_EVALUATOR_REGISTERS   how many registers there are: 2, 4 or 8
 *     SB_EVALUATOR_CONTEXT     a type that knows where the elements are
 *     SB_EVALUATOR_LOAD        void load(context, int input, float values[width])
 *     SB_EVALUATOR_BEGIN, _END the same in two steps, without and with the use of what is loaded
 *
 * all of which this file undefines again. The function takes the base in `values` and leaves the
 * result there. Everything is unrolled over the width, so that all values stay in registers of the
 * thread; only elementary functions take the elements one by one, turning them around in place,
 * since their code would otherwise be there several times. */

#define EACH SB_CUDA_UNROLL for (int j = 0; j < SB_EVALUATOR_WIDTH; j++)
/* Leaves out element 0, appends `last`. */
#define TURN(values, last)                                                                                             \
    do {                                                                                                               \
        float last_ = (last);                                                                                          \
        SB_CUDA_UNROLL for (int j = 0; j + 1 < SB_EVALUATOR_WIDTH; j++) values[j] = values[j + 1];                     \
        values[SB_EVALUATOR_WIDTH - 1] = last_;                                                                        \
    } while (0)
#define SHORT(opcode, value)                                                                                           \
    case SB_CUDA_EPILOGUE_##opcode:                                                                                    \
        EACH values[j] = (value);                                                                                      \
        break;
#define LONG(opcode, value)                                                                                            \
    case SB_CUDA_EPILOGUE_##opcode:                                                                                    \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int turn = 0; turn < SB_EVALUATOR_WIDTH; turn++) {                                                        \
            float result = (value);                                                                                    \
            TURN(x, result);                                                                                           \
            TURN(y, y[0]);                                                                                             \
        }                                                                                                              \
        EACH values[j] = x[j];                                                                                         \
        break;
#define LIGHT_UNARY(op) SHORT(op, sb_unary_##op##_f32(x[j], step->a, step->b))
#define LIGHT_BINARY(op) SHORT(op, sb_binary_value_##op##_f32(x[j], y[j]))
#define QUESTION(op) SHORT(op, (float)sb_binary_value_##op##_f32(x[j], y[j]))
#define HEAVY_UNARY(op) LONG(op, sb_unary_##op##_f32(x[0], step->a, step->b))
#define HEAVY_BINARY(op) LONG(op, sb_binary_value_##op##_f32(x[0], y[0]))

#if SB_EVALUATOR_REGISTERS == 2
#define NAMED(X) X(1) X(2)
#elif SB_EVALUATOR_REGISTERS == 4
#define NAMED(X) X(1) X(2) X(3) X(4)
#else
#define NAMED(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#endif
#define FETCH_NAMED(n)                                                                                                 \
    case SB_CUDA_EPILOGUE_REGISTER + n - 1:                                                                            \
        EACH target[j] = r##n[j];                                                                                      \
        break;
#define KEEP_NAMED(n)                                                                                                  \
    case SB_CUDA_EPILOGUE_REGISTER + n - 1:                                                                            \
        EACH r##n[j] = values[j];                                                                                      \
        break;
#define FETCH(into, source)                                                                                            \
    do {                                                                                                               \
        float *target = into;                                                                                          \
        switch (source) {                                                                                              \
        case SB_CUDA_EPILOGUE_PREVIOUS:                                                                                \
            EACH target[j] = values[j];                                                                                \
            break;                                                                                                     \
            NAMED(FETCH_NAMED)                                                                                         \
        case SB_CUDA_EPILOGUE_IMMEDIATE_A:                                                                             \
            EACH target[j] = step->a;                                                                                  \
            break;                                                                                                     \
        case SB_CUDA_EPILOGUE_IMMEDIATE_B:                                                                             \
            EACH target[j] = step->b;                                                                                  \
            break;                                                                                                     \
        default:                                                                                                       \
            SB_EVALUATOR_LOAD(context, (source)-SB_CUDA_EPILOGUE_INPUT, target);                                       \
        }                                                                                                              \
    } while (0)
#define KEEP(number)                                                                                                   \
    switch (number) {                                                                                                  \
        NAMED(KEEP_NAMED)                                                                                              \
    default:                                                                                                           \
        break;                                                                                                         \
    }
#define ROUND(how)                                                                                                     \
    if ((how) == SB_CUDA_EPILOGUE_F16) {                                                                               \
        EACH values[j] = sb_cuda_rounded_f16(values[j]);                                                               \
    } else if ((how) == SB_CUDA_EPILOGUE_BF16) {                                                                       \
        EACH values[j] = sb_cuda_rounded_bf16(values[j]);                                                              \
    }
#define PRELOAD(n)                                                                                                     \
    if (code->preloaded >= n)                                                                                          \
        SB_EVALUATOR_BEGIN(context, code->preloads[n - 1], r##n);
#define WIDEN(n)                                                                                                       \
    if (code->preloaded >= n)                                                                                          \
        SB_EVALUATOR_END(context, code->preloads[n - 1], r##n);
#define DECLARE_NAMED(n) float r##n[SB_EVALUATOR_WIDTH] = {0};

SB_CUDA_FUNCTION void SB_EVALUATOR_NAME(const sb_cuda_epilogue_code *code, SB_EVALUATOR_CONTEXT context,
                                        float *values) {
    NAMED(DECLARE_NAMED)
    /* All of them before the first is waited for. */
    NAMED(PRELOAD)
    NAMED(WIDEN)
    ROUND(code->base_rounding)
    KEEP(code->base_keep)
    SB_CUDA_KEEP_LOOP
    for (int at = 0; at < code->count; at++) {
        const sb_cuda_epilogue_step *step = &code->steps[at];
        float x[SB_EVALUATOR_WIDTH], y[SB_EVALUATOR_WIDTH];
        FETCH(x, step->sources[0]);
        FETCH(y, step->sources[1]);
        switch (step->opcode) {
            SHORT(Copy, x[j])
            SB_CUDA_EPILOGUE_LIGHT_UNARY(LIGHT_UNARY)
            SB_CUDA_EPILOGUE_LIGHT_BINARY(LIGHT_BINARY)
            SB_CUDA_EPILOGUE_QUESTIONS(QUESTION)
            SHORT(Truth, (float)(x[j] != 0))
            SHORT(Not, (float)(x[j] == 0))
            SHORT(And, (float)((unsigned)x[j] & (unsigned)y[j]))
            SHORT(Or, (float)((unsigned)x[j] | (unsigned)y[j]))
            SHORT(Xor, (float)((unsigned)x[j] ^ (unsigned)y[j]))
            SHORT(IsNaN, (float)sb_unary_value_IsNaN_f32(x[j], step->a, step->b))
            SHORT(IsInf, (float)sb_unary_value_IsInf_f32(x[j], step->a, step->b))
        case SB_CUDA_EPILOGUE_Clip: {
            float most[SB_EVALUATOR_WIDTH];
            FETCH(most, step->sources[2]);
            EACH {
                float raised = x[j] < y[j] ? y[j] : x[j];
                values[j] = raised > most[j] ? most[j] : raised;
            }
            break;
        }
        case SB_CUDA_EPILOGUE_Where: {
            float other[SB_EVALUATOR_WIDTH];
            FETCH(other, step->sources[2]);
            EACH values[j] = x[j] != 0 ? y[j] : other[j];
            break;
        }
        case SB_CUDA_EPILOGUE_Normalize: {
            int first = step->sources[1] - SB_CUDA_EPILOGUE_INPUT;
            float bias[SB_EVALUATOR_WIDTH], mean[SB_EVALUATOR_WIDTH], variance[SB_EVALUATOR_WIDTH], a = 0, b = 0;
            SB_EVALUATOR_LOAD(context, first + 1, bias);
            SB_EVALUATOR_LOAD(context, first + 2, mean);
            SB_EVALUATOR_LOAD(context, first + 3, variance);
            EACH {
                /* Neighbours mostly belong to one channel. */
                if (j == 0 || sb_bits_from_f32(y[j]) != sb_bits_from_f32(y[j - 1]) ||
                    sb_bits_from_f32(bias[j]) != sb_bits_from_f32(bias[j - 1]) ||
                    sb_bits_from_f32(mean[j]) != sb_bits_from_f32(mean[j - 1]) ||
                    sb_bits_from_f32(variance[j]) != sb_bits_from_f32(variance[j - 1]))
                    sb_batch_normalization_factors(y[j], bias[j], mean[j], variance[j], step->a, &a, &b);
                values[j] = sb_fma_f32(x[j], a, b);
            }
            break;
        }
#if SB_EVALUATOR_HEAVY
            SB_CUDA_EPILOGUE_HEAVY_UNARY(HEAVY_UNARY)
            SB_CUDA_EPILOGUE_HEAVY_BINARY(HEAVY_BINARY)
#endif
        default:
            break;
        }
        ROUND(step->rounding)
        KEEP(step->keep)
    }
}

#undef EACH
#undef TURN
#undef SHORT
#undef LONG
#undef LIGHT_UNARY
#undef LIGHT_BINARY
#undef QUESTION
#undef HEAVY_UNARY
#undef HEAVY_BINARY
#undef NAMED
#undef FETCH_NAMED
#undef KEEP_NAMED
#undef FETCH
#undef KEEP
#undef ROUND
#undef PRELOAD
#undef WIDEN
#undef DECLARE_NAMED
#undef SB_EVALUATOR_NAME
#undef SB_EVALUATOR_WIDTH
#undef SB_EVALUATOR_HEAVY
#undef SB_EVALUATOR_REGISTERS
#undef SB_EVALUATOR_CONTEXT
#undef SB_EVALUATOR_LOAD
#undef SB_EVALUATOR_BEGIN
#undef SB_EVALUATOR_END
