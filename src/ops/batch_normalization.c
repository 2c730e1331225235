/* BatchNormalization: y = fma(x, a, b) per channel, a = scale / sqrt(variance + epsilon), b = bias - mean a.
 *
 * All in f32 (f64 where x is f64), whatever types the factors have; f16 and bf16 round once when stored.
 * In training the moments are those of the batch (moments.h: over all but dimension 1, in row-major
 * order), and the running ones become
 *
 *     running = input momentum + batch (1 - momentum). */
#include "ops/batch_normalization.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/convert_loops.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/moments.h"
#include "ops/rows.h"

static sb_status prepare_batch(sb_node *node, sb_error *error) {
    sb_batch_params *params = node->params;
    int64_t training, spatial;
    SB_TRY(sb_node_float(node, "epsilon", 1e-5f, &params->epsilon, error));
    SB_TRY(sb_node_float(node, "momentum", 0.9f, &params->momentum, error));
    SB_TRY(sb_node_int(node, "training_mode", 0, &training, error));
    SB_TRY(sb_node_int(node, "spatial", 1, &spatial, error));
    if (node->version < 9 && spatial == 0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "node %s (BatchNormalization): spatial 0 (moments per activation) is not "
                       "supported; operator set 9 removed it",
                       node->name);
    /* Before operator set 14 training is what asking for the moments means. */
    params->training = training != 0;
    for (int o = 1; o < node->output_count && node->version < 14; o++)
        params->training = params->training || node->outputs[o] != SB_NO_VALUE;
    return SB_OK;
}

static sb_status infer_batch(sb_infer *infer) {
    const sb_batch_params *params = infer->node->params;
    const sb_fact *facts[5];
    for (int i = 0; i < 5; i++)
        SB_TRY(sb_infer_require(infer, i, SB_SET_FLOAT, &facts[i]));
    sb_infer_shape_of(infer, 0, facts[0], facts[0]->dtype);
    if (infer->output_count > 1 && infer->node->version >= 14 && !params->training)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "running moments are outputs only with training_mode 1");
    for (int o = 1; o < infer->output_count; o++)
        sb_infer_shape_of(infer, o, facts[o % 2 == 1 ? 3 : 4], facts[o % 2 == 1 ? 3 : 4]->dtype);
    return SB_OK;
}

/* Packed values per channel, of the computing type. */
typedef struct channels {
    int64_t count;
    sb_dtype computed;
    void *scale, *bias, *mean, *variance; /* scale and bias become a and b */
} channels;

static void free_channels(channels *all) {
    sb_free(all->scale);
    sb_free(all->bias);
    sb_free(all->mean);
    sb_free(all->variance);
}

static sb_status load_channels(sb_call *call, channels *all) {
    void **targets[4] = {&all->scale, &all->bias, &all->mean, &all->variance};
    for (int i = 0; i < 4; i++) {
        const sb_tensor *factor = sb_call_input(call, i + 1);
        if (factor->rank != 1 || factor->dims[0] != all->count)
            return sb_call_fail(call, SB_ERROR_SHAPE, "input %d must be a list of %lld values", i + 1,
                                (long long)all->count);
        SB_TRY(sb_load_all(factor, all->computed, targets[i], call->error));
    }
    return SB_OK;
}

/* ---- training ---- */

/* Puts the moments of the batch into `mean` and `variance`, and the running ones into `running` (two lists). */
#define BATCH_MOMENTS(type, suffix, dtype)                                                                             \
    static void batch_moments_##suffix(const sb_rows *rows, type *values, type momentum, const channels *all,          \
                                       type *const *running) {                                                         \
        type *mean = all->mean, *variance = all->variance;                                                             \
        for (int64_t c = 0; c < all->count; c++) {                                                                     \
            type batch_mean, batch_variance;                                                                           \
            sb_rows_load(rows, c, 0, rows->length, dtype, values);                                                     \
            batch_variance = sb_centre_row_##suffix(values, rows->length, &batch_mean);                                \
            running[0][c] = mean[c] * momentum + batch_mean * (1 - momentum);                                          \
            running[1][c] = variance[c] * momentum + batch_variance * (1 - momentum);                                  \
            mean[c] = batch_mean;                                                                                      \
            variance[c] = batch_variance;                                                                              \
        }                                                                                                              \
    }
BATCH_MOMENTS(float, f32, SB_F32)
BATCH_MOMENTS(double, f64, SB_F64)

static sb_status store_list(sb_call *call, int index, sb_dtype computed, const void *values, int64_t count) {
    sb_tensor *output;
    if (!sb_call_wants(call, index))
        return SB_OK;
    SB_TRY(sb_call_output(call, index, &output));
    sb_convert_row(output->dtype, output->data, computed, values, (int64_t)sb_dtype_size(computed), count);
    return SB_OK;
}

