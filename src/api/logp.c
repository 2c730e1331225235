/* The public functions for log-probabilities, and the way of their work through chunks of logits: products by
 * sb_gemm_run, and steps between them, on the CPU or on a device. See <samebit/logp.h>. */
#include <fenv.h>

#include "base/error.h"
#include "kernel/logp/logp_run.h"
#include "kernel/logp/logp_steps.h"

/* A run of a plan: for real, or only to see whether its products would run. */
typedef struct run {
    sb_engine *engine;
    void *stream;
    const sb_logp_plan *plan;
    sb_logp_scale scale;
    bool is_rehearsal;
} run;

/* The rows and columns of a chunk. */
typedef struct place {
    int64_t row, rows;
    int64_t column, columns;
} place;

/* A step where the engine computes. */
#define STEP(run, step, task, error)                                                                                   \
    ((run)->is_rehearsal ? SB_OK : (run)->engine->interface->logp->step((run)->engine, (run)->stream, (task), (error)))

static void *in_workspace(const run *run, size_t place) {
    return (char *)run->plan->logp->workspace + place;
}

static sb_status multiply(const run *run, const sb_gemm *gemm, sb_error *error) {
    const char *schedule;
    return run->is_rehearsal ? sb_gemm_choose(run->engine, gemm, &schedule, error)
                             : sb_gemm_run(run->engine, run->stream, gemm, error);
}

/* A vector from `row` on; a vector without elements may be NULL. */
#define FROM_ROW(vector, row) ((vector) != NULL ? (vector) + (row) : NULL)

/* ---- matrices ---- */

/* `rows` × `columns` of a matrix from (row, column) on. */
static sb_matrix part_of(const sb_matrix *whole, int64_t row, int64_t column, int64_t rows, int64_t columns) {
    sb_matrix part = *whole;
    part.rows = rows;
    part.columns = columns;
    part.batch_stride = 0;
    /* Strides of what has no element may lead anywhere. */
    if (rows > 0 && columns > 0)
        part.data =
            (void *)((uintptr_t)whole->data + (uintptr_t)(row * whole->row_stride + column * whole->column_stride) *
                                                  sb_dtype_size(whole->dtype));
    return part;
}

static sb_matrix transposed(sb_matrix matrix) {
    sb_matrix result = matrix;
    result.rows = matrix.columns;
    result.columns = matrix.rows;
    result.row_stride = matrix.column_stride;
    result.column_stride = matrix.row_stride;
    return result;
}

/* A row-major matrix in the workspace. */
static sb_matrix packed(const run *run, size_t place, sb_dtype dtype, int64_t rows, int64_t columns,
                        int64_t row_stride) {
    return (sb_matrix){.dtype = dtype,
                       .data = in_workspace(run, place),
                       .rows = rows,
                       .columns = columns,
                       .row_stride = row_stride,
                       .column_stride = 1};
}

/* ---- chunks ---- */

static sb_logp_chunk chunk_of(const run *run, place at, const float *logits) {
    const sb_logp_plan *plan = run->plan;
    return (sb_logp_chunk){.logits = logits,
                           .row_stride = plan->columns,
                           .rows = at.rows,
                           .columns = at.columns,
                           .first_column = at.column,
                           .vocabulary = plan->v,
                           .targets = FROM_ROW(plan->logp->targets, at.row),
                           .ignore_index = plan->logp->ignore_index,
                           .scale = run->scale};
}

