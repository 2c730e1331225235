/* Kernels of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss of f32, f16 and bf16.
 *
 * Scores that are log probabilities are read where targets point. Of others, rows are log softmax's: of one target each, or of as
 * many that lie side by side as a line of the cache holds. What is wrong is left to the definition, which words it. */
#include <string.h>

#include "base/allocation.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/normalize.h"
#include "cpu/rows/reduce_rows.h"
#include "cpu/supports.h"
#include "numerics/scalar.h"
#include "ops/convert_loops.h"
#include "ops/losses.h"
#include "ops/real.h"
#include "ops/rows.h"

/* Elements, and targets of one element each, that a thread takes at once, about. */
#define PIECE_ELEMENTS 8192

typedef struct losing {
    const sb_loss_params *params;
    const sb_row_kernels *kernels;
    sb_rows scores, logs;      /* a row for each target; logs: log probabilities that are wanted */
    bool wants_logs;           /* which have the order of dimensions in memory of row-major */
    sb_walk_row *load, *store; /* to f32 and back */
    int64_t size;              /* bytes of an element */
    const int64_t *targets;
    const float *weights;   /* NULL for ones */
    float *losses, *shares; /* of each target */
    int64_t piece, strips;  /* targets of a piece; pieces of those side by side */
} losing;

static bool is_ignored(const losing *work, int64_t target) {
    return work->params->ignores && target == work->params->ignored;
}

/* Target `i`, whose log probability is `p`; of one that is ignored it is anything. */
static void lose(const losing *work, int64_t i, float p) {
    const int64_t target = work->targets[i];
    const bool ignored = is_ignored(work, target);
    work->shares[i] = ignored ? 0 : work->weights != NULL ? work->weights[target] : 1;
    work->losses[i] = ignored ? 0 : -(work->shares[i] * p);
}

/* From line to line of the last dimension: finding a row divides, which took most of the time. */
static void run_picks(void *context, int64_t index, void *workspace) {
    (void)workspace;
    const losing *work = context;
    const sb_rows *rows = &work->scores;
    const int last = rows->outer_rank - 1;
    const int64_t begin = index * work->piece, left = rows->count - begin;
    const int64_t end = begin + (left < work->piece ? left : work->piece);
    for (int64_t i = begin; i < end;) {
        const int64_t rest = rows->outer_dims[last] - i % rows->outer_dims[last],
                      count = rest < end - i ? rest : end - i;
        const char *at = sb_rows_at(rows, i);
        for (int64_t stop = i + count; i < stop; i++, at += rows->outer_steps[last]) {
            const int64_t target = is_ignored(work, work->targets[i]) ? 0 : work->targets[i];
            lose(work, i, sb_real_load_f32(rows->tensor->dtype, at + target * rows->inner_steps[0], 0));
        }
    }
}

/* Two rows of workspace: log probabilities, and what their sum is of. */
static void run_rows(void *context, int64_t index, void *workspace) {
    const losing *work = context;
    const int64_t begin = index * work->piece, end = begin + work->piece, classes = work->scores.length;
    const bool there = work->scores.tensor->dtype == SB_F32 && work->scores.inner_steps[0] == work->size;
    float *values = workspace;
    for (int64_t i = begin; i < end && i < work->scores.count; i++) {
        const float *x = values;
        if (there)
            x = (const float *)(const void *)sb_rows_at(&work->scores, i);
        else
            sb_rows_load_by(&work->scores, i, 0, classes, work->load, SB_F32, values);
        work->kernels->log_softmax(x, values, classes, values + classes);
        if (work->wants_logs)
            sb_rows_store_by(&work->logs, i, 0, classes, work->store, SB_F32, values);
        lose(work, i, values[is_ignored(work, work->targets[i]) ? 0 : work->targets[i]]);
    }
}

/* As many floats again as a strip has are workspace of softmax_columns. */
static void run_columns(void *context, int64_t index, void *workspace) {
    const losing *work = context;
    const sb_rows *from = &work->scores;
    const int64_t beside = from->outer_dims[from->outer_rank - 1], classes = from->length, wide = sizeof(float);
    const int64_t first = index % work->strips * SB_ROW_COLUMNS, row = index / work->strips * beside + first;
    const int64_t width = beside - first < SB_ROW_COLUMNS ? beside - first : SB_ROW_COLUMNS;
    float *values = workspace;
    char *x = sb_rows_at(from, row);
    for (int64_t c = 0; c < classes; c++, x += from->inner_steps[0])
        work->load(NULL, width, (char *const[]){(char *)(values + c * SB_ROW_COLUMNS), x},
                   (const int64_t[]){wide, work->size});
    work->kernels->softmax_columns(true, classes, (int)width, values, SB_ROW_COLUMNS, values, SB_ROW_COLUMNS,
                                   values + classes * SB_ROW_COLUMNS);
    char *y = work->wants_logs ? sb_rows_at(&work->logs, row) : NULL;
    for (int64_t c = 0; c < classes && y != NULL; c++, y += work->logs.inner_steps[0])
        work->store(NULL, width, (char *const[]){y, (char *)(values + c * SB_ROW_COLUMNS)},
                    (const int64_t[]){work->size, wide});
    for (int64_t w = 0; w < width; w++) {
        const int64_t target = work->targets[row + w];
        lose(work, row + w, values[(is_ignored(work, target) ? 0 : target) * SB_ROW_COLUMNS + w]);
    }
}