static sb_status train(sb_call *call, channels *all) {
    const sb_batch_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_rows rows;
    uint32_t every = (UINT32_C(1) << input->rank) - 1;
    sb_rows_start(&rows, input, input->rank == 1 ? every : every & ~UINT32_C(2));
    size_t size = sb_dtype_size(all->computed);
    char *running = sb_allocate_array((size_t)all->count, 2 * size);
    void *values = sb_allocate_array((size_t)rows.length, size);
    sb_status status = SB_OK;
    if (running == NULL || values == NULL)
        status = sb_fail_memory(call->error, (size_t)rows.length * size);
    void *lists[2] = {running, running + (size_t)all->count * size};
    if (status == SB_OK && all->computed == SB_F32)
        batch_moments_f32(&rows, values, params->momentum, all, (float *const *)lists);
    else if (status == SB_OK)
        batch_moments_f64(&rows, values, (double)params->momentum, all, (double *const *)lists);
    for (int i = 0; i < 2 && status == SB_OK; i++)
        status = store_list(call, i + 1, all->computed, lists[i], all->count);
    if (status == SB_OK)
        status = store_list(call, 3, all->computed, all->mean, all->count);
    if (status == SB_OK)
        status = store_list(call, 4, all->computed, all->variance, all->count);
    sb_free(running);
    sb_free(values);
    return status;
}

/* ---- y ---- */

static void fold_factors(channels *all, float epsilon) {
    for (int64_t c = 0; c < all->count && all->computed == SB_F32; c++) {
        float *scale = all->scale, *bias = all->bias;
        sb_batch_normalization_factors(scale[c], bias[c], ((float *)all->mean)[c], ((float *)all->variance)[c], epsilon,
                                       &scale[c], &bias[c]);
    }
    for (int64_t c = 0; c < all->count && all->computed == SB_F64; c++) {
        double *scale = all->scale, *bias = all->bias;
        sb_batch_normalization_factors_f64(scale[c], bias[c], ((double *)all->mean)[c], ((double *)all->variance)[c],
                                           (double)epsilon, &scale[c], &bias[c]);
    }
}

#define AFFINE_LOOP(dtype, suffix, type, real, real_suffix, load, store, unused)                                       \
    static void affine_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                \
        for (int64_t i = 0; i < count; i++)                                                                            \
            SB_AT(type, data[0], steps[0], i) = store(sb_fma_##real_suffix(                                            \
                load(SB_CONST_AT(type, data[1], steps[1], i)), SB_CONST_AT(real, data[2], steps[2], i),                \
                SB_CONST_AT(real, data[3], steps[3], i)));                                                             \
    }
SB_FLOAT_TYPES(AFFINE_LOOP, )

static sb_walk_row *const affine_loops[SB_DTYPE_COUNT] = {SB_FLOAT_LOOPS(affine)};

static sb_status apply(sb_call *call, const channels *all) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    if (!sb_call_wants(call, 0))
        return SB_OK;
    SB_TRY(sb_call_output(call, 0, &output));
    /* A list along dimension 1 of the input. */
    sb_tensor factors = {.dtype = all->computed, .rank = input->rank > 1 ? input->rank - 1 : 0};
    for (int d = 0; d < factors.rank; d++) {
        factors.dims[d] = d == 0 ? all->count : 1;
        factors.strides[d] = d == 0;
    }
    sb_tensor scale, bias;
    memcpy(&scale, &factors, sizeof scale);
    memcpy(&bias, &factors, sizeof bias);
    scale.data = all->scale;
    bias.data = all->bias;
    const sb_tensor *operands[4] = {output, input, &scale, &bias};
    sb_walk walk;
    sb_walk_start(&walk, output->rank, output->dims, 4, operands);
    sb_walk_run(&walk, affine_loops[output->dtype], NULL);
    return SB_OK;
}

static sb_status eval_batch(sb_call *call) {
    const sb_batch_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    channels all = {.count = input->rank > 1 ? input->dims[1] : 1, .computed = sb_computing_dtype(input->dtype)};
    sb_status status = load_channels(call, &all);
    if (status == SB_OK && params->training)
        status = train(call, &all);
    if (status == SB_OK) {
        fold_factors(&all, params->epsilon);
        status = apply(call, &all);
    }
    free_channels(&all);
    return status;
}

const sb_op sb_ops_batch_normalization[] = {
    {.name = "BatchNormalization",
     .domain = "",
     .least_inputs = 5,
     .most_inputs = 5,
     .least_outputs = 1,
     .most_outputs = 5,
     .params_size = sizeof(sb_batch_params),
     .prepare = prepare_batch,
     .infer = infer_batch,
     .eval = eval_batch},
    {0},
};
