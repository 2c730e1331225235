/* Convolutions of f16 and bf16 as implicit products of the 16-bit chain (chain16.h): a row per output position, a column
 * per output channel of a group. */
#ifndef SB_CPU_CONTRACTION_CONV16_H
#define SB_CPU_CONTRACTION_CONV16_H

#include "cpu/contraction/fused_epilogue.h"
#include "ops/convolution.h"

/** Bytes of packed weights `w`, of which only the extents are read; 0 when that overflows. */
size_t sb_conv16_packed_bytes(const sb_conv_params *params, const sb_tensor *w);

/** Packs weights of any strides, group by group. `packed` has sb_conv16_packed_bytes, aligned to 64. The same for every
 * instruction set. Errors: OUT_OF_MEMORY. */
sb_status sb_conv16_pack(const sb_conv_params *params, const sb_tensor *w, void *packed, sb_error *error);

/* One convolution. */
typedef struct sb_conv16 {
    const sb_conv_extents *extents;
    sb_tensor *x;             /* [batch][channels][positions…], of any strides */
    sb_tensor *y;             /* the same, with channels innermost in memory and without gaps */
    const void *packed;       /* weights */
    size_t packed_bytes;      /* of all groups */
    const float *bias;        /* of all output channels; NULL: none */
    sb_fused_epilogue *fused; /* the nodes behind, if any */
} sb_conv16;

/** Computes y on all workers of `call`, from whose workspace it takes what it needs. y has elements. */
sb_status sb_conv16_run(sb_call *call, const sb_conv16 *conv);

#endif
