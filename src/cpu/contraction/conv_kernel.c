/* Conv in f32, f16 and bf16, alone or with element-wise nodes behind it. Outputs are channels-last in memory. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/channels_last.h"
#include "cpu/contraction/conv.h"
#include "cpu/contraction/conv16.h"
#include "cpu/contraction/fused_epilogue.h"
#include "cpu/contraction/gemm_block.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "ops/contraction.h"
#include "ops/convolution.h"
#include "ops/real.h"

/* What is prepared once per node: the nodes behind. */
typedef struct conv_state {
    sb_contraction_node contraction;
    sb_tile_program *program;
} conv_state;

static bool supports_conv(const sb_kernel_query *query, char *why) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    if (contraction.node->op->domain[0] != '\0' || strcmp(contraction.node->op->name, "Conv") != 0) {
        snprintf(why, SB_WHY_BYTES, "the fused nodes do not begin with Conv");
        return false;
    }
    const sb_fact *x = sb_contraction_node_fact(&contraction, query, 0);
    if (x->dtype != SB_F32 && x->dtype != SB_F16 && x->dtype != SB_BF16) {
        snprintf(why, SB_WHY_BYTES, "convolutions of %s have no kernel", sb_dtype_name(x->dtype));
        return false;
    }
    if (x->rank > SB_CONV_RANK + 2) {
        snprintf(why, SB_WHY_BYTES, "the convolution has more than %d spatial axes", SB_CONV_RANK);
        return false;
    }
    return sb_contraction_node_supports_epilogue(&contraction, query, x->dtype, why);
}

/* ---- shapes and weights ---- */

/* The extents and attributes that f32 kernels take; strides of x and y are for the caller to fill in. */
static sb_conv_shape shape_f32(const sb_conv_extents *extents) {
    sb_conv_shape shape = {.rank = extents->axes,
                           .batch = extents->batch,
                           .groups = extents->groups,
                           .input_channels = extents->groups * extents->group_inputs,
                           .output_channels = extents->groups * extents->group_outputs};
    for (int i = 0; i < extents->axes; i++) {
        const sb_window_axis *axis = &extents->axis[i];
        shape.input[i] = axis->in;
        shape.output[i] = axis->out;
        shape.kernel[i] = axis->kernel;
        shape.stride[i] = axis->stride;
        shape.dilation[i] = axis->dilation;
        shape.pad[i] = axis->begin;
    }
    return shape;
}

/* Packed weights only depend on the weights and the groups: a plan for one pixel packs for all. */
static sb_status plan_weights(sb_isa isa, const sb_conv_params *params, const sb_tensor *w, sb_conv_plan *plan,
                              sb_error *error) {
    sb_conv_shape shape = {.rank = w->rank - 2,
                           .batch = 1,
                           .groups = params->group,
                           .input_channels = w->dims[1] * params->group,
                           .output_channels = w->dims[0],
                           .x_channel_stride = 1,
                           .y_channel_stride = 1};
    for (int i = 0; i < shape.rank; i++) {
        shape.input[i] = shape.output[i] = shape.stride[i] = shape.dilation[i] = 1;
        shape.kernel[i] = w->dims[i + 2];
    }
    return sb_conv_f32_plan(sb_gemm_f32_kernels(isa), &shape, plan, error);
}

static size_t weight_bytes(sb_isa isa, const sb_conv_params *params, const sb_tensor *w, sb_error *error) {
    sb_conv_plan plan;
    if (w->dtype == SB_F32)
        return plan_weights(isa, params, w, &plan, error) == SB_OK ? plan.packed_bytes : 0;
    return sb_conv16_packed_bytes(params, w);
}

static sb_status pack_weights(sb_isa isa, const sb_conv_params *params, const sb_tensor *w, void *packed,
                              sb_error *error) {
    if (w->dtype == SB_F32) {
        sb_conv_plan plan;
        SB_TRY(plan_weights(isa, params, w, &plan, error));
        sb_conv_f32_pack(&plan, (const float *)(const void *)w->data, w->strides[0], w->strides[1], w->strides + 2,
                         packed);
        return SB_OK;
    }
    return sb_conv16_pack(params, w, packed, error);
}

static void release_conv(void *context) {
    conv_state *state = context;
    if (state == NULL)
        return;
    sb_tile_program_destroy(state->program);
    sb_free(state);
}

