/* Resize and Upsample.
 *
 * Coordinates and weights are found per axis in f64 (resize_axis.c). `nearest` moves elements.
 * Otherwise the axes are resized one after the other, the last one first; each output element of a
 * pass is one chain acc = fma(weight, element, acc) over the taps in ascending order from +0, in
 * f32 (weights rounded to f32; f64 for f64), without rounding to a narrower dtype between the
 * passes. Integers are computed in f32 and cut toward zero at the end. */
#include "ops/resize.h"

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"

/* ---- attributes ---- */

static sb_status choose(const sb_node *node, const char *attribute, const char *otherwise, const char *const *names,
                        int count, int *chosen, sb_error *error) {
    const char *name;
    SB_TRY(sb_node_string(node, attribute, otherwise, &name, error));
    for (*chosen = 0; *chosen < count; ++*chosen) {
        if (strcmp(name, names[*chosen]) == 0)
            return SB_OK;
    }
    return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): %s is %s, which is none of its values", node->name,
                   node->op->name, attribute, name);
}

static sb_status choose_rule(sb_node *node, sb_error *error) {
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
    static const char *const transforms[] = {"half_pixel",        "half_pixel_symmetric", "pytorch_half_pixel",
                                             "align_corners",     "asymmetric",           "tf_half_pixel_for_nn",
                                             "tf_crop_and_resize"};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    sb_resize_params *params = node->params;
    bool simple = strcmp(node->op->name, "Upsample") == 0 || node->version < 11;
    int mode, transform = SB_RESIZE_ASYMMETRIC, how = SB_RESIZE_SIMPLE;
    SB_TRY(choose(node, "mode", "nearest", modes, 4, &mode, error));
    if (!simple) {
        SB_TRY(choose(node, "coordinate_transformation_mode", "half_pixel", transforms, 7, &transform, error));
        SB_TRY(choose(node, "nearest_mode", "round_prefer_floor", nearest, 4, &how, error));
    }
    params->rule.mode = mode == 3 ? SB_RESIZE_LINEAR : (sb_resize_mode)mode;
    params->rule.transform = (sb_resize_transform)transform;
    params->rule.nearest = (sb_resize_nearest)how;
    return SB_OK;
}

static sb_status prepare_common(sb_node *node, sb_error *error) {
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    sb_resize_params *params = node->params;
    int64_t exclude, antialias;
    int policy;
    SB_TRY(choose_rule(node, error));
    SB_TRY(choose(node, "keep_aspect_ratio_policy", "stretch", policies, 3, &policy, error));
    params->policy = (sb_resize_policy)policy;
    SB_TRY(sb_node_float(node, "cubic_coeff_a", -0.75f, &params->rule.cubic_a, error));
    SB_TRY(sb_node_float(node, "extrapolation_value", 0.0f, &params->extrapolation, error));
    SB_TRY(sb_node_int(node, "exclude_outside", 0, &exclude, error));
    SB_TRY(sb_node_int(node, "antialias", 0, &antialias, error));
    params->rule.exclude_outside = exclude != 0;
    params->rule.antialias = antialias != 0;
    if (params->rule.antialias && params->rule.mode == SB_RESIZE_NEAREST)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: antialias needs the mode linear or cubic, not nearest",
                       node->name);
    return sb_axis_list_read(node, &params->axes, error);
}

static sb_status prepare_resize(sb_node *node, sb_error *error) {
    sb_resize_params *params = node->params;
    bool old = node->version < 11;
    params->roi_input = old ? -1 : 1;
    params->scales_input = old ? 1 : 2;
    params->sizes_input = old ? -1 : 3;
    return prepare_common(node, error);
}

static sb_status prepare_upsample(sb_node *node, sb_error *error) {
    sb_resize_params *params = node->params;
    params->roi_input = params->sizes_input = -1;
    params->scales_input = node->input_count - node->capture_count > 1 ? 1 : -1;
    SB_TRY(prepare_common(node, error));
    SB_TRY(sb_node_floats(node, "scales", &params->scale_count, &params->scales, error));
    if (params->scales_input < 0 && (params->scales == NULL || params->scale_count > SB_MAX_RANK))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: Upsample needs its scales", node->name);
    return SB_OK;
}

/* ---- sizes ---- */

