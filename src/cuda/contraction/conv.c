/* Conv, alone or with element-wise nodes behind it. */
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/contraction/contractions.h"
#include "cuda/contraction/conv.h"
#include "cuda/contraction/conv_depthwise.h"
#include "cuda/contraction/tiles.h"
#include "cuda/driver/device.h"
#include "cuda/list.h"

static bool supports_conv(const sb_kernel_query *query, char *why) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    if (contraction.node->op->domain[0] != '\0' || strcmp(contraction.node->op->name, "Conv") != 0)
        return false;
    return sb_cuda_contraction_supports(query, &contraction, why);
}

/* ---- what all kernels take ---- */

typedef sb_cuda_conv convolution;

static const float *floats(const sb_tensor *tensor) {
    return (const float *)(const void *)tensor->data;
}

/* The nodes behind, with channels as rows and positions as columns; and the ranges of all but the
 * weights, which may be packed. */
static sb_status start_epilogue(sb_call *call, const convolution *conv, sb_cuda_epilogue *epilogue,
                                sb_cuda_work *work) {
    sb_cuda_epilogue_role roles[SB_MAX_RANK];
    for (int d = 0; d < conv->y->rank; d++)
        roles[d] = d == 0 ? SB_CUDA_EPILOGUE_BATCH : d == 1 ? SB_CUDA_EPILOGUE_ROW : SB_CUDA_EPILOGUE_COLUMN;
    sb_cuda_work_reads(work, conv->bias);
    sb_cuda_work_reads(work, conv->x);
    sb_cuda_work_writes(work, conv->y);
    return sb_cuda_epilogue_start(call, call->state, conv->y, roles, epilogue, work);
}

/* What happens behind the chains of kernels with tiles. */
static sb_status start_output(sb_call *call, const convolution *conv, sb_cuda_contraction *base, sb_cuda_work *work) {
    base->y = (float *)(void *)conv->y->data;
    base->y_row = conv->extents.positions;
    base->y_column = 1;
    base->vectors = conv->extents.positions % 4 == 0 && (uintptr_t)base->y % 16 == 0;
    base->alpha = base->beta = 1;
    base->k = conv->k;
    if (conv->bias != NULL) {
        base->addend = floats(conv->bias);
        base->addend_row = conv->bias->strides[0];
    }
    SB_TRY(start_epilogue(call, conv, &base->epilogue, work));
    base->plain = base->addend == NULL && base->epilogue.code.count == 0;
    return SB_OK;
}

/* ---- 1x1 kernels on dense positions: a matrix product ---- */

/* Samples with fewer positions than this fill tiles better when they are one row of positions. */
#define LONG_ROW 1500

static bool is_product(const convolution *conv) {
    const sb_conv_extents *extents = &conv->extents;
    bool dense = extents->groups == 1 && extents->taps == 1;
    int64_t behind = 1;
    for (int i = extents->axes - 1; i >= 0 && dense; i--) {
        const sb_window_axis *axis = &extents->axis[i];
        dense = axis->stride == 1 && axis->begin == 0 && axis->in == axis->out &&
                (axis->in == 1 || conv->x->strides[i + 2] == behind * conv->x->strides[extents->axes + 1]);
        behind *= axis->in;
    }
    return dense && extents->axes > 0 && (extents->batch == 1 || extents->positions >= LONG_ROW);
}

static sb_status launch_product(sb_call *call, const convolution *conv) {
    const sb_conv_extents *extents = &conv->extents;
    sb_cuda_matmul matmul = {.rank = 1, .dims = {extents->batch}, .b_steps = {conv->x->strides[0]}};
    sb_cuda_contraction *base = &matmul.base;
    sb_cuda_work work = {.parameters = &matmul, .parameter_bytes = sizeof matmul};
    SB_TRY(start_output(call, conv, base, &work));
    sb_cuda_work_reads(&work, conv->w);
    base->batches = extents->batch;
    base->m = extents->group_outputs;
    base->n = extents->positions;
    matmul.y_batch = base->m * base->n;
    base->a = (sb_cuda_operand){.data = floats(conv->w), .step = conv->w->strides[0], .k_step = conv->w->strides[1]};
    /* The position's step is that of the innermost axis that has more than one. */
    int inner = extents->axes - 1;
    while (inner > 0 && extents->axis[inner].in == 1)
        inner--;
    base->b =
        (sb_cuda_operand){.data = floats(conv->x), .step = conv->x->strides[inner + 2], .k_step = conv->x->strides[1]};
    const sb_cuda_tile *tile =
        sb_cuda_tile_choose(base->batches, base->m, base->n, 0, sb_cuda_call_device(call)->multiprocessors);
    base->a.fetch = sb_cuda_tile_fetch(&base->a, tile->m, base->m, 0, NULL);
    base->b.fetch = sb_cuda_tile_fetch(&base->b, tile->n, base->n, 1, matmul.b_steps);
    return sb_cuda_tile_launch(call, &work, "gemm_f32", "sb_cuda_matmul_f32_", tile, base);
}

