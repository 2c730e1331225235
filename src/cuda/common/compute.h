/* Computing on tensors whose data lie on a device: from operators, types and strides to kernels and their tasks.
 *
 * A tensor here has an address of the device as its data, and any strides; nothing on the host follows it. Finding a
 * kernel belongs to the preparation of a run, since it may load a module; launching allocates nothing. */
#ifndef SB_CUDA_COMMON_COMPUTE_H
#define SB_CUDA_COMMON_COMPUTE_H

#include "cuda/common/parameters.h"
#include "cuda/queue/task.h"
#include "tensor/walk.h"

/** The bytes that a tensor's elements lie in, from the first to the last; none for an empty tensor. */
sb_cuda_range sb_cuda_tensor_range(const sb_tensor *tensor, bool written);

/** As many blocks as `wanted`, but no more than fill the queue's device a few times over. */
unsigned sb_cuda_queue_blocks(const sb_cuda_queue *queue, int64_t wanted);

/** Describes a walk, whose operands are those tensors, to kernels. */
void sb_cuda_box_of_walk(sb_cuda_box *box, const sb_walk *walk, const sb_tensor *const *operands);

/** Makes elements of 8 bytes of those of a box that is copied, whose size is given, where each row is whole groups of these in
 * both operands and all of them start at 16 bytes. Returns the size then: 8, or as before. */
int64_t sb_cuda_box_widen(sb_cuda_box *box, int64_t size);

/** The kernel that copies elements of `dtype`, whatever the strides. UNSUPPORTED for text. */
sb_status sb_cuda_find_copy(sb_cuda_device *device, sb_dtype dtype, const sb_cuda_kernel **kernel, sb_error *error);
/** Copies `from`, broadcast by numpy's rule, to `to`: packed tensors by the device's own copying, others by `kernel`.
 * The dtypes are equal, and elements of `to` do not overlap. `step` is the task's. */
sb_status sb_cuda_launch_copy(const sb_cuda_queue *queue, int step, const sb_cuda_kernel *kernel, const sb_tensor *to,
                              const sb_tensor *from, sb_error *error);

/* An element-wise operator of a dtype: a kernel, and which of its operators it is. */
typedef struct sb_cuda_operation {
    const sb_cuda_kernel *kernel;
    int32_t op;
} sb_cuda_operation;

/** The element-wise operator `op` ("Exp", "Add", …; GeluTanh, Fmod, ShiftLeft and ShiftRight by those names) for inputs
 * of `dtype`. UNSUPPORTED when there is none. */
sb_status sb_cuda_find_elementwise(sb_cuda_device *device, const char *op, int inputs, sb_dtype dtype,
                                   sb_cuda_operation *operation, sb_error *error);

/* What an element-wise kernel takes beside tensors. */
typedef struct sb_cuda_elementwise_options {
    float a, b;      /* of operators of one input: ops/unary_formulas.h */
    uint32_t *fault; /* a word in the device's reach that integer divisions by zero set; only those need it */
} sb_cuda_elementwise_options;

/** Computes `out` from `inputs` (1 or 2, as the operation was found for), which are broadcast to it. */
sb_status sb_cuda_launch_elementwise(const sb_cuda_queue *queue, int step, const sb_cuda_operation *operation,
                                     const sb_cuda_elementwise_options *options, const sb_tensor *out, int inputs,
                                     const sb_tensor *const *tensors, sb_error *error);

#endif
