/* ConvTranspose, in gather form: per output element one chain over the kernel positions that reach
 * it from inside the input, in row-major order, then input channels of the group; then the bias,
 * with one rounding. Kernel positions that reach it from outside are skipped: the groups of the
 * 16-bit chain are cut from the products that take part. */
#include "ops/convolution_transpose.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/convolution.h"
#include "ops/list.h"

/* Reads an optional list with a number per axis into `values`; it may carry `extra` numbers more in
 * front, which are dropped. */
static sb_status read_extents(const sb_node *node, const char *name, int extra, int *axes, int64_t *values,
                              bool *present, sb_error *error) {
    int64_t count;
    const int64_t *list;
    SB_TRY(sb_node_ints(node, name, &count, &list, error));
    *present = count != 0;
    if (count == 0)
        return SB_OK;
    if (*axes != -1 && count == *axes + extra) {
        list += extra;
        count -= extra;
    }
    if (count > SB_WINDOW_AXES || (*axes != -1 && count != *axes))
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): %s has %lld numbers, which does not fit the other attributes", node->name,
                       node->op->name, name, (long long)count);
    *axes = (int)count;
    for (int64_t i = 0; i < count; i++) {
        if (list[i] < 0 || list[i] > INT32_MAX)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): %s holds %lld; it must be 0 to 2147483647",
                           node->name, node->op->name, name, (long long)list[i]);
        values[i] = list[i];
    }
    return SB_OK;
}

static sb_status prepare_transpose(sb_node *node, sb_error *error) {
    sb_conv_transpose_params *params = node->params;
    bool present;
    SB_TRY(sb_node_int(node, "group", 1, &params->group, error));
    if (params->group < 1 || params->group > INT32_MAX)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): group is %lld; it must be at least 1", node->name,
                       node->op->name, (long long)params->group);
    SB_TRY(sb_window_read(node, &params->window, error));
    SB_TRY(read_extents(node, "output_padding", 0, &params->window.axes, params->output_padding, &present, error));
    return read_extents(node, "output_shape", 2, &params->window.axes, params->output_shape, &params->has_output_shape,
                        error);
}

static bool same_padding(const sb_window *window) {
    return window->auto_pad == SB_PAD_SAME_UPPER || window->auto_pad == SB_PAD_SAME_LOWER;
}

static sb_status transpose_extent(const sb_infer *infer, int axis, sb_dim in, sb_dim kernel, sb_dim *out) {
    const sb_conv_transpose_params *params = infer->node->params;
    const sb_window *window = &params->window;
    sb_scope *scope = infer->scope;
    sb_dim one = sb_dim_constant(scope, 1);
    sb_dim stride = sb_dim_constant(scope, window->strides[axis]);
    if (params->has_output_shape) {
        *out = sb_dim_constant(scope, params->output_shape[axis]);
        return SB_OK;
    }
    sb_dim reach =
        sb_dim_multiply(scope, sb_dim_subtract(scope, kernel, one), sb_dim_constant(scope, window->dilations[axis]));
    sb_dim spread = sb_dim_multiply(scope, sb_dim_subtract(scope, in, one), stride);
    sb_dim full =
        sb_dim_add(scope, sb_dim_add(scope, spread, reach), sb_dim_constant(scope, params->output_padding[axis] + 1));
    if (same_padding(window)) {
        /* Padding only ever cuts: where the kernel is shorter than the stride, less comes out. */
        *out = sb_dim_minimum(scope, sb_dim_multiply(scope, in, stride), full);
        return SB_OK;
    }
    int64_t extent;
    *out = sb_dim_subtract(scope, full, sb_dim_constant(scope, window->begin[axis] + window->end[axis]));
    if (sb_dim_is_constant(*out, &extent) && extent < 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "pads leave nothing of the output along spatial axis %d", axis);
    return SB_OK;
}

static sb_status check_channels(const sb_infer *infer, const sb_fact *x, const sb_fact *w) {
    const sb_conv_transpose_params *params = infer->node->params;
    int64_t have, want;
    if (w->rank == SB_RANK_UNKNOWN || !sb_dim_is_constant(w->dims[0], &want))
        return SB_OK;
    if (want % params->group != 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%lld channels do not divide into %lld groups", (long long)want,
                             (long long)params->group);
    if (x->rank != SB_RANK_UNKNOWN && sb_dim_is_constant(x->dims[1], &have) && have != want)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input 0 has %lld channels, the weights are for %lld",
                             (long long)have, (long long)want);
    return SB_OK;
}

