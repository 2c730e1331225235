/* RotaryEmbedding. */
#include "cuda/rows/rotary.h"

#include "cuda/list.h"

/* Rows that tables have, and positions, which are checked. */
static bool bounded_rotary(const sb_kernel_query *query, int input, int axis) {
    return true;
}

/* A table's steps of batch, token or row, and pair. */
static void describe_table(const sb_tensor *table, int64_t steps[3]) {
    int64_t size = (int64_t)sb_dtype_size(table->dtype);
    for (int i = 0; i < 3; i++)
        steps[i] = table->rank == 2 && i == 0 ? 0 : table->strides[i - (table->rank == 2)] * size;
}

static void describe_positions(sb_call *call, const sb_rotary *rotary, sb_cuda_work *work, sb_cuda_rotary *parameters) {
    if (rotary->positions == NULL)
        return;
    for (int i = 0; i < 2; i++)
        parameters->position_steps[i] = rotary->positions->strides[i] * (int64_t)sizeof(int64_t);
    parameters->positions = rotary->positions->data;
    parameters->rows = rotary->cosines->dims[0];
    parameters->used_rows = sb_cuda_work_used(work, call, 1, 0);
    parameters->used_batch = sb_cuda_work_used(work, call, 3, 0);
    parameters->used_tokens = sb_cuda_work_used(work, call, 3, 1);
    parameters->fault = sb_cuda_work_fault(work, call);
    sb_cuda_work_reads(work, rotary->positions);
}

void sb_cuda_rotary_fill(sb_call *call, const sb_rotary *rotary, sb_cuda_work *work, sb_cuda_rotary *parameters) {
    int64_t size = (int64_t)sb_dtype_size(rotary->y->dtype), units = rotary->head_size - rotary->half;
    *parameters = (sb_cuda_rotary){.elements = units == 0 ? 0 : rotary->batch * rotary->tokens * rotary->heads * units,
                                   .batch = rotary->batch,
                                   .tokens = rotary->tokens,
                                   .heads = rotary->heads,
                                   .units = units,
                                   .half = rotary->half,
                                   .interleaved = rotary->interleaved,
                                   .x = rotary->x->data,
                                   .cosines = rotary->cosines->data,
                                   .sines = rotary->sines->data,
                                   .y = rotary->y->data};
    for (int i = 0; i < 4; i++) {
        parameters->x_steps[i] = rotary->x_steps[i] * size;
        parameters->y_steps[i] = rotary->y_steps[i] * size;
    }
    describe_table(rotary->cosines, parameters->cosine_steps);
    describe_table(rotary->sines, parameters->sine_steps);
    describe_positions(call, rotary, work, parameters);
    sb_cuda_work_reads(work, rotary->x);
    sb_cuda_work_reads(work, rotary->cosines);
    sb_cuda_work_reads(work, rotary->sines);
}

static sb_status launch_rotary(sb_call *call) {
    sb_tensor *y;
    sb_rotary rotary;
    sb_cuda_rotary parameters;
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    SB_TRY(sb_call_output(call, 0, &y));
    SB_TRY(sb_rotary_describe(call, y, &rotary));
    sb_cuda_rotary_fill(call, &rotary, &work, &parameters);
    sb_cuda_work_writes(&work, y);
    return sb_cuda_launch_each(call, &work, "rotary", "sb_cuda_rotary", sb_dtype_name(y->dtype), parameters.elements);
}

const sb_kernel sb_cuda_kernels_rotary[] = {
    {.op = "RotaryEmbedding",
     .name = "rotary",
     .supports = sb_cuda_supports_all,
     .bounded = bounded_rotary,
     .launch = launch_rotary},
    {0},
};
