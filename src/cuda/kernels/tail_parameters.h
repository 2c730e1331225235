/* Element-wise programs as kernels take them, for the host and for the device.
 *
 * A program is a list of steps. Each computes one value from up to three others and rounds it to
 * its dtype, just as a node of its own would. Values are f32 in registers, whatever their dtype:
 * f16 and bf16 are widened, truth values are 0 and 1. */
#ifndef IV_CUDA_KERNELS_TAIL_PARAMETERS_H
#define IV_CUDA_KERNELS_TAIL_PARAMETERS_H

#include <stdint.h>

#define IV_CUDA_TAIL_STEPS 40
#define IV_CUDA_TAIL_INPUTS 15 /* with the output, what a walk takes */
/* Named values beside that of the step before. */
#define IV_CUDA_TAIL_REGISTERS 8
/* Of which light programs have as many. */
#define IV_CUDA_TAIL_LIGHT_REGISTERS 2

/* Operators of one input that take few instructions: unary_formulas.h. */
#define IV_CUDA_TAIL_LIGHT_UNARY(X)                                                                \
    X(Abs)                                                                                         \
    X(Neg) X(Sign) X(Ceil) X(Floor) X(Round) X(Sqrt) X(Reciprocal) X(Softsign) X(Relu)             \
        X(LeakyRelu) X(ThresholdedRelu) X(HardSigmoid) X(HardSwish) X(Shrink)
/* Operators of two inputs likewise, binary_values.h: those that give a float, and those that give a
 * truth value. */
#define IV_CUDA_TAIL_LIGHT_BINARY(X) X(Add) X(Sub) X(Mul) X(Div) X(PRelu) X(Max) X(Min)
#define IV_CUDA_TAIL_QUESTIONS(X) X(Equal) X(Greater) X(Less) X(GreaterOrEqual) X(LessOrEqual)
/* Elementary functions, some hundred instructions each. */
#define IV_CUDA_TAIL_HEAVY_UNARY(X)                                                                \
    X(Exp)                                                                                         \
    X(Log) X(Sin) X(Cos) X(Tan) X(Asin) X(Acos) X(Atan) X(Sinh) X(Cosh) X(Asinh) X(Acosh) X(Atanh) \
        X(Erf) X(Sigmoid) X(Tanh) X(Softplus) X(Elu) X(Selu) X(Celu) X(Swish) X(Mish) X(Gelu)      \
            X(GeluTanh)
#define IV_CUDA_TAIL_HEAVY_BINARY(X) X(Mod) X(Fmod) X(Pow)

/* Opcodes. Light ones come first: evaluators of light programs know those below
 * IV_CUDA_TAIL_FIRST_HEAVY alone, and inputs of f32, f16 and bf16. */
#define IV_CUDA_TAIL_OPCODE(op) IV_CUDA_TAIL_##op,
enum {
    IV_CUDA_TAIL_Copy, /* x: casts, whose rounding is the step's */
    IV_CUDA_TAIL_LIGHT_UNARY(IV_CUDA_TAIL_OPCODE) IV_CUDA_TAIL_LIGHT_BINARY(IV_CUDA_TAIL_OPCODE)
        IV_CUDA_TAIL_QUESTIONS(IV_CUDA_TAIL_OPCODE) IV_CUDA_TAIL_Clip, /* x, least, most */
    IV_CUDA_TAIL_Where,                                                /* condition, x, y */
    /* Batch normalisation: x, then the first of four inputs that follow each other: scale, bias,
     * mean, variance; a is epsilon. */
    IV_CUDA_TAIL_Normalize,
    IV_CUDA_TAIL_Truth, /* x != 0 */
    IV_CUDA_TAIL_Not,
    IV_CUDA_TAIL_And,
    IV_CUDA_TAIL_Or,
    IV_CUDA_TAIL_Xor,
    IV_CUDA_TAIL_IsNaN,
    IV_CUDA_TAIL_IsInf,
    IV_CUDA_TAIL_FIRST_HEAVY,
    IV_CUDA_TAIL_BEFORE_HEAVY = IV_CUDA_TAIL_FIRST_HEAVY - 1,
    IV_CUDA_TAIL_HEAVY_UNARY(IV_CUDA_TAIL_OPCODE) IV_CUDA_TAIL_HEAVY_BINARY(IV_CUDA_TAIL_OPCODE)
        IV_CUDA_TAIL_OPCODES
};
#undef IV_CUDA_TAIL_OPCODE

