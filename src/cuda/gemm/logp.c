#include "cuda/gemm/logp.h"

#include "base/error.h"
#include "cuda/compute.h"
#include "cuda/gemm/gemm.h"
#include "cuda/kernels/logp_parameters.h"

#define MODULE "logp"
#define MOST_RANGES 8

/* ---- kernels ---- */

static const struct {
    const char *name;
    size_t parameter_bytes;
} kernels[] = {
    {"iv_logp_reduce_blocks", sizeof(iv_logp_reduce)},
    {"iv_logp_merge_pairs", sizeof(iv_logp_merge)},
    {"iv_logp_differentiate_chunk", sizeof(iv_logp_differentiate)},
    {"iv_logp_round_matrix", sizeof(iv_logp_round)},
};
enum { REDUCE, MERGE, DIFFERENTIATE, ROUND, KERNELS };

static iv_status find(iv_engine *engine, int index, const iv_cuda_kernel **kernel,
                      iv_error *error) {
    return iv_cuda_kernel_find(engine->cuda, MODULE, kernels[index].name,
                               kernels[index].parameter_bytes, kernel, error);
}

iv_status iv_logp_device_prepare(iv_engine *engine, iv_error *error) {
    const iv_cuda_kernel *kernel;
    for (int i = 0; i < KERNELS; i++)
        IV_TRY(find(engine, i, &kernel, error));
    return iv_gemm16_logits_prepare(engine, error);
}

/* ---- tasks ---- */

/* A task in the making: the ranges of memory that it touches. */
typedef struct work {
    int range_count;
    iv_cuda_range ranges[MOST_RANGES];
} work;

static void touch(work *work, const void *first, int64_t count, size_t size, bool written) {
    work->ranges[work->range_count++] =
        (iv_cuda_range){(CUdeviceptr)(uintptr_t)first, (size_t)count * size, written};
}

/* The bytes from the first to the last of strided elements, of which there is at least one. */
static void touch_strided(work *work, const iv_logp_round *task) {
    int64_t down = (task->rows - 1) * task->row_stride;
    int64_t across = (task->columns - 1) * task->column_stride;
    int64_t first = (down < 0 ? down : 0) + (across < 0 ? across : 0);
    int64_t last = (down > 0 ? down : 0) + (across > 0 ? across : 0);
    touch(work, task->to + first, last - first + 1, sizeof *task->to, true);
}

static void touch_chunk(work *work, const iv_logp_chunk *chunk) {
    touch(work, chunk->logits, chunk->rows * chunk->row_stride, sizeof *chunk->logits, false);
    touch(work, chunk->targets, chunk->rows, sizeof *chunk->targets, false);
}

static iv_status launch(iv_engine *engine, void *stream, int kernel, int64_t blocks, int threads,
                        const void *parameters, const work *work, iv_error *error) {
    iv_cuda_queue queue = {0};
    iv_cuda_task task = {.kind = IV_CUDA_KERNEL,
                         .step = -1,
                         .kernel = {.grid = {(unsigned)blocks, 1, 1},
                                    .block = {(unsigned)threads, 1, 1},
                                    .parameters = parameters,
                                    .range_count = work->range_count,
                                    .ranges = work->ranges}};
    IV_TRY(find(engine, kernel, &task.kernel.kernel, error));
    IV_TRY(iv_gemm_device_stream(engine, stream, &queue.stream, error));
    IV_TRY(iv_cuda_enter(engine->cuda, error));
    return iv_cuda_leave(engine->cuda, iv_cuda_launch(&queue, &task, error), error);
}

/* For kernels whose threads go on a grid further: a thread for each of `count`, within what a grid
 * can have. */
static int64_t blocks_for(int64_t count) {
    int64_t blocks = iv_gemm_divide_up(count, IV_LOGP_THREADS), most = (int64_t)1 << 20;
    return blocks < most ? blocks : most;
}

