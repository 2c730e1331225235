/* Element-wise programs of 16 bits, eight elements a thread: those that have kernels of their own, without an interpreter,
 * and others. What these kernels take, for the host and for the device. */
#ifndef SB_CUDA_ELEMENTWISE_FIXED_PARAMETERS_H
#define SB_CUDA_ELEMENTWISE_FIXED_PARAMETERS_H

#include "cuda/common/divisor.h"
#include "cuda/contraction/epilogue_parameters.h"

#define SB_CUDA_FIXED_STEPS 6
#define SB_CUDA_FIXED_INPUTS 6
#define SB_CUDA_FIXED_KEPT 1
#define SB_CUDA_FIXED_THREADS 256
/* Named values of the interpreter's programs. */
#define SB_CUDA_FIXED_REGISTERS 4
/* Elements that a thread takes at once, 16 bytes. */
#define SB_CUDA_FIXED_GROUP 8

/* A step as in sb_cuda_epilogue_step, which says what opcodes and sources are. */
typedef struct sb_cuda_fixed_step {
    uint8_t opcode, sources[3], keep;
} sb_cuda_fixed_step;

typedef struct sb_cuda_fixed_program {
    uint8_t inputs, count;
    sb_cuda_fixed_step steps[SB_CUDA_FIXED_STEPS];
} sb_cuda_fixed_program;

/* How an input's elements lie for a group of neighbours of the output. */
typedef enum sb_cuda_fixed_layout {
    SB_CUDA_FIXED_LINEAR,  /* as the output's */
    SB_CUDA_FIXED_ROW,     /* side by side, in rows that are a multiple of the group */
    SB_CUDA_FIXED_REPEATED /* one for a whole row: a group has one, or where it goes on into the next row, two */
} sb_cuda_fixed_layout;

typedef struct sb_cuda_fixed_input {
    const char *data;
    int64_t steps[2]; /* outer, middle; in bytes */
    int32_t layout, unused;
} sb_cuda_fixed_input;

/* The output, which is packed: outer x middle x inner elements. */
typedef struct sb_cuda_fixed_box {
    uint32_t elements; /* less than 2^30 */
    uint32_t places;   /* whether an input is not linear */
    sb_cuda_divisor middle, inner;
    char *out;
} sb_cuda_fixed_box;

typedef struct sb_cuda_fixed {
    sb_cuda_fixed_box box;
    uint32_t channels_last, unused; /* of normalisations: statistics are rows that repeat, not one for each row */
    sb_cuda_fixed_input inputs[SB_CUDA_FIXED_INPUTS];
    float a[SB_CUDA_FIXED_STEPS], b[SB_CUDA_FIXED_STEPS]; /* the steps' numbers; a of a quotient by b: 1 / b */
} sb_cuda_fixed;

/* Any other program over such elements, for the interpreter. */
typedef struct sb_cuda_fixed_code {
    sb_cuda_fixed_box box;
    sb_cuda_fixed_input inputs[SB_CUDA_EPILOGUE_INPUTS];
    sb_cuda_epilogue_code code;
} sb_cuda_fixed_code;

#endif