/* Where an operand comes from. */
enum {
    IV_CUDA_TAIL_PREVIOUS,    /* the step before; for the first step the base */
    IV_CUDA_TAIL_REGISTER,    /* and the following ones */
    IV_CUDA_TAIL_IMMEDIATE_A = IV_CUDA_TAIL_REGISTER + IV_CUDA_TAIL_REGISTERS, /* the step's a */
    IV_CUDA_TAIL_IMMEDIATE_B,
    IV_CUDA_TAIL_INPUT /* and the following ones */
};

/* How elements of an input lie in memory. Integers and f64 become f32 by the rules of Cast. */
typedef enum iv_cuda_tail_dtype {
    IV_CUDA_TAIL_F32,
    IV_CUDA_TAIL_F16,
    IV_CUDA_TAIL_BF16,
    IV_CUDA_TAIL_U8, /* truth values too */
    IV_CUDA_TAIL_F64,
    IV_CUDA_TAIL_U16,
    IV_CUDA_TAIL_U32,
    IV_CUDA_TAIL_U64,
    IV_CUDA_TAIL_S8,
    IV_CUDA_TAIL_S16,
    IV_CUDA_TAIL_S32,
    IV_CUDA_TAIL_S64
} iv_cuda_tail_dtype;

typedef struct iv_cuda_tail_step {
    uint8_t opcode, sources[3];
    uint8_t keep;     /* the register (IV_CUDA_TAIL_REGISTER…) that gets the result as well; 0: none */
    uint8_t rounding; /* F32 (none), F16 or BF16 */
    uint8_t unused[2];
    float a, b;
} iv_cuda_tail_step;

typedef struct iv_cuda_tail_code {
    int32_t count;
    uint8_t base_rounding, base_keep; /* as in a step: what happens to the base first */
    uint8_t preloaded;                /* how many of the first registers inputs are loaded to */
    uint8_t unused;
    uint8_t preloads[IV_CUDA_TAIL_REGISTERS]; /* the inputs that go to registers 0, 1, … */
    iv_cuda_tail_step steps[IV_CUDA_TAIL_STEPS];
} iv_cuda_tail_code;

/* An input of the program behind a contraction: its element for an output in (outer batch, inner
 * batch, row, column) lies at data plus the sum of index times step, in bytes. */
typedef struct iv_cuda_tail_input {
    const char *data;
    int64_t steps[4];
    int32_t dtype, unused;
} iv_cuda_tail_input;

/* Steps of the most common programs, which need no interpreter: the sum with an input of f32 (its index), Relu, and Clip between
 * the step's a and b, each of the step before. */
#define IV_CUDA_TAIL_QUICK 4
#define IV_CUDA_TAIL_QUICK_RELU 255
#define IV_CUDA_TAIL_QUICK_CLIP 254

/* The program behind a contraction, with its operands: see cuda/tail.h. */
typedef struct iv_cuda_tail {
    iv_cuda_tail_code code;
    uint8_t quick_count; /* of the code's steps when all are quick, else 0 */
    uint8_t quick[IV_CUDA_TAIL_QUICK];
    int64_t inner_batch; /* batch b is (b / inner_batch, b % inner_batch) */
    iv_cuda_tail_input inputs[IV_CUDA_TAIL_INPUTS];
} iv_cuda_tail;

#endif
