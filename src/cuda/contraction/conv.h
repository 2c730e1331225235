/* What the sources of Conv share: conv.c, which chooses, and conv16.c, for f16 and bf16. */
#ifndef SB_CUDA_CONTRACTION_CONV_H
#define SB_CUDA_CONTRACTION_CONV_H

#include "cuda/common/call.h"
#include "ops/convolution.h"

/* A convolution as its kernels see it. */
typedef struct sb_cuda_conv {
    const sb_tensor *x, *w, *bias; /* bias may be NULL */
    sb_tensor *y;
    sb_conv_extents extents;
    int64_t k;   /* the chains' length */
    int x_input; /* the node's input that x is; -1: a constant of its body */
} sb_cuda_conv;

/* ---- f16 and bf16: conv16.c ---- */

/** The bytes that such weights take in the order of the chain: 0 where they are taken as they are, or are not of these
 * dtypes. False when the size overflows. */
bool sb_cuda_conv16_packed_bytes(const sb_tensor *w, size_t *bytes);
/** Gives the packing of weights that take bytes to the call's queue. Errors: as for sb_cuda_call_launch. */
sb_status sb_cuda_conv16_pack(sb_call *call, const sb_tensor *w, void *packed);
/** Whether the output of a convolution that is small is to have its channels last; `y` is not looked at. */
bool sb_cuda_conv16_turns(const sb_call *call, const sb_cuda_conv *conv);
/** Gives a convolution that has elements, and whose positions, taps and extents are 32-bit numbers of at most
 * SB_CUDA_CONV_AXES axes; y is row-major or has its channels last. Errors: as for sb_cuda_call_launch. */
sb_status sb_cuda_conv16_launch(sb_call *call, const sb_cuda_conv *conv);

#endif
