/* ConvTranspose in f32; f16 and bf16 are conv_transpose16.c's. Outputs are channels-last in memory. */
#include <stdio.h>

#include "cpu/channels_last.h"
#include "cpu/contraction/conv_transpose.h"
#include "cpu/contraction/conv_transpose16.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "ops/convolution_transpose.h"

static bool supports_transpose(const sb_kernel_query *query, char *why) {
    const sb_fact *x = query->inputs[0];
    if (x->dtype != SB_F32 && x->dtype != SB_F16 && x->dtype != SB_BF16) {
        snprintf(why, SB_WHY_BYTES, "transposed convolutions of %s have no kernel", sb_dtype_name(x->dtype));
        return false;
    }
    if (x->rank < 3 || x->rank > SB_CONV_RANK + 2) {
        snprintf(why, SB_WHY_BYTES, "the transposed convolution has no spatial axis, or more than %d", SB_CONV_RANK);
        return false;
    }
    return true;
}

/* Whether the phases of the last axis are taken together. It must follow from the node and the weights alone, as packed
 * weights depend on it. */
static bool folds(const sb_conv_transpose_params *params, const sb_tensor *w) {
    const sb_window *window = &params->window;
    const int last = w->rank - 3;
    const bool same = window->auto_pad == SB_PAD_SAME_UPPER || window->auto_pad == SB_PAD_SAME_LOWER;
    return params->group == 1 && !params->has_output_shape && params->output_padding[last] == 0 &&
           w->dims[last + 2] == window->strides[last] && window->dilations[last] == 1 &&
           (same || (window->begin[last] == 0 && window->end[last] == 0));
}

/* What depends on the node and the weights alone. */
static sb_conv_transpose_shape shape_of_weights(const sb_conv_transpose_params *params, const sb_tensor *w) {
    sb_conv_transpose_shape shape = {.rank = w->rank - 2,
                                     .batch = 1,
                                     .groups = params->group,
                                     .input_channels = w->dims[0],
                                     .output_channels = w->dims[1] * params->group,
                                     .x_channel_stride = 1,
                                     .folds = folds(params, w)};
    for (int d = 0; d < shape.rank; d++) {
        shape.input[d] = shape.output[d] = 1;
        shape.kernel[d] = w->dims[d + 2];
        shape.stride[d] = params->window.strides[d];
        shape.dilation[d] = params->window.dilations[d];
    }
    return shape;
}

static sb_conv_transpose_shape shape_of(const sb_conv_transpose_params *params, const sb_tensor *x, const sb_tensor *w,
                                        const sb_tensor *y) {
    sb_conv_transpose_shape shape = shape_of_weights(params, w);
    sb_window_axis axes[SB_WINDOW_AXES];
    sb_conv_transpose_axes(params, x, w, y->dims, axes);
    shape.batch = x->dims[0];
    shape.x_batch_stride = x->strides[0];
    shape.x_channel_stride = x->strides[1];
    shape.y_batch_stride = y->strides[0];
    for (int d = 0; d < shape.rank; d++) {
        shape.input[d] = axes[d].in;
        shape.output[d] = axes[d].out;
        shape.begin[d] = axes[d].begin;
        shape.x_stride[d] = x->strides[d + 2];
        shape.y_stride[d] = y->strides[d + 2];
    }
    return shape;
}

/* -- Weights ----------------------------------------------------------------------------------- */

/* A number for everything beside the extents on which packed weights depend; false where it needs more bits. */
static bool layout_of(sb_isa isa, const sb_conv_transpose_shape *shape, uint64_t *layout) {
    enum { AXIS_BITS = 7, GROUP_BITS = 19, AXES = 3 };
    *layout = (uint64_t)isa | (uint64_t)shape->folds << 2 | (uint64_t)shape->groups << 3;
    if (shape->rank > AXES || shape->groups >= 1 << GROUP_BITS)
        return false;
    for (int d = 0; d < shape->rank; d++) {
        const int place = 3 + GROUP_BITS + 2 * AXIS_BITS * d;
        if (shape->stride[d] >= 1 << AXIS_BITS || shape->dilation[d] >= 1 << AXIS_BITS)
            return false;
        *layout |= (uint64_t)shape->stride[d] << place | (uint64_t)shape->dilation[d] << (place + AXIS_BITS);
    }
    return true;
}

static sb_status plan_weights(sb_isa isa, const sb_node *node, const sb_tensor *w, sb_conv_transpose_plan *plan,
                              sb_error *error) {
    const sb_conv_transpose_shape shape = shape_of_weights(node->params, w);
    return sb_conv_transpose_f32_plan(sb_gemm_f32_kernels(isa), &shape, plan, error);
}

