/* Normalisations of rows, and LRN. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/rows/row_vectors_parameters.h"
#include "cuda/rows/rows.h"
#include "numerics/reduce.h"
#include "ops/moving.h"
#include "ops/normalization.h"
#include "ops/number.h"
#include "ops/row_normalization.h"

/* The tensors of a normalisation, as views with the dimensions of the input (or of its channels
 * split into groups). Scale, bias, means and inverses may be NULL. */
typedef struct operands {
    const sb_tensor *tensors[SB_CUDA_ROW_OPERANDS];
    const sb_tensor *means, *inverses;
} operands;

#define NAME_BYTES 64

/* Rows of up to so many elements are kept by warps where they are many; and the longest that a block has in registers. */
#define LONGEST_KEPT 1024
#define LONGEST_ROW 4096

/* By what an H200 said of them (docs/results/2026-11-28-rows.md). */
static bool are_few(const sb_call *call, const sb_cuda_rows *rows) {
    const int64_t blocks = rows->length > LONGEST_KEPT && rows->length <= LONGEST_ROW ? 4 : 2;
    return rows->count <= blocks * sb_cuda_call_device(call)->multiprocessors;
}

/* A block for each row, where they are few or long. */
static bool choose_row(const sb_call *call, const sb_cuda_rows *rows, sb_dtype dtype, char *name, sb_cuda_work *work) {
#define ENTRY(lanes, count, unused) {lanes, count},
    static const struct { int lanes, count; } kernels[] = {SB_CUDA_BLOCK_ROWS(ENTRY, )};
#undef ENTRY
    const int most = sizeof kernels / sizeof *kernels, lanes = are_few(call, rows) ? 1 : 2;
    int i = 0;
    while (i < most && (kernels[i].lanes != lanes || rows->length > kernels[i].count * SB_CUDA_WAVE))
        i++;
    if (i == most || rows->length < SB_CUDA_WAVE || (rows->length <= LONGEST_KEPT && lanes > 1))
        return false;
    snprintf(name, NAME_BYTES, "sb_cuda_normalize_row_%dx%d_%s", lanes, kernels[i].count, sb_dtype_name(dtype));
    work->threads = (unsigned)(SB_CUDA_WAVE / lanes);
    work->blocks = sb_cuda_call_blocks(call, rows->count);
    return true;
}

/* A warp for each row, of blocks that are no more than fit, so that each copies the factors once: for many rows that are too long for that. */
static bool choose_copied(const sb_call *call, const sb_cuda_rows *rows, sb_dtype dtype, char *name,
                          sb_cuda_work *work) {
    const sb_cuda_device *device = sb_cuda_call_device(call);
    const int64_t factors = rows->data[SB_CUDA_ROW_BIAS] != NULL ? 2 : 1;
    const int64_t bytes = (SB_CUDA_COPIED_ROWS + factors) * 2 * rows->length;
    if (rows->length <= LONGEST_ROW || are_few(call, rows) || bytes > device->shared_bytes)
        return false;
    const int64_t needed = (rows->count + SB_CUDA_COPIED_ROWS - 1) / SB_CUDA_COPIED_ROWS;
    const int64_t room = device->shared_bytes / bytes * device->multiprocessors;
    snprintf(name, NAME_BYTES, "sb_cuda_normalize_copied_%s", sb_dtype_name(dtype));
    work->threads = SB_CUDA_COPIED_ROWS * 32;
    work->shared_bytes = (unsigned)bytes;
    work->blocks = sb_cuda_call_blocks(call, needed < room ? needed : room);
    return true;
}

