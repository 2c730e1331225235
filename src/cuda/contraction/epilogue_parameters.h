/* Element-wise programs as kernels take them, for the host and for the device.
 *
 * A program is a list of steps. Each computes one value from up to three others and rounds it to
 * its dtype, just as a node of its own would. Values are f32 in registers, whatever their dtype:
 * f16 and bf16 are widened, truth values are 0 and 1. */
#ifndef SB_CUDA_CONTRACTION_EPILOGUE_PARAMETERS_H
#define SB_CUDA_CONTRACTION_EPILOGUE_PARAMETERS_H

#include <stdint.h>

#include "ops/binary_list.h"
#include "ops/unary_list.h"

#define SB_CUDA_EPILOGUE_STEPS 40
#define SB_CUDA_EPILOGUE_INPUTS 15 /* with the output, what a walk takes */
/* Named values beside that of the step before. */
#define SB_CUDA_EPILOGUE_REGISTERS 8
/* Of which light programs have as many. */
#define SB_CUDA_EPILOGUE_LIGHT_REGISTERS 2

/* Operators of one input that take few instructions: unary_formulas.h. */
#define SB_CUDA_EPILOGUE_LIGHT_UNARY(X) SB_UNARY_LIGHT_FLOATS(SB_UNARY_ALONE, X)
/* Operators of two inputs likewise, binary_values.h: those that give a float, and those that give a truth value. */
#define SB_CUDA_EPILOGUE_LIGHT_BINARY(X) SB_BINARY_LIGHT_FLOATS(SB_BINARY_ALONE, X)
#define SB_CUDA_EPILOGUE_QUESTIONS(X) SB_BINARY_COMPARISONS(SB_BINARY_ALONE, X)
/* Elementary functions, some hundred instructions each. */
#define SB_CUDA_EPILOGUE_HEAVY_UNARY(X) SB_UNARY_HEAVY_FLOATS(SB_UNARY_ALONE, X)
#define SB_CUDA_EPILOGUE_HEAVY_BINARY(X) SB_BINARY_HEAVY_FLOATS(SB_BINARY_ALONE, X)

/* Opcodes. Light ones come first: evaluators of light programs know those below
 * SB_CUDA_EPILOGUE_FIRST_HEAVY alone, and inputs of f32, f16 and bf16. */
#define SB_CUDA_EPILOGUE_OPCODE(op) SB_CUDA_EPILOGUE_##op,
enum {
    SB_CUDA_EPILOGUE_Copy, /* x: casts, whose rounding is the step's */
    SB_CUDA_EPILOGUE_LIGHT_UNARY(SB_CUDA_EPILOGUE_OPCODE) SB_CUDA_EPILOGUE_LIGHT_BINARY(SB_CUDA_EPILOGUE_OPCODE)
        SB_CUDA_EPILOGUE_QUESTIONS(SB_CUDA_EPILOGUE_OPCODE)
    /* x, least, most */
    SB_CUDA_EPILOGUE_Clip,
    SB_CUDA_EPILOGUE_Where, /* condition, x, y */
    /* Batch normalisation: x, then the first of four inputs that follow each other: scale, bias,
     * mean, variance; a is epsilon. */
    SB_CUDA_EPILOGUE_Normalize,
    SB_CUDA_EPILOGUE_Truth, /* x != 0 */
    SB_CUDA_EPILOGUE_Not,
    SB_CUDA_EPILOGUE_And,
    SB_CUDA_EPILOGUE_Or,
    SB_CUDA_EPILOGUE_Xor,
    SB_CUDA_EPILOGUE_IsNaN,
    SB_CUDA_EPILOGUE_IsInf,
    SB_CUDA_EPILOGUE_FIRST_HEAVY,
    SB_CUDA_EPILOGUE_BEFORE_HEAVY = SB_CUDA_EPILOGUE_FIRST_HEAVY - 1,
    SB_CUDA_EPILOGUE_HEAVY_UNARY(SB_CUDA_EPILOGUE_OPCODE) SB_CUDA_EPILOGUE_HEAVY_BINARY(SB_CUDA_EPILOGUE_OPCODE)
        SB_CUDA_EPILOGUE_OPCODES
};
#undef SB_CUDA_EPILOGUE_OPCODE