/* ---- up to three axes ---- */

static bool fits(int64_t value) {
    return value >= 0 && value < INT32_MAX / 2;
}

/* Whether positions, taps and all that is computed of them are 32-bit numbers. */
static bool is_small(const convolution *conv) {
    const sb_conv_extents *extents = &conv->extents;
    int64_t columns;
    bool small = extents->axes <= SB_CUDA_CONV_AXES && fits(conv->k) && fits(extents->group_inputs) &&
                 !__builtin_mul_overflow(extents->batch, extents->positions, &columns) && fits(columns);
    for (int i = 0; i < extents->axes && small; i++) {
        const sb_window_axis *axis = &extents->axis[i];
        int64_t reach;
        small = fits(axis->in) && fits(axis->begin < 0 ? -axis->begin : axis->begin) &&
                !__builtin_mul_overflow(axis->out, axis->stride, &reach) && fits(reach) &&
                !__builtin_mul_overflow(axis->kernel, axis->dilation, &reach) && fits(reach);
    }
    return small;
}

static sb_cuda_divisor divisor(int64_t value) {
    return sb_cuda_divisor_of(value > 0 ? (uint32_t)value : 1);
}

static void fill_convolution(const convolution *conv, sb_cuda_convolution *to) {
    const sb_conv_extents *extents = &conv->extents;
    const sb_tensor *x = conv->x, *w = conv->w;
    to->base.batches = extents->groups;
    to->base.m = extents->group_outputs;
    to->base.n = extents->batch * extents->positions;
    to->x = floats(x);
    to->x_sample = x->strides[0];
    to->x_channel = x->strides[1];
    to->x_group = extents->group_inputs * x->strides[1];
    to->y_sample = extents->groups * extents->group_outputs * extents->positions;
    to->channels = extents->group_inputs > 0 ? (int32_t)extents->group_inputs : 1;
    to->chain = divisor(to->channels);
    to->positions = divisor(extents->positions);
    for (int d = 0; d < SB_CUDA_CONV_AXES; d++) {
        int i = d - (SB_CUDA_CONV_AXES - extents->axes);
        sb_window_axis none = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
        const sb_window_axis *axis = i >= 0 ? &extents->axis[i] : &none;
        to->in[d] = (int32_t)axis->in;
        to->stride[d] = (int32_t)axis->stride;
        to->dilation[d] = (int32_t)axis->dilation;
        to->begin[d] = (int32_t)axis->begin;
        to->out[d] = divisor(axis->out);
        to->kernel[d] = divisor(axis->kernel);
        to->x_steps[d] = i >= 0 ? x->strides[i + 2] : 0;
        to->w_steps[d] = i >= 0 ? w->strides[i + 2] : 0;
    }
    to->base.a = (sb_cuda_operand){.data = floats(w), .step = w->strides[0], .k_step = w->strides[1]};
    to->a_group = extents->group_outputs * w->strides[0];
}

/* Groups in which tiles would be mostly empty. */
static bool is_narrow(int64_t groups, int64_t group_inputs, int64_t group_outputs) {
    return groups > 1 && (group_inputs == 1 || group_outputs <= 4);
}

/* ---- packed weights: in the order of the chain, outputs side by side ---- */

