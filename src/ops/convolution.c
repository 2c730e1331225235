/* Conv. The chain runs over kernel positions in row-major order, then input channels of the group; the bias is added to
 * the finished chain, with one rounding (in f32 before the rounding to f16 or bf16). */
#include "ops/convolution.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/list.h"
#include "ops/real.h"

sb_status sb_conv_prepare(sb_node *node, sb_error *error) {
    sb_conv_params *params = node->params;
    SB_TRY(sb_node_int(node, "group", 1, &params->group, error));
    if (params->group < 1 || params->group > INT32_MAX)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): group is %lld; it must be at least 1", node->name,
                       node->op->name, (long long)params->group);
    return sb_window_read(node, &params->window, error);
}

/* Checks what the extents of input and weights must have in common, where they are known. */
static sb_status check_channels(const sb_infer *infer, const sb_fact *x, const sb_fact *w) {
    const sb_conv_params *params = infer->node->params;
    long long group = params->group;
    int64_t outputs, inputs, channels;
    if (w->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if (sb_dim_is_constant(w->dims[0], &outputs) && outputs % params->group != 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%lld output channels do not divide into %lld groups",
                             (long long)outputs, group);
    if (x->rank != SB_RANK_UNKNOWN && sb_dim_is_constant(w->dims[1], &inputs) &&
        sb_dim_is_constant(x->dims[1], &channels) &&
        (channels % params->group != 0 || channels / params->group != inputs))
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "input 0 has %lld channels, which is not %lld groups of the weights' %lld",
                             (long long)channels, group, (long long)inputs);
    return SB_OK;
}

sb_status sb_conv_kernel_extent(sb_infer *infer, const sb_window *window, const sb_fact *w, int axis, sb_dim *extent) {
    int64_t actual;
    *extent = window->has_kernel ? sb_dim_constant(infer->scope, window->kernel[axis]) : NULL;
    if (w->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if (*extent != NULL && sb_dim_is_constant(w->dims[axis + 2], &actual) && actual != window->kernel[axis])
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "kernel_shape says %lld along spatial axis %d, the weights %lld",
                             (long long)window->kernel[axis], axis, (long long)actual);
    *extent = w->dims[axis + 2];
    if (sb_dim_is_constant(*extent, &actual) && (actual < 1 || actual > INT32_MAX))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the weights have extent %lld along spatial axis %d",
                             (long long)actual, axis);
    return SB_OK;
}

sb_status sb_conv_infer(sb_infer *infer, const sb_fact *x, const sb_fact *w, sb_dtype dtype) {
    const sb_conv_params *params = infer->node->params;
    int rank = x->rank != SB_RANK_UNKNOWN ? x->rank : w->rank;
    if (rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    SB_TRY(sb_window_check_axes(infer, &params->window, rank - 2));
    if (w->rank != SB_RANK_UNKNOWN && w->rank != rank)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the weights have rank %d, input 0 has %d", w->rank, rank);
    SB_TRY(check_channels(infer, x, w));
    sb_dim dims[SB_MAX_RANK];
    dims[0] = x->rank != SB_RANK_UNKNOWN ? x->dims[0] : sb_infer_fresh(infer, 0, 0);
    dims[1] = w->rank != SB_RANK_UNKNOWN ? w->dims[0] : sb_infer_fresh(infer, 0, 1);
    for (int axis = 0; axis < rank - 2; axis++) {
        sb_dim kernel;
        SB_TRY(sb_conv_kernel_extent(infer, &params->window, w, axis, &kernel));
        if (x->rank != SB_RANK_UNKNOWN && kernel != NULL)
            SB_TRY(sb_window_extent(infer, &params->window, axis, x->dims[axis + 2], kernel, &dims[axis + 2]));
        else
            dims[axis + 2] = sb_infer_fresh(infer, 0, axis + 2);
    }
    sb_fact_set_tensor(&infer->outputs[0], dtype, rank, dims);
    return SB_OK;
}

sb_status sb_conv_infer_bias(const sb_infer *infer, int index, sb_dtype dtype, sb_dim channels) {
    const sb_fact *bias;
    int64_t have, want;
    if (sb_infer_input(infer, index) == NULL)
        return SB_OK;
    SB_TRY(sb_infer_require(infer, index, SB_SET(dtype), &bias));
    if (bias->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if (bias->rank != 1)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "input %d has rank %d where a number per output channel is expected", index, bias->rank);
    if (channels != NULL && sb_dim_is_constant(bias->dims[0], &have) && sb_dim_is_constant(channels, &want) &&
        have != want)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has %lld numbers for %lld channels", index,
                             (long long)have, (long long)want);
    return SB_OK;
}