iv_status iv_logp_reduce_on_device(iv_engine *engine, void *stream, const iv_logp_reduce *task,
                                   iv_error *error) {
    const iv_logp_chunk *chunk = &task->chunk;
    int64_t blocks = iv_gemm_divide_up(chunk->columns, IV_LOGP_BLOCK);
    int64_t grid = iv_gemm_divide_up(chunk->rows * blocks, IV_LOGP_THREADS / IV_LOGP_LANES);
    work work = {0};
    if (grid == 0)
        return IV_OK;
    if (grid > INT32_MAX)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "a chunk of %lld rows and %lld columns of logits is too large for a grid",
                       (long long)chunk->rows, (long long)chunk->columns);
    touch_chunk(&work, chunk);
    touch(&work, task->pairs + chunk->first_column / IV_LOGP_BLOCK * task->pair_rows,
          blocks * task->pair_rows, sizeof *task->pairs, true);
    touch(&work, task->chosen, chunk->rows, sizeof *task->chosen, true);
    return launch(engine, stream, REDUCE, grid, IV_LOGP_THREADS, task, &work, error);
}

iv_status iv_logp_reduce_product_on_device(iv_engine *engine, void *stream, const iv_gemm *gemm,
                                           const iv_logp_reduce *task, bool *done, iv_error *error) {
    iv_cuda_queue queue = {.dependent_launch = true};
    const iv_gemm_plan plan = {
        .gemm = gemm,
        .m = gemm->a.rows,
        .n = gemm->b.columns,
        .k = gemm->a.columns,
        .batches = 1,
        .columns = gemm->b.columns,
        .dtype = gemm->a.dtype,
        .epilogue = {.scale = 1.0f, .dtype = IV_F32, .columns = gemm->b.columns},
        .group_count = iv_gemm_divide_up(gemm->a.columns, 16),
    };
    *done = plan.m > 0 && plan.n > 0 && iv_gemm16_logits_can(engine, &plan);
    if (!*done)
        return IV_OK;
    IV_TRY(iv_gemm_device_stream(engine, stream, &queue.stream, error));
    IV_TRY(iv_cuda_enter(engine->cuda, error));
    return iv_cuda_leave(engine->cuda, iv_gemm16_logits_launch(engine, &queue, &plan, task, error), error);
}

iv_status iv_logp_merge_on_device(iv_engine *engine, void *stream, const iv_logp_merge *task,
                                  iv_error *error) {
    work work = {0};
    if (task->rows == 0)
        return IV_OK;
    touch(&work, task->pairs, task->blocks * task->pair_rows, sizeof *task->pairs, false);
    touch(&work, task->chosen, task->rows, sizeof *task->chosen, false);
    touch(&work, task->targets, task->rows, sizeof *task->targets, false);
    touch(&work, task->logp, task->rows, sizeof *task->logp, true);
    if (task->maximum != NULL) {
        touch(&work, task->maximum, task->rows, sizeof *task->maximum, true);
        touch(&work, task->sum, task->rows, sizeof *task->sum, true);
    }
    return launch(engine, stream, MERGE, iv_gemm_divide_up(task->rows, IV_LOGP_MERGE_ROWS),
                  IV_LOGP_MERGE_THREADS, task, &work, error);
}

iv_status iv_logp_differentiate_on_device(iv_engine *engine, void *stream,
                                          const iv_logp_differentiate *task, iv_error *error) {
    const iv_logp_chunk *chunk = &task->chunk;
    work work = {0};
    if (chunk->rows == 0 || chunk->columns == 0)
        return IV_OK;
    touch_chunk(&work, chunk);
    touch(&work, task->maximum, chunk->rows, sizeof *task->maximum, false);
    touch(&work, task->sum, chunk->rows, sizeof *task->sum, false);
    touch(&work, task->d_logp, chunk->rows, sizeof *task->d_logp, false);
    touch(&work, task->gradients, chunk->rows * chunk->row_stride, sizeof *task->gradients, true);
    return launch(engine, stream, DIFFERENTIATE,
                  blocks_for(chunk->rows * iv_gemm_divide_up(chunk->columns, IV_LOGP_GROUP)),
                  IV_LOGP_THREADS, task, &work, error);
}

iv_status iv_logp_round_on_device(iv_engine *engine, void *stream, const iv_logp_round *task,
                                  iv_error *error) {
    work work = {0};
    if (task->rows == 0 || task->columns == 0)
        return IV_OK;
    touch(&work, task->from, task->rows * task->columns, sizeof *task->from, false);
    touch_strided(&work, task);
    return launch(engine, stream, ROUND, blocks_for(task->rows * task->columns), IV_LOGP_THREADS,
                  task, &work, error);
}