/* What the node asks for, in the order of its axes. */
typedef struct resize_request {
    int count;
    int axes[SB_MAX_RANK];
    bool by_size;
    float scales[SB_MAX_RANK];
    int64_t sizes[SB_MAX_RANK];
} resize_request;

/* floor(extent · scale), the product rounded to f32 (as the standard's own shape inference does)
 * where f32 holds every integer. */
static int64_t scaled_extent(int64_t extent, float scale) {
    double product = (double)extent * (double)scale;
    if (product < 16777216.0)
        product = (double)(float)product;
    return product < 9007199254740992.0 ? (int64_t)__builtin_floor(product) : INT64_MAX;
}

/* Sets out, scale and width of the axes. False when a size or scale is not positive enough to mean anything. */
static bool resolve(const sb_resize_params *params, const resize_request *request, const int64_t *dims,
                    sb_resize_axis *axes) {
    double common = 0.0;
    for (int i = 0; i < request->count; i++) {
        sb_resize_axis *axis = &axes[request->axes[i]];
        axis->in = dims[request->axes[i]];
        axis->out = request->by_size ? request->sizes[i] : scaled_extent(axis->in, request->scales[i]);
        axis->scale = request->by_size ? (double)axis->out / (double)axis->in : (double)request->scales[i];
        axis->width = request->by_size ? (double)axis->out : axis->scale * (double)axis->in;
        if (!(axis->scale > 0.0 || axis->in == 0 || axis->out == 0) || axis->out < 0 || axis->out == INT64_MAX ||
            (axis->in == 0 && axis->out != 0))
            return false;
        bool better = params->policy == SB_RESIZE_NOT_LARGER ? axis->scale < common : axis->scale > common;
        common = i == 0 || better ? axis->scale : common;
    }
    for (int i = 0; i < request->count && request->by_size && params->policy != SB_RESIZE_STRETCH; i++) {
        sb_resize_axis *axis = &axes[request->axes[i]];
        axis->scale = common;
        axis->width = common * (double)axis->in;
        if (!(axis->width < 9007199254740992.0))
            return false;
        axis->out = (int64_t)__builtin_floor(axis->width + 0.5);
    }
    return true;
}

/* The axes that are resized; all of them without the attribute. */
static bool request_axes(const sb_resize_params *params, int rank, resize_request *request) {
    request->count = params->axes.given ? params->axes.count : rank;
    unsigned seen = 0;
    for (int i = 0; i < request->count; i++) {
        int64_t axis = params->axes.given ? params->axes.axes[i] : i;
        axis = axis < 0 ? axis + rank : axis;
        if (axis < 0 || axis >= rank || (seen >> axis & 1) != 0)
            return false;
        seen |= 1u << axis;
        request->axes[i] = (int)axis;
    }
    return true;
}

/* ---- inference ---- */

/* An extent that is not a number yet, times a scale that is: only whole scales and powers of 1/2
 * have a formula. */
static sb_dim scaled_formula(sb_infer *infer, int axis, sb_dim extent, float scale) {
    if (scale >= 1.0f && scale < 1048576.0f && scale == (float)(int)scale)
        return sb_dim_multiply(infer->scope, extent, sb_dim_constant(infer->scope, (int)scale));
    if (scale == 0.5f || scale == 0.25f || scale == 0.125f)
        return sb_dim_floor_divide(infer->scope, extent, sb_dim_constant(infer->scope, (int)(1.0f / scale)));
    return sb_infer_fresh(infer, 0, axis);
}

static bool constant_scales(const sb_infer *infer, resize_request *request, bool *wrong) {
    const sb_resize_params *params = infer->node->params;
    if (params->scales_input < 0) {
        *wrong = params->scale_count != request->count;
        for (int i = 0; i < request->count && !*wrong; i++)
            request->scales[i] = params->scales[i];
        return true;
    }
    const sb_fact *scales = sb_infer_input(infer, params->scales_input);
    if (scales == NULL || scales->constant == NULL)
        return false;
    const sb_tensor *tensor = scales->constant;
    *wrong = tensor->rank != 1 || tensor->dims[0] != request->count;
    for (int i = 0; i < request->count && !*wrong; i++)
        request->scales[i] = (float)sb_number_load(tensor->dtype, tensor->data, i * tensor->strides[0]);
    return true;
}