static sb_status derives_transpose(const sb_kernel_query *query, sb_derived_form *form, sb_error *error) {
    const sb_fact *fact = query->inputs[1];
    sb_tensor w = {.dtype = fact->dtype, .rank = fact->rank};
    sb_conv_transpose_plan plan;
    if (fact->dtype != SB_F32 || !sb_fact_is_concrete(fact, w.dims) || sb_tensor_elements(&w) == 0)
        return SB_OK;
    const sb_conv_transpose_shape shape = shape_of_weights(query->node->params, &w);
    if (!layout_of(query->isa, &shape, &form->layout))
        return SB_OK;
    if (plan_weights(query->isa, query->node, &w, &plan, error) != SB_OK)
        return sb_fail_memory(error, SIZE_MAX);
    form->input = 1;
    form->bytes = plan.packed_bytes;
    return SB_OK;
}

static void pack(const sb_conv_transpose_plan *plan, const sb_tensor *w, void *packed) {
    sb_conv_transpose_f32_pack(plan, (const float *)(const void *)w->data, w->strides[0], w->strides[1], w->strides + 2,
                               packed);
}

static sb_status derive_transpose(sb_call *call, const sb_tensor *from, void *derived) {
    sb_conv_transpose_plan plan;
    SB_TRY(plan_weights(call->isa, call->node, from, &plan, call->error));
    pack(&plan, from, derived);
    return SB_OK;
}

/* -- Running ----------------------------------------------------------------------------------- */

typedef struct transposition {
    const float *x, *packed, *bias;
    float *y;
    int64_t pixels, parts; /* of a line, that a piece takes; pieces of a line */
    sb_conv_transpose_plan plan;
} transposition;

static void run_piece(void *context, int64_t index, void *workspace) {
    const transposition *t = context;
    const int64_t line = index / t->parts, first = index % t->parts * t->pixels, all = t->plan.line_pixels;
    sb_conv_transpose_f32_run(&t->plan, t->x, t->packed, t->bias, t->y, line, line + 1, first,
                              first + t->pixels < all ? first + t->pixels : all, workspace);
}

/* The bias as a gapless vector; folded, one behind the other for each pixel that an input pixel makes. */
static sb_status find_bias(sb_call *call, const sb_tensor *bias, transposition *t) {
    const int64_t channels = t->plan.shape.output_channels;
    const int64_t copies = t->plan.shape.folds ? t->plan.shape.stride[t->plan.shape.rank - 1] : 1;
    if (bias == NULL)
        return SB_OK;
    const float *from = (const float *)(const void *)bias->data;
    if (copies == 1 && bias->strides[0] == 1) {
        t->bias = from;
        return SB_OK;
    }
    size_t bytes;
    void *memory;
    if (__builtin_mul_overflow((size_t)copies * sizeof(float), (size_t)channels, &bytes))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the bias's size overflows");
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    for (int64_t i = 0; i < copies * channels; i++)
        ((float *)memory)[i] = from[i % channels * bias->strides[0]];
    t->bias = memory;
    return SB_OK;
}

static sb_status find_weights(sb_call *call, const sb_tensor *w, transposition *t) {
    void *memory;
    t->packed = call->derived;
    if (call->derived != NULL)
        return SB_OK;
    SB_TRY(sb_call_workspace(call, t->plan.packed_bytes, &memory));
    t->packed = memory;
    pack(&t->plan, w, memory);
    return SB_OK;
}

static sb_status launch_transpose(sb_call *call) {
    const sb_tensor *x = sb_call_input(call, 0), *w = sb_call_input(call, 1);
    transposition t = {0};
    sb_tensor *y;
    if (x->dtype != SB_F32)
        return sb_conv_transpose16_run(call);
    SB_TRY(sb_channels_last_output(call, x->rank, &y));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    const sb_conv_transpose_shape shape = shape_of(call->node->params, x, w, y);
    SB_TRY(sb_conv_transpose_f32_plan(sb_gemm_f32_kernels(call->isa), &shape, &t.plan, call->error));
    t.x = (const float *)(const void *)x->data;
    t.y = (float *)(void *)y->data;
    SB_TRY(find_bias(call, sb_call_input(call, 2), &t));
    SB_TRY(find_weights(call, w, &t));
    /* Whole lines, unless there are fewer than threads. */
    const int64_t threads = sb_workers_threads(call->workers), wanted = 4 * threads;
    t.parts = t.plan.lines >= wanted ? 1 : (wanted + t.plan.lines - 1) / t.plan.lines;
    t.pixels = (t.plan.line_pixels + t.parts - 1) / t.parts;
    t.parts = (t.plan.line_pixels + t.pixels - 1) / t.pixels;
    return sb_pieces_run(call, t.plan.lines * t.parts, t.plan.workspace_bytes, run_piece, &t);
}

const sb_kernel sb_cpu_kernels_convolution_transpose[] = {
    {.op = "ConvTranspose",
     .name = "conv-transpose-channels-last",
     .supports = supports_transpose,
     .derives = derives_transpose,
     .derive = derive_transpose,
     .launch = launch_transpose},
    {0},
};