static sb_status infer_shape(sb_infer *infer, const sb_fact *x, const sb_fact *w) {
    const sb_conv_transpose_params *params = infer->node->params;
    int rank = x->rank != SB_RANK_UNKNOWN ? x->rank : w->rank;
    if (rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], x->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    SB_TRY(sb_window_check_axes(infer, &params->window, rank - 2));
    if (w->rank != SB_RANK_UNKNOWN && w->rank != rank)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the weights have rank %d, input 0 has %d", w->rank, rank);
    SB_TRY(check_channels(infer, x, w));
    sb_dim dims[SB_MAX_RANK];
    dims[0] = x->rank != SB_RANK_UNKNOWN ? x->dims[0] : sb_infer_fresh(infer, 0, 0);
    dims[1] = w->rank != SB_RANK_UNKNOWN
                  ? sb_dim_multiply(infer->scope, w->dims[1], sb_dim_constant(infer->scope, params->group))
                  : sb_infer_fresh(infer, 0, 1);
    for (int axis = 0; axis < rank - 2; axis++) {
        sb_dim kernel;
        SB_TRY(sb_conv_kernel_extent(infer, &params->window, w, axis, &kernel));
        if (x->rank != SB_RANK_UNKNOWN && kernel != NULL)
            SB_TRY(transpose_extent(infer, axis, x->dims[axis + 2], kernel, &dims[axis + 2]));
        else
            dims[axis + 2] = sb_infer_fresh(infer, 0, axis + 2);
    }
    sb_fact_set_tensor(&infer->outputs[0], x->dtype, rank, dims);
    return SB_OK;
}

static sb_status infer_transpose(sb_infer *infer) {
    const sb_fact *x, *w;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &x));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(x->dtype), &w));
    SB_TRY(infer_shape(infer, x, w));
    const sb_fact *y = &infer->outputs[0];
    return sb_conv_infer_bias(infer, 2, x->dtype, y->rank != SB_RANK_UNKNOWN ? y->dims[1] : NULL);
}

/* ---- reference ---- */

typedef struct transposition {
    const sb_tensor *x, *w, *bias;
    sb_tensor *y;
    int axes;
    int64_t groups, group_inputs, group_outputs, positions, taps;
    sb_window_axis axis[SB_WINDOW_AXES];
    char *packed; /* per group [taps][group_inputs][group_outputs] */
    char *left;   /* the inputs that reach one output position */
    char *right;  /* their weights */
    void *sums;
} transposition;

/* What is cut from the beginning of the full output: output o of tap t comes from input
 * (o + begin - t * dilation) / stride. */
static int64_t cut_at_beginning(const sb_conv_transpose_params *params, int axis, int64_t in, int64_t kernel,
                                int64_t out) {
    const sb_window *window = &params->window;
    if (!params->has_output_shape && !same_padding(window))
        return window->begin[axis];
    int64_t full =
        (in - 1) * window->strides[axis] + params->output_padding[axis] + (kernel - 1) * window->dilations[axis] + 1;
    int64_t cut = full > out ? full - out : 0;
    return window->auto_pad == SB_PAD_SAME_UPPER ? cut / 2 : cut - cut / 2;
}

void sb_conv_transpose_axes(const sb_conv_transpose_params *params, const sb_tensor *x, const sb_tensor *w,
                            const int64_t *y_dims, sb_window_axis *axes) {
    for (int i = 0; i < x->rank - 2; i++) {
        int64_t in = x->dims[i + 2], kernel = w->dims[i + 2], out = y_dims[i + 2];
        axes[i] = (sb_window_axis){.in = in,
                                   .out = out,
                                   .kernel = kernel,
                                   .stride = params->window.strides[i],
                                   .dilation = params->window.dilations[i],
                                   .begin = cut_at_beginning(params, i, in, kernel, out)};
    }
}

static void describe(const sb_conv_transpose_params *params, transposition *t) {
    t->axes = t->x->rank - 2;
    t->groups = params->group;
    t->group_inputs = t->w->dims[0] / params->group;
    t->group_outputs = t->w->dims[1];
    t->positions = 1;
    t->taps = t->group_inputs == 0 ? 0 : 1;
    sb_conv_transpose_axes(params, t->x, t->w, t->y->dims, t->axis);
    for (int i = 0; i < t->axes; i++) {
        t->positions *= t->axis[i].out;
        t->taps *= t->taps == 0 ? 0 : t->axis[i].kernel;
    }
}

static void pack_weights(const transposition *t) {
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK], size = (int64_t)sb_dtype_size(t->w->dtype);
    for (int i = 0; i < t->axes; i++) {
        dims[i] = t->axis[i].kernel;
        strides[i] = t->w->strides[i + 2];
    }
    dims[t->axes] = t->group_inputs;
    strides[t->axes] = t->w->strides[0];
    dims[t->axes + 1] = t->group_outputs;
    strides[t->axes + 1] = t->w->strides[1];
    int64_t group_elements = t->taps * t->group_inputs * t->group_outputs;
    for (int64_t g = 0; g < t->groups && t->taps != 0; g++)
        sb_gather_dense((size_t)size, t->axes + 2, dims, strides,
                        t->w->data + g * t->group_inputs * t->w->strides[0] * size,
                        t->packed + g * group_elements * size);
}

