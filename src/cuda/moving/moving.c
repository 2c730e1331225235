/* Operators that move, leave out, repeat or make elements. */
#include <string.h>

#include "cuda/common/compute.h"
#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/moving/concat.h"
#include "cuda/moving/moving_parameters.h"
#include "ops/axes.h"
#include "ops/blocks.h"
#include "ops/constants.h"
#include "ops/moving.h"
#include "ops/pad.h"

/* Operators whose evaluation is copies (sb_call_copy). */
static sb_status launch_copies(sb_call *call) {
    return call->node->op->eval(call);
}

static uint64_t bits_of(const void *element, sb_dtype dtype) {
    uint64_t bits = 0;
    memcpy(&bits, element, sb_dtype_size(dtype));
    return bits;
}

/* ---- Pad and CenterCropPad ---- */

/* Adds an axis in front of those in `p`, merging it with the next one where neither is padded and
 * both lie behind each other. */
static void add_axis(sb_cuda_pad *p, int64_t dim, int64_t extent, int64_t before, int64_t step) {
    int last = p->rank - 1;
    bool plain = dim == extent && before == 0;
    if (p->rank != 0 && plain && p->dims[last] == p->extents[last] && p->before[last] == 0 &&
        step == p->steps[last] * p->dims[last]) {
        p->dims[last] *= dim;
        p->extents[last] *= extent;
        return;
    }
    p->dims[p->rank] = dim;
    p->extents[p->rank] = extent;
    p->before[p->rank] = before;
    p->steps[p->rank++] = step;
}

static void reverse(int32_t rank, int64_t *values) {
    for (int32_t i = 0; i < rank / 2; i++) {
        int64_t value = values[i];
        values[i] = values[rank - 1 - i];
        values[rank - 1 - i] = value;
    }
}

static sb_status launch_padded(sb_call *call, sb_pad_mode mode, const int64_t *before, const int64_t *dims,
                               uint64_t constant) {
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t size = (int64_t)sb_dtype_size(input->dtype);
    sb_tensor *output;
    SB_TRY(sb_call_output_shape(call, 0, input->dtype, input->rank, dims, &output));
    sb_cuda_pad parameters = {.elements = sb_tensor_elements(output),
                              .mode = mode,
                              .constant = constant,
                              .in = input->data,
                              .out = output->data};
    for (int d = input->rank - 1; d >= 0; d--)
        add_axis(&parameters, dims[d], input->dims[d], before[d], input->strides[d] * size);
    if (parameters.rank == 0)
        add_axis(&parameters, 1, 1, 0, 0);
    reverse(parameters.rank, parameters.dims);
    reverse(parameters.rank, parameters.extents);
    reverse(parameters.rank, parameters.before);
    reverse(parameters.rank, parameters.steps);
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, input);
    return sb_cuda_launch_each(call, &work, "moving", "sb_cuda_pad", sb_cuda_size_suffix(input->dtype),
                               parameters.elements);
}

static sb_status launch_pad(sb_call *call) {
    const sb_pad_params *params = call->node->params;
    int64_t before[SB_MAX_RANK], dims[SB_MAX_RANK];
    _Alignas(sb_string) char constant[sizeof(sb_string)];
    SB_TRY(sb_pad_constant(call, constant));
    SB_TRY(sb_pad_extents(call, before, dims));
    return launch_padded(call, params->mode, before, dims, bits_of(constant, sb_call_input(call, 0)->dtype));
}

/* What is cut off is a negative pad. */
static sb_status launch_crop(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    const sb_fact *fact = &call->facts[0];
    int64_t before[SB_MAX_RANK], dims[SB_MAX_RANK];
    if (!sb_fact_is_concrete(fact, dims))
        return sb_call_fail(call, SB_ERROR_INTERNAL, "the new shape was not inferred");
    for (int d = 0; d < input->rank; d++) {
        int64_t have = input->dims[d], want = dims[d];
        before[d] = have > want ? -((have - want) / 2) : (want - have) / 2;
    }
    return launch_padded(call, SB_PAD_CONSTANT, before, dims, 0);
}

/* ---- ReverseSequence and Trilu ---- */

static sb_status launch_reverse(sb_call *call) {
    const sb_reverse_params *params = call->node->params;
    const sb_tensor *list = sb_call_input(call, 1);
    sb_tensor *input, *lengths, *output;
    if (list->rank != 1 || list->dims[0] != sb_call_input(call, 0)->dims[params->batch_axis])
        return sb_call_fail(call, SB_ERROR_SHAPE, "input 1 must list a length for each sequence");
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &input));
    sb_status status = sb_call_contiguous(call, 1, &lengths);
    if (status == SB_OK) {
        sb_cuda_work work = {0};
        sb_cuda_reverse parameters = {
            .elements = sb_tensor_elements(output),
            .outer = input->dims[0],
            .middle = input->dims[1],
            .inner = sb_move_product(input->dims, 2, input->rank),
            .time_first = params->time_axis == 0,
            .wide_lengths = lengths->dtype == SB_S64,
            .lengths = lengths->data,
            .fault = sb_cuda_work_fault(&work, call),
            .in = input->data,
            .out = output->data,
        };
        work.parameters = &parameters;
        work.parameter_bytes = sizeof parameters;
        sb_cuda_work_writes(&work, output);
        sb_cuda_work_reads(&work, input);
        sb_cuda_work_reads(&work, lengths);
        status = sb_cuda_launch_each(call, &work, "moving", "sb_cuda_reverse", sb_cuda_size_suffix(input->dtype),
                                     parameters.elements);
        sb_tensor_release(lengths);
    }
    sb_tensor_release(input);
    return status;
}

