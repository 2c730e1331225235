/* DeformConv in f32, f16 and bf16: the moved elements of a block of output positions are gathered into rows, channel by channel as the
 * chain has them, and multiplied as any matrix (gemm.h, chain16.h). Outputs are channels-last in memory.
 *
 * The input is read with channels innermost, in f32, so that the four corners of a tap are runs of channels. */
#include <stdio.h>

#include "base/allocation.h"
#include "cpu/channels_last.h"
#include "cpu/contraction/chain16.h"
#include "cpu/contraction/conv16.h"
#include "cpu/contraction/deform_rows.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/factor.h"
#include "cpu/spread.h"
#include "ops/convert_loops.h"
#include "ops/convolution_deformable.h"

#define BLOCK SB_DEFORM_BLOCK

static bool supports_deform(const sb_kernel_query *query, char *why) {
    const sb_fact *x = query->inputs[0];
    if ((x->dtype == SB_F32 || x->dtype == SB_F16 || x->dtype == SB_BF16) && x->rank == 4)
        return true;
    snprintf(why, SB_WHY_BYTES,
             "deformable convolutions of %s have no kernel; those of images of f32, f16 and bf16 have",
             sb_dtype_name(x->dtype));
    return false;
}

/* ---- weights ---- */

static int64_t chain_length(const sb_tensor *w) {
    return w->dims[1] * w->dims[2] * w->dims[3];
}

/* Bytes of the packed weights of all groups; 0 when that overflows. */
static size_t packed_bytes(sb_isa isa, const sb_conv_params *params, const sb_tensor *w) {
    if (w->dtype != SB_F32)
        return sb_conv16_packed_bytes(params, w);
    size_t bytes = sb_gemm_f32_packed_bytes(sb_gemm_f32_kernels(isa), chain_length(w), w->dims[0] / params->group);
    return __builtin_mul_overflow(bytes, (size_t)params->group, &bytes) ? 0 : bytes;
}

static sb_status pack(sb_isa isa, const sb_conv_params *params, const sb_tensor *w, char *packed, sb_error *error) {
    if (w->dtype != SB_F32)
        return sb_conv16_pack(params, w, packed, error);
    const sb_gemm_kernels *kernels = sb_gemm_f32_kernels(isa);
    const int64_t k = chain_length(w), outputs = w->dims[0] / params->group;
    const size_t group_bytes = packed_bytes(isa, params, w) / (size_t)params->group;
    const sb_conv_extents extents = {.axes = 2,
                                     .groups = params->group,
                                     .group_inputs = w->dims[1],
                                     .group_outputs = outputs,
                                     .taps = w->dims[2] * w->dims[3],
                                     .axis = {{.kernel = w->dims[2]}, {.kernel = w->dims[3]}}};
    float *dense = sb_allocate_array((size_t)k * (size_t)w->dims[0], sizeof *dense);
    if (dense == NULL)
        return sb_fail_memory(error, (size_t)k * (size_t)w->dims[0] * sizeof *dense);
    sb_conv_pack_reference(&extents, sizeof *dense, (sb_conv_operand){w->data, w->strides}, (char *)dense);
    for (int64_t g = 0; g < params->group; g++)
        sb_gemm_f32_pack_b(kernels, k, outputs, dense + g * k * outputs, outputs, 1, 0, outputs,
                           (float *)(void *)(packed + (size_t)g * group_bytes));
    sb_free(dense);
    return SB_OK;
}

static sb_status derives_deform(const sb_kernel_query *query, sb_derived_form *form, sb_error *error) {
    const sb_deform_params *params = query->node->params;
    const sb_fact *fact = query->inputs[1];
    sb_tensor w = {.dtype = fact->dtype, .rank = fact->rank};
    if (fact->rank != 4 || !sb_fact_is_concrete(fact, w.dims) || sb_tensor_elements(&w) == 0)
        return SB_OK;
    form->input = 1;
    form->bytes = packed_bytes(query->isa, &params->conv, &w);
    form->layout = 4 * (uint64_t)params->conv.group + (w.dtype == SB_F32 ? (uint64_t)query->isa : 0);
    return form->bytes != 0 ? SB_OK : sb_fail_memory(error, SIZE_MAX);
}

