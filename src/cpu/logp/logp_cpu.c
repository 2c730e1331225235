#include "cpu/logp/logp_cpu.h"

#include "base/isa.h"

extern const sb_logp_kernels sb_logp_kernels_scalar, sb_logp_kernels_avx2, sb_logp_kernels_avx512;

const sb_logp_kernels *sb_logp_kernels_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_logp_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_logp_kernels_avx2;
#endif
    (void)isa;
    return &sb_logp_kernels_scalar;
}

/* A task over rows, with what its loop needs from the engine. */
typedef struct row_loop {
    const void *task;
    const sb_logp_kernels *kernels;
} row_loop;

/* Threads take rows in pieces of about this many elements. */
#define GRAIN_ELEMENTS 16384

static sb_status run_rows(const sb_engine *base, int64_t rows, int64_t columns, const void *task,
                          sb_worker_task *loop) {
    const sb_cpu_engine *engine = sb_cpu_engine_of(base);
    row_loop context = {task, sb_logp_kernels_for(engine->isa)};
    int64_t grain = columns > 0 ? GRAIN_ELEMENTS / columns : GRAIN_ELEMENTS;
    sb_workers_run(engine->workers, rows, grain > 1 ? grain : 1, loop, &context);
    return SB_OK;
}

static void reduce_rows(void *context, int64_t begin, int64_t end) {
    const row_loop *loop = context;
    const sb_logp_reduce *task = loop->task;
    const sb_logp_chunk *chunk = &task->chunk;
    for (int64_t row = begin; row < end; row++) {
        const float *logits = chunk->logits + row * chunk->row_stride;
        int64_t target = chunk->targets[row] - chunk->first_column;
        sb_logp_target kind = sb_logp_target_kind(chunk->targets[row], chunk->ignore_index, chunk->vocabulary);
        if (kind == SB_LOGP_TARGET_VALID && target >= 0 && target < chunk->columns)
            task->chosen[row] = logits[target];
        sb_logp_pair *pair = task->pairs + chunk->first_column / SB_LOGP_BLOCK * task->pair_rows + row;
        for (int64_t column = 0; column < chunk->columns; column += SB_LOGP_BLOCK) {
            int64_t rest = chunk->columns - column;
            *pair = loop->kernels->reduce(logits + column, rest < SB_LOGP_BLOCK ? rest : SB_LOGP_BLOCK, chunk->scale);
            pair += task->pair_rows;
        }
    }
}

static sb_status reduce(sb_engine *engine, void *stream, const sb_logp_reduce *task, sb_error *error) {
    return run_rows(engine, task->chunk.rows, task->chunk.columns, task, reduce_rows);
}

static void merge_row(const sb_logp_merge *task, int64_t row) {
    const sb_logp_pair *pairs = task->pairs + row;
    int32_t maximum = -SB_LOGP_EXPONENT_LIMIT;
    int has_nan = 0;
    for (int64_t b = 0; b < task->blocks; b++) {
        sb_logp_pair pair = pairs[b * task->pair_rows];
        has_nan |= pair.sum != pair.sum;
        maximum = pair.maximum > maximum ? pair.maximum : maximum;
    }
    int64_t units = 0;
    for (int64_t b = 0; b < task->blocks && !has_nan; b++)
        units += sb_logp_units(pairs[b * task->pair_rows], maximum);
    sb_logp_pair whole = sb_logp_row(maximum, units, has_nan);
    sb_logp_target kind = sb_logp_target_kind(task->targets[row], task->ignore_index, task->vocabulary);
    float chosen = kind == SB_LOGP_TARGET_VALID ? task->chosen[row] : 0.0f;
    task->logp[row] = sb_logp_value(kind, chosen, task->scale, whole, units);
    if (task->maximum != NULL) {
        task->maximum[row] = whole.maximum;
        task->sum[row] = whole.sum;
    }
}

static void merge_rows(void *context, int64_t begin, int64_t end) {
    const row_loop *loop = context;
    for (int64_t row = begin; row < end; row++)
        merge_row(loop->task, row);
}

static sb_status merge(sb_engine *engine, void *stream, const sb_logp_merge *task, sb_error *error) {
    return run_rows(engine, task->rows, task->blocks, task, merge_rows);
}

static void differentiate_row(const row_loop *loop, int64_t row) {
    const sb_logp_differentiate *task = loop->task;
    const sb_logp_chunk *chunk = &task->chunk;
    sb_logp_target kind = sb_logp_target_kind(chunk->targets[row], chunk->ignore_index, chunk->vocabulary);
    sb_logp_weight weight =
        sb_logp_weight_of(kind, task->d_logp[row], task->inverse_temperature, task->maximum[row], task->sum[row]);
    const float *logits = chunk->logits + row * chunk->row_stride;
    uint16_t *gradients = task->gradients + row * chunk->row_stride;
    loop->kernels->differentiate(logits, chunk->columns, chunk->scale, weight, 0, task->is_bf16, gradients);
    int64_t target = sb_logp_target_column(chunk, row);
    if (target >= 0)
        loop->kernels->differentiate(logits + target, 1, chunk->scale, weight, 1, task->is_bf16, gradients + target);
}

static void differentiate_rows(void *context, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++)
        differentiate_row(context, row);
}

static sb_status differentiate(sb_engine *engine, void *stream, const sb_logp_differentiate *task, sb_error *error) {
    return run_rows(engine, task->chunk.rows, task->chunk.columns, task, differentiate_rows);
}

static void round_rows(void *context, int64_t begin, int64_t end) {
    const row_loop *loop = context;
    const sb_logp_round *task = loop->task;
    for (int64_t row = begin; row < end; row++) {
        const float *from = task->from + row * task->columns;
        uint16_t *to = task->to + row * task->row_stride;
        for (int64_t column = 0; column < task->columns; column++)
            to[column * task->column_stride] = sb_logp_to_16(from[column], task->is_bf16);
    }
}

static sb_status round_matrix(sb_engine *engine, void *stream, const sb_logp_round *task, sb_error *error) {
    return run_rows(engine, task->rows, task->columns, task, round_rows);
}

const sb_logp_steps sb_logp_cpu_steps = {
    .reduce = reduce, .merge = merge, .differentiate = differentiate, .round = round_matrix};