static sb_status launch_trilu(sb_call *call) {
    const sb_trilu_params *params = call->node->params;
    int64_t diagonal = 0;
    int count;
    if (sb_call_input(call, 1) != NULL)
        SB_TRY(sb_move_integers(call, 1, 1, &diagonal, &count));
    sb_tensor *input, *output;
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &input));
    sb_cuda_trilu parameters = {
        .elements = sb_tensor_elements(output),
        .rows = input->dims[input->rank - 2],
        .columns = input->dims[input->rank - 1],
        .diagonal = diagonal,
        .upper = params->upper != 0,
        .in = input->data,
        .out = output->data,
    };
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    if (sb_call_input(call, 1) != NULL)
        parameters.known = sb_cuda_work_known(&work, call, 1);
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, input);
    sb_status status = sb_cuda_launch_each(call, &work, "moving", "sb_cuda_trilu", sb_cuda_size_suffix(input->dtype),
                                           parameters.elements);
    sb_tensor_release(input);
    return status;
}

/* ---- ConstantOfShape, EyeLike and Range ---- */

static sb_status launch_constant_of_shape(sb_call *call) {
    const sb_fill_params *params = call->node->params;
    int64_t dims[SB_MAX_RANK];
    int rank;
    sb_tensor *output;
    SB_TRY(sb_move_integers(call, 0, SB_MAX_RANK, dims, &rank));
    SB_TRY(sb_call_output_shape(call, 0, params->dtype, rank, dims, &output));
    return sb_cuda_call_fill(call, output, params->value != NULL ? bits_of(params->value->data, params->dtype) : 0);
}

/* The elements of the input do not matter. */
static sb_status launch_eye_like(sb_call *call) {
    const sb_eye_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    if (input->rank != 2)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the input has rank %d, not 2", input->rank);
    sb_dtype dtype = params->dtype != SB_DTYPE_NONE ? params->dtype : input->dtype;
    SB_TRY(sb_call_output_shape(call, 0, dtype, 2, input->dims, &output));
    sb_cuda_eye parameters = {.elements = sb_tensor_elements(output),
                              .columns = output->dims[1],
                              .diagonal = params->diagonal,
                              .one = sb_bits_of_one(dtype),
                              .out = output->data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    return sb_cuda_launch_each(call, &work, "moving", "sb_cuda_eye", sb_cuda_size_suffix(dtype), parameters.elements);
}

/* Start or limit are the run's, which only the device knows. */
static sb_status launch_range_of_run(sb_call *call, const sb_range *planned, sb_tensor *output) {
    sb_cuda_run_range parameters = {.planned = *planned, .out = output->data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    parameters.start = sb_cuda_work_known(&work, call, 0);
    parameters.limit = sb_cuda_work_known(&work, call, 1);
    sb_cuda_work_writes(&work, output);
    return sb_cuda_launch_each(call, &work, "moving", "sb_cuda_range_of_run", NULL, planned->count);
}

static sb_status launch_range(sb_call *call) {
    sb_cuda_range_fill parameters;
    sb_tensor *output;
    SB_TRY(sb_range_read(call, &parameters.range));
    SB_TRY(sb_call_output_shape(call, 0, parameters.range.dtype, 1, &parameters.range.count, &output));
    if (sb_call_known(call, 0) != NULL || sb_call_known(call, 1) != NULL)
        return launch_range_of_run(call, &parameters.range, output);
    parameters.out = output->data;
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    return sb_cuda_launch_each(call, &work, "moving", "sb_cuda_range", NULL, parameters.range.count);
}

#define MOVING(op_name, kernel_name, host, launch_function)                                                            \
    {                                                                                                                  \
        .op = op_name, .name = kernel_name, .supports = sb_cuda_supports_all, .host_inputs = host,                     \
        .launch = launch_function                                                                                      \
    }

const sb_kernel sb_cuda_kernels_moving[] = {
    MOVING("CenterCropPad", "pad", ~UINT64_C(1), launch_crop),
    {.op = "Concat",
     .name = "copies",
     .supports = sb_cuda_supports_all,
     .bounded = sb_cuda_concat_bounded,
     .launch = sb_cuda_concat_launch},
    MOVING("ConstantOfShape", "fill", 1, launch_constant_of_shape),
    MOVING("DepthToSpace", "copies", 0, launch_copies),
    MOVING("EyeLike", "eye", 0, launch_eye_like),
    MOVING("Pad", "pad", ~UINT64_C(1), launch_pad),
    {.op = "Range",
     .name = "range",
     .supports = sb_cuda_supports_all,
     .host_inputs = 7,
     .known_inputs = 3,
     .launch = launch_range},
    MOVING("ReverseSequence", "reverse", 0, launch_reverse),
    MOVING("SpaceToDepth", "copies", 0, launch_copies),
    MOVING("Tile", "copies", ~UINT64_C(1), launch_copies),
    {.op = "Trilu",
     .name = "trilu",
     .supports = sb_cuda_supports_all,
     .host_inputs = 2,
     .known_inputs = 2,
     .launch = launch_trilu},
    {0},
};