static sb_status compute_logits(const run *run, place at, sb_logp_chunk *chunk, sb_error *error) {
    const sb_logp_plan *plan = run->plan;
    const sb_linear_logp *logp = plan->logp;
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.a = part_of(&logp->hidden, at.row, 0, at.rows, plan->k);
    gemm.b = part_of(&logp->weight, 0, at.column, plan->k, at.columns);
    gemm.c = packed(run, plan->logits, SB_F32, at.rows, at.columns, plan->columns);
    gemm.schedule = logp->schedule;
    *chunk = chunk_of(run, at, gemm.c.data);
    return multiply(run, &gemm, error);
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Goes through the chunks of a plan, by columns within rows, at least one even where there is no element; a rehearsal
 * that is not for a schedule of the caller's choice looks at the first one alone. */
static place first_place(const run *run) {
    const sb_logp_plan *plan = run->plan;
    return (place){0, smaller(plan->rows, plan->m), 0, smaller(plan->columns, plan->v)};
}

static bool next_place(const run *run, place *at) {
    const sb_logp_plan *plan = run->plan;
    if (run->is_rehearsal && plan->logp->schedule == NULL)
        return false;
    at->column += at->columns;
    bool is_in_rows = at->column < plan->v;
    if (!is_in_rows) {
        at->column = 0;
        at->row += at->rows;
        at->rows = smaller(plan->rows, plan->m - at->row);
    }
    at->columns = smaller(plan->columns, plan->v - at->column);
    return is_in_rows || at->row < plan->m;
}

static bool is_last_of_rows(const run *run, place at) {
    return at.column + at.columns >= run->plan->v;
}

/* ---- forward ---- */

static sb_status merge(const run *run, place at, sb_error *error) {
    const sb_logp_plan *plan = run->plan;
    const sb_linear_logp *logp = plan->logp;
    const sb_logp_merge task = {
        .pairs = in_workspace(run, plan->pairs),
        .pair_rows = plan->rows,
        .rows = at.rows,
        .blocks = plan->blocks,
        .chosen = in_workspace(run, plan->chosen),
        .targets = FROM_ROW(logp->targets, at.row),
        .ignore_index = logp->ignore_index,
        .vocabulary = plan->v,
        .scale = run->scale,
        .logp = FROM_ROW(logp->logp, at.row),
        .maximum = FROM_ROW(logp->maximum, at.row),
        .sum = FROM_ROW(logp->sum, at.row),
    };
    return STEP(run, merge, &task, error);
}

/* All columns of some rows at once, on devices that can; *at goes on to the last of them then. */
static sb_status reduce_rows(const run *run, place *at, sb_logp_reduce *task, bool *done, sb_error *error) {
    const sb_logp_plan *plan = run->plan;
    *done = false;
    const sb_logp_steps *steps = run->engine->interface->logp;
    if (run->is_rehearsal || steps->reduce_product == NULL || plan->logp->schedule != NULL || at->column > 0)
        return SB_OK;
    place all = {at->row, at->rows, 0, plan->v};
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.a = part_of(&plan->logp->hidden, all.row, 0, all.rows, plan->k);
    gemm.b = part_of(&plan->logp->weight, 0, 0, plan->k, plan->v);
    gemm.c =
        (sb_matrix){.dtype = SB_F32, .rows = all.rows, .columns = plan->v, .row_stride = plan->v, .column_stride = 1};
    task->chunk = chunk_of(run, all, NULL);
    SB_TRY(steps->reduce_product(run->engine, run->stream, &gemm, task, done, error));
    if (*done)
        *at = all;
    return SB_OK;
}

static sb_status run_forward(const run *run, sb_error *error) {
    const sb_logp_plan *plan = run->plan;
    place at = first_place(run);
    for (bool more = true; more; more = next_place(run, &at)) {
        sb_logp_reduce task = {.pairs = in_workspace(run, plan->pairs),
                               .pair_rows = plan->rows,
                               .chosen = in_workspace(run, plan->chosen)};
        bool done;
        SB_TRY(reduce_rows(run, &at, &task, &done, error));
        if (!done) {
            SB_TRY(compute_logits(run, at, &task.chunk, error));
            SB_TRY(STEP(run, reduce, &task, error));
        }
        if (is_last_of_rows(run, at))
            SB_TRY(merge(run, at, error));
    }
    return SB_OK;
}

/* ---- backward ---- */

static sb_status differentiate(const run *run, place at, sb_matrix *gradients, sb_error *error) {
    const sb_logp_plan *plan = run->plan;
    const sb_linear_logp *logp = plan->logp;
    *gradients = packed(run, plan->gradients, logp->hidden.dtype, at.rows, at.columns, plan->columns);
    sb_logp_differentiate task = {
        .inverse_temperature = logp->inverse_temperature,
        .is_bf16 = logp->hidden.dtype == SB_BF16,
        .maximum = FROM_ROW(logp->maximum, at.row),
        .sum = FROM_ROW(logp->sum, at.row),
        .d_logp = FROM_ROW(plan->gradient->d_logp, at.row),
        .gradients = gradients->data,
    };
    SB_TRY(compute_logits(run, at, &task.chunk, error));
    return STEP(run, differentiate, &task, error);
}

static sb_status round_d_hidden(const run *run, place at, const sb_matrix *chains, sb_error *error) {
    const sb_matrix *d_hidden = &run->plan->gradient->d_hidden;
    const sb_matrix part = part_of(d_hidden, at.row, 0, at.rows, run->plan->k);
    const sb_logp_round task = {.from = chains->data,
                                .rows = part.rows,
                                .columns = part.columns,
                                .to = part.data,
                                .row_stride = part.row_stride,
                                .column_stride = part.column_stride,
                                .is_bf16 = part.dtype == SB_BF16};
    return STEP(run, round, &task, error);
}

/* The chains of d_hidden go on over the columns of a chunk. */
static sb_status continue_d_hidden(const run *run, place at, const sb_matrix *gradients, sb_error *error) {
    const sb_logp_plan *plan = run->plan;
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.a = *gradients;
    gemm.b = transposed(part_of(&plan->logp->weight, 0, at.column, plan->k, at.columns));
    gemm.c = plan->rounds_d_hidden ? packed(run, plan->d_hidden, SB_F32, at.rows, plan->k, plan->k)
                                   : part_of(&plan->gradient->d_hidden, at.row, 0, at.rows, plan->k);
    gemm.accumulate = at.column > 0;
    gemm.schedule = plan->logp->schedule;
    SB_TRY(multiply(run, &gemm, error));
    if (!plan->rounds_d_hidden || !is_last_of_rows(run, at))
        return SB_OK;
    return round_d_hidden(run, at, &gemm.c, error);
}

/* The columns of d_weight that belong to a chunk, whose rows are all there are. */
static sb_status compute_d_weight(const run *run, place at, const sb_matrix *gradients, sb_error *error) {
    const sb_logp_plan *plan = run->plan;
    const sb_matrix *d_weight = &plan->gradient->d_weight;
    const sb_matrix hidden = part_of(&plan->logp->hidden, 0, 0, plan->m, plan->k);
    const sb_matrix part = part_of(d_weight, 0, at.column, plan->k, at.columns);
    sb_gemm gemm = SB_GEMM_DEFAULT;
    /* A product's factors may change places. Rows of C should be what lies side by side. */
    bool by_words = part.row_stride == 1;
    gemm.a = transposed(by_words ? *gradients : hidden);
    gemm.b = by_words ? hidden : *gradients;
    gemm.c = by_words ? transposed(part) : part;
    gemm.accumulate = plan->gradient->accumulate;
    gemm.rows = plan->gradient->rows;
    gemm.schedule = plan->logp->schedule;
    return multiply(run, &gemm, error);
}

static sb_status run_backward(const run *run, sb_error *error) {
    const sb_logp_plan *plan = run->plan;
    place at = first_place(run);
    for (bool more = true; more; more = next_place(run, &at)) {
        sb_matrix gradients;
        SB_TRY(differentiate(run, at, &gradients, error));
        if (plan->wants_d_hidden)
            SB_TRY(continue_d_hidden(run, at, &gradients, error));
        if (plan->wants_d_weight)
            SB_TRY(compute_d_weight(run, at, &gradients, error));
    }
    return SB_OK;
}

/* ---- all of it ---- */

sb_status sb_logp_run(sb_engine *engine, void *stream, const sb_logp_plan *plan, sb_error *error) {
    run run = {engine, stream, plan, sb_logp_scale_of(plan->logp->inverse_temperature), true};
    sb_status (*go)(const struct run *, sb_error *) = plan->gradient != NULL ? run_backward : run_forward;
    SB_TRY(go(&run, error));
    run.is_rehearsal = false;
    return go(&run, error);
}

static sb_status check_and_run(sb_engine *engine, void *stream, const sb_linear_logp *logp,
                               const sb_linear_logp_gradient *gradient, sb_error *error) {
    sb_logp_plan plan;
    SB_TRY(sb_logp_measure(engine, logp, gradient, &plan, error));
    if (!sb_engine_on_device(engine) && stream != NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a stream was given to an engine on the CPU, which has none: give NULL, or make "
                       "the engine on the stream's device");
    SB_TRY(sb_logp_check_memory(engine, &plan, error));
    if (gradient != NULL && !plan.wants_d_hidden && !plan.wants_d_weight)
        return SB_OK;
    /* The contract's floating-point environment is the default one, whatever the caller's is. */
    fenv_t caller;
    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    sb_status status = sb_logp_run(engine, stream, &plan, error);
    fesetenv(&caller);
    return status;
}

sb_status sb_linear_logp_workspace(sb_engine *engine, const sb_linear_logp *logp,
                                   const sb_linear_logp_gradient *gradient, size_t *bytes, sb_error *error) {
    sb_logp_plan plan;
    SB_TRY(sb_logp_measure(engine, logp, gradient, &plan, error));
    *bytes = plan.bytes;
    return SB_OK;
}

sb_status sb_linear_logp_forward(sb_engine *engine, void *stream, const sb_linear_logp *logp, sb_error *error) {
    return check_and_run(engine, stream, logp, NULL, error);
}

sb_status sb_linear_logp_backward(sb_engine *engine, void *stream, const sb_linear_logp *logp,
                                  const sb_linear_logp_gradient *gradient, sb_error *error) {
    if (gradient == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the backward pass of linear_logp needs an sb_linear_logp_gradient, which is NULL");
    return check_and_run(engine, stream, logp, gradient, error);
}