static sb_status derives_conv(const sb_kernel_query *query, sb_derived_form *form, sb_error *error) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    const sb_conv_params *params = contraction.node->params;
    const sb_fact *fact = sb_contraction_node_fact(&contraction, query, 1);
    sb_tensor w = {.dtype = fact->dtype, .rank = fact->rank};
    if (!sb_fact_is_concrete(fact, w.dims) || sb_tensor_elements(&w) == 0)
        return SB_OK;
    form->input = sb_contraction_node_input(&contraction, 1);
    form->bytes = weight_bytes(query->isa, params, &w, error);
    form->layout = 4 * (uint64_t)params->group + (w.dtype == SB_F32 ? (uint64_t)query->isa : 0);
    return form->bytes != 0 ? SB_OK : sb_fail_memory(error, SIZE_MAX);
}

static sb_status derive_conv(sb_call *call, const sb_tensor *from, void *derived) {
    sb_contraction_node contraction = sb_contraction_node_of(call->node);
    return pack_weights(call->isa, contraction.node->params, from, derived, call->error);
}

static sb_status prepare_conv(const sb_kernel_query *query, void **result, sb_error *error) {
    conv_state *state = sb_allocate_array(1, sizeof *state);
    if (state == NULL)
        return sb_fail_memory(error, sizeof *state);
    state->contraction = sb_contraction_node_of(query->node);
    sb_status status = sb_contraction_node_program(&state->contraction, query, &state->program, error);
    if (status != SB_OK) {
        release_conv(state);
        return status;
    }
    *result = state;
    return SB_OK;
}

/* ---- running ---- */

typedef struct convolution {
    sb_isa isa;
    sb_conv_extents extents;
    sb_tensor *x;
    sb_tensor *y;
    const void *packed;
    const float *bias; /* gapless, or NULL */
    sb_fused_epilogue fused;
    sb_gemm_split split;
    sb_conv_plan plan; /* f32 */
} convolution;

static void append_bias(const float *bias, sb_epilogue *epilogue) {
    if (bias != NULL)
        epilogue->steps[epilogue->count++] = (sb_epilogue_step){.kind = SB_EPILOGUE_ADD_COLUMNS, .vector = bias};
}

static void run_rectangle_f32(void *context, int64_t index, void *workspace) {
    const convolution *conv = context;
    int64_t m0, m1, n0, n1;
    sb_fused_epilogue fused = conv->fused;
    sb_epilogue epilogue = {0};
    append_bias(conv->bias, &epilogue);
    sb_fused_epilogue_append(&fused, &epilogue);
    sb_gemm_split_rectangle(&conv->split, index, &m0, &m1, &n0, &n1);
    sb_conv_f32_run(&conv->plan, (const float *)(const void *)conv->x->data, conv->packed,
                    (float *)(void *)conv->y->data, &epilogue, m0, m1, n0, n1, workspace);
}

/* Leaves axes out that have one position and one tap. An image of height 1, as exporters write a signal, has one row of
 * pixels, which strips and threads would share as a whole. */
static void drop_single_axes(sb_conv_shape *shape) {
    int kept = 0;
    for (int i = 0; i < shape->rank; i++) {
        const bool single =
            shape->input[i] == 1 && shape->output[i] == 1 && shape->kernel[i] == 1 && shape->pad[i] == 0;
        const bool needed = kept == 0 && i == shape->rank - 1;
        if (single && !needed)
            continue;
        shape->input[kept] = shape->input[i];
        shape->output[kept] = shape->output[i];
        shape->kernel[kept] = shape->kernel[i];
        shape->stride[kept] = shape->stride[i];
        shape->dilation[kept] = shape->dilation[i];
        shape->pad[kept] = shape->pad[i];
        shape->x_stride[kept] = shape->x_stride[i];
        shape->y_stride[kept++] = shape->y_stride[i];
    }
    shape->rank = kept;
}

static sb_status run_f32(sb_call *call, convolution *conv, sb_tile_program *program) {
    sb_conv_shape shape = shape_f32(&conv->extents);
    const int64_t *x_strides = conv->x->strides, *y_strides = conv->y->strides;
    shape.x_batch_stride = x_strides[0];
    shape.x_channel_stride = x_strides[1];
    shape.y_batch_stride = y_strides[0];
    shape.y_channel_stride = y_strides[1];
    for (int i = 0; i < shape.rank; i++) {
        shape.x_stride[i] = x_strides[i + 2];
        shape.y_stride[i] = y_strides[i + 2];
    }
    drop_single_axes(&shape);
    SB_TRY(sb_conv_f32_plan(sb_gemm_f32_kernels(call->isa), &shape, &conv->plan, call->error));
    SB_TRY(sb_fused_epilogue_start(call, program, conv->y, 1, sb_conv_f32_in_one_pass(&conv->plan), &conv->fused));
    conv->split = sb_conv_f32_split(&conv->plan, sb_workers_threads(call->workers));
    return sb_pieces_run(call, conv->split.m_parts * conv->split.n_parts, conv->plan.workspace_bytes, run_rectangle_f32,
                         conv);
}

