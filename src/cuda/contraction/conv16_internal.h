/* Between the sources of convolutions of 16 bits. */
#ifndef SB_CUDA_CONTRACTION_CONV16_INTERNAL_H
#define SB_CUDA_CONTRACTION_CONV16_INTERNAL_H

#include "cuda/contraction/conv.h"
#include "cuda/contraction/conv16_parameters.h"
#include "kernel/contraction/check.h"

/** The weights as lines: as they lie, made ahead, or, where weights come with the call, packed into a workspace; and the
 * bytes that they take. Errors: OUT_OF_MEMORY; those of launches. */
sb_status sb_cuda_conv16_find_weights(sb_call *call, const sb_cuda_conv *conv, sb_cuda_weights16 *weights,
                                      size_t *bytes);

/* An input whose channels lie side by side. */
typedef struct sb_cuda_conv16_input {
    const uint16_t *data;
    int64_t sample, steps[SB_WINDOW_AXES]; /* in elements */
    sb_gemm_range range;
} sb_cuda_conv16_input;

/** The input, whose channels are a multiple of 8, with its channels last: as it lies, or turned, in a workspace. What eight
 * channels begin at is aligned to 16 bytes. Errors: OUT_OF_MEMORY; those of launches. */
sb_status sb_cuda_conv16_find_input(sb_call *call, const sb_cuda_conv *conv, sb_cuda_conv16_input *found);

/* An input as a matrix of what is summed up and positions, for each sample. */
typedef struct sb_cuda_conv16_columns {
    const void *data;
    int64_t channel, position, sample; /* steps in elements */
} sb_cuda_conv16_columns;

/** conv16_patches.c: whether windows neither overlap nor lie apart, and chains are in the order of a copy of them. */
bool sb_cuda_conv16_are_patches(const sb_cuda_conv *conv);

/** Has the windows of such a convolution copied side by side to a workspace. Errors: OUT_OF_MEMORY; those of launches. */
sb_status sb_cuda_conv16_cut(sb_call *call, const sb_cuda_conv *conv, sb_cuda_conv16_columns *columns);

/** Whether the output has its channels last; with one position either order is the other. */
bool sb_cuda_conv16_is_turned(const sb_cuda_conv *conv);

/** conv16_grouped.c: whether there is a kernel for a convolution's groups, whose output is to have its channels last. */
bool sb_cuda_conv16_has_groups(const sb_call *call, const sb_cuda_conv *conv);

/** Gives such a convolution where the output does; else *given becomes false, and nothing has been given. Errors: as for
 * sb_cuda_conv16_launch. */
sb_status sb_cuda_conv16_in_groups(sb_call *call, const sb_cuda_conv *conv, bool *given);

/** conv16_hopper.c: gives the convolution by TMA and wgmma where that can be; else *given becomes false, and nothing has
 * been given. Errors: as for sb_cuda_conv16_launch. */
sb_status sb_cuda_conv16_on_hopper(sb_call *call, const sb_cuda_conv *conv, bool *given);

#endif