static void choose_kernel(const sb_call *call, sb_cuda_normalization *parameters, const operands *given, char *module,
                          char *name, sb_cuda_work *work) {
    const sb_tensor *scale = given->tensors[SB_CUDA_ROW_SCALE], *bias = given->tensors[SB_CUDA_ROW_BIAS];
    sb_dtype dtype = given->tensors[SB_CUDA_ROW_IN]->dtype;
    const char *suffix = sb_dtype_name(dtype);
    sb_cuda_rows *rows = &parameters->rows;
    sb_cuda_row_vector vector;
    bool same = given->tensors[SB_CUDA_ROW_OUT] == NULL || given->tensors[SB_CUDA_ROW_OUT]->dtype == dtype;
    bool factors = same && scale != NULL && scale->dtype == dtype && (bias == NULL || bias->dtype == dtype);
    bool moments = parameters->kind == SB_CUDA_NORM_MOMENTS || parameters->kind == SB_CUDA_NORM_RMS;
    bool vectors =
        factors && moments && given->means == NULL && given->inverses == NULL && sb_cuda_rows_take_vectors(rows, dtype);
    snprintf(module, NAME_BYTES, "normalize_vectors_%s", suffix);
    if (vectors && dtype != SB_F32 && choose_row(call, rows, dtype, name, work))
        return;
    if (vectors && dtype != SB_F32 && choose_copied(call, rows, dtype, name, work)) {
        snprintf(module, NAME_BYTES, "normalize_copied_%s", suffix);
        return;
    }
    if (vectors && sb_cuda_rows_vector(rows, dtype, &vector)) {
        snprintf(name, NAME_BYTES, "sb_cuda_normalize_%dx%d_%s", vector.team, vector.groups, suffix);
        sb_cuda_rows_grid_vector(call, rows, vector, work);
        return;
    }
    bool team = factors && sb_cuda_rows_are_short(rows) && rows->inner_rank == 1;
    snprintf(module, NAME_BYTES, "normalize");
    snprintf(name, NAME_BYTES, "sb_cuda_normalize_%s_%s", team ? "team" : "block", suffix);
    if (team)
        sb_cuda_rows_grid_short(call, rows, work);
    else
        sb_cuda_rows_grid_long(call, rows, rows->count, work);
}

/* Rows that are longer, and few, are cut into parts of 4096 elements for many blocks (normalize_long.cu). A block of its own
 * takes up to four parts at a time. */
#define LONGEST_WHOLE (SB_CUDA_WAVES * SB_REDUCE_BLOCK)

static bool are_cut(const sb_call *call, const sb_cuda_rows *rows) {
    return rows->length > LONGEST_WHOLE && rows->count < 2 * sb_cuda_call_device(call)->multiprocessors;
}

static void fill_parameters(sb_cuda_normalization *parameters, const operands *given) {
    const sb_tensor *scale = given->tensors[SB_CUDA_ROW_SCALE], *bias = given->tensors[SB_CUDA_ROW_BIAS];
    const sb_tensor *out = given->tensors[SB_CUDA_ROW_OUT];
    const sb_tensor *note = given->means != NULL ? given->means : given->inverses;
    parameters->scale_dtype = scale != NULL ? (int32_t)scale->dtype : 0;
    parameters->bias_dtype = bias != NULL ? (int32_t)bias->dtype : 0;
    parameters->means = given->means != NULL ? given->means->data : NULL;
    parameters->inverses = given->inverses != NULL ? given->inverses->data : NULL;
    parameters->out_dtype = out != NULL ? (int32_t)out->dtype : 0;
    parameters->note_dtype = note != NULL ? (int32_t)note->dtype : 0;
}

/* The ranges of the kernel that has the results. */
static void touch_results(sb_cuda_work *work, const operands *given) {
    sb_cuda_work_reads(work, given->tensors[SB_CUDA_ROW_SCALE]);
    sb_cuda_work_reads(work, given->tensors[SB_CUDA_ROW_BIAS]);
    sb_cuda_work_writes(work, given->tensors[SB_CUDA_ROW_OUT]);
    sb_cuda_work_writes(work, given->means);
    sb_cuda_work_writes(work, given->inverses);
}

/* Rows, and whether and where they end at used extents. */
typedef struct row_shape {
    int rank;
    const int64_t *dims;
    uint32_t inner;
    bool bounded; /* the dimensions are those of input 0, and rows end at its used extents */
} row_shape;