/* How weights of these extents are packed; without addresses and strides. */
static sb_cuda_pack_weights packing_of(int64_t groups, const sb_tensor *w) {
    sb_cuda_pack_weights pack = {.groups = groups, .outputs = w->dims[0] / groups, .channels = w->dims[1], .taps = 1};
    for (int d = 0; d < SB_CUDA_CONV_AXES; d++) {
        int i = d - (SB_CUDA_CONV_AXES - (w->rank - 2));
        pack.kernel[d] = i >= 0 ? w->dims[i + 2] : 1;
        pack.taps *= pack.kernel[d];
    }
    pack.pitch = (pack.outputs + 3) / 4 * 4;
    pack.output_squares = (pack.outputs + 31) / 32;
    pack.input_squares = (pack.taps * pack.channels + 31) / 32;
    return pack;
}

/* Whether kernels with tiles take such weights packed, whatever they are multiplied by. */
static bool is_packed(int64_t groups, const sb_tensor *w) {
    if (w->dtype != SB_F32 || w->rank > SB_CUDA_CONV_AXES + 2 || sb_tensor_elements(w) == 0 ||
        is_narrow(groups, w->dims[1], w->dims[0] / groups))
        return false;
    return packing_of(groups, w).taps > 1;
}

/* Their size; false when it overflows. */
static bool packed_bytes(const sb_cuda_pack_weights *pack, size_t *bytes) {
    int64_t length;
    return !__builtin_mul_overflow(pack->taps * pack->channels, pack->groups, &length) &&
           !__builtin_mul_overflow(length, pack->pitch * (int64_t)sizeof(float), bytes);
}

static sb_status launch_packing(sb_call *call, int64_t groups, const sb_tensor *w, void *packed, size_t bytes) {
    sb_cuda_pack_weights pack = packing_of(groups, w);
    sb_cuda_work work = {.apart = true,
                         .module = "conv_direct_f32",
                         .kernel = "sb_cuda_conv_f32_pack",
                         .parameters = &pack,
                         .parameter_bytes = sizeof pack,
                         .threads = 256};
    pack.w = floats(w);
    pack.w_output = w->strides[0];
    pack.w_channel = w->strides[1];
    for (int d = 0; d < SB_CUDA_CONV_AXES; d++) {
        int i = d - (SB_CUDA_CONV_AXES - (w->rank - 2));
        pack.w_steps[d] = i >= 0 ? w->strides[i + 2] : 0;
    }
    pack.packed = packed;
    work.blocks = sb_cuda_call_blocks(call, pack.groups * pack.output_squares * pack.input_squares);
    sb_cuda_work_reads(&work, w);
    sb_cuda_work_touches(&work, packed, bytes, true);
    return sb_cuda_call_launch(call, &work);
}

static sb_status derives_conv(const sb_kernel_query *query, sb_derived_form *form, sb_error *error) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    const sb_conv_params *params = contraction.node->params;
    const sb_fact *fact = sb_contraction_node_fact(&contraction, query, 1);
    sb_tensor w = {.dtype = fact->dtype, .rank = fact->rank};
    if (!sb_fact_is_concrete(fact, w.dims))
        return SB_OK;
    bool is_f32 = is_packed(params->group, &w), fits;
    if (is_f32) {
        sb_cuda_pack_weights pack = packing_of(params->group, &w);
        fits = packed_bytes(&pack, &form->bytes);
    } else {
        fits = sb_cuda_conv16_packed_bytes(&w, &form->bytes);
    }
    if (!fits)
        return sb_fail_memory(error, SIZE_MAX);
    if (form->bytes == 0)
        return SB_OK;
    form->input = sb_contraction_node_input(&contraction, 1);
    form->layout = is_f32 ? (uint64_t)params->group : 0;
    return SB_OK;
}

static sb_status derive_conv(sb_call *call, const sb_tensor *from, void *derived) {
    sb_contraction_node contraction = sb_contraction_node_of(call->node);
    int64_t groups = ((const sb_conv_params *)contraction.node->params)->group;
    size_t bytes;
    if (from->dtype != SB_F32)
        return sb_cuda_conv16_pack(call, from, derived);
    sb_cuda_pack_weights pack = packing_of(groups, from);
    if (!packed_bytes(&pack, &bytes))
        return sb_fail_memory(call->error, SIZE_MAX);
    return launch_packing(call, groups, from, derived, bytes);
}

