/* DeformConv on images: a convolution whose taps are moved by offsets that are inputs.
 *
 * The tap of kernel position k at output position o lies at p = (o * stride - begin + k * dilation) + offset along each
 * axis. With p0 = floor(p) and f = p - p0, its value is
 *
 *     v = ((w00 * x00 + w01 * x01) + w10 * x10) + w11 * x11,  w01 = (1 - f_y) * f_x, and so on,
 *
 * where corners outside the image are left out of the sum, which starts from +0; it is +0 when p is not in (-1, extent)
 * or is NaN; times the mask, if there is one. Each operation is rounded once, in f32 (f64 for f64), and v to f16 or
 * bf16. These values take the input's place in the chain of Conv; then the bias. */
#include "ops/convolution_deformable.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/deform_values.h"
#include "ops/list.h"
#include "ops/real.h"

static sb_status prepare_deform(sb_node *node, sb_error *error) {
    sb_deform_params *params = node->params;
    SB_TRY(sb_conv_prepare(node, error));
    SB_TRY(sb_node_int(node, "offset_group", 1, &params->offset_group, error));
    if (params->offset_group < 1 || params->offset_group > INT32_MAX)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): offset_group is %lld; it must be at least 1",
                       node->name, node->op->name, (long long)params->offset_group);
    return SB_OK;
}

/* Checks that input `index`, if it is there, is [batch, per_tap * taps * offset groups, positions…]. */
static sb_status check_per_tap(const sb_infer *infer, int index, sb_dtype dtype, int64_t per_tap, const sb_fact *w) {
    const sb_deform_params *params = infer->node->params;
    const sb_fact *fact, *y = &infer->outputs[0];
    int64_t have, want;
    if (sb_infer_input(infer, index) == NULL)
        return SB_OK;
    SB_TRY(sb_infer_require(infer, index, SB_SET(dtype), &fact));
    if (fact->rank == SB_RANK_UNKNOWN || y->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    bool fits = fact->rank == 4;
    for (int d = 0; d < 4 && fits; d++) {
        if (d != 1)
            fits = !sb_dim_is_constant(fact->dims[d], &have) || !sb_dim_is_constant(y->dims[d], &want) || have == want;
    }
    int64_t height, width;
    if (fits && w->rank == 4 && sb_dim_is_constant(w->dims[2], &height) && sb_dim_is_constant(w->dims[3], &width) &&
        sb_dim_is_constant(fact->dims[1], &have))
        fits = have == per_tap * params->offset_group * height * width;
    if (!fits)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "input %d must hold %lld numbers per offset group, kernel position and "
                             "output position",
                             index, (long long)per_tap);
    return SB_OK;
}

static sb_status infer_deform(sb_infer *infer) {
    const sb_deform_params *params = infer->node->params;
    const sb_fact *x, *w;
    int64_t channels;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &x));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(x->dtype), &w));
    SB_TRY(sb_conv_infer(infer, x, w, x->dtype));
    const sb_fact *y = &infer->outputs[0];
    if (y->rank != SB_RANK_UNKNOWN && y->rank != 4)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "%d spatial axes; deformable convolutions have two",
                             y->rank - 2);
    if (x->rank == 4 && sb_dim_is_constant(x->dims[1], &channels) && channels % params->offset_group != 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%lld channels do not divide into %lld offset groups",
                             (long long)channels, (long long)params->offset_group);
    SB_TRY(check_per_tap(infer, 2, x->dtype, 2, w));
    SB_TRY(check_per_tap(infer, 4, x->dtype, 1, w));
    return sb_conv_infer_bias(infer, 3, x->dtype, y->rank == 4 ? y->dims[1] : NULL);
}

typedef struct deformation {
    sb_conv_extents extents;
    int64_t channels_per_offset; /* channels that share an offset */
    sb_dtype dtype;
    int64_t size;
    const sb_tensor *x, *offset, *bias, *mask;
    sb_tensor *y;
    char *packed, *patch;
    void *sums;
} deformation;

/* Element (batch, channel, y, x) of a tensor of rank 4, in elements. */
static int64_t offset_of(const sb_tensor *tensor, int64_t n, int64_t c, int64_t y, int64_t x) {
    return n * tensor->strides[0] + c * tensor->strides[1] + y * tensor->strides[2] + x * tensor->strides[3];
}

#define LOAD_F64(dtype, data, index) (((const double *)(const void *)(data))[index])
#define STORE_F64(dtype, data, index, value) (((double *)(void *)(data))[index] = (value))