/* Whether input `index` is there and not an empty list (which stands for "not given"). */
static bool is_given(const sb_infer *infer, int index) {
    const sb_fact *fact = index >= 0 ? sb_infer_input(infer, index) : NULL;
    int64_t length = 1;
    if (fact == NULL || fact->kind != SB_KIND_TENSOR)
        return false;
    return !(fact->rank == 1 && sb_dim_is_constant(fact->dims[0], &length) && length == 0);
}

static sb_status infer_extents(sb_infer *infer, const sb_fact *input, resize_request *request, sb_dim *dims) {
    const sb_resize_params *params = infer->node->params;
    sb_dim sizes[SB_MAX_RANK];
    int64_t numbers[SB_MAX_RANK];
    bool known = false, wrong = false;
    request->by_size = is_given(infer, params->sizes_input);
    if (request->by_size) {
        int count;
        SB_TRY(sb_infer_integers(infer, params->sizes_input, SB_MAX_RANK, sizes, &count, &known));
        wrong = count >= 0 && count != request->count;
        for (int i = 0; i < request->count && known && !wrong; i++)
            known = sb_dim_is_constant(sizes[i], &request->sizes[i]) || params->policy == SB_RESIZE_STRETCH;
    } else {
        known = constant_scales(infer, request, &wrong);
    }
    if (wrong)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the sizes or scales are not one for each of %d axes",
                             request->count);
    bool concrete = known && sb_fact_is_concrete(input, numbers);
    for (int i = 0; i < request->count && request->by_size && concrete; i++)
        concrete = sb_dim_is_constant(sizes[i], NULL);
    sb_resize_axis axes[SB_MAX_RANK] = {{0}};
    if (concrete && !resolve(params, request, numbers, axes))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the sizes or scales are not positive, or too large");
    for (int i = 0; i < request->count; i++) {
        int axis = request->axes[i];
        if (concrete)
            dims[axis] = sb_dim_constant(infer->scope, axes[axis].out);
        else if (!known || (request->by_size && params->policy != SB_RESIZE_STRETCH))
            dims[axis] = sb_infer_fresh(infer, 0, axis);
        else
            dims[axis] = request->by_size ? sizes[i] : scaled_formula(infer, axis, dims[axis], request->scales[i]);
    }
    return SB_OK;
}