/* One of the three kernels of rows that are cut: `stage` 0 to 2. */
static sb_status launch_stage(sb_call *call, sb_cuda_long_normalization *parameters, const row_shape *shape,
                              const operands *given, int stage) {
    static const char *const stages[] = {"sums", "rest", "spread"};
    const sb_tensor *in = given->tensors[SB_CUDA_ROW_IN];
    sb_cuda_rows *rows = &parameters->base.rows;
    size_t bytes = (size_t)(rows->count * parameters->parts) * sizeof(double);
    bool has_mean = parameters->sums != NULL, last = stage == 2;
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "sb_cuda_normalize_%s_%s", stages[stage], sb_dtype_name(in->dtype));
    sb_cuda_work work = {.module = "normalize_long",
                         .kernel = name,
                         .parameters = parameters,
                         .parameter_bytes = sizeof *parameters,
                         .threads = SB_CUDA_WAVE,
                         .blocks = sb_cuda_call_blocks(call, rows->count * parameters->parts)};
    if (shape->bounded)
        sb_cuda_rows_bound(rows, &work, call, 0, shape->inner);
    sb_cuda_work_reads(&work, in);
    if (has_mean)
        sb_cuda_work_touches(&work, parameters->sums, bytes, stage == 0);
    if (stage > 0)
        sb_cuda_work_touches(&work, parameters->totals, bytes, !last);
    if (last)
        touch_results(&work, given);
    return sb_cuda_call_launch(call, &work);
}

static sb_status launch_long(sb_call *call, const sb_cuda_normalization *norms, const row_shape *shape,
                             const operands *given) {
    const sb_tensor *alone[SB_CUDA_ROW_OPERANDS] = {[SB_CUDA_ROW_IN] = given->tensors[SB_CUDA_ROW_IN]};
    bool has_mean = norms->kind == SB_CUDA_NORM_MOMENTS || norms->kind == SB_CUDA_NORM_DEVIATION;
    int64_t parts = (norms->rows.length + SB_REDUCE_BLOCK - 1) / SB_REDUCE_BLOCK;
    size_t bytes = (size_t)(norms->rows.count * parts) * sizeof(double);
    sb_cuda_long_normalization whole = {.base = *norms, .parts = parts}, input = whole;
    void *sums = NULL, *totals;
    if (has_mean)
        SB_TRY(sb_call_workspace(call, bytes, &sums));
    SB_TRY(sb_call_workspace(call, bytes, &totals));
    sb_cuda_rows_fill(&input.base.rows, shape->rank, shape->dims, shape->inner, alone);
    input.sums = whole.sums = sums;
    input.totals = whole.totals = totals;
    if (has_mean)
        SB_TRY(launch_stage(call, &input, shape, given, 0));
    SB_TRY(launch_stage(call, &input, shape, given, 1));
    return launch_stage(call, &whole, shape, given, 2);
}

static sb_status launch_rows(sb_call *call, sb_cuda_normalization *parameters, const row_shape *shape,
                             const operands *given) {
    sb_cuda_rows *rows = &parameters->rows;
    sb_cuda_rows_fill(rows, shape->rank, shape->dims, shape->inner, given->tensors);
    if (rows->count == 0 || rows->length == 0)
        return SB_OK;
    fill_parameters(parameters, given);
    if (are_cut(call, rows))
        return launch_long(call, parameters, shape, given);
    char name[NAME_BYTES], module[NAME_BYTES];
    sb_cuda_work work = {
        .module = module, .kernel = name, .parameters = parameters, .parameter_bytes = sizeof *parameters};
    choose_kernel(call, parameters, given, module, name, &work);
    if (shape->bounded)
        sb_cuda_rows_bound(rows, &work, call, 0, shape->inner);
    sb_cuda_work_reads(&work, given->tensors[SB_CUDA_ROW_IN]);
    touch_results(&work, given);
    return sb_cuda_call_launch(call, &work);
}

/* ---- LayerNormalization and RMSNormalization ---- */