/* The offset in x of the input element that reaches `position` through `tap`; false if none does. */
static bool reaching_input(const transposition *t, const int64_t *position, const int64_t *tap, int64_t *offset) {
    *offset = 0;
    for (int i = 0; i < t->axes; i++) {
        const sb_window_axis *axis = &t->axis[i];
        int64_t at = position[i] + axis->begin - tap[i] * axis->dilation;
        if (at < 0 || at % axis->stride != 0 || at / axis->stride >= axis->in)
            return false;
        *offset += at / axis->stride * t->x->strides[i + 2];
    }
    return true;
}

/* Gathers what reaches one output position; returns the number of products. */
static int64_t gather(const transposition *t, const char *x, const char *weights, const int64_t *position) {
    size_t size = sb_dtype_size(t->x->dtype);
    int64_t tap[SB_WINDOW_AXES] = {0}, kernel[SB_WINDOW_AXES], hits = 0, offset;
    size_t left_bytes = (size_t)t->group_inputs * size;
    size_t right_bytes = left_bytes * (size_t)t->group_outputs;
    for (int i = 0; i < t->axes; i++)
        kernel[i] = t->axis[i].kernel;
    do {
        if (reaching_input(t, position, tap, &offset)) {
            sb_gather_dense(size, 1, &t->group_inputs, &t->x->strides[1], x + offset * (int64_t)size,
                            t->left + (size_t)hits * left_bytes);
            memcpy(t->right + (size_t)hits * right_bytes, weights, right_bytes);
            hits++;
        }
        weights += right_bytes;
    } while (sb_window_next(t->axes, tap, kernel));
    return hits * t->group_inputs;
}

static void transpose_group(const transposition *t, int64_t batch, int64_t group) {
    sb_dtype dtype = t->x->dtype;
    int64_t size = (int64_t)sb_dtype_size(dtype), outputs = t->group_outputs;
    size_t sum_bytes = (size_t)outputs * sb_dtype_size(sb_contraction_accumulator(dtype));
    const char *x = t->x->data + (batch * t->x->strides[0] + group * t->group_inputs * t->x->strides[1]) * size;
    const char *weights = t->packed + group * t->taps * t->group_inputs * outputs * size;
    int64_t bias_stride = t->bias != NULL ? t->bias->strides[0] : 0;
    const char *bias = t->bias != NULL ? t->bias->data + group * outputs * bias_stride * size : NULL;
    char *y = t->y->data + (batch * t->groups + group) * outputs * t->positions * size;
    int64_t position[SB_WINDOW_AXES] = {0}, extents[SB_WINDOW_AXES];
    for (int i = 0; i < t->axes; i++)
        extents[i] = t->axis[i].out;
    do {
        int64_t products = t->taps != 0 ? gather(t, x, weights, position) : 0;
        memset(t->sums, 0, sum_bytes);
        sb_contract_row(dtype, outputs, products, t->left, 1, t->right, outputs, 1, t->sums);
        sb_conv_add_bias(dtype, outputs, t->sums, bias, bias_stride);
        sb_contraction_store(dtype, outputs, t->sums, y, t->positions);
        y += size;
    } while (sb_window_next(t->axes, position, extents));
}

static sb_status eval_transpose(sb_call *call) {
    transposition t = {.x = sb_call_input(call, 0), .w = sb_call_input(call, 1), .bias = sb_call_input(call, 2)};
    SB_TRY(sb_call_output(call, 0, &t.y));
    if (sb_tensor_elements(t.y) == 0)
        return SB_OK;
    describe(call->node->params, &t);
    size_t size = sb_dtype_size(t.x->dtype), products = (size_t)(t.taps * t.group_inputs);
    size_t weights = products * (size_t)t.group_outputs;
    t.packed = sb_allocate_array((size_t)t.groups * weights, size);
    t.left = sb_allocate_array(products, size);
    t.right = sb_allocate_array(weights, size);
    t.sums = sb_allocate_array((size_t)t.group_outputs, sizeof(uint64_t));
    sb_status status = SB_OK;
    if (t.packed == NULL || t.left == NULL || t.right == NULL || t.sums == NULL)
        status = sb_fail_memory(call->error, ((size_t)t.groups + 1) * weights * size);
    if (status == SB_OK)
        pack_weights(&t);
    for (int64_t n = 0; n < t.x->dims[0] && status == SB_OK; n++) {
        for (int64_t g = 0; g < t.groups; g++)
            transpose_group(&t, n, g);
    }
    sb_free(t.packed);
    sb_free(t.left);
    sb_free(t.right);
    sb_free(t.sums);
    return status;
}

const sb_op sb_ops_convolution_transpose[] = {
    {.name = "ConvTranspose",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_conv_transpose_params),
     .prepare = prepare_transpose,
     .infer = infer_transpose,
     .eval = eval_transpose},
    {0},
};