/* The packed weights: those made ahead, or, where weights come with the call, in a workspace. */
static sb_status find_packed(sb_call *call, const convolution *conv, sb_cuda_convolution *to, sb_cuda_work *work) {
    const sb_conv_extents *extents = &conv->extents;
    sb_cuda_pack_weights pack = packing_of(extents->groups, conv->w);
    const void *packed = call->derived;
    size_t bytes;
    if (!packed_bytes(&pack, &bytes))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the packed weights' size overflows");
    if (packed == NULL) {
        void *memory;
        SB_TRY(sb_call_workspace(call, bytes, &memory));
        SB_TRY(launch_packing(call, extents->groups, conv->w, memory, bytes));
        packed = memory;
    }
    to->base.a = (sb_cuda_operand){.data = packed, .step = 1, .k_step = pack.pitch, .fetch = SB_CUDA_FETCH_VECTORS};
    to->a_group = extents->taps * extents->group_inputs * pack.pitch;
    sb_cuda_work_touches(work, packed, bytes, false);
    return SB_OK;
}

/* Instructions that an element of a patch takes: where runs of channels share a kernel position (patch.cuh), and where
 * each has to find its own. Counted, as they stand in the source. */
#define PATCH_OF_RUNS 4
#define PATCH_OF_SINGLES 16

static sb_status launch_tiles(sb_call *call, const convolution *conv) {
    sb_cuda_convolution to = {0};
    sb_cuda_work work = {.parameters = &to, .parameter_bytes = sizeof to};
    fill_convolution(conv, &to);
    SB_TRY(start_output(call, conv, &to.base, &work));
    int patch = to.channels % 16 == 0 ? PATCH_OF_RUNS : PATCH_OF_SINGLES;
    const sb_cuda_tile *tile =
        sb_cuda_tile_choose(to.base.batches, to.base.m, to.base.n, patch, sb_cuda_call_device(call)->multiprocessors);
    bool packs = is_packed(conv->extents.groups, conv->w);
    if (packs)
        SB_TRY(find_packed(call, conv, &to, &work));
    else
        sb_cuda_work_reads(&work, conv->w);
    if (!packs || tile->m < 4)
        to.base.a.fetch = sb_cuda_tile_fetch(&to.base.a, tile->m, to.base.m, 1, &to.a_group);
    return sb_cuda_tile_launch(call, &work, "conv_f32", "sb_cuda_conv_f32_", tile, &to.base);
}

/* Groups of one channel whose tiles a block takes; `*taken` says whether it does. */
static sb_status launch_depthwise(sb_call *call, const convolution *conv, bool *taken) {
    sb_cuda_depthwise to = {0};
    sb_cuda_work work = {.apart = true,
                         .module = "conv_depthwise_f32",
                         .kernel = "sb_cuda_conv_f32_depthwise",
                         .parameters = &to,
                         .parameter_bytes = sizeof to,
                         .threads = SB_CUDA_DEPTHWISE_THREADS};
    fill_convolution(conv, &to.conv);
    to.conv.base.k = conv->k;
    *taken = sb_cuda_depthwise_plan(&to, sb_cuda_call_device(call)->multiprocessors);
    if (!*taken)
        return SB_OK;
    SB_TRY(start_output(call, conv, &to.conv.base, &work));
    sb_cuda_work_reads(&work, conv->w);
    work.shared_bytes = sb_cuda_depthwise_shared(&to);
    work.blocks = (unsigned)(to.items < INT32_MAX ? to.items : INT32_MAX);
    return sb_cuda_call_launch(call, &work);
}

#define THREADS 128

static sb_status launch_narrow(sb_call *call, const convolution *conv) {
    const sb_conv_extents *extents = &conv->extents;
    sb_cuda_convolution to = {0};
    sb_cuda_work work = {.apart = true,
                         .module = "conv_direct_f32",
                         .kernel = "sb_cuda_conv_f32_narrow",
                         .parameters = &to,
                         .parameter_bytes = sizeof to,
                         .threads = THREADS};
    fill_convolution(conv, &to);
    SB_TRY(start_output(call, conv, &to.base, &work));
    sb_cuda_work_reads(&work, conv->w);
    to.quads = (extents->positions + 3) / 4;
    int64_t threads = extents->batch * extents->groups * extents->group_outputs * to.quads;
    work.blocks = sb_cuda_call_blocks(call, (threads + THREADS - 1) / THREADS);
    return sb_cuda_call_launch(call, &work);
}

/* ---- any dtype and number of axes ---- */