static bool supports_layer(const sb_kernel_query *query, char *why) {
    if (!sb_cuda_takes(query, query->inputs[0], SB_SET_FLOAT, why))
        return false;
    sb_dtype from = query->inputs[0]->dtype, to = query->outputs[0].dtype;
    if (to == from || (to == SB_F32 && (from == SB_F16 || from == SB_BF16)))
        return true;
    snprintf(why, SB_WHY_BYTES, "%s from %s to %s has no GPU kernel", query->node->op->name,
             sb_dtype_name(query->inputs[0]->dtype), sb_dtype_name(query->outputs[0].dtype));
    return false;
}

/* The moments of rows without elements. */
static sb_status note_nothing(sb_call *call, sb_tensor *const *outputs) {
    for (int o = 1; o < 3; o++) {
        uint64_t bits = 0;
        if (outputs[o] == NULL)
            continue;
        sb_number_store(outputs[o]->dtype, &bits, 0, sb_nan_f64());
        SB_TRY(sb_cuda_call_fill(call, outputs[o], bits));
    }
    return SB_OK;
}

static sb_status launch_layer(sb_call *call) {
    const sb_norm_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int axis = (int)(params->axis < 0 ? params->axis + input->rank : params->axis);
    sb_tensor *outputs[3] = {NULL}, views[2];
    for (int o = 0; o < 3; o++) {
        if (sb_call_wants(call, o))
            SB_TRY(sb_call_output(call, o, &outputs[o]));
    }
    operands given = {.tensors = {[SB_CUDA_ROW_OUT] = outputs[0], [SB_CUDA_ROW_IN] = input},
                      .means = outputs[1],
                      .inverses = outputs[2]};
    for (int i = 0; i < 2; i++) {
        const sb_tensor *factor = sb_call_input(call, i + 1);
        if (factor == NULL)
            continue;
        SB_TRY(sb_cuda_rows_broadcast(call, i + 1, factor, input->rank, input->dims, &views[i]));
        given.tensors[SB_CUDA_ROW_SCALE + i] = &views[i];
    }
    bool rms = strcmp(call->node->op->name, "RMSNormalization") == 0;
    sb_cuda_normalization parameters = {.kind = rms ? SB_CUDA_NORM_RMS : SB_CUDA_NORM_MOMENTS,
                                        .epsilon = params->epsilon};
    uint32_t inner = ((UINT32_C(1) << input->rank) - 1) & ~((UINT32_C(1) << axis) - 1);
    if (sb_move_product(input->dims, axis, input->rank) == 0)
        return note_nothing(call, outputs);
    row_shape shape = {input->rank, input->dims, inner, true};
    return launch_rows(call, &parameters, &shape, &given);
}

/* ---- InstanceNormalization and GroupNormalization ---- */

static sb_status launch_groups(sb_call *call) {
    const sb_norm_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    bool instance = strcmp(call->node->op->name, "InstanceNormalization") == 0;
    int64_t channels = input->dims[1], groups = instance ? channels : params->groups;
    sb_tensor *output, split[2], views[2];
    SB_TRY(sb_call_output(call, 0, &output));
    if (sb_tensor_elements(input) == 0)
        return SB_OK;
    if (channels % groups != 0 || input->rank == SB_MAX_RANK)
        return sb_call_fail(call, SB_ERROR_SHAPE, "%lld channels do not split into %lld groups", (long long)channels,
                            (long long)groups);
    sb_norm_split_channels(output, groups, &split[0]);
    sb_norm_split_channels(input, groups, &split[1]);
    operands given = {.tensors = {&split[0], &split[1]}};
    /* Before operator set 21 a group has one scale and one bias. */
    bool by_group = !instance && call->node->version < 21;
    int64_t expected = by_group ? groups : channels;
    for (int i = 0; i < 2; i++) {
        const sb_tensor *factor = sb_call_input(call, i + 1);
        if (factor->rank != 1 || factor->dims[0] != expected)
            return sb_call_fail(call, SB_ERROR_SHAPE, "input %d must be a list of %lld values", i + 1,
                                (long long)expected);
        memcpy(&views[i], factor, sizeof views[i]);
        memset(views[i].strides, 0, sizeof views[i].strides);
        views[i].strides[1] = factor->strides[0] * (by_group ? 1 : split[1].dims[2]);
        views[i].strides[2] = by_group ? 0 : factor->strides[0];
        /* What is read, for the hazards: the list. */
        views[i].rank = 1;
        given.tensors[SB_CUDA_ROW_SCALE + i] = &views[i];
    }
    sb_cuda_normalization parameters = {.kind = SB_CUDA_NORM_MOMENTS, .epsilon = params->epsilon};
    uint32_t inner = ((UINT32_C(1) << split[1].rank) - 1) & ~UINT32_C(3);
    row_shape shape = {split[1].rank, split[1].dims, inner, false};
    return launch_rows(call, &parameters, &shape, &given);
}

