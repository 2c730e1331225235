/* The CPU's functions on raw pointers as cases: buffers that are tensors, so that they can be described and compared, and
 * the epilogues behind f32 products and convolutions. */
#ifndef HARNESS_CPU_RAW_H
#define HARNESS_CPU_RAW_H

#include "cpu/contraction/gemm_kernels.h"
#include "harness/harness.h"

/** The kernels of f32 products for the instruction sets of this machine; returns how many. */
int machine_kernels(const sb_gemm_kernels *kernels[3]);
/** f32s of a distribution, one behind the other. */
sb_tensor *random_floats(harness *h, distribution kind, int64_t count);
/** Garbage of so many bytes that a test writes to. */
void *raw_block(size_t bytes);
float *floats_of(const sb_tensor *tensor);
/** A packed copy. */
sb_tensor *copy_floats(const sb_tensor *tensor);
/** A view of a packed tensor from its first element on, with these strides. */
sb_tensor *view_floats(const sb_tensor *packed, int rank, const int64_t *dims, const int64_t *strides);
/** A random epilogue on an m × n result; *operands (the caller's) has what its steps read. */
sb_epilogue random_epilogue(harness *h, distribution kind, int64_t m, int64_t n, sb_tensor **operands);
/** A step of SB_EPILOGUE_CALL that shows wrong positions and wrong order of steps; the context is a float. */
void scale_by_position(void *context, float *row, int64_t m, int64_t n, int64_t count);
/** The kinds of an epilogue's steps, behind each other: " 1 4 0". */
const char *epilogue_text(const sb_epilogue *epilogue, char text[64]);

#endif
