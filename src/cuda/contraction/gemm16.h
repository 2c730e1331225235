/* 16-bit products on a device: from a checked product to a task.
 *
 * A schedule is a way to compute products: some kernels, what they can do, and how long they would
 * take. None changes a bit, so the quickest of those that can is taken, unless the caller names
 * one. To add a schedule: a table entry in a source of its own, and its line in gemm16.c. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_H
#define SB_CUDA_CONTRACTION_GEMM16_H

#include "cuda/contraction/gemm16_parameters.h"
#include "cuda/queue/stream.h"
#include "cuda/queue/task.h"
#include "graph/op.h"
#include "kernel/contraction/check.h"
#include "kernel/logp/logp_tasks.h"

/* A, B, C, bias, residual, the groups of rows, where used extents are, and what nodes behind read. */
#define SB_GEMM_RANGES (9 + SB_CUDA_EPILOGUE_INPUTS)

/* The nodes of a model behind a product, with the memory that they read. */
typedef struct sb_gemm_fused {
    sb_gemm16_nodes program;
    int range_count;
    sb_cuda_range ranges[SB_CUDA_EPILOGUE_INPUTS];
} sb_gemm_fused;

typedef struct sb_gemm_schedule sb_gemm_schedule;
struct sb_gemm_schedule {
    const char *name;
    const void *shape; /* what tells schedules of one source apart: theirs to read */
    /** Loads all that the schedule may launch, so that a stream may be captured afterwards: nothing on a device that it
     * is not made for. */
    sb_status (*load)(const sb_gemm_schedule *self, sb_cuda_device *device, sb_error *error);
    /** Why it cannot compute the plan, which has elements, in words of static storage; NULL: it can. */
    const char *(*refuses)(const sb_gemm_schedule *self, sb_cuda_device *device, const sb_gemm_plan *plan);
    /** About how many microseconds the device would take, for what it can compute. */
    double (*cost)(const sb_gemm_schedule *self, const sb_cuda_device *device, const sb_gemm_plan *plan);
    /** Gives the task to the queue as step `step`, between sb_cuda_enter and sb_cuda_leave. Waits for nothing, and loads
     * the kernel if nobody has: what is to be captured has been launched, or loaded, before. */
    sb_status (*launch)(const sb_gemm_schedule *self, const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan,
                        sb_error *error);
};

/* The order in which sb_gemm_schedule_name counts: Hopper's, then the general ones. */
#define SB_GEMM_HOPPER_SCHEDULES 32
#define SB_GEMM_SCHEDULES (SB_GEMM_HOPPER_SCHEDULES + 2)

extern const sb_gemm_schedule sb_gemm_general, sb_gemm_general_small; /* gemm16_general.c: everything */

extern const sb_gemm_schedule sb_gemm_hopper[SB_GEMM_HOPPER_SCHEDULES]; /* gemm16_hopper.c: 9.0 */

/** Loads what every schedule launches. Errors: UNSUPPORTED when there are no kernels for the device; DEVICE;
 * OUT_OF_MEMORY. */
sb_status sb_gemm_schedules_load(sb_cuda_device *device, sb_error *error);

/** Gives a product with elements to the queue as step `step` (entered), by the quickest schedule that can, or the one
 * that it names. *way is that, and of a general one why none of the others, if they cannot; NULL where nobody asks.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED: what it names is none, or cannot; DEVICE; OUT_OF_MEMORY. */
sb_status sb_gemm_launch(const sb_cuda_queue *queue, int step, const sb_gemm_plan *plan, sb_call_way *way,
                         sb_error *error);

/** About how many microseconds the quickest schedule that can takes for a product with elements; *hopper is whether that
 * is one of Hopper's. */
double sb_gemm_cost(sb_cuda_device *device, const sb_gemm_plan *plan, bool *hopper);
/** Whether the copy engine can fetch A, or B, as it lies. */
bool sb_gemm16_can_fetch(const sb_gemm_plan *plan, bool is_b);

/* What an engine's interface has on a device. */

sb_status sb_gemm_on_device(sb_engine *engine, void *stream, const sb_gemm_plan *plan, sb_error *error);
sb_status sb_gemm_device_choose(const sb_engine *engine, const sb_gemm_plan *plan, const char **schedule,
                                sb_error *error);