static sb_status run_16(sb_call *call, convolution *conv, const sb_conv_params *params, const sb_tensor *w) {
    const sb_conv16 convolution = {.extents = &conv->extents,
                                   .x = conv->x,
                                   .y = conv->y,
                                   .packed = conv->packed,
                                   .packed_bytes = sb_conv16_packed_bytes(params, w),
                                   .bias = conv->bias,
                                   .fused = &conv->fused};
    return sb_conv16_run(call, &convolution);
}

/* The bias as a gapless vector of f32. */
static sb_status find_bias(sb_call *call, const sb_tensor *bias, const float **vector) {
    *vector = NULL;
    if (bias == NULL)
        return SB_OK;
    if (bias->dtype == SB_F32 && bias->strides[0] == 1) {
        *vector = (const float *)(const void *)bias->data;
        return SB_OK;
    }
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)bias->dims[0] * sizeof(float), &memory));
    for (int64_t i = 0; i < bias->dims[0]; i++)
        ((float *)memory)[i] = sb_real_load_f32(bias->dtype, bias->data, i * bias->strides[0]);
    *vector = memory;
    return SB_OK;
}

static sb_status find_weights(sb_call *call, const conv_state *state, const sb_tensor *w, const void **packed) {
    const sb_conv_params *params = state->contraction.node->params;
    *packed = call->derived;
    if (call->derived != NULL)
        return SB_OK;
    size_t bytes = weight_bytes(call->isa, params, w, call->error);
    void *memory;
    if (bytes == 0)
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the packed weights' size overflows");
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    *packed = memory;
    return pack_weights(call->isa, params, w, memory, call->error);
}

static sb_status launch_conv(sb_call *call) {
    const conv_state *state = call->state;
    const sb_tensor *w = sb_contraction_node_tensor(&state->contraction, call, 1);
    convolution conv = {.isa = call->isa, .x = sb_contraction_node_tensor(&state->contraction, call, 0)};
    SB_TRY(sb_channels_last_output(call, conv.x->rank, &conv.y));
    if (sb_tensor_elements(conv.y) == 0)
        return SB_OK;
    sb_conv_extents_of(state->contraction.node->params, conv.x, w, conv.y->dims, &conv.extents);
    SB_TRY(find_bias(call, sb_contraction_node_tensor(&state->contraction, call, 2), &conv.bias));
    SB_TRY(find_weights(call, state, w, &conv.packed));
    if (conv.x->dtype == SB_F32)
        return run_f32(call, &conv, state->program);
    SB_TRY(sb_fused_epilogue_start(call, state->program, conv.y, 1, false, &conv.fused));
    return run_16(call, &conv, state->contraction.node->params, w);
}

/* The sum's other operand, unless chains are so long that they pause in y. */
static int in_place_conv(const sb_kernel_query *query) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    const sb_fact *w = sb_contraction_node_fact(&contraction, query, 1);
    int64_t dims[SB_MAX_RANK], taps = 1;
    if (w->dtype != SB_F32 || !sb_fact_is_concrete(w, dims))
        return -1;
    for (int d = 2; d < w->rank; d++)
        taps *= dims[d];
    return sb_gemm_in_one_pass(taps, dims[1]) ? sb_contraction_node_addend(&contraction, query) : -1;
}

#define CONV_KERNEL(op_name, op_domain, kernel_name)                                                                   \
    {                                                                                                                  \
        .op = op_name, .domain = op_domain, .name = kernel_name, .supports = supports_conv, .prepare = prepare_conv,   \
        .release = release_conv, .in_place = in_place_conv, .derives = derives_conv, .derive = derive_conv,            \
        .launch = launch_conv                                                                                          \
    }

const sb_kernel sb_cpu_kernels_conv[] = {
    CONV_KERNEL("Conv", "", "conv-channels-last"),
    CONV_KERNEL("Fused", "samebit", "conv-fused-channels-last"),
    {0},
};