static sb_status infer_conv(sb_infer *infer) {
    const sb_fact *x, *w;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &x));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(x->dtype), &w));
    SB_TRY(sb_conv_infer(infer, x, w, x->dtype));
    const sb_fact *y = &infer->outputs[0];
    return sb_conv_infer_bias(infer, 2, x->dtype, y->rank != SB_RANK_UNKNOWN ? y->dims[1] : NULL);
}

/* Only the extents of an empty tensor can have a product that overflows: it counts as 0. */
static int64_t extent_product(int64_t left, int64_t right) {
    int64_t product;
    return __builtin_mul_overflow(left, right, &product) ? 0 : product;
}

void sb_conv_extents_of(const sb_conv_params *params, const sb_tensor *x, const sb_tensor *w, const int64_t *y_dims,
                        sb_conv_extents *shape) {
    *shape = (sb_conv_extents){.axes = x->rank - 2,
                               .batch = x->dims[0],
                               .groups = params->group,
                               .group_inputs = w->dims[1],
                               .group_outputs = w->dims[0] / params->group,
                               .positions = 1,
                               .taps = 1};
    for (int i = 0; i < shape->axes; i++) {
        shape->axis[i] = sb_window_resolve(&params->window, i, x->dims[i + 2], w->dims[i + 2], y_dims[i + 2]);
        shape->positions = extent_product(shape->positions, shape->axis[i].out);
        shape->taps = extent_product(shape->taps, shape->axis[i].kernel);
    }
    if (shape->group_inputs == 0 || shape->group_outputs == 0)
        shape->taps = 0;
}

void sb_conv_find_taps(const sb_conv_extents *shape, int64_t position, int64_t *taps) {
    int64_t first[SB_WINDOW_AXES], tap[SB_WINDOW_AXES] = {0}, kernel[SB_WINDOW_AXES];
    for (int d = shape->axes - 1; d >= 0; d--) {
        const sb_window_axis *axis = &shape->axis[d];
        first[d] = position % axis->out * axis->stride - axis->begin;
        position /= axis->out;
        kernel[d] = axis->kernel;
    }
    do {
        int64_t number = 0;
        bool inside = true;
        for (int d = 0; d < shape->axes; d++) {
            int64_t at = first[d] + tap[d] * shape->axis[d].dilation;
            inside = inside && at >= 0 && at < shape->axis[d].in;
            number = number * shape->axis[d].in + at;
        }
        *taps++ = inside ? number : -1;
    } while (sb_window_next(shape->axes, tap, kernel));
}

/* ---- reference ---- */

void sb_conv_pack_reference(const sb_conv_extents *shape, size_t size, sb_conv_operand w, char *packed) {
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK];
    int axes = shape->axes;
    for (int i = 0; i < axes; i++) {
        dims[i] = shape->axis[i].kernel;
        strides[i] = w.strides[i + 2];
    }
    dims[axes] = shape->group_inputs;
    strides[axes] = w.strides[1];
    dims[axes + 1] = shape->group_outputs;
    strides[axes + 1] = w.strides[0];
    int64_t group_elements = shape->taps * shape->group_inputs * shape->group_outputs;
    for (int64_t g = 0; g < shape->groups; g++)
        sb_gather_dense(size, axes + 2, dims, strides,
                        (const char *)w.data + g * shape->group_outputs * w.strides[0] * (int64_t)size,
                        packed + g * group_elements * (int64_t)size);
}

/* What one output position sees of one group's input channels, in chain order; 0 in the padding. */
static void gather_patch(const sb_conv_extents *shape, size_t size, const char *x, const int64_t *strides,
                         const int64_t *position, char *patch) {
    int64_t tap[SB_WINDOW_AXES] = {0}, kernel[SB_WINDOW_AXES];
    size_t channel_bytes = (size_t)shape->group_inputs * size;
    for (int i = 0; i < shape->axes; i++)
        kernel[i] = shape->axis[i].kernel;
    do {
        int64_t offset = 0;
        bool inside = true;
        for (int i = 0; i < shape->axes; i++) {
            const sb_window_axis *axis = &shape->axis[i];
            int64_t at = position[i] * axis->stride + tap[i] * axis->dilation - axis->begin;
            inside = inside && at >= 0 && at < axis->in;
            offset += inside ? at * strides[i + 2] : 0;
        }
        if (inside)
            sb_gather_dense(size, 1, &shape->group_inputs, &strides[1], x + offset * (int64_t)size, patch);
        else
            memset(patch, 0, channel_bytes);
        patch += channel_bytes;
    } while (sb_window_next(shape->axes, tap, kernel));
}

