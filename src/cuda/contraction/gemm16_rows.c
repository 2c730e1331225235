#include "cuda/contraction/gemm16_rows.h"

#include <string.h>

#include "cuda/contraction/gemm16.h"
#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/rows/rows_parameters.h"

/* The longest rows that are normalised: gemm16_rows.cuh. */
#define LONGEST 4096

/* Whether the kernel is one of those that normalise few rows, for results that the product takes. */
static bool is_norm(const sb_cuda_kernel_task *ahead, bool is_f16) {
    static const char few[] = "sb_cuda_normalize_few_";
    return strncmp(ahead->kernel->name, few, sizeof few - 1) == 0 &&
           strcmp(ahead->kernel->module, is_f16 ? "normalize_vectors_f16" : "normalize_vectors_bf16") == 0;
}

/* Elements from one row of an operand to the next; false where that is not one number. */
static bool find_step(const sb_cuda_rows *rows, int operand, int64_t *step) {
    int with_rows = 0;
    *step = 0;
    for (int i = 0; i < rows->outer_rank; i++) {
        if (rows->outer_dims[i] == 1)
            continue;
        *step = rows->outer_steps[operand][i] / 2;
        with_rows++;
    }
    return with_rows <= 1 && *step % 8 == 0;
}

/* What the norm's rows are to the product; false where it is not one of root mean squares whose results the product multiplies. */
static bool describe(const sb_cuda_normalization *given, sb_gemm16_few_rows *own) {
    const sb_cuda_rows *rows = &given->rows;
    const bool is_open = rows->used_count != NULL || rows->used_length != NULL;
    int64_t x_row, out_row;
    if (given->kind != SB_CUDA_NORM_RMS || rows->data[SB_CUDA_ROW_BIAS] != NULL || is_open || rows->count != own->rows ||
        rows->length != own->length || own->length > LONGEST || rows->data[SB_CUDA_ROW_OUT] != (const char *)own->x)
        return false;
    if (!find_step(rows, SB_CUDA_ROW_IN, &x_row) || !find_step(rows, SB_CUDA_ROW_OUT, &out_row) ||
        (own->rows > 1 && out_row != own->x_row))
        return false;
    *own = (sb_gemm16_few_rows){.x = (const uint16_t *)(const void *)rows->data[SB_CUDA_ROW_IN],
                                .scales = (const uint16_t *)(const void *)rows->data[SB_CUDA_ROW_SCALE],
                                .out = (uint16_t *)(void *)rows->data[SB_CUDA_ROW_OUT],
                                .x_row = x_row,
                                .out_row = out_row,
                                .rows = own->rows,
                                .length = own->length,
                                .epsilon = given->epsilon};
    return true;
}

/* Whether the product reads what the norm makes as its A alone. */
static bool reads_once(const sb_cuda_kernel_task *ahead, const sb_cuda_kernel_task *own) {
    int times = 0;
    for (int i = 0; i < own->range_count; i++) {
        const sb_cuda_kernel_task reading = {.range_count = 1, .ranges = &own->ranges[i]};
        times += sb_cuda_writes_into(ahead, &reading);
    }
    return times == 1;
}

static void join_ranges(const sb_cuda_kernel_task *ahead, const sb_cuda_kernel_task *own, sb_cuda_joined *joined) {
    memcpy(joined->ranges, ahead->ranges, (size_t)ahead->range_count * sizeof *ahead->ranges);
    memcpy(joined->ranges + ahead->range_count, own->ranges, (size_t)own->range_count * sizeof *own->ranges);
    joined->task.ranges = joined->ranges;
    joined->task.range_count = ahead->range_count + own->range_count;
}

sb_status sb_gemm16_join_norm(sb_cuda_device *device, const sb_cuda_kernel_task *ahead, const sb_cuda_kernel_task *own,
                              sb_cuda_joined *joined, sb_error *error) {
    const bool is_fused = own->kernel->parameter_bytes == sizeof(sb_gemm16_fused_rows);
    const size_t length = strlen(own->kernel->module);
    const bool is_f16 = length > 4 && strcmp(own->kernel->module + length - 4, "_f16") == 0;
    sb_gemm16_few_rows *rows =
        (sb_gemm16_few_rows *)(void *)(joined->parameters + (is_fused ? offsetof(sb_gemm16_fused_rows, rows)
                                                                      : offsetof(sb_gemm16_rows, rows)));
    _Static_assert(sizeof(sb_gemm16_fused_rows) <= SB_CUDA_PARAMETER_BYTES, "a kernel's parameters");
    (void)device;
    (void)error;
    if (!is_norm(ahead, is_f16))
        return SB_OK;
    memcpy(joined->parameters, own->parameters, own->kernel->parameter_bytes);
    /* All blocks read the norm's rows while the first one writes its results, and others those of their products. */
    if (!describe(ahead->parameters, rows) || sb_cuda_writes_into(ahead, ahead) || sb_cuda_writes_into(own, ahead) ||
        !reads_once(ahead, own))
        return SB_OK;
    joined->task = *own;
    joined->task.join = NULL;
    joined->task.parameters = joined->parameters;
    join_ranges(ahead, own, joined);
    joined->is_joined = true;
    return SB_OK;
}
