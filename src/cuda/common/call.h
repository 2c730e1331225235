/* What the kernels of operators on a device share: from a call to tasks.
 *
 * A device kernel is an sb_kernel whose `launch` gives tasks to call->target. Tensors of the call
 * have addresses of the device as their data, which nothing on the host follows; those that the
 * kernel lists in `host_inputs` lie on the host. sb_call_output makes outputs on the device,
 * sb_call_workspace gives memory of the device, sb_call_copy copies there. A launch allocates nothing
 * else and waits for nothing: what it gives may be recorded and replayed, so everything that can
 * differ between two runs of the same shapes is in memory of the device. Except for kernels of which list.c says that they
 * find out the extents of their outputs: no step of open extents is recorded, and they wait by sb_call_read. */
#ifndef SB_CUDA_COMMON_CALL_H
#define SB_CUDA_COMMON_CALL_H

#include "cuda/common/parameters.h"
#include "cuda/queue/task.h"
#include "graph/op.h"
#include "kernel/kernel.h"

/** Where a call's tasks go. */
static inline const sb_cuda_queue *sb_cuda_call_queue(const sb_call *call) {
    return call->target->queue;
}

/** The device that computes a call. */
static inline sb_cuda_device *sb_cuda_call_device(const sb_call *call) {
    return sb_cuda_call_queue(call)->stream->device;
}

/* Ranges of memory that one piece of work names. */
#define SB_CUDA_WORK_RANGES 24

/* A kernel to be launched, on its way. */
typedef struct sb_cuda_work {
    const char *module, *kernel; /* src/cuda/<family>/<module>.cu, and the name there */
    const void *parameters;      /* copied by the launch */
    size_t parameter_bytes;
    unsigned blocks, threads; /* grids and blocks have one dimension */
    unsigned shared_bytes;    /* dynamic */
    /** Several of its blocks fit a multiprocessor, which they keep busy: launched early they would come to lie where there is room
     * beside those ahead, several on one, and leave others idle (ResNet-50 in f32 took twice as long, of one image; a token of
     * the 1B shape 1.30 ms for 1.20). */
    bool apart;
    sb_cuda_join join; /* in graphs that are built, it may do what the kernel right ahead does; NULL: never */
    int range_count;
    sb_cuda_range ranges[SB_CUDA_WORK_RANGES];
} sb_cuda_work;

/** Notes that the work reads, or writes, elements of a tensor. NULL is allowed. */
void sb_cuda_work_reads(sb_cuda_work *work, const sb_tensor *tensor);
void sb_cuda_work_writes(sb_cuda_work *work, const sb_tensor *tensor);
/** The same for bytes, workspace for example. */
void sb_cuda_work_touches(sb_cuda_work *work, const void *address, size_t bytes, bool written);
/** Where the kernel reads how many rows of an input's axis are used (sb_call_used), noted as read; NULL: all. */
const int64_t *sb_cuda_work_used(sb_cuda_work *work, const sb_call *call, int input, int axis);
/** Where the kernel reads the run's elements of an input on the host (sb_call_known), noted as read; NULL: as on the host. */
const int64_t *sb_cuda_work_known(sb_cuda_work *work, const sb_call *call, int input);
/** The word that the work's kernel sets to an SB_FAULT_… when the data are wrong; noted as written. */
uint32_t *sb_cuda_work_fault(sb_cuda_work *work, const sb_call *call);

/** Finds the kernel and launches it. With `blocks` 0 there is nothing to do. Errors: UNSUPPORTED
 * when the build has no kernels for the device, DEVICE, OUT_OF_MEMORY, INTERNAL. */
sb_status sb_cuda_call_launch(sb_call *call, const sb_cuda_work *work);

/** As many blocks as `wanted`, but no more than fill the call's device a few times over: for
 * kernels whose blocks go on to further work a grid apart. */
unsigned sb_cuda_call_blocks(const sb_call *call, int64_t wanted);

/** Describes the box of `out` and up to SB_CUDA_OPERANDS - 1 inputs, broadcast to it by numpy's rule. */
void sb_cuda_box_fill(sb_cuda_box *box, const sb_tensor *out, int inputs, const sb_tensor *const *tensors);

/* Channels last: tensors of f16 and bf16 [batch][channel][position…] whose channels lie innermost in memory, without gaps.
 * Convolutions on Hopper write such, and what computes element by element keeps the order that it finds. */

/** Whether a tensor of rank 3 or more lies so, and not row-major. */
bool sb_cuda_has_channels_last(const sb_tensor *tensor);
/** The order of the dimensions of such, outermost first. */
void sb_cuda_channels_last_order(int rank, int *order);
/** Makes output `index` so, unless it has been placed. Errors: as for sb_call_output. */
sb_status sb_cuda_output_channels_last(sb_call *call, int index, sb_tensor **tensor);
/** Makes output `index` so if it is of 16 bits and the first of `count` inputs (NULLs are passed over) that has its shape
 * lies so; else, and where it has been placed, as sb_call_output. */
sb_status sb_cuda_output_like(sb_call *call, int index, int count, const sb_tensor *const *inputs, sb_tensor **tensor);

/* Operators that many `supports` ask about. */

/** Whether the dtype of a fact is in a set (SB_SET_…); says why not. */
bool sb_cuda_takes(const sb_kernel_query *query, const sb_fact *fact, uint32_t dtypes, char *why);

#endif