/* Element `index` of the patch: channel `c` of the image through tap (ky, kx) at (oy, ox). */
#define DEFINE_SAMPLE(suffix, type, LOAD, STORE)                                                                       \
    static void sample_##suffix(const deformation *d, int64_t n, int64_t c, int64_t ky, int64_t kx, int64_t oy,        \
                                int64_t ox, int64_t index) {                                                           \
        const sb_window_axis *axis = d->extents.axis;                                                                  \
        sb_deform_image image = {                                                                                      \
            d->dtype,         d->x->data,      offset_of(d->x, n, c, 0, 0), axis[0].in, axis[1].in,                    \
            d->x->strides[2], d->x->strides[3]};                                                                       \
        int64_t tap = (c / d->channels_per_offset * axis[0].kernel + ky) * axis[1].kernel + kx;                        \
        type py = (type)(oy * axis[0].stride - axis[0].begin + ky * axis[0].dilation);                                 \
        type px = (type)(ox * axis[1].stride - axis[1].begin + kx * axis[1].dilation);                                 \
        py = py + LOAD(d->dtype, d->offset->data, offset_of(d->offset, n, 2 * tap, oy, ox));                           \
        px = px + LOAD(d->dtype, d->offset->data, offset_of(d->offset, n, 2 * tap + 1, oy, ox));                       \
        type value = sb_deform_sample_##suffix(&image, py, px);                                                        \
        if (d->mask != NULL)                                                                                           \
            value = value * LOAD(d->dtype, d->mask->data, offset_of(d->mask, n, tap, oy, ox));                         \
        STORE(d->dtype, d->patch, index, value);                                                                       \
    }

DEFINE_SAMPLE(f32, float, sb_real_load_f32, sb_real_store_f32)
DEFINE_SAMPLE(f64, double, LOAD_F64, STORE_F64)

static void gather(const deformation *d, int64_t n, int64_t group, int64_t oy, int64_t ox) {
    const sb_conv_extents *e = &d->extents;
    int64_t index = 0;
    for (int64_t ky = 0; ky < e->axis[0].kernel; ky++) {
        for (int64_t kx = 0; kx < e->axis[1].kernel; kx++) {
            for (int64_t c = 0; c < e->group_inputs; c++, index++) {
                int64_t channel = group * e->group_inputs + c;
                if (d->dtype == SB_F64)
                    sample_f64(d, n, channel, ky, kx, oy, ox, index);
                else
                    sample_f32(d, n, channel, ky, kx, oy, ox, index);
            }
        }
    }
}

static void deform_group(const deformation *d, int64_t n, int64_t group) {
    const sb_conv_extents *e = &d->extents;
    int64_t outputs = e->group_outputs, first = group * outputs, k = e->taps * e->group_inputs;
    size_t sum_bytes = (size_t)outputs * sb_dtype_size(sb_contraction_accumulator(d->dtype));
    const char *weights = d->packed + group * k * outputs * d->size;
    int64_t stride = d->bias != NULL ? d->bias->strides[0] : 0;
    const char *bias = d->bias != NULL ? d->bias->data + first * stride * d->size : NULL;
    char *y = d->y->data + (n * e->groups + group) * outputs * e->positions * d->size;
    for (int64_t position = 0; position < e->positions; position++) {
        if (k != 0)
            gather(d, n, group, position / e->axis[1].out, position % e->axis[1].out);
        memset(d->sums, 0, sum_bytes);
        sb_contract_row(d->dtype, outputs, k, d->patch, 1, weights, outputs, 1, d->sums);
        sb_conv_add_bias(d->dtype, outputs, d->sums, bias, stride);
        sb_contraction_store(d->dtype, outputs, d->sums, y + position * d->size, e->positions);
    }
}

static sb_status eval_deform(sb_call *call) {
    const sb_deform_params *params = call->node->params;
    const sb_tensor *w = sb_call_input(call, 1);
    deformation d = {.x = sb_call_input(call, 0),
                     .offset = sb_call_input(call, 2),
                     .bias = sb_call_input(call, 3),
                     .mask = sb_call_input(call, 4)};
    SB_TRY(sb_call_output(call, 0, &d.y));
    if (sb_tensor_elements(d.y) == 0)
        return SB_OK;
    sb_conv_extents_of(&params->conv, d.x, w, d.y->dims, &d.extents);
    d.dtype = d.x->dtype;
    d.size = (int64_t)sb_dtype_size(d.dtype);
    d.channels_per_offset = d.x->dims[1] / params->offset_group;
    size_t k = (size_t)(d.extents.taps * d.extents.group_inputs);
    size_t weights = k * (size_t)(d.extents.groups * d.extents.group_outputs);
    d.packed = sb_allocate_array(weights, (size_t)d.size);
    d.patch = sb_allocate_array(k, (size_t)d.size);
    d.sums = sb_allocate_array((size_t)d.extents.group_outputs, sizeof(uint64_t));
    sb_status status = SB_OK;
    if (d.packed == NULL || d.patch == NULL || d.sums == NULL)
        status = sb_fail_memory(call->error, (weights + k) * (size_t)d.size);
    if (status == SB_OK && k != 0)
        sb_conv_pack_reference(&d.extents, (size_t)d.size, (sb_conv_operand){w->data, w->strides}, d.packed);
    for (int64_t n = 0; n < d.extents.batch && status == SB_OK; n++) {
        for (int64_t group = 0; group < d.extents.groups; group++)
            deform_group(&d, n, group);
    }
    sb_free(d.packed);
    sb_free(d.patch);
    sb_free(d.sums);
    return status;
}

const sb_op sb_ops_convolution_deformable[] = {
    {.name = "DeformConv",
     .domain = "",
     .least_inputs = 3,
     .most_inputs = 5,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_deform_params),
     .prepare = prepare_deform,
     .infer = infer_deform,
     .eval = eval_deform},
    {0},
};
