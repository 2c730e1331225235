/* Between the sources of convolutions of 16 bits. */
#ifndef SB_CUDA_CONTRACTION_CONV16_INTERNAL_H
#define SB_CUDA_CONTRACTION_CONV16_INTERNAL_H

#include "cuda/contraction/conv.h"
#include "cuda/contraction/conv16_parameters.h"

/** The weights as lines: as they lie, made ahead, or, where weights come with the call, packed into a workspace; and the
 * bytes that they take. Errors: OUT_OF_MEMORY; those of launches. */
sb_status sb_cuda_conv16_find_weights(sb_call *call, const sb_cuda_conv *conv, sb_cuda_weights16 *weights,
                                      size_t *bytes);

/** conv16_hopper.c: gives the convolution by TMA and wgmma where that can be; else *given becomes false, and nothing has
 * been given. Errors: as for sb_cuda_conv16_launch. */
sb_status sb_cuda_conv16_on_hopper(sb_call *call, const sb_cuda_conv *conv, bool *given);

#endif
