/* What the kernels of operators on a device share: from a call to tasks.
 *
 * A device kernel is an iv_kernel whose `launch` gives tasks to call->target. Tensors of the call
 * have addresses of the device as their data, which nothing on the host follows; those that the
 * kernel lists in `host_inputs` lie on the host. iv_call_output makes outputs on the device,
 * iv_call_scratch gives memory of the device, iv_call_copy copies there. A launch allocates nothing
 * else and waits for nothing: what it gives may be recorded and replayed, so everything that can
 * differ between two runs of the same shapes is in memory of the device. */
#ifndef IV_CUDA_CALL_H
#define IV_CUDA_CALL_H

#include "cuda/kernels/parameters.h"
#include "cuda/task.h"
#include "graph/op.h"
#include "runtime/backend.h"

/* Where a call's tasks go. */
typedef struct iv_cuda_target {
    const iv_cuda_queue *queue;
    int step;          /* of the plan */
    CUdeviceptr fault; /* a 32-bit word of this step, in pinned memory of the host: see iv_cuda_fault */
} iv_cuda_target;

/* Ranges of memory that one piece of work names. */
#define IV_CUDA_WORK_RANGES 24

/* A kernel to be launched, on its way. */
typedef struct iv_cuda_work {
    const char *module, *kernel; /* src/cuda/kernels/<module>.cu, and the name there */
    const void *parameters;      /* copied by the launch */
    size_t parameter_bytes;
    unsigned blocks, threads;    /* grids and blocks have one dimension */
    unsigned shared_bytes;       /* dynamic */
    int range_count;
    iv_cuda_range ranges[IV_CUDA_WORK_RANGES];
} iv_cuda_work;

/** Notes that the work reads, or writes, elements of a tensor. NULL is allowed. */
void iv_cuda_work_reads(iv_cuda_work *work, const iv_tensor *tensor);
void iv_cuda_work_writes(iv_cuda_work *work, const iv_tensor *tensor);
/** The same for bytes, scratch memory for example. */
void iv_cuda_work_touches(iv_cuda_work *work, const void *address, size_t bytes, bool written);
/** The word that the work's kernel sets to an iv_cuda_fault when the data are wrong; noted as
 * written. */
uint32_t *iv_cuda_work_fault(iv_cuda_work *work, const iv_call *call);

/** Finds the kernel and launches it. With `blocks` 0 there is nothing to do. Errors: UNSUPPORTED
 * when the build has no kernels for the device, DEVICE, OUT_OF_MEMORY, INTERNAL. */
iv_status iv_cuda_call_launch(iv_call *call, const iv_cuda_work *work);

/** As many blocks as `wanted`, but no more than fill the call's device a few times over: for
 * kernels whose blocks go on to further work a grid apart. */
unsigned iv_cuda_call_blocks(const iv_call *call, int64_t wanted);

/** Describes the box of `out` and up to IV_CUDA_OPERANDS - 1 inputs, broadcast to it by numpy's
 * rule. */
void iv_cuda_box_fill(iv_cuda_box *box, const iv_tensor *out, int inputs,
                      const iv_tensor *const *tensors);

/** What a fault in `kind` means, for users. */
const char *iv_cuda_fault_text(uint32_t kind);
/** The status with which operators report it on the CPU. */
iv_status iv_cuda_fault_status(uint32_t kind);

/* Operators that many `supports` ask about. */

/** Whether the dtype of a fact is in a set (IV_SET_…); says why not. */
bool iv_cuda_takes(const iv_kernel_query *query, const iv_fact *fact, uint32_t dtypes, char *why);

#endif
