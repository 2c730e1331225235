/* What the files of the convolution share. */
#ifndef SB_CPU_CONTRACTION_CONV_INTERNAL_H
#define SB_CPU_CONTRACTION_CONV_INTERNAL_H

#include "cpu/contraction/conv.h"
#include "cpu/contraction/gemm_block.h"

/* Columns at a time when the output's channels are strided and rows are computed beside it. */
#define SB_CONV_STRIDED_COLUMNS 256

/* Columns of a panel, at most. */
#define SB_CONV_MOST_PANEL 64

/* One call's workspace, cut up. The sizes are set by the plan. */
typedef struct sb_conv_workspace {
    const float **a; /* [runs][table_rows] */
    float **c;       /* [block_rows] */
    float *zero;     /* sb_conv_zero_floats() times +0: what the padding's pointers show */
    float *c_rows;   /* [block_rows][SB_CONV_STRIDED_COLUMNS], for strided output channels */
    float *strip;    /* the copied input */
    void *block;     /* the loop nest's own */
    size_t bytes;    /* of all of it; 0 when it overflows */
} sb_conv_workspace;

/** Cuts up `memory` (NULL to learn only the size). */
sb_conv_workspace sb_conv_cut_workspace(const sb_conv_plan *plan, void *memory);

static inline bool sb_conv_is_depthwise(const sb_conv_plan *plan) {
    return plan->method == SB_CONV_DEPTHWISE || plan->method == SB_CONV_DEPTHWISE_STRIP;
}

static inline bool sb_conv_has_strip(const sb_conv_plan *plan) {
    return plan->method == SB_CONV_STRIP || plan->method == SB_CONV_DEPTHWISE_STRIP;
}

/** Floats of a strip per position: a group's channels, or all of a depthwise convolution's output channels. */
static inline int64_t sb_conv_strip_channels(const sb_conv_plan *plan) {
    return plan->method == SB_CONV_DEPTHWISE_STRIP ? plan->shape.output_channels
                                                   : plan->shape.input_channels / plan->shape.groups;
}

/** Floats that a pointer into the padding must show: a pixel's channels. */
static inline int64_t sb_conv_zero_floats(const sb_conv_plan *plan) {
    return plan->method == SB_CONV_DEPTHWISE_STRIP ? plan->shape.output_channels : plan->shape.input_channels;
}

/** Bytes behind the packed weights for sb_conv_padding_is_neutral, of which the first float is 1 or 0. */
static inline size_t sb_conv_note_bytes(const sb_conv_plan *plan) {
    return plan->shape.groups == 1 && plan->taps > 1 ? 64 : 0;
}

/** Whether a kernel position that only reads padding does no more to a chain than adding +0 to it, for every output channel: all
 * weights are finite, and each position has one whose product with +0 is +0. */
static inline bool sb_conv_padding_is_neutral(const sb_conv_plan *plan, const float *packed) {
    return sb_conv_note_bytes(plan) != 0 && packed[(plan->packed_bytes - 64) / sizeof(float)] != 0.0f;
}

/** Copies what output indices [first, first + count) of the first spatial dimension read of sample
 * `batch` and `group` (for depthwise: of all groups), padding included: [position…][channel], the
 * strip's extents of plan->strip except that the first one fits `count`. */
void sb_conv_copy_strip(const sb_conv_plan *plan, const float *x, int64_t batch, int64_t group, int64_t first,
                        int64_t count, float *strip);

#endif