static void convolve_group(const sb_conv_extents *shape, sb_dtype dtype, int64_t batch, int64_t group,
                           sb_conv_operand x, const void *weights, void *patch, void *sums, sb_conv_store *store,
                           void *context) {
    size_t size = sb_dtype_size(dtype);
    size_t sum_bytes = (size_t)shape->group_outputs * sb_dtype_size(sb_contraction_accumulator(dtype));
    const char *first =
        (const char *)x.data + (batch * x.strides[0] + group * shape->group_inputs * x.strides[1]) * (int64_t)size;
    int64_t position[SB_WINDOW_AXES] = {0}, extents[SB_WINDOW_AXES], index = 0;
    for (int i = 0; i < shape->axes; i++)
        extents[i] = shape->axis[i].out;
    do {
        if (shape->taps != 0)
            gather_patch(shape, size, first, x.strides, position, patch);
        memset(sums, 0, sum_bytes);
        sb_contract_row(dtype, shape->group_outputs, shape->taps * shape->group_inputs, patch, 1, weights,
                        shape->group_outputs, 1, sums);
        store(context, batch, group * shape->group_outputs, index++, sums);
    } while (sb_window_next(shape->axes, position, extents));
}

sb_status sb_conv_reference(const sb_conv_extents *shape, sb_dtype dtype, sb_conv_operand x, sb_conv_operand w,
                            sb_conv_store *store, void *context, sb_error *error) {
    if (shape->batch == 0 || shape->positions == 0 || shape->group_outputs == 0)
        return SB_OK;
    size_t size = sb_dtype_size(dtype);
    size_t products = (size_t)shape->taps * (size_t)shape->group_inputs;
    size_t group_elements = products * (size_t)shape->group_outputs;
    char *packed = sb_allocate_array((size_t)shape->groups * group_elements, size);
    char *patch = sb_allocate_array(products, size);
    void *sums = sb_allocate_array((size_t)shape->group_outputs, sizeof(uint64_t));
    sb_status status = SB_OK;
    if (packed == NULL || patch == NULL || sums == NULL)
        status = sb_fail_memory(error, ((size_t)shape->groups * group_elements + products) * size);
    if (status == SB_OK)
        sb_conv_pack_reference(shape, size, w, packed);
    for (int64_t n = 0; n < shape->batch && status == SB_OK; n++) {
        for (int64_t g = 0; g < shape->groups; g++)
            convolve_group(shape, dtype, n, g, x, packed + (size_t)g * group_elements * size, patch, sums, store,
                           context);
    }
    sb_free(packed);
    sb_free(patch);
    sb_free(sums);
    return status;
}

void sb_conv_add_bias(sb_dtype dtype, int64_t count, void *sums, const void *bias, int64_t bias_stride) {
    if (bias == NULL)
        return;
    if (dtype == SB_F64) {
        for (int64_t i = 0; i < count; i++)
            ((double *)sums)[i] = ((double *)sums)[i] + ((const double *)bias)[i * bias_stride];
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ((float *)sums)[i] = ((float *)sums)[i] + sb_real_load_f32(dtype, bias, i * bias_stride);
}

typedef struct conv_output {
    const sb_conv_extents *shape;
    sb_tensor *y;
    const sb_tensor *bias;
} conv_output;

static void store_conv(void *context, int64_t batch, int64_t channel, int64_t position, void *sums) {
    const conv_output *output = context;
    int64_t count = output->shape->group_outputs, positions = output->shape->positions;
    int64_t size = (int64_t)sb_dtype_size(output->y->dtype);
    if (output->bias != NULL) {
        int64_t stride = output->bias->strides[0];
        sb_conv_add_bias(output->y->dtype, count, sums, output->bias->data + channel * stride * size, stride);
    }
    int64_t first = (batch * output->y->dims[1] + channel) * positions + position;
    sb_contraction_store(output->y->dtype, count, sums, output->y->data + first * size, positions);
}

static sb_status eval_conv(sb_call *call) {
    const sb_tensor *x = sb_call_input(call, 0), *w = sb_call_input(call, 1);
    sb_tensor *y;
    sb_conv_extents shape;
    SB_TRY(sb_call_output(call, 0, &y));
    sb_conv_extents_of(call->node->params, x, w, y->dims, &shape);
    conv_output output = {&shape, y, sb_call_input(call, 2)};
    return sb_conv_reference(&shape, x->dtype, (sb_conv_operand){x->data, x->strides},
                             (sb_conv_operand){w->data, w->strides}, store_conv, &output, call->error);
}

const sb_op sb_ops_convolution[] = {
    {.name = "Conv",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_conv_params),
     .prepare = sb_conv_prepare,
     .infer = infer_conv,
     .eval = eval_conv},
    {0},
};
