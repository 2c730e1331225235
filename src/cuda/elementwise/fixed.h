/* Kernels of element-wise programs whose operands all have 16 bits: finding and launching them. */
#ifndef SB_CUDA_ELEMENTWISE_FIXED_H
#define SB_CUDA_ELEMENTWISE_FIXED_H

#include "cuda/common/call.h"
#include "cuda/elementwise/fixed_parameters.h"
#include "tensor/walk.h"

/* A program that has such a kernel. */
typedef struct sb_cuda_fixed_match {
    const char *name;
    int input_count;
    uint8_t inputs[SB_CUDA_FIXED_INPUTS]; /* the program's input i is this one of the code */
    float a[SB_CUDA_FIXED_STEPS], b[SB_CUDA_FIXED_STEPS];
    bool normalizes; /* inputs 1 to 4 are statistics of channels, with an element a row */
} sb_cuda_fixed_match;

/** Whether the steps of `code`, each of which is to be rounded to `dtype`, have a kernel; tells which one. The dtypes of
 * inputs and output are for the caller to look at. Reads nothing else, and needs no driver. */
bool sb_cuda_fixed_find(const sb_cuda_epilogue_code *code, sb_dtype dtype, sb_cuda_fixed_match *match);

/** The same for an operator of one or two inputs alone, by its kernel's name; a and b are its numbers. */
bool sb_cuda_fixed_find_operator(const char *op, sb_dtype dtype, float a, float b, sb_cuda_fixed_match *match);

/** Launches the kernel over a walk in the order of its operand 0, the output; operands 1 and on are the code's inputs, all of
 * them of `dtype`; operand i is tensors[i]. *done is false, and nothing has happened, where the elements do not lie as such
 * kernels have them: side by side and in whole groups of 16 bytes, or one for a whole row of at least eight. Errors: those
 * of sb_cuda_call_launch. */
sb_status sb_cuda_fixed_launch(sb_call *call, const sb_cuda_fixed_match *match, sb_dtype dtype, const sb_walk *walk,
                               const sb_tensor *const *tensors, bool *done);

/** The same for any other program of at most SB_CUDA_FIXED_REGISTERS named values, by the interpreter; `heavy` where it has
 * elementary functions. All operands of the walk are of `dtype`, f16 or bf16. */
sb_status sb_cuda_fixed_interpret(sb_call *call, const sb_cuda_epilogue_code *code, bool heavy, sb_dtype dtype,
                                  const sb_walk *walk, const sb_tensor *const *tensors, bool *done);

#endif