static void fill_any(const convolution *conv, sb_cuda_any_convolution *to) {
    const sb_conv_extents *extents = &conv->extents;
    const sb_tensor *x = conv->x, *w = conv->w;
    *to = (sb_cuda_any_convolution){
        .elements = sb_tensor_elements(conv->y),
        .outputs = extents->groups * extents->group_outputs,
        .positions = extents->positions,
        .channels = extents->group_inputs,
        .taps = extents->taps,
        .group_outputs = extents->group_outputs,
        .x = x->data,
        .w = w->data,
        .bias = conv->bias != NULL ? conv->bias->data : NULL,
        .y = conv->y->data,
        .x_sample = x->strides[0],
        .x_channel = x->strides[1],
        .w_output = w->strides[0],
        .w_channel = w->strides[1],
        .bias_step = conv->bias != NULL ? conv->bias->strides[0] : 0,
        .rank = extents->axes,
    };
    for (int d = 0; d < extents->axes; d++) {
        const sb_window_axis *axis = &extents->axis[d];
        to->in[d] = axis->in;
        to->out[d] = axis->out;
        to->kernel[d] = axis->kernel;
        to->stride[d] = axis->stride;
        to->dilation[d] = axis->dilation;
        to->begin[d] = axis->begin;
        to->x_steps[d] = x->strides[d + 2];
        to->w_steps[d] = w->strides[d + 2];
    }
}

static sb_status launch_any(sb_call *call, const convolution *conv) {
    sb_cuda_any_convolution to;
    sb_cuda_work work = {.parameters = &to, .parameter_bytes = sizeof to};
    fill_any(conv, &to);
    SB_TRY(start_epilogue(call, conv, &to.epilogue, &work));
    sb_cuda_work_reads(&work, conv->w);
    return sb_cuda_launch_each(call, &work, "contraction_any", "sb_cuda_conv_any", sb_dtype_name(conv->x->dtype),
                               to.elements);
}

static sb_status launch_conv(sb_call *call) {
    sb_contraction_node contraction = sb_contraction_node_of(call->node);
    convolution conv = {.x_input = sb_contraction_node_input(&contraction, 0),
                        .x = sb_contraction_node_tensor(&contraction, call, 0),
                        .w = sb_contraction_node_tensor(&contraction, call, 1),
                        .bias = sb_contraction_node_tensor(&contraction, call, 2)};
    int64_t dims[SB_MAX_RANK];
    if (!sb_fact_is_concrete(&call->facts[0], dims))
        return sb_call_fail(call, SB_ERROR_INTERNAL, "the output's extents are open");
    sb_conv_extents_of(contraction.node->params, conv.x, conv.w, dims, &conv.extents);
    conv.k = conv.extents.taps * conv.extents.group_inputs;
    bool is_16 = (conv.x->dtype == SB_F16 || conv.x->dtype == SB_BF16) && is_small(&conv);
    if (is_16 && sb_cuda_conv16_turns(call, &conv))
        SB_TRY(sb_cuda_output_channels_last(call, 0, &conv.y));
    else
        SB_TRY(sb_call_output(call, 0, &conv.y));
    if (sb_tensor_elements(conv.y) == 0)
        return SB_OK;
    if (is_16)
        return sb_cuda_conv16_launch(call, &conv);
    if (conv.x->dtype != SB_F32 || !is_small(&conv))
        return launch_any(call, &conv);
    if (is_product(&conv))
        return launch_product(call, &conv);
    if (!is_narrow(conv.extents.groups, conv.extents.group_inputs, conv.extents.group_outputs))
        return launch_tiles(call, &conv);
    bool taken;
    SB_TRY(launch_depthwise(call, &conv, &taken));
    return taken ? SB_OK : launch_narrow(call, &conv);
}

#define CONV_KERNEL(op_name, op_domain, kernel_name)                                                                   \
    {                                                                                                                  \
        .op = op_name, .domain = op_domain, .name = kernel_name, .supports = supports_conv,                            \
        .prepare = sb_cuda_contraction_prepare, .release = sb_cuda_contraction_release, .derives = derives_conv,       \
        .derive = derive_conv, .launch = launch_conv                                                                   \
    }

const sb_kernel sb_cuda_kernels_conv[] = {
    CONV_KERNEL("Conv", "", "conv"),
    CONV_KERNEL("Fused", "samebit", "conv-fused"),
    {0},
};