static sb_status derive_deform(sb_call *call, const sb_tensor *from, void *derived) {
    return pack(call->isa, &((const sb_deform_params *)call->node->params)->conv, from, derived, call->error);
}

static sb_status find_weights(sb_call *call, const sb_conv_params *params, const sb_tensor *w, const char **packed) {
    void *memory;
    const size_t bytes = packed_bytes(call->isa, params, w);
    *packed = call->derived;
    if (call->derived != NULL)
        return SB_OK;
    if (bytes == 0)
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the packed weights' size overflows");
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    *packed = memory;
    return pack(call->isa, params, w, memory, call->error);
}

/* ---- the moved elements ---- */

typedef struct deformation {
    sb_isa isa;
    const sb_deform_kernels *kernels;
    sb_conv_extents extents;
    int64_t channels, offset_groups, k;
    sb_dtype dtype;
    sb_deform_pixels pixels; /* of the first image */
    int64_t x_batch;
    sb_walk_row *widen;             /* offsets and masks to f32 */
    const sb_tensor *offset, *mask; /* mask: NULL for none */
    sb_walk_row *round;             /* from f32; NULL for f32 */
    const char *packed;
    size_t group_bytes; /* of the packed weights */
    const float *bias;  /* NULL: none */
    char *y;
    int64_t y_batch, y_position, y_channel; /* in elements */
    int64_t blocks;                         /* of one image */
    size_t rows_bytes, rounded_bytes;       /* of a thread's workspace, before that of the product */
} deformation;

/* Offsets or masks of `count` positions from `begin` on as f32, row by row of the output. */
static void load_positions(const deformation *d, const sb_tensor *tensor, int64_t n, int64_t c, int64_t begin,
                           int64_t count, float *values) {
    const int64_t width = d->extents.axis[1].out, size = (int64_t)sb_dtype_size(tensor->dtype);
    const char *plane = tensor->data + (n * tensor->strides[0] + c * tensor->strides[1]) * size;
    for (int64_t taken; count > 0; begin += taken, values += taken, count -= taken) {
        const int64_t y = begin / width, x = begin % width;
        const char *at = plane + (y * tensor->strides[2] + x * tensor->strides[3]) * size;
        taken = width - x < count ? width - x : count;
        d->widen(NULL, taken, (char *const[]){(char *)values, (char *)(uintptr_t)at},
                 (const int64_t[]){sizeof *values, tensor->strides[3] * size});
    }
}

/* Where a block's windows begin along each axis. */
typedef struct block {
    int64_t n, begin, count;
    int64_t start[2][BLOCK];
} block;

static void find_block(const deformation *d, int64_t index, block *block) {
    const sb_window_axis *axis = d->extents.axis;
    block->n = index / d->blocks;
    block->begin = index % d->blocks * BLOCK;
    const int64_t left = d->extents.positions - block->begin;
    block->count = left < BLOCK ? left : BLOCK;
    int64_t oy = block->begin / axis[1].out, ox = block->begin % axis[1].out;
    for (int64_t i = 0; i < block->count; i++) {
        block->start[0][i] = oy * axis[0].stride - axis[0].begin;
        block->start[1][i] = ox * axis[1].stride - axis[1].begin;
        if (++ox == axis[1].out) {
            ox = 0;
            oy++;
        }
    }
}

/* Where tap number `tap` lies along an axis, on which it is `k` elements behind a window's begin, with the offsets of channel c. */
static void find_places(const deformation *d, const block *block, int axis, int64_t k, int64_t c, float *places) {
    float offsets[BLOCK];
    load_positions(d, d->offset, block->n, c, block->begin, block->count, offsets);
    for (int64_t i = 0; i < block->count; i++)
        places[i] = (float)(block->start[axis][i] + k) + offsets[i];
}