static sb_status infer_resize(sb_infer *infer) {
    const sb_resize_params *params = infer->node->params;
    const sb_fact *input;
    resize_request request = {0};
    sb_dim dims[SB_MAX_RANK];
    SB_TRY(sb_infer_require(infer, 0, params->rule.mode == SB_RESIZE_NEAREST ? SB_SET_ANY : SB_SET_NUMBER, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (!request_axes(params, input->rank, &request))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the axes do not fit an input of rank %d", input->rank);
    memcpy(dims, input->dims, sizeof dims);
    SB_TRY(infer_extents(infer, input, &request, dims));
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return SB_OK;
}

/* ---- evaluation ---- */

static sb_status read_floats(const sb_call *call, int index, int expected, double *values) {
    const sb_tensor *tensor = sb_call_input(call, index);
    if (tensor->rank != 1 || tensor->dims[0] != expected || !sb_dtype_is_float(tensor->dtype))
        return sb_call_fail(call, SB_ERROR_SHAPE, "input %d must list %d floats", index, expected);
    for (int i = 0; i < expected; i++)
        values[i] = sb_number_load(tensor->dtype, tensor->data, i * tensor->strides[0]);
    return SB_OK;
}

static sb_status read_request(const sb_call *call, const sb_tensor *input, resize_request *request,
                              sb_resize_axis *axes) {
    const sb_resize_params *params = call->node->params;
    double values[2 * SB_MAX_RANK];
    if (!request_axes(params, input->rank, request))
        return sb_call_fail(call, SB_ERROR_SHAPE, "the axes do not fit an input of rank %d", input->rank);
    const sb_tensor *sizes = params->sizes_input >= 0 ? sb_call_input(call, params->sizes_input) : NULL;
    request->by_size = sizes != NULL && sb_tensor_elements(sizes) != 0;
    if (request->by_size) {
        int count;
        SB_TRY(sb_move_integers(call, params->sizes_input, SB_MAX_RANK, request->sizes, &count));
        if (count != request->count)
            return sb_call_fail(call, SB_ERROR_SHAPE, "%d sizes for %d axes", count, request->count);
    } else if (params->scales_input < 0) {
        memcpy(request->scales, params->scales, (size_t)request->count * sizeof *params->scales);
    } else {
        if (sb_call_input(call, params->scales_input) == NULL)
            return sb_call_fail(call, SB_ERROR_INVALID_MODEL, "neither scales nor sizes are given");
        SB_TRY(read_floats(call, params->scales_input, request->count, values));
        for (int i = 0; i < request->count; i++)
            request->scales[i] = (float)values[i];
    }
    if (!resolve(params, request, input->dims, axes))
        return sb_call_fail(call, SB_ERROR_SHAPE, "the sizes or scales are not positive, or too large");
    if (params->rule.transform != SB_RESIZE_TF_CROP_AND_RESIZE)
        return SB_OK;
    if (params->roi_input < 0 || sb_call_input(call, params->roi_input) == NULL)
        return sb_call_fail(call, SB_ERROR_INVALID_MODEL, "tf_crop_and_resize needs a region of interest");
    SB_TRY(read_floats(call, params->roi_input, 2 * request->count, values));
    for (int i = 0; i < request->count; i++) {
        axes[request->axes[i]].crop_start = values[i];
        axes[request->axes[i]].crop_end = values[i + request->count];
    }
    return SB_OK;
}

/* [outer, in, inner] to [outer, out, inner]. */
#define DEFINE_PASS(suffix, type)                                                                                      \
    static void pass_##suffix(const sb_resize_axis *axis, int64_t outer, int64_t inner, const type *from, type *to) {  \
        for (int64_t o = 0; o < outer; o++, from += axis->in * inner) {                                                \
            for (int64_t x = 0; x < axis->out; x++, to += inner) {                                                     \
                const double *weights = axis->weights + x * axis->taps;                                                \
                for (int64_t i = 0; i < inner; i++)                                                                    \
                    to[i] = (type)0;                                                                                   \
                for (int t = 0; t < axis->taps; t++) {                                                                 \
                    const type *line = from + sb_resize_inside(axis->first[x] + t, axis->in) * inner;                  \
                    for (int64_t i = 0; i < inner; i++)                                                                \
                        to[i] = sb_fma_##suffix((type)weights[t], line[i], to[i]);                                     \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_PASS(f32, float)
DEFINE_PASS(f64, double)

bool sb_resize_is_identity(const sb_resize_axis *axis, const sb_resize_rule *rule) {
    return axis->in == axis->out && axis->scale == 1.0 && rule->transform != SB_RESIZE_TF_CROP_AND_RESIZE;
}

/* All passes. `current` is a block of elements in f32 or f64 that this function frees; *result is the caller's. */
static sb_status run_passes(const sb_call *call, const sb_resize_axis *axes, int rank, int64_t *dims, bool wide,
                            void *current, void **result) {
    const sb_resize_params *params = call->node->params;
    for (int d = rank - 1; d >= 0; d--) {
        if (axes[d].first == NULL || sb_resize_is_identity(&axes[d], &params->rule))
            continue;
        int64_t outer = sb_move_product(dims, 0, d), inner = sb_move_product(dims, d + 1, rank);
        int64_t elements;
        dims[d] = axes[d].out;
        sb_status status = sb_count_elements(wide ? SB_F64 : SB_F32, rank, dims, &elements, call->error);
        void *next = NULL;
        if (status == SB_OK) {
            next = sb_allocate_array((size_t)elements, wide ? sizeof(double) : sizeof(float));
            if (next == NULL)
                status = sb_fail_memory(call->error, (size_t)elements * sizeof(double));
        }
        if (status == SB_OK && wide)
            pass_f64(&axes[d], outer, inner, current, next);
        else if (status == SB_OK)
            pass_f32(&axes[d], outer, inner, current, next);
        sb_free(current);
        if (status != SB_OK)
            return status;
        current = next;
    }
    *result = current;
    return SB_OK;
}

/* Writes the extrapolation value wherever an axis looks outside. */
static void fill_outside(const sb_resize_params *params, const sb_resize_axis *axes, sb_tensor *output) {
    int64_t index[SB_MAX_RANK] = {0}, element = 0;
    if (params->rule.transform != SB_RESIZE_TF_CROP_AND_RESIZE)
        return;
    do {
        bool outside = false;
        for (int d = 0; d < output->rank; d++)
            outside = outside || (axes[d].outside != NULL && axes[d].outside[index[d]]);
        if (outside)
            sb_number_store(output->dtype, output->data, element, params->extrapolation);
        element++;
    } while (sb_move_next(output->rank, output->dims, index));
}

static sb_status interpolate(sb_call *call, const sb_resize_axis *axes, sb_tensor *output) {
    const sb_dtype dtype = output->dtype;
    bool wide = dtype == SB_F64;
    sb_tensor *input;
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t elements = sb_tensor_elements(input), dims[SB_MAX_RANK];
    memcpy(dims, input->dims, sizeof dims);
    void *numbers = sb_allocate_array((size_t)elements, wide ? sizeof(double) : sizeof(float)), *result = NULL;
    sb_status status = numbers == NULL ? sb_fail_memory(call->error, (size_t)elements * 8) : SB_OK;
    for (int64_t i = 0; i < elements && status == SB_OK; i++) {
        double value = sb_number_load(dtype, input->data, i);
        if (wide)
            ((double *)numbers)[i] = value;
        else
            ((float *)numbers)[i] = (float)value;
    }
    if (status == SB_OK)
        status = run_passes(call, axes, input->rank, dims, wide, numbers, &result);
    elements = sb_tensor_elements(output);
    for (int64_t i = 0; i < elements && status == SB_OK; i++)
        sb_number_store(dtype, output->data, i, wide ? ((double *)result)[i] : ((float *)result)[i]);
    sb_free(result);
    sb_tensor_release(input);
    return status;
}

static void pick_nearest(const sb_resize_axis *axes, const sb_tensor *input, sb_tensor *output) {
    int64_t index[SB_MAX_RANK] = {0};
    int rank = output->rank, last = rank - 1;
    size_t size = sb_dtype_size(input->dtype);
    char *to = output->data;
    do {
        const char *from = input->data;
        for (int d = 0; d < last; d++)
            from += (axes[d].first != NULL ? axes[d].first[index[d]] : index[d]) * input->strides[d] * (int64_t)size;
        int64_t count = rank > 0 ? output->dims[last] : 1;
        for (int64_t i = 0; i < count; i++, to += size) {
            int64_t at = rank > 0 && axes[last].first != NULL ? axes[last].first[i] : i;
            sb_move_element(to, from + (rank > 0 ? at * input->strides[last] * (int64_t)size : 0), size);
        }
    } while (sb_move_next(last, output->dims, index));
}

sb_status sb_resize_read(const sb_call *call, const sb_tensor *input, sb_resize_axis *axes, uint32_t *resized,
                         int64_t *dims) {
    resize_request request = {0};
    *resized = 0;
    SB_TRY(read_request(call, input, &request, axes));
    memcpy(dims, input->dims, (size_t)input->rank * sizeof *dims);
    for (int i = 0; i < request.count; i++) {
        *resized |= UINT32_C(1) << request.axes[i];
        dims[request.axes[i]] = axes[request.axes[i]].out;
    }
    return SB_OK;
}

static sb_status eval_resize(sb_call *call) {
    const sb_resize_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_resize_axis axes[SB_MAX_RANK] = {{0}};
    uint32_t resized;
    int64_t dims[SB_MAX_RANK];
    SB_TRY(sb_resize_read(call, input, axes, &resized, dims));
    sb_tensor *output = NULL;
    SB_TRY(sb_move_output(call, 0, input->dtype, input->rank, dims, &output));
    sb_status status = SB_OK;
    bool empty = sb_tensor_elements(output) == 0;
    for (int d = 0; d < input->rank && status == SB_OK && !empty; d++) {
        if ((resized >> d & 1) != 0)
            status = sb_resize_plan(&axes[d], &params->rule, call->error);
    }
    if (status == SB_OK && !empty) {
        if (params->rule.mode == SB_RESIZE_NEAREST)
            pick_nearest(axes, input, output);
        else
            status = interpolate(call, axes, output);
        if (status == SB_OK)
            fill_outside(params, axes, output);
    }
    for (int d = 0; d < input->rank; d++)
        sb_resize_clear(&axes[d]);
    return sb_move_finish(call, 0, output, status);
}

const sb_op sb_ops_resize[] = {
    {.name = "Resize",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 4,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_resize_params),
     .prepare = prepare_resize,
     .infer = infer_resize,
     .eval = eval_resize},
    {.name = "Upsample",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_resize_params),
     .prepare = prepare_upsample,
     .infer = infer_resize,
     .eval = eval_resize},
    {0},
};
