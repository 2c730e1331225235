/* The inside of a compiled element-wise program: see tail.h. */
#ifndef IV_CUDA_TAIL_COMPILER_H
#define IV_CUDA_TAIL_COMPILER_H

#include "cuda/tail.h"

/* An input of the program. */
typedef struct iv_cuda_tail_operand_plan {
    int graph_input;
    int trailing_ones; /* extents of 1 behind its own, which put a list along dimension 1 */
    iv_dtype dtype;
} iv_cuda_tail_operand_plan;

struct iv_cuda_tail_plan {
    iv_cuda_tail_code code;
    int input_count;
    iv_cuda_tail_operand_plan inputs[IV_CUDA_TAIL_INPUTS];
};

#endif