/* One tap of a block: channel by channel to the rows of each group, which are [groups][BLOCK][k]. */
static void move_tap(const deformation *d, const block *block, int64_t tap, float *rows) {
    const int64_t inputs = d->extents.group_inputs, each = d->channels / d->offset_groups;
    const sb_window_axis *axis = d->extents.axis;
    const int64_t ky = tap / axis[1].kernel * axis[0].dilation, kx = tap % axis[1].kernel * axis[1].dilation;
    sb_deform_pixels pixels = d->pixels;
    sb_deform_corners corners;
    float places[2][BLOCK], masks[BLOCK];
    pixels.x += block->n * d->x_batch;
    for (int64_t offset_group = 0; offset_group < d->offset_groups; offset_group++) {
        const int64_t channel = offset_group * d->extents.taps + tap, end = (offset_group + 1) * each;
        find_places(d, block, 0, ky, 2 * channel, places[0]);
        find_places(d, block, 1, kx, 2 * channel + 1, places[1]);
        d->kernels->find(block->count, &pixels, places[0], places[1], &corners);
        if (d->mask != NULL)
            load_positions(d, d->mask, block->n, channel, block->begin, block->count, masks);
        for (int64_t c = offset_group * each, next; c < end; c = next) {
            const int64_t group = c / inputs, group_end = (group + 1) * inputs;
            next = group_end < end ? group_end : end;
            d->kernels->sum(block->count, &corners, d->mask != NULL ? masks : NULL, c, next - c,
                            rows + group * BLOCK * d->k + tap * inputs + (c - group * inputs), d->k);
        }
    }
}

/* ---- the products ---- */

static sb_gemm_args product_f32(const deformation *d) {
    return (sb_gemm_args){.m = BLOCK,
                          .n = d->extents.group_outputs,
                          .k = d->k,
                          .a_row_stride = d->k,
                          .a_column_stride = 1,
                          .packed_b = (const float *)(const void *)d->packed,
                          .c_row_stride = d->y_position,
                          .c_column_stride = d->y_channel};
}

static sb_chain16_args product_16(const deformation *d) {
    return (sb_chain16_args){.dtype = d->dtype,
                             .m = BLOCK,
                             .n = d->extents.group_outputs,
                             .k = d->k,
                             .a_row_stride = d->k,
                             .a_column_stride = 1,
                             .packed_b = (const uint16_t *)(const void *)d->packed,
                             .c_dtype = d->dtype,
                             .c_row_stride = d->y_position,
                             .c_column_stride = d->y_channel};
}

static void multiply(const deformation *d, int64_t group, int64_t count, const float *rows, char *y, char *workspace) {
    const int64_t first = group * d->extents.group_outputs;
    const char *packed = d->packed + (size_t)group * d->group_bytes;
    sb_epilogue epilogue = {0};
    if (d->bias != NULL)
        epilogue.steps[epilogue.count++] =
            (sb_epilogue_step){.kind = SB_EPILOGUE_ADD_COLUMNS, .vector = d->bias + first};
    rows += group * BLOCK * d->k;
    y += first * d->y_channel * (int64_t)sb_dtype_size(d->dtype);
    if (d->dtype == SB_F32) {
        sb_gemm_args args = product_f32(d);
        args.m = count;
        args.a = rows;
        args.packed_b = (const float *)(const void *)packed;
        args.c = (float *)(void *)y;
        args.epilogue = &epilogue;
        sb_gemm_f32_run(sb_gemm_f32_kernels(d->isa), &args, 0, count, 0, args.n, workspace + d->rows_bytes);
        return;
    }
    char *rounded = workspace + d->rows_bytes;
    d->round(NULL, count * d->k, (char *const[]){rounded, (char *)(uintptr_t)rows},
             (const int64_t[]){sizeof(uint16_t), sizeof(float)});
    sb_chain16_args args = product_16(d);
    args.m = count;
    args.a = (const uint16_t *)(const void *)rounded;
    args.packed_b = (const uint16_t *)(const void *)packed;
    args.c = y;
    args.epilogue = &epilogue;
    sb_chain16_run(sb_chain16_kernels_of(d->isa), &args, 0, count, 0, args.n, rounded + d->rounded_bytes);
}

static void run_block(void *context, int64_t index, void *workspace) {
    const deformation *d = context;
    block block;
    find_block(d, index, &block);
    for (int64_t tap = 0; tap < d->extents.taps; tap++)
        move_tap(d, &block, tap, workspace);
    char *y = d->y + (block.n * d->y_batch + block.begin * d->y_position) * (int64_t)sb_dtype_size(d->dtype);
    for (int64_t group = 0; group < d->extents.groups; group++)
        multiply(d, group, block.count, workspace, y, workspace);
}

/* ---- launching ---- */

