#include "cuda/logp/logp.h"

#include "base/error.h"
#include "cuda/common/compute.h"
#include "cuda/contraction/gemm16.h"
#include "cuda/logp/logp_parameters.h"

#define MODULE "logp"
#define MOST_RANGES 8

/* ---- kernels ---- */

static const struct {
    const char *name;
    size_t parameter_bytes;
} kernels[] = {
    {"sb_logp_reduce_blocks", sizeof(sb_logp_reduce)},
    {"sb_logp_merge_pairs", sizeof(sb_logp_merge)},
    {"sb_logp_differentiate_chunk", sizeof(sb_logp_differentiate)},
    {"sb_logp_round_matrix", sizeof(sb_logp_round)},
};
enum { REDUCE, MERGE, DIFFERENTIATE, ROUND, KERNELS };

static sb_status find(sb_cuda_device *device, int index, const sb_cuda_kernel **kernel, sb_error *error) {
    return sb_cuda_kernel_find(device, MODULE, kernels[index].name, kernels[index].parameter_bytes, kernel, error);
}

sb_status sb_logp_device_load(sb_cuda_device *device, sb_error *error) {
    const sb_cuda_kernel *kernel;
    for (int i = 0; i < KERNELS; i++)
        SB_TRY(find(device, i, &kernel, error));
    return sb_gemm16_logits_load(device, error);
}

/* ---- tasks ---- */

/* A task in the making: the ranges of memory that it touches. */
typedef struct work {
    int range_count;
    sb_cuda_range ranges[MOST_RANGES];
} work;

static void touch(work *work, const void *first, int64_t count, size_t size, bool written) {
    work->ranges[work->range_count++] = (sb_cuda_range){(CUdeviceptr)(uintptr_t)first, (size_t)count * size, written};
}

/* The bytes from the first to the last of strided elements, of which there is at least one. */
static void touch_strided(work *work, const sb_logp_round *task) {
    int64_t rows_span = (task->rows - 1) * task->row_stride;
    int64_t columns_span = (task->columns - 1) * task->column_stride;
    int64_t first = (rows_span < 0 ? rows_span : 0) + (columns_span < 0 ? columns_span : 0);
    int64_t last = (rows_span > 0 ? rows_span : 0) + (columns_span > 0 ? columns_span : 0);
    touch(work, task->to + first, last - first + 1, sizeof *task->to, true);
}

static void touch_chunk(work *work, const sb_logp_chunk *chunk) {
    touch(work, chunk->logits, chunk->rows * chunk->row_stride, sizeof *chunk->logits, false);
    touch(work, chunk->targets, chunk->rows, sizeof *chunk->targets, false);
}

static sb_status launch(sb_engine *base, void *stream, int kernel, int64_t blocks, int threads, const void *parameters,
                        const work *work, sb_error *error) {
    sb_cuda_engine *engine = sb_cuda_engine_of(base);
    sb_cuda_queue queue = {0};
    sb_cuda_task task = {.kind = SB_CUDA_KERNEL,
                         .step = -1,
                         .kernel = {.grid = {(unsigned)blocks, 1, 1},
                                    .block = {(unsigned)threads, 1, 1},
                                    .parameters = parameters,
                                    .range_count = work->range_count,
                                    .ranges = work->ranges}};
    SB_TRY(find(engine->device, kernel, &task.kernel.kernel, error));
    SB_TRY(sb_cuda_engine_stream(engine, stream, &queue.stream, error));
    SB_TRY(sb_cuda_enter(engine->device, error));
    return sb_cuda_leave(engine->device, sb_cuda_launch(&queue, &task, error), error);
}

/* For kernels whose threads go on a grid further: a thread for each of `count`, within what a grid can have. */
static int64_t blocks_for(int64_t count) {
    int64_t blocks = sb_gemm_divide_up(count, SB_LOGP_THREADS), most = (int64_t)1 << 20;
    return blocks < most ? blocks : most;
}

