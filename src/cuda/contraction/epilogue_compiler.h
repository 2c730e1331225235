/* The inside of a compiled element-wise program: see epilogue.h. */
#ifndef SB_CUDA_CONTRACTION_EPILOGUE_COMPILER_H
#define SB_CUDA_CONTRACTION_EPILOGUE_COMPILER_H

#include "cuda/contraction/epilogue.h"

/* An input of the program. */
typedef struct sb_cuda_epilogue_operand_plan {
    int graph_input;
    int trailing_ones; /* extents of 1 behind its own, which put a list along dimension 1 */
    sb_dtype dtype;
} sb_cuda_epilogue_operand_plan;

struct sb_cuda_epilogue_plan {
    sb_cuda_epilogue_code code;
    int input_count;
    sb_cuda_epilogue_operand_plan inputs[SB_CUDA_EPILOGUE_INPUTS];
};

#endif