int sb_gemm_device_schedule_count(void);
const char *sb_gemm_device_schedule_name(int index);

/* ---- for schedules ---- */

/* Sets of layouts: bit 2 * a_mn_major + b_mn_major. */
enum {
    SB_GEMM_LAYOUTS_ALL = 0xf,
    SB_GEMM_LAYOUTS_K_MAJOR = 0x1,
    SB_GEMM_LAYOUTS_A_K_MAJOR = 0x3,
    SB_GEMM_LAYOUTS_B_K_MAJOR = 0x5,
    SB_GEMM_LAYOUTS_MN_MAJOR = 0x8
};

/* The modules of a source that is compiled for each dtype apart: half of its kernels take half of the time. */
#define SB_GEMM_MODULES(name)                                                                                          \
    { name "_bf16", name "_f16" }

/** The kernel "sb_<module>_<k|mn>_<k|mn>" of the module of bf16 or f16, by whether A and B are read as MN-major.
 * Errors: as sb_cuda_kernel_find. */
sb_status sb_gemm16_find(sb_cuda_device *device, const char *const modules[2], size_t parameter_bytes, sb_dtype dtype,
                         bool a_mn_major, bool b_mn_major, const sb_cuda_kernel **kernel, sb_error *error);
/** Loads those of both dtypes for a set of layouts. */
sb_status sb_gemm16_load(sb_cuda_device *device, const char *const modules[2], size_t parameter_bytes, unsigned layouts,
                         sb_error *error);

static inline int64_t sb_gemm_divide_up(int64_t value, int64_t divisor) {
    return value / divisor + (value % divisor != 0);
}

/** How many bytes a product reads and writes. */
double sb_gemm16_bytes(const sb_gemm_plan *plan);
/** About how many microseconds memory takes to give what a product reads and to take what it writes. */
double sb_gemm16_moving_time(const sb_gemm_plan *plan);
/** A tensor's elements as a matrix; steps in elements. */
static inline sb_matrix sb_gemm16_matrix(sb_dtype dtype, const void *data, int64_t rows, int64_t columns,
                                         int64_t row_stride, int64_t column_stride, int64_t batch_stride) {
    return (sb_matrix){dtype, (void *)(uintptr_t)data, rows, columns, row_stride, column_stride, batch_stride};
}

/** Whether the copy engine takes it as a step, in elements. */
static inline bool sb_gemm16_is_step(int64_t stride) {
    return stride > 0 && stride % 8 == 0 && stride < (int64_t)1 << 39;
}

/** What the kernels of all schedules need to know. */
void sb_gemm16_describe(const sb_gemm_plan *plan, sb_gemm16 *parameters);
/** The memory that a product touches; returns how many ranges there are. */
int sb_gemm_ranges(const sb_gemm_plan *plan, sb_cuda_range ranges[SB_GEMM_RANGES]);
/** Whether an operand is to be read as K-major rather than MN-major: the latter only if lines are side by side and
 * k are not. */
bool sb_gemm16_reads_k_major(const sb_gemm16_operand *operand);
/** Elements, 1, 2 or 8, that may be read at once in that direction from where 8 of them begin: what the
 * address, the other strides, the groups of rows and, where a gated B is read as MN-major, the way to the
 * second half of its columns leave. */
int sb_gemm16_width(const sb_gemm16 *product, const sb_gemm_batches *batches, const sb_gemm16_operand *operand);

/* ---- logits that are reduced where they are computed: hopper.c ---- */

/** Loads the kernels, where the device has them. */
sb_status sb_gemm16_logits_load(sb_cuda_device *device, sb_error *error);
/** Whether the next can: the plan has one batch and no epilogue, and its C is not looked at. */
bool sb_gemm16_logits_can(sb_cuda_device *device, const sb_gemm_plan *plan);
/** Reduces the plan's logits, all of `reduce`'s chunk, whose own logits are not read. As the launch of a schedule. */
sb_status sb_gemm16_logits_launch(const sb_cuda_queue *queue, const sb_gemm_plan *plan, const sb_logp_reduce *reduce,
                                  sb_error *error);

#endif
