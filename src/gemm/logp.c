/* The public functions for log-probabilities, and the way of their work through chunks of logits:
 * products by iv_gemm_run, and steps between them, on the CPU or on a device. See <invar/logp.h>.
 */
#include <fenv.h>

#include "base/error.h"
#include "cuda/gemm/logp.h"
#include "gemm/logp_cpu.h"
#include "gemm/logp_run.h"

/* A run of a plan: for real, or only to see whether its products would run. */
typedef struct run {
    iv_engine *engine;
    void *stream;
    const iv_logp_plan *plan;
    iv_logp_scale scale;
    bool is_rehearsal;
} run;

/* The rows and columns of a chunk. */
typedef struct place {
    int64_t row, rows;
    int64_t column, columns;
} place;

/* A step on the run's side. */
#define STEP(run, step, task, error)                                                               \
    ((run)->is_rehearsal ? IV_OK                                                                   \
     : (run)->engine->cuda != NULL                                                                 \
         ? iv_logp_##step##_on_device((run)->engine, (run)->stream, (task), (error))               \
         : (iv_logp_##step##_on_cpu((run)->engine, (task)), IV_OK))

static void *in_workspace(const run *run, size_t place) {
    return (char *)run->plan->logp->workspace + place;
}

static iv_status multiply(const run *run, const iv_gemm *gemm, iv_error *error) {
    const char *schedule;
    return run->is_rehearsal ? iv_gemm_choose(run->engine, gemm, &schedule, error)
                             : iv_gemm_run(run->engine, run->stream, gemm, error);
}

/* A vector from `row` on; a vector without elements may be NULL. */
#define FROM_ROW(vector, row) ((vector) != NULL ? (vector) + (row) : NULL)

/* ---- matrices ---- */

/* `rows` × `columns` of a matrix from (row, column) on. */
static iv_matrix part_of(const iv_matrix *whole, int64_t row, int64_t column, int64_t rows,
                         int64_t columns) {
    iv_matrix part = *whole;
    part.rows = rows;
    part.columns = columns;
    part.batch_stride = 0;
    /* Strides of what has no element may lead anywhere. */
    if (rows > 0 && columns > 0)
        part.data = (void *)((uintptr_t)whole->data +
                             (uintptr_t)(row * whole->row_stride + column * whole->column_stride) *
                                 iv_dtype_size(whole->dtype));
    return part;
}

static iv_matrix transposed(iv_matrix matrix) {
    iv_matrix result = matrix;
    result.rows = matrix.columns;
    result.columns = matrix.rows;
    result.row_stride = matrix.column_stride;
    result.column_stride = matrix.row_stride;
    return result;
}

/* A row-major matrix in the workspace. */
static iv_matrix packed(const run *run, size_t place, iv_dtype dtype, int64_t rows, int64_t columns,
                        int64_t row_stride) {
    return (iv_matrix){.dtype = dtype,
                       .data = in_workspace(run, place),
                       .rows = rows,
                       .columns = columns,
                       .row_stride = row_stride,
                       .column_stride = 1};
}

/* ---- chunks ---- */

static iv_logp_chunk chunk_of(const run *run, place at, const float *logits) {
    const iv_logp_plan *plan = run->plan;
    return (iv_logp_chunk){.logits = logits,
                           .row_stride = plan->columns,
                           .rows = at.rows,
                           .columns = at.columns,
                           .first_column = at.column,
                           .vocabulary = plan->v,
                           .targets = FROM_ROW(plan->logp->targets, at.row),
                           .ignore_index = plan->logp->ignore_index,
                           .scale = run->scale};
}

static iv_status compute_logits(const run *run, place at, iv_logp_chunk *chunk, iv_error *error) {
    const iv_logp_plan *plan = run->plan;
    const iv_linear_logp *logp = plan->logp;
    iv_gemm gemm = IV_GEMM_DEFAULT;
    gemm.a = part_of(&logp->hidden, at.row, 0, at.rows, plan->k);
    gemm.b = part_of(&logp->weight, 0, at.column, plan->k, at.columns);
    gemm.c = packed(run, plan->logits, IV_F32, at.rows, at.columns, plan->columns);
    gemm.schedule = logp->schedule;
    *chunk = chunk_of(run, at, gemm.c.data);
    return multiply(run, &gemm, error);
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Goes through the chunks of a plan, by columns within rows, at least one even where there is no
 * element; a rehearsal that is not for a schedule of the caller's choice looks at the first one
 * alone. */
static place first_place(const run *run) {
    const iv_logp_plan *plan = run->plan;
    return (place){0, smaller(plan->rows, plan->m), 0, smaller(plan->columns, plan->v)};
}

static bool next_place(const run *run, place *at) {
    const iv_logp_plan *plan = run->plan;
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

static iv_status merge(const run *run, place at, iv_error *error) {
    const iv_logp_plan *plan = run->plan;
    const iv_linear_logp *logp = plan->logp;
    const iv_logp_merge task = {
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
static iv_status reduce_rows(const run *run, place *at, iv_logp_reduce *task, bool *done, iv_error *error) {
    const iv_logp_plan *plan = run->plan;
    *done = false;
    if (run->is_rehearsal || run->engine->cuda == NULL || plan->logp->schedule != NULL || at->column > 0)
        return IV_OK;
    place all = {at->row, at->rows, 0, plan->v};
    iv_gemm gemm = IV_GEMM_DEFAULT;
    gemm.a = part_of(&plan->logp->hidden, all.row, 0, all.rows, plan->k);
    gemm.b = part_of(&plan->logp->weight, 0, 0, plan->k, plan->v);
    gemm.c = (iv_matrix){.dtype = IV_F32, .rows = all.rows, .columns = plan->v, .row_stride = plan->v, .column_stride = 1};
    task->chunk = chunk_of(run, all, NULL);
    IV_TRY(iv_logp_reduce_product_on_device(run->engine, run->stream, &gemm, task, done, error));
    if (*done)
        *at = all;
    return IV_OK;
}

static iv_status run_forward(const run *run, iv_error *error) {
    const iv_logp_plan *plan = run->plan;
    place at = first_place(run);
    for (bool more = true; more; more = next_place(run, &at)) {
        iv_logp_reduce task = {.pairs = in_workspace(run, plan->pairs),
                               .pair_rows = plan->rows,
                               .chosen = in_workspace(run, plan->chosen)};
        bool done;
        IV_TRY(reduce_rows(run, &at, &task, &done, error));
        if (!done) {
            IV_TRY(compute_logits(run, at, &task.chunk, error));
            IV_TRY(STEP(run, reduce, &task, error));
        }
        if (is_last_of_rows(run, at))
            IV_TRY(merge(run, at, error));
    }
    return IV_OK;
}

/* ---- backward ---- */

static iv_status differentiate(const run *run, place at, iv_matrix *gradients, iv_error *error) {
    const iv_logp_plan *plan = run->plan;
    const iv_linear_logp *logp = plan->logp;
    *gradients =
        packed(run, plan->gradients, logp->hidden.dtype, at.rows, at.columns, plan->columns);
    iv_logp_differentiate task = {
        .inverse_temperature = logp->inverse_temperature,
        .is_bf16 = logp->hidden.dtype == IV_BF16,
        .maximum = FROM_ROW(logp->maximum, at.row),
        .sum = FROM_ROW(logp->sum, at.row),
        .d_logp = FROM_ROW(plan->gradient->d_logp, at.row),
        .gradients = gradients->data,
    };
    IV_TRY(compute_logits(run, at, &task.chunk, error));
    return STEP(run, differentiate, &task, error);
}

static iv_status round_d_hidden(const run *run, place at, const iv_matrix *chains,
                                iv_error *error) {
    const iv_matrix *d_hidden = &run->plan->gradient->d_hidden;
    const iv_matrix part = part_of(d_hidden, at.row, 0, at.rows, run->plan->k);
    const iv_logp_round task = {.from = chains->data,
                                .rows = part.rows,
                                .columns = part.columns,
                                .to = part.data,
                                .row_stride = part.row_stride,
                                .column_stride = part.column_stride,
                                .is_bf16 = part.dtype == IV_BF16};
    return STEP(run, round, &task, error);
}

/* The chains of d_hidden go on over the columns of a chunk. */
static iv_status continue_d_hidden(const run *run, place at, const iv_matrix *gradients,
                                   iv_error *error) {
    const iv_logp_plan *plan = run->plan;
    iv_gemm gemm = IV_GEMM_DEFAULT;
    gemm.a = *gradients;
    gemm.b = transposed(part_of(&plan->logp->weight, 0, at.column, plan->k, at.columns));
    gemm.c = plan->rounds_d_hidden
                 ? packed(run, plan->d_hidden, IV_F32, at.rows, plan->k, plan->k)
                 : part_of(&plan->gradient->d_hidden, at.row, 0, at.rows, plan->k);
    gemm.accumulate = at.column > 0;
    gemm.schedule = plan->logp->schedule;
    IV_TRY(multiply(run, &gemm, error));
    if (!plan->rounds_d_hidden || !is_last_of_rows(run, at))
        return IV_OK;
    return round_d_hidden(run, at, &gemm.c, error);
}

/* The columns of d_weight that belong to a chunk, whose rows are all there are. */
static iv_status compute_d_weight(const run *run, place at, const iv_matrix *gradients,
                                  iv_error *error) {
    const iv_logp_plan *plan = run->plan;
    const iv_matrix *d_weight = &plan->gradient->d_weight;
    const iv_matrix hidden = part_of(&plan->logp->hidden, 0, 0, plan->m, plan->k);
    const iv_matrix part = part_of(d_weight, 0, at.column, plan->k, at.columns);
    iv_gemm gemm = IV_GEMM_DEFAULT;
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

static iv_status run_backward(const run *run, iv_error *error) {
    const iv_logp_plan *plan = run->plan;
    place at = first_place(run);
    for (bool more = true; more; more = next_place(run, &at)) {
        iv_matrix gradients;
        IV_TRY(differentiate(run, at, &gradients, error));
        if (plan->wants_d_hidden)
            IV_TRY(continue_d_hidden(run, at, &gradients, error));
        if (plan->wants_d_weight)
            IV_TRY(compute_d_weight(run, at, &gradients, error));
    }
    return IV_OK;
}

/* ---- all of it ---- */

iv_status iv_logp_run(iv_engine *engine, void *stream, const iv_logp_plan *plan, iv_error *error) {
    run run = {engine, stream, plan, iv_logp_scale_of(plan->logp->inverse_temperature), true};
    iv_status (*go)(const struct run *, iv_error *) =
        plan->gradient != NULL ? run_backward : run_forward;
    IV_TRY(go(&run, error));
    run.is_rehearsal = false;
    return go(&run, error);
}

static iv_status check_and_run(iv_engine *engine, void *stream, const iv_linear_logp *logp,
                               const iv_linear_logp_gradient *gradient, iv_error *error) {
    iv_logp_plan plan;
    IV_TRY(iv_logp_measure(engine, logp, gradient, &plan, error));
    if (engine->cuda == NULL && stream != NULL)
        return iv_fail(
            error, IV_ERROR_INVALID_ARGUMENT,
            "a stream was given to an engine on the CPU, which has none: give NULL, or make "
            "the engine on the stream's device");
    IV_TRY(iv_logp_check_memory(engine, &plan, error));
    if (gradient != NULL && !plan.wants_d_hidden && !plan.wants_d_weight)
        return IV_OK;
    /* The contract's floating-point environment is the default one, whatever the caller's is. */
    fenv_t caller;
    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    iv_status status = iv_logp_run(engine, stream, &plan, error);
    fesetenv(&caller);
    return status;
}

iv_status iv_linear_logp_workspace(iv_engine *engine, const iv_linear_logp *logp,
                                   const iv_linear_logp_gradient *gradient, size_t *bytes,
                                   iv_error *error) {
    iv_logp_plan plan;
    IV_TRY(iv_logp_measure(engine, logp, gradient, &plan, error));
    *bytes = plan.bytes;
    return IV_OK;
}

iv_status iv_linear_logp_forward(iv_engine *engine, void *stream, const iv_linear_logp *logp,
                                 iv_error *error) {
    return check_and_run(engine, stream, logp, NULL, error);
}

iv_status iv_linear_logp_backward(iv_engine *engine, void *stream, const iv_linear_logp *logp,
                                  const iv_linear_logp_gradient *gradient, iv_error *error) {
    if (gradient == NULL)
        return iv_fail(
            error, IV_ERROR_INVALID_ARGUMENT,
            "the backward pass of linear_logp needs an iv_linear_logp_gradient, which is NULL");
    return check_and_run(engine, stream, logp, gradient, error);
}
