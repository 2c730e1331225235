/* Normalisations of rows, and LRN. */
#include <stdio.h>
#include <string.h>

#include "cuda/list.h"
#include "cuda/ops/rows.h"
#include "ops/normalization.h"
#include "ops/row_normalization.h"

/* The tensors of a normalisation, as views with the dimensions of the input (or of its channels
 * split into groups). Scale, bias, means and inverses may be NULL. */
typedef struct operands {
    const iv_tensor *tensors[IV_CUDA_ROW_OPERANDS];
    const iv_tensor *means, *inverses;
} operands;

static iv_status launch_rows(iv_call *call, iv_cuda_normalization *parameters, int rank,
                             const int64_t *dims, uint32_t inner, const operands *given) {
    const iv_tensor *in = given->tensors[IV_CUDA_ROW_IN];
    const iv_tensor *scale = given->tensors[IV_CUDA_ROW_SCALE];
    const iv_tensor *bias = given->tensors[IV_CUDA_ROW_BIAS];
    iv_cuda_rows *rows = &parameters->rows;
    iv_cuda_rows_fill(rows, rank, dims, inner, given->tensors);
    if (rows->count == 0 || rows->length == 0)
        return IV_OK;
    parameters->scale_dtype = scale != NULL ? (int32_t)scale->dtype : 0;
    parameters->bias_dtype = bias != NULL ? (int32_t)bias->dtype : 0;
    parameters->means = given->means != NULL ? given->means->data : NULL;
    parameters->inverses = given->inverses != NULL ? given->inverses->data : NULL;
    const iv_tensor *note = given->means != NULL ? given->means : given->inverses;
    parameters->note_dtype = note != NULL ? (int32_t)note->dtype : 0;
    bool team = iv_cuda_rows_are_short(rows) && rows->inner_rank == 1 && scale != NULL &&
                scale->dtype == in->dtype && (bias == NULL || bias->dtype == in->dtype);
    char name[64];
    snprintf(name, sizeof name, "iv_cuda_normalize_%s_%s", team ? "team" : "block",
             iv_dtype_name(in->dtype));
    iv_cuda_work work = {.module = "normalize",
                         .kernel = name,
                         .parameters = parameters,
                         .parameter_bytes = sizeof *parameters};
    if (team)
        iv_cuda_rows_grid_short(call, rows, &work);
    else
        iv_cuda_rows_grid_long(call, rows, rows->count, &work);
    iv_cuda_work_reads(&work, in);
    iv_cuda_work_reads(&work, scale);
    iv_cuda_work_reads(&work, bias);
    iv_cuda_work_writes(&work, given->tensors[IV_CUDA_ROW_OUT]);
    iv_cuda_work_writes(&work, given->means);
    iv_cuda_work_writes(&work, given->inverses);
    return iv_cuda_call_launch(call, &work);
}

/* ---- LayerNormalization and RMSNormalization ---- */

static bool supports_layer(const iv_kernel_query *query, char *why) {
    if (!iv_cuda_takes(query, query->inputs[0], IV_SET_FLOAT, why))
        return false;
    if (query->outputs[0].dtype == query->inputs[0]->dtype)
        return true;
    snprintf(why, IV_WHY_BYTES, "%s from %s to %s has no GPU kernel", query->node->op->name,
             iv_dtype_name(query->inputs[0]->dtype), iv_dtype_name(query->outputs[0].dtype));
    return false;
}

static iv_status launch_layer(iv_call *call) {
    const iv_norm_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    int axis = (int)(params->axis < 0 ? params->axis + input->rank : params->axis);
    iv_tensor *outputs[3] = {NULL}, views[2];
    for (int o = 0; o < 3; o++) {
        if (iv_call_wants(call, o))
            IV_TRY(iv_call_output(call, o, &outputs[o]));
    }
    operands given = {.tensors = {[IV_CUDA_ROW_OUT] = outputs[0], [IV_CUDA_ROW_IN] = input},
                      .means = outputs[1],
                      .inverses = outputs[2]};
    for (int i = 0; i < 2; i++) {
        const iv_tensor *factor = iv_call_input(call, i + 1);
        if (factor == NULL)
            continue;
        IV_TRY(iv_cuda_rows_broadcast(call, i + 1, factor, input->rank, input->dims, &views[i]));
        given.tensors[IV_CUDA_ROW_SCALE + i] = &views[i];
    }
    bool rms = strcmp(call->node->op->name, "RMSNormalization") == 0;
    iv_cuda_normalization parameters = {.kind = rms ? IV_CUDA_NORM_RMS : IV_CUDA_NORM_MOMENTS,
                                        .epsilon = params->epsilon};
    uint32_t inner = ((UINT32_C(1) << input->rank) - 1) & ~((UINT32_C(1) << axis) - 1);
    return launch_rows(call, &parameters, input->rank, input->dims, inner, &given);
}

/* ---- InstanceNormalization and GroupNormalization ---- */

/* Splits dimension 1 into `groups` and the rest. */
static void split_channels(const iv_tensor *tensor, int64_t groups, iv_tensor *split) {
    memcpy(split, tensor, sizeof *split);
    for (int d = tensor->rank; d > 2; d--) {
        split->dims[d] = tensor->dims[d - 1];
        split->strides[d] = tensor->strides[d - 1];
    }
    split->rank = tensor->rank + 1;
    split->dims[1] = groups;
    split->dims[2] = tensor->dims[1] / groups;
    split->strides[1] = tensor->strides[1] * split->dims[2];
    split->strides[2] = tensor->strides[1];
}

