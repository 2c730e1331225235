/* 16-bit products on a device: from a checked product to a task.
 *
 * A schedule is a way to compute products: some kernels, what they can do, and how long they would
 * take. None changes a bit, so the quickest of those that can is taken, unless the caller names
 * one. To add a schedule: a table entry in a source of its own, and its line in gemm.c. */
#ifndef IV_CUDA_GEMM_GEMM_H
#define IV_CUDA_GEMM_GEMM_H

#include "cuda/kernels/gemm16_parameters.h"
#include "cuda/task.h"
#include "gemm/check.h"
#include "gemm/engine.h"
#include "gemm/logp_tasks.h"

#define IV_GEMM_WHY_BYTES 192
/* A, B, C, bias, residual, and the groups of rows. */
#define IV_GEMM_RANGES 6

typedef struct iv_gemm_schedule iv_gemm_schedule;
struct iv_gemm_schedule {
    const char *name;
    const void *shape; /* what tells schedules of one source apart: theirs to read */
    /** Loads what the schedule launches and returns it in *state, once for each engine: nothing is loaded later, when a stream
     * may be being captured. A device that it is not made for gets NULL and IV_OK. In the device's context. */
    iv_status (*prepare)(const iv_gemm_schedule *self, iv_engine *engine, void **state, iv_error *error);
    /** NULL is allowed. */
    void (*release)(void *state);
    /** Whether it can compute the plan, which has elements; if not, why not, within IV_GEMM_WHY_BYTES. `state` may be NULL. */
    bool (*can)(const iv_gemm_schedule *self, const iv_engine *engine, const void *state, const iv_gemm_plan *plan,
                char *why);
    /** About how many microseconds the device would take, for what it can compute. */
    double (*cost)(const iv_gemm_schedule *self, const iv_engine *engine, const iv_gemm_plan *plan);
    /** Gives the task to the queue, between iv_cuda_enter and iv_cuda_leave. Allocates nothing, and neither waits nor asks the
     * driver anything: the stream may be being captured. */
    iv_status (*launch)(const iv_gemm_schedule *self, const iv_engine *engine, const void *state,
                        const iv_cuda_queue *queue, const iv_gemm_plan *plan, iv_error *error);
};

extern const iv_gemm_schedule iv_gemm_general, iv_gemm_general_small; /* general.c: everything */

#define IV_GEMM_HOPPER_SCHEDULES 18
extern const iv_gemm_schedule iv_gemm_hopper[IV_GEMM_HOPPER_SCHEDULES]; /* hopper.c: compute capability 9.0 */

/** Loads the kernels of every schedule: sets engine->device_state, which iv_gemm_device_destroy ends. Not while this thread
 * captures a stream. Errors: UNSUPPORTED when there are no kernels for the device; DEVICE; OUT_OF_MEMORY. */
iv_status iv_gemm_device_create(iv_engine *engine, iv_error *error);
/** NULL in engine->device_state is allowed. */
void iv_gemm_device_destroy(iv_engine *engine);

/** Gives a checked product to `stream`, a CUstream of the engine's device or NULL for the legacy one, and returns at once; a
 * product without elements of C is none. In the steady state nothing is allocated. Errors: UNSUPPORTED when the schedule that
 * plan->gemm names cannot compute it; INVALID_ARGUMENT when there is no such schedule, or the stream is another device's;
 * DEVICE; OUT_OF_MEMORY. */
iv_status iv_gemm_on_device(iv_engine *engine, void *stream, const iv_gemm_plan *plan, iv_error *error);

/** The stream that a caller calls `handle`, kept until another one is asked for. Errors: INVALID_ARGUMENT when it is another
 * device's; DEVICE; OUT_OF_MEMORY. */
iv_status iv_gemm_device_stream(iv_engine *engine, void *handle, iv_cuda_stream **stream, iv_error *error);

/** The name of the schedule that iv_gemm_on_device would take, or its error. */
iv_status iv_gemm_device_choose(const iv_engine *engine, const iv_gemm_plan *plan, const char **schedule,
                                iv_error *error);
int iv_gemm_device_schedule_count(const iv_engine *engine);
/** NULL when `index` is out of range. */
const char *iv_gemm_device_schedule_name(const iv_engine *engine, int index);

/* ---- for schedules ---- */

/* Kernels by dtype (bf16, f16), and by whether A and B are read across their lines; NULL for layouts that a schedule has not. */
typedef struct iv_gemm16_kernels {
    const iv_cuda_kernel *by[2][2][2];
} iv_gemm16_kernels;

/* Sets of layouts: bit 2 * a_across + b_across. */
enum { IV_GEMM_LAYOUTS_ALL = 0xf, IV_GEMM_LAYOUTS_B_ALONG = 0x5, IV_GEMM_LAYOUTS_ACROSS = 0x8 };

/** Loads "iv_<module>_<dtype>_<along|across>_<along|across>" of a module for a set of layouts. The caller frees *kernels with
 * iv_free. Errors: as iv_cuda_kernel_find. */
iv_status iv_gemm16_load(iv_cuda_device *device, const char *module, size_t parameter_bytes, unsigned layouts,
                         iv_gemm16_kernels **kernels, iv_error *error);

static inline int64_t iv_gemm_divide_up(int64_t value, int64_t divisor) {
    return value / divisor + (value % divisor != 0);
}

/** What the kernels of all schedules need to know. */
void iv_gemm16_describe(const iv_gemm_plan *plan, iv_gemm16 *parameters);
/** The memory that a product touches; returns how many ranges there are. */
int iv_gemm_ranges(const iv_gemm_plan *plan, iv_cuda_range ranges[IV_GEMM_RANGES]);
/** Whether an operand's elements are to be read along k rather than across its lines: across only if lines are side by side and
 * k are not. */
bool iv_gemm16_reads_along(const iv_gemm16_operand *operand);
/** Elements, 1, 2 or 8, that may be read at once in that direction from where 8 of them begin: what the address, the other
 * strides, the groups of rows and, where a gated B is read across, the way to the second half of its columns leave. */
int iv_gemm16_width(const iv_gemm16 *product, const iv_gemm16_operand *operand);

/* ---- logits that are reduced where they are computed: hopper.c ---- */

/** Loads the kernels, where the device has them. */
iv_status iv_gemm16_logits_prepare(const iv_engine *engine, iv_error *error);
/** Whether the next can: the plan has one batch and no epilogue, and its C is not looked at. */
bool iv_gemm16_logits_can(const iv_engine *engine, const iv_gemm_plan *plan);
/** Reduces the plan's logits, all of `reduce`'s chunk, whose own logits are not read. As the launch of a schedule. */
iv_status iv_gemm16_logits_launch(const iv_engine *engine, const iv_cuda_queue *queue, const iv_gemm_plan *plan,
                                  const iv_logp_reduce *reduce, iv_error *error);

#endif
