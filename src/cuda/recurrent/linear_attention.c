/* LinearAttention. */
#include "ops/linear_attention.h"

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/recurrent/linear_attention_parameters.h"

enum { QUERY, KEY, VALUE, PAST };

/* Positions, behind which the present state is. */
static bool bounded_linear(const sb_kernel_query *query, int input, int axis) {
    return input != PAST && axis == 1;
}

static sb_cuda_linear_array array_of(const sb_tensor *tensor) {
    if (tensor == NULL)
        return (sb_cuda_linear_array){.data = NULL};
    return (sb_cuda_linear_array){tensor->data, {tensor->strides[0], tensor->strides[1], tensor->strides[2]}};
}

static sb_cuda_linear_state state_of(const sb_tensor *tensor) {
    if (tensor == NULL)
        return (sb_cuda_linear_state){.data = NULL};
    const int64_t *steps = tensor->strides;
    return (sb_cuda_linear_state){tensor->data, {steps[0], steps[1], steps[2], steps[3]}, tensor->dtype};
}

static void describe(const sb_linear_work *linear, sb_cuda_linear *p) {
    const sb_linear_params *params = linear->params;
    *p = (sb_cuda_linear){
        .key_heads = params->key_heads,
        .group = params->heads / params->key_heads,
        .positions = linear->positions,
        .width = linear->width,
        .value_width = linear->value_width,
        .tiles = (linear->value_width + SB_CUDA_LINEAR_COLUMNS - 1) / SB_CUDA_LINEAR_COLUMNS,
        .scale = linear->scale,
        .dtype = linear->query->dtype,
        .query = array_of(linear->query),
        .key = array_of(linear->key),
        .value = array_of(linear->value),
        .decay = array_of(linear->decay),
        .beta = array_of(linear->beta),
        .output = array_of(linear->output),
        .past = state_of(linear->past),
        .present = state_of(linear->present),
    };
    if ((params->rule & SB_LINEAR_DECAYS) != 0)
        p->decays = linear->decay->dims[2] == params->key_heads ? 1 : linear->width;
    if ((params->rule & SB_LINEAR_CORRECTS) != 0)
        p->rates = linear->beta->dims[2];
    p->row_floats = (1 + p->group) * p->width + p->decays + SB_CUDA_LINEAR_COLUMNS + 1;
}

/* A block's memory with so many positions at once. False where no machine has so much. */
static bool measure(sb_cuda_linear *p, int64_t chunk) {
    int64_t state, rows;
    p->chunk = chunk;
    return !__builtin_mul_overflow(p->width, SB_CUDA_LINEAR_COLUMNS, &state) &&
           !__builtin_mul_overflow(p->row_floats, 2 * chunk, &rows) &&
           !__builtin_add_overflow(state, rows, &p->floats) &&
           p->floats <= INT64_MAX / (int64_t)sizeof(float) / INT32_MAX;
}

/* Shared memory, for as many positions at once as there is room; where there is none for one, memory of the device. */
static sb_status find_memory(sb_call *call, sb_cuda_linear *p, sb_cuda_work *work) {
    const int64_t room = sb_cuda_call_device(call)->shared_bytes / (int64_t)sizeof(float);
    for (int64_t chunk = SB_CUDA_LINEAR_CHUNK; chunk > 0; chunk /= 2) {
        if (!measure(p, chunk))
            return sb_call_fail(call, SB_ERROR_SHAPE, "the states are too large");
        if (p->floats <= room) {
            work->shared_bytes = (unsigned)((size_t)p->floats * sizeof(float));
            return SB_OK;
        }
    }
    size_t bytes = (size_t)work->blocks * (size_t)p->floats * sizeof(float);
    void *memory;
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    p->memory = memory;
    sb_cuda_work_touches(work, memory, bytes, true);
    work->kernel = "sb_cuda_linear_attention_large";
    return SB_OK;
}

static sb_status launch_linear(sb_call *call) {
    sb_linear_work linear;
    sb_cuda_linear parameters;
    SB_TRY(sb_linear_describe(call, &linear));
    SB_TRY(sb_linear_make_outputs(call, &linear));
    describe(&linear, &parameters);
    if (__builtin_mul_overflow(linear.batch, parameters.key_heads, &parameters.parts) ||
        __builtin_mul_overflow(parameters.parts, parameters.tiles, &parameters.parts))
        return sb_call_fail(call, SB_ERROR_SHAPE, "the states are too large");
    if (parameters.parts == 0)
        return SB_OK;
    sb_cuda_work work = {.module = "linear_attention",
                         .kernel = "sb_cuda_linear_attention",
                         .parameters = &parameters,
                         .parameter_bytes = sizeof parameters,
                         .blocks = sb_cuda_call_blocks(call, parameters.parts),
                         .threads = SB_CUDA_LINEAR_THREADS};
    parameters.used_positions = sb_cuda_work_used(&work, call, QUERY, 1);
    for (int i = 0; i < call->input_count; i++)
        sb_cuda_work_reads(&work, sb_call_input(call, i));
    sb_cuda_work_writes(&work, linear.output);
    sb_cuda_work_writes(&work, linear.present);
    SB_TRY(find_memory(call, &parameters, &work));
    return sb_cuda_call_launch(call, &work);
}

const sb_kernel sb_cuda_kernels_linear_attention[] = {
    {.op = "LinearAttention",
     .name = "linear attention",
     .supports = sb_cuda_supports_all,
     .bounded = bounded_linear,
     .launch = launch_linear},
    {0},
};