/* Where an operand comes from. */
enum {
    SB_CUDA_EPILOGUE_PREVIOUS, /* the step before; for the first step the base */
    SB_CUDA_EPILOGUE_REGISTER, /* and the following ones */
    SB_CUDA_EPILOGUE_IMMEDIATE_A = SB_CUDA_EPILOGUE_REGISTER + SB_CUDA_EPILOGUE_REGISTERS, /* the step's a */
    SB_CUDA_EPILOGUE_IMMEDIATE_B,
    SB_CUDA_EPILOGUE_INPUT /* and the following ones */
};

/* How elements of an input lie in memory. Integers and f64 become f32 by the rules of Cast. */
typedef enum sb_cuda_epilogue_dtype {
    SB_CUDA_EPILOGUE_F32,
    SB_CUDA_EPILOGUE_F16,
    SB_CUDA_EPILOGUE_BF16,
    SB_CUDA_EPILOGUE_U8, /* truth values too */
    SB_CUDA_EPILOGUE_F64,
    SB_CUDA_EPILOGUE_U16,
    SB_CUDA_EPILOGUE_U32,
    SB_CUDA_EPILOGUE_U64,
    SB_CUDA_EPILOGUE_S8,
    SB_CUDA_EPILOGUE_S16,
    SB_CUDA_EPILOGUE_S32,
    SB_CUDA_EPILOGUE_S64
} sb_cuda_epilogue_dtype;

typedef struct sb_cuda_epilogue_step {
    uint8_t opcode, sources[3];
    uint8_t keep;     /* the register (SB_CUDA_EPILOGUE_REGISTER…) that gets the result as well; 0: none */
    uint8_t rounding; /* F32 (none), F16 or BF16 */
    uint8_t unused[2];
    float a, b;
} sb_cuda_epilogue_step;

typedef struct sb_cuda_epilogue_code {
    int32_t count;
    uint8_t base_rounding, base_keep; /* as in a step: what happens to the base first */
    uint8_t preloaded;                /* how many of the first registers inputs are loaded to */
    uint8_t unused;
    uint8_t preloads[SB_CUDA_EPILOGUE_REGISTERS]; /* the inputs that go to registers 0, 1, … */
    sb_cuda_epilogue_step steps[SB_CUDA_EPILOGUE_STEPS];
} sb_cuda_epilogue_code;

/* An input of the program behind a contraction: its element for an output in (outer batch, inner
 * batch, row, column) lies at data plus the sum of index times step, in bytes. */
typedef struct sb_cuda_epilogue_input {
    const char *data;
    int64_t steps[4];
    int32_t dtype, unused;
} sb_cuda_epilogue_input;

/* Steps of the most common programs, which need no interpreter: the sum with an input of f32 (its index), Relu, and
 * Clip between the step's a and b, each of the step before. */
#define SB_CUDA_EPILOGUE_QUICK 4
#define SB_CUDA_EPILOGUE_QUICK_RELU 255
#define SB_CUDA_EPILOGUE_QUICK_CLIP 254

/* The program behind a contraction, with its operands: see cuda/contraction/epilogue.h. */
typedef struct sb_cuda_epilogue {
    sb_cuda_epilogue_code code;
    uint8_t quick_count; /* of the code's steps when all are quick, else 0 */
    uint8_t quick[SB_CUDA_EPILOGUE_QUICK];
    int64_t inner_batch; /* batch b is (b / inner_batch, b % inner_batch) */
    sb_cuda_epilogue_input inputs[SB_CUDA_EPILOGUE_INPUTS];
} sb_cuda_epilogue;

#endif
