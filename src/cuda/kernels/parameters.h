/* The structs that kernels take, for the host and for the device. */
#ifndef IV_CUDA_KERNELS_PARAMETERS_H
#define IV_CUDA_KERNELS_PARAMETERS_H

#include <stdint.h>

/* As many dimensions as a tensor can have. */
#define IV_CUDA_RANK 12

/* A box of elements and where they lie: operand 0 is written. Dimensions count from the slowest; what lies behind each
 * other in every operand has been merged, so packed operands come with a rank of 1. Steps are in bytes, and 0 where an
 * operand is repeated. */
#define IV_CUDA_OPERANDS 4
typedef struct iv_cuda_box {
    int64_t elements;
    int32_t rank; /* at least 1 */
    int32_t operands;
    int64_t dims[IV_CUDA_RANK];
    int64_t steps[IV_CUDA_OPERANDS][IV_CUDA_RANK];
    char *data[IV_CUDA_OPERANDS];
} iv_cuda_box;

#endif