static iv_status launch_groups(iv_call *call) {
    const iv_norm_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    bool instance = strcmp(call->node->op->name, "InstanceNormalization") == 0;
    int64_t channels = input->dims[1], groups = instance ? channels : params->groups;
    iv_tensor *output, split[2], views[2];
    IV_TRY(iv_call_output(call, 0, &output));
    if (iv_tensor_elements(input) == 0)
        return IV_OK;
    if (channels % groups != 0 || input->rank == IV_MAX_RANK)
        return iv_call_fail(call, IV_ERROR_SHAPE, "%lld channels do not split into %lld groups",
                            (long long)channels, (long long)groups);
    split_channels(output, groups, &split[0]);
    split_channels(input, groups, &split[1]);
    operands given = {.tensors = {&split[0], &split[1]}};
    /* Before operator set 21 a group has one scale and one bias. */
    bool by_group = !instance && call->node->version < 21;
    int64_t expected = by_group ? groups : channels;
    for (int i = 0; i < 2; i++) {
        const iv_tensor *factor = iv_call_input(call, i + 1);
        if (factor->rank != 1 || factor->dims[0] != expected)
            return iv_call_fail(call, IV_ERROR_SHAPE, "input %d must be a list of %lld values",
                                i + 1, (long long)expected);
        memcpy(&views[i], factor, sizeof views[i]);
        memset(views[i].strides, 0, sizeof views[i].strides);
        views[i].strides[1] = factor->strides[0] * (by_group ? 1 : split[1].dims[2]);
        views[i].strides[2] = by_group ? 0 : factor->strides[0];
        /* What is read, for the hazards: the list. */
        views[i].rank = 1;
        given.tensors[IV_CUDA_ROW_SCALE + i] = &views[i];
    }
    iv_cuda_normalization parameters = {.kind = IV_CUDA_NORM_MOMENTS, .epsilon = params->epsilon};
    uint32_t inner = ((UINT32_C(1) << split[1].rank) - 1) & ~UINT32_C(3);
    return launch_rows(call, &parameters, split[1].rank, split[1].dims, inner, &given);
}

/* ---- MeanVarianceNormalization and LpNormalization ---- */

static bool supports_float(const iv_kernel_query *query, char *why) {
    return iv_cuda_takes(query, query->inputs[0], IV_SET_FLOAT, why);
}

static iv_status launch_plain(iv_call *call, iv_cuda_norm kind, uint32_t inner) {
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    operands given = {.tensors = {output, input}};
    iv_cuda_normalization parameters = {.kind = (int32_t)kind};
    return launch_rows(call, &parameters, input->rank, input->dims, inner, &given);
}

static iv_status launch_mean_variance(iv_call *call) {
    uint32_t inner;
    IV_TRY(iv_axes_of_call(call, call->node->params, iv_call_input(call, 0)->rank, &inner));
    return launch_plain(call, IV_CUDA_NORM_DEVIATION, inner);
}

static iv_status launch_lp(iv_call *call) {
    const iv_lp_params *params = call->node->params;
    int rank = iv_call_input(call, 0)->rank;
    return launch_plain(call, params->p == 1 ? IV_CUDA_NORM_L1 : IV_CUDA_NORM_L2,
                        UINT32_C(1) << (params->axis < 0 ? params->axis + rank : params->axis));
}

/* ---- LRN ---- */

static iv_status launch_lrn(iv_call *call) {
    const iv_lrn_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    if (iv_tensor_elements(output) == 0)
        return IV_OK;
    iv_cuda_lrn parameters = {
        .alpha = params->alpha, .beta = params->beta, .bias = params->bias, .size = params->size};
    iv_cuda_rows_fill(&parameters.rows, input->rank, input->dims, 2,
                      (const iv_tensor *[]){output, input, NULL, NULL});
    char name[32];
    snprintf(name, sizeof name, "iv_cuda_lrn_%s", iv_dtype_name(input->dtype));
    iv_cuda_work work = {.module = "lrn",
                         .kernel = name,
                         .parameters = &parameters,
                         .parameter_bytes = sizeof parameters,
                         .threads = 256};
    work.blocks = iv_cuda_call_blocks(call, (iv_tensor_elements(output) + 255) / 256);
    iv_cuda_work_reads(&work, input);
    iv_cuda_work_writes(&work, output);
    return iv_cuda_call_launch(call, &work);
}

#define NORMALIZE(op_name, kernel_name, condition, function)                                       \
    { .op = op_name, .name = kernel_name, .supports = condition, .launch = function }

const iv_kernel iv_cuda_kernels_normalize[] = {
    NORMALIZE("LayerNormalization", "layer-norm", supports_layer, launch_layer),
    NORMALIZE("RMSNormalization", "rms-norm", supports_layer, launch_layer),
    NORMALIZE("InstanceNormalization", "instance-norm", supports_float, launch_groups),
    NORMALIZE("GroupNormalization", "group-norm", supports_float, launch_groups),
    NORMALIZE("MeanVarianceNormalization", "mean-variance", supports_float, launch_mean_variance),
    NORMALIZE("LpNormalization", "lp-norm", supports_float, launch_lp),
    NORMALIZE("LRN", "lrn", supports_float, launch_lrn),
    {0},
};
