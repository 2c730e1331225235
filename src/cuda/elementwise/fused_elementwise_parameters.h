/* A fused body of element-wise nodes as its kernel takes it, for the host and for the device. */
#ifndef SB_CUDA_ELEMENTWISE_FUSED_ELEMENTWISE_PARAMETERS_H
#define SB_CUDA_ELEMENTWISE_FUSED_ELEMENTWISE_PARAMETERS_H

#include "cuda/common/divisor.h"
#include "cuda/common/parameters.h"
#include "cuda/contraction/epilogue_parameters.h"

/* Elements that a thread computes at once: neighbours in the output, which is row-major. */
#define SB_CUDA_FUSED_WIDTH 4
#define SB_CUDA_FUSED_THREADS 256
/* As many elements as a launch may have: 32-bit indices do not overflow then, even those of the
 * group behind the last one. */
#define SB_CUDA_FUSED_MOST (INT64_C(1) << 30)
/* Of the kernels in fused_elementwise.cu. */
#define SB_CUDA_FUSED_REGISTERS 4

/* How an input's elements for such a group lie. */
typedef enum sb_cuda_fused_layout {
    SB_CUDA_FUSED_SINGLE,   /* the input has one element */
    SB_CUDA_FUSED_LINEAR,   /* as the output's */
    SB_CUDA_FUSED_REPEATED, /* there is one for each group, which never crosses rows */
    SB_CUDA_FUSED_ANY
} sb_cuda_fused_layout;

typedef struct sb_cuda_fused_input {
    const char *data;
    int64_t steps[SB_CUDA_RANK]; /* in bytes, 0 where it is repeated */
    uint8_t dtype, layout;       /* sb_cuda_epilogue_dtype, sb_cuda_fused_layout */
    uint8_t size;                /* of an element */
    uint8_t whole;               /* a group of SB_CUDA_FUSED_WIDTH is one aligned access */
    uint8_t unused[4];
} sb_cuda_fused_input;

typedef struct sb_cuda_fused {
    sb_cuda_epilogue_code code;
    uint32_t elements; /* at most SB_CUDA_FUSED_MOST */
    int32_t rank;      /* at least 1; dimensions from the slowest, merged as in sb_cuda_box */
    uint8_t out_dtype; /* f32, f16, bf16, or u8 for truth values */
    uint8_t whole;     /* groups of the output are aligned */
    uint8_t unused[2];
    char *out;
    sb_cuda_divisor divisors[SB_CUDA_RANK]; /* the dims */
    sb_cuda_fused_input inputs[SB_CUDA_EPILOGUE_INPUTS];
} sb_cuda_fused;

#endif