/* ---- MeanVarianceNormalization and LpNormalization ---- */

static bool supports_float(const sb_kernel_query *query, char *why) {
    return sb_cuda_takes(query, query->inputs[0], SB_SET_FLOAT, why);
}

static sb_status launch_plain(sb_call *call, sb_cuda_norm kind, uint32_t inner) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    operands given = {.tensors = {output, input}};
    sb_cuda_normalization parameters = {.kind = (int32_t)kind};
    row_shape shape = {input->rank, input->dims, inner, true};
    return launch_rows(call, &parameters, &shape, &given);
}

static sb_status launch_mean_variance(sb_call *call) {
    uint32_t inner;
    SB_TRY(sb_axes_of_call(call, call->node->params, sb_call_input(call, 0)->rank, &inner));
    return launch_plain(call, SB_CUDA_NORM_DEVIATION, inner);
}

static sb_status launch_lp(sb_call *call) {
    const sb_lp_params *params = call->node->params;
    int rank = sb_call_input(call, 0)->rank;
    return launch_plain(call, params->p == 1 ? SB_CUDA_NORM_L1 : SB_CUDA_NORM_L2,
                        UINT32_C(1) << (params->axis < 0 ? params->axis + rank : params->axis));
}

/* ---- LRN ---- */

static sb_status launch_lrn(sb_call *call) {
    const sb_lrn_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    sb_cuda_lrn parameters = {.alpha = params->alpha, .beta = params->beta, .bias = params->bias, .size = params->size};
    sb_cuda_rows_fill(&parameters.rows, input->rank, input->dims, 2, (const sb_tensor *[]){output, input, NULL, NULL});
    char name[32];
    snprintf(name, sizeof name, "sb_cuda_lrn_%s", sb_dtype_name(input->dtype));
    sb_cuda_work work = {.module = "lrn",
                         .kernel = name,
                         .parameters = &parameters,
                         .parameter_bytes = sizeof parameters,
                         .threads = 256};
    work.blocks = sb_cuda_call_blocks(call, (sb_tensor_elements(output) + 255) / 256);
    sb_cuda_work_reads(&work, input);
    sb_cuda_work_writes(&work, output);
    return sb_cuda_call_launch(call, &work);
}

#define NORMALIZE(op_name, kernel_name, condition, bounds, function)                                                   \
    { .op = op_name, .name = kernel_name, .supports = condition, .bounded = bounds, .launch = function }

const sb_kernel sb_cuda_kernels_normalize[] = {
    NORMALIZE("LayerNormalization", "layer-norm", supports_layer, sb_cuda_rows_bounded, launch_layer),
    NORMALIZE("RMSNormalization", "rms-norm", supports_layer, sb_cuda_rows_bounded, launch_layer),
    NORMALIZE("InstanceNormalization", "instance-norm", supports_float, NULL, launch_groups),
    NORMALIZE("GroupNormalization", "group-norm", supports_float, NULL, launch_groups),
    NORMALIZE("MeanVarianceNormalization", "mean-variance", supports_float, sb_cuda_rows_bounded, launch_mean_variance),
    NORMALIZE("LpNormalization", "lp-norm", supports_float, sb_cuda_rows_bounded, launch_lp),
    NORMALIZE("LRN", "lrn", supports_float, NULL, launch_lrn),
    {0},
};