static sb_status run(sb_call *call, losing *work, bool softmax) {
    const sb_rows *from = &work->scores;
    const int64_t classes = from->length, beside = sb_rows_side_by_side(from);
    const bool columns = softmax && beside >= 4 && (!work->wants_logs || sb_rows_side_by_side(&work->logs) == beside);
    size_t workspace;
    if (__builtin_mul_overflow((size_t)classes, 2 * sizeof(float) * (columns ? SB_ROW_COLUMNS : 1), &workspace))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "%lld classes are too many", (long long)classes);
    if (columns) {
        work->strips = (beside + SB_ROW_COLUMNS - 1) / SB_ROW_COLUMNS;
        return sb_pieces_run(call, from->count / beside * work->strips, workspace, run_columns, work);
    }
    work->piece = !softmax ? PIECE_ELEMENTS : classes < PIECE_ELEMENTS ? PIECE_ELEMENTS / classes : 1;
    return sb_pieces_run(call, (from->count - 1) / work->piece + 1, softmax ? workspace : 0,
                         softmax ? run_rows : run_picks, work);
}

/* Shapes that fit, some targets, and each of them a class or ignored. */
static bool is_sound(const sb_call *call, const losing *work, const int64_t *targets) {
    const sb_tensor *scores = sb_call_input(call, 0), *of = sb_call_input(call, 1), *weights = sb_call_input(call, 2);
    const int64_t classes = scores->dims[1], count = sb_tensor_elements(of);
    bool sound = of->dims[0] == scores->dims[0] && count > 0 && classes > 0;
    for (int d = 2; d < scores->rank; d++)
        sound = sound && of->dims[d - 1] == scores->dims[d];
    sound = sound && (weights == NULL || (weights->rank == 1 && weights->dims[0] == classes));
    for (int64_t i = 0; i < count && sound; i++)
        sound = (targets[i] >= 0 && targets[i] < classes) || is_ignored(work, targets[i]);
    return sound;
}

static sb_status store_losses(sb_call *call, const losing *work, sb_tensor *output) {
    const int64_t count = work->scores.count;
    if (work->params->reduction == SB_LOSS_NONE) {
        work->store(NULL, count, (char *const[]){output->data, (char *)work->losses},
                    (const int64_t[]){work->size, (int64_t)sizeof(float)});
        return SB_OK;
    }
    float result = work->kernels->sum(work->losses, count);
    if (work->params->reduction == SB_LOSS_MEAN)
        result = sb_div_f32(result, work->kernels->sum(work->shares, count));
    sb_convert_row(output->dtype, output->data, SB_F32, &result, 0, 1);
    return SB_OK;
}

/* The log probabilities that are wanted, and memory for losses and their weights. */
static sb_status prepare(sb_call *call, losing *work) {
    const sb_tensor *scores = sb_call_input(call, 0);
    size_t bytes;
    void *memory;
    sb_rows_start(&work->scores, scores, 2);
    if (__builtin_mul_overflow((size_t)work->scores.count, 2 * sizeof(float), &bytes))
        return sb_fail_memory(call->error, SIZE_MAX);
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    work->losses = memory;
    work->shares = work->losses + work->scores.count;
    work->kernels = sb_row_kernels_for(call->isa);
    work->load = sb_convert_loop_for(call->isa, SB_F32, scores->dtype);
    work->store = sb_convert_loop_for(call->isa, scores->dtype, SB_F32);
    work->size = (int64_t)sb_dtype_size(scores->dtype);
    work->wants_logs = sb_call_wants(call, 1);
    if (work->wants_logs) {
        sb_tensor *logs;
        SB_TRY(sb_call_output(call, 1, &logs));
        sb_rows_start(&work->logs, logs, 2);
    }
    return SB_OK;
}

static sb_status launch_of(sb_call *call, losing *work) {
    sb_tensor *output = NULL;
    SB_TRY(prepare(call, work));
    if (sb_call_wants(call, 0))
        SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(run(call, work, strcmp(call->node->op->name, "SoftmaxCrossEntropyLoss") == 0));
    return output != NULL ? store_losses(call, work, output) : SB_OK;
}

static sb_status launch_losses(sb_call *call) {
    losing work = {.params = call->node->params};
    void *targets = NULL, *weights = NULL;
    SB_TRY(sb_load_all(sb_call_input(call, 1), SB_S64, &targets, call->error));
    const bool sound = is_sound(call, &work, targets);
    sb_status status = SB_OK;
    if (sound && sb_call_input(call, 2) != NULL)
        status = sb_load_all(sb_call_input(call, 2), SB_F32, &weights, call->error);
    work.targets = targets;
    work.weights = weights;
    if (status == SB_OK)
        status = sound ? launch_of(call, &work) : call->node->op->eval(call);
    sb_free(targets);
    sb_free(weights);
    return status;
}

const sb_kernel sb_cpu_kernels_losses[] = {
    {.op = "NegativeLogLikelihoodLoss",
     .name = "log-likelihoods",
     .supports = sb_cpu_supports_small_floats,
     .launch = launch_losses},
    {.op = "SoftmaxCrossEntropyLoss",
     .name = "cross-entropies",
     .supports = sb_cpu_supports_small_floats,
     .launch = launch_losses},
    {0},
};