static sb_status reduce(sb_engine *engine, void *stream, const sb_logp_reduce *task, sb_error *error) {
    const sb_logp_chunk *chunk = &task->chunk;
    int64_t blocks = sb_gemm_divide_up(chunk->columns, SB_LOGP_BLOCK);
    int64_t grid = sb_gemm_divide_up(chunk->rows * blocks, SB_LOGP_THREADS / SB_LOGP_LANES);
    work work = {0};
    if (grid == 0)
        return SB_OK;
    if (grid > INT32_MAX)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a chunk of %lld rows and %lld columns of logits is too large for a grid",
                       (long long)chunk->rows, (long long)chunk->columns);
    touch_chunk(&work, chunk);
    touch(&work, task->pairs + chunk->first_column / SB_LOGP_BLOCK * task->pair_rows, blocks * task->pair_rows,
          sizeof *task->pairs, true);
    touch(&work, task->chosen, chunk->rows, sizeof *task->chosen, true);
    return launch(engine, stream, REDUCE, grid, SB_LOGP_THREADS, task, &work, error);
}

static sb_status reduce_product(sb_engine *base, void *stream, const sb_gemm *gemm, const sb_logp_reduce *task,
                                bool *done, sb_error *error) {
    sb_cuda_engine *engine = sb_cuda_engine_of(base);
    sb_cuda_queue queue = {.dependent_launch = true};
    const sb_gemm_plan plan = {
        .gemm = gemm,
        .m = gemm->a.rows,
        .n = gemm->b.columns,
        .k = gemm->a.columns,
        .batches = 1,
        .columns = gemm->b.columns,
        .dtype = gemm->a.dtype,
        .epilogue = {.scale = 1.0f, .dtype = SB_F32, .columns = gemm->b.columns},
        .group_count = sb_gemm_divide_up(gemm->a.columns, 16),
    };
    *done = plan.m > 0 && plan.n > 0 && sb_gemm16_logits_can(engine->device, &plan);
    if (!*done)
        return SB_OK;
    SB_TRY(sb_cuda_engine_stream(engine, stream, &queue.stream, error));
    SB_TRY(sb_cuda_enter(engine->device, error));
    return sb_cuda_leave(engine->device, sb_gemm16_logits_launch(&queue, &plan, task, error), error);
}

static sb_status merge(sb_engine *engine, void *stream, const sb_logp_merge *task, sb_error *error) {
    work work = {0};
    if (task->rows == 0)
        return SB_OK;
    touch(&work, task->pairs, task->blocks * task->pair_rows, sizeof *task->pairs, false);
    touch(&work, task->chosen, task->rows, sizeof *task->chosen, false);
    touch(&work, task->targets, task->rows, sizeof *task->targets, false);
    touch(&work, task->logp, task->rows, sizeof *task->logp, true);
    if (task->maximum != NULL) {
        touch(&work, task->maximum, task->rows, sizeof *task->maximum, true);
        touch(&work, task->sum, task->rows, sizeof *task->sum, true);
    }
    return launch(engine, stream, MERGE, sb_gemm_divide_up(task->rows, SB_LOGP_MERGE_ROWS), SB_LOGP_MERGE_THREADS, task,
                  &work, error);
}

static sb_status differentiate(sb_engine *engine, void *stream, const sb_logp_differentiate *task, sb_error *error) {
    const sb_logp_chunk *chunk = &task->chunk;
    work work = {0};
    if (chunk->rows == 0 || chunk->columns == 0)
        return SB_OK;
    touch_chunk(&work, chunk);
    touch(&work, task->maximum, chunk->rows, sizeof *task->maximum, false);
    touch(&work, task->sum, chunk->rows, sizeof *task->sum, false);
    touch(&work, task->d_logp, chunk->rows, sizeof *task->d_logp, false);
    touch(&work, task->gradients, chunk->rows * chunk->row_stride, sizeof *task->gradients, true);
    return launch(engine, stream, DIFFERENTIATE,
                  blocks_for(chunk->rows * sb_gemm_divide_up(chunk->columns, SB_LOGP_GROUP)), SB_LOGP_THREADS, task,
                  &work, error);
}

static sb_status round_matrix(sb_engine *engine, void *stream, const sb_logp_round *task, sb_error *error) {
    work work = {0};
    if (task->rows == 0 || task->columns == 0)
        return SB_OK;
    touch(&work, task->from, task->rows * task->columns, sizeof *task->from, false);
    touch_strided(&work, task);
    return launch(engine, stream, ROUND, blocks_for(task->rows * task->columns), SB_LOGP_THREADS, task, &work, error);
}

const sb_logp_steps sb_logp_device_steps = {.reduce_product = reduce_product,
                                            .reduce = reduce,
                                            .merge = merge,
                                            .differentiate = differentiate,
                                            .round = round_matrix};