static size_t aligned(size_t bytes) {
    return (bytes + SB_ALIGNMENT - 1) / SB_ALIGNMENT * SB_ALIGNMENT;
}

static sb_status run(sb_call *call, deformation *d) {
    const size_t elements = (size_t)BLOCK * (size_t)d->k;
    size_t bytes, product;
    if (d->dtype == SB_F32) {
        sb_gemm_args args = product_f32(d);
        product = sb_gemm_f32_workspace_bytes(sb_gemm_f32_kernels(d->isa), &args);
    } else {
        sb_chain16_args args = product_16(d);
        product = sb_chain16_workspace_bytes(&args);
        d->round = sb_convert_loop_for(call->isa, d->dtype, SB_F32);
        d->rounded_bytes = aligned(elements * sizeof(uint16_t));
    }
    if (__builtin_mul_overflow(elements * sizeof(float), (size_t)d->extents.groups, &bytes) || bytes > SIZE_MAX / 4 ||
        (product == 0 && d->dtype != SB_F32))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the workspace's size overflows");
    d->rows_bytes = aligned(bytes);
    d->blocks = (d->extents.positions + BLOCK - 1) / BLOCK;
    return sb_pieces_run(call, d->extents.batch * d->blocks, d->rows_bytes + d->rounded_bytes + product, run_block, d);
}

static sb_status find_input(sb_call *call, sb_tensor *x, deformation *d) {
    int64_t strides[SB_MAX_RANK];
    void *zeros;
    SB_TRY(sb_call_workspace(call, (size_t)d->channels * sizeof(float), &zeros));
    for (int64_t c = 0; c < d->channels; c++)
        ((float *)zeros)[c] = 0;
    d->pixels = (sb_deform_pixels){.zeros = zeros, .height = d->extents.axis[0].in, .width = d->extents.axis[1].in};
    if (x->dtype == SB_F32 && x->strides[1] == 1) {
        d->pixels.x = (const float *)(const void *)x->data;
        d->x_batch = x->strides[0];
        d->pixels.row = x->strides[2];
        d->pixels.column = x->strides[3];
        return SB_OK;
    }
    SB_TRY(sb_channels_last_widen(call, x, &d->pixels.x, strides));
    d->x_batch = strides[0];
    d->pixels.row = strides[1];
    d->pixels.column = strides[2];
    return SB_OK;
}

static sb_status launch_deform(sb_call *call) {
    const sb_deform_params *params = call->node->params;
    sb_tensor *x = sb_call_input(call, 0), *w = sb_call_input(call, 1), *y;
    SB_TRY(sb_channels_last_output(call, 4, &y));
    deformation d = {.isa = call->isa,
                     .kernels = sb_deform_kernels_for(call->isa),
                     .channels = x->dims[1],
                     .offset_groups = params->offset_group,
                     .k = chain_length(w),
                     .dtype = x->dtype,
                     .widen = sb_convert_loop_for(call->isa, SB_F32, x->dtype),
                     .offset = sb_call_input(call, 2),
                     .mask = sb_call_input(call, 4),
                     .y = y->data,
                     .y_batch = y->strides[0],
                     .y_channel = y->strides[1]};
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    /* No chain has an element, places are beyond 32 bits, or the output has been placed where positions are no rows of a matrix. */
    if (d.k == 0 || x->dims[2] > INT32_MAX / 2 || x->dims[3] > INT32_MAX / 2 ||
        !sb_even_step(2, y->dims + 2, y->strides + 2, &d.y_position))
        return call->node->op->eval(call);
    sb_conv_extents_of(&params->conv, x, w, y->dims, &d.extents);
    SB_TRY(find_input(call, x, &d));
    SB_TRY(sb_load_factor(call, 3, &d.bias));
    SB_TRY(find_weights(call, &params->conv, w, &d.packed));
    d.group_bytes = packed_bytes(call->isa, &params->conv, w) / (size_t)params->conv.group;
    return run(call, &d);
}

const sb_kernel sb_cpu_kernels_convolution_deformable[] = {
    {.op = "DeformConv",
     .name = "deform-conv-channels-last",
     .supports = supports_deform,
     .derives = derives_deform,
     .derive = derive_deform,
     .launch = launch_deform},
    {0},
};
