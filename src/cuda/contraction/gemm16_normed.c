#include "cuda/contraction/gemm16_normed.h"

#include <string.h>

#include "cuda/contraction/gemm16.h"
#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/rows/rows_parameters.h"

/* The longest rows that are normalised: gemm16_normed.cuh. */
#define LONGEST 4096
/* Of the tile, and what a block may have of shared memory: gemm16_normed_64x8.cu, gemm16_hopper.c. */
#define COLUMNS 8
#define BOXES 4
#define STAGES 32
#define SHARED_BYTES (227 * 1024 - 1024)
#define ALIGNMENT 1024
#define TILE_BOX_BYTES (64 * 128)

/* Whether the task is the product that can take over a norm, and of which type. */
static bool is_product(const sb_cuda_kernel_task *own, bool *is_f16) {
    static const char *const names[] = {"sb_gemm16_64x16_bf16_k_k", "sb_gemm16_row_64x8_bf16_k_k",
                                        "sb_gemm16_64x16_f16_k_k", "sb_gemm16_row_64x8_f16_k_k"};
    for (int i = 0; i < 4; i++) {
        *is_f16 = i > 1;
        if (strcmp(own->kernel->name, names[i]) == 0)
            return true;
    }
    return false;
}

/* Whether the kernel is one of those that normalise few rows, for results that the product takes. */
static bool is_norm(const sb_cuda_kernel_task *ahead, bool is_f16) {
    static const char row[] = "sb_cuda_normalize_row_";
    return strncmp(ahead->kernel->name, row, sizeof row - 1) == 0 &&
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
static bool describe(const sb_cuda_normalization *given, const sb_gemm16_hopper *product, sb_gemm16_norm *norm) {
    const sb_cuda_rows *rows = &given->rows;
    const sb_gemm16 *p = &product->product;
    const bool is_open = rows->used_count != NULL || rows->used_length != NULL || p->used_m != NULL ||
                         p->used_n != NULL || p->used_k != NULL;
    if (is_open || !product->swapped || p->batches != 1 || p->m > COLUMNS || p->k > LONGEST ||
        given->kind != SB_CUDA_NORM_RMS || rows->data[SB_CUDA_ROW_BIAS] != NULL || rows->count != p->m ||
        rows->length != p->k || rows->data[SB_CUDA_ROW_OUT] != (const char *)p->a.data)
        return false;
    *norm = (sb_gemm16_norm){.x = (const uint16_t *)(const void *)rows->data[SB_CUDA_ROW_IN],
                             .scales = (const uint16_t *)(const void *)rows->data[SB_CUDA_ROW_SCALE],
                             .out = (uint16_t *)(void *)rows->data[SB_CUDA_ROW_OUT],
                             .rows = (int32_t)p->m,
                             .length = (int32_t)p->k,
                             .epsilon = given->epsilon};
    return find_step(rows, SB_CUDA_ROW_IN, &norm->x_row) && find_step(rows, SB_CUDA_ROW_OUT, &norm->out_row) &&
           (p->m == 1 || norm->out_row == p->a.line_stride);
}

/* The ring has weights alone. Behind it wgmma reads 64 lines of a box, whether there are so many or not. */
static unsigned fill_ring(sb_gemm16_hopper *p) {
    int behind = SB_GEMM16_ROWS_BYTES((int)p->columns, p->k_blocks, BOXES) + SB_GEMM16_LANES_BYTES;
    behind = behind > TILE_BOX_BYTES ? behind : TILE_BOX_BYTES;
    p->b_box_bytes = 0;
    p->stage_bytes = BOXES * p->a_box_bytes;
    int fitting = (SHARED_BYTES - behind - ALIGNMENT) / p->stage_bytes;
    p->stages = fitting < STAGES ? fitting : STAGES;
    return (unsigned)(p->stages * p->stage_bytes + behind + ALIGNMENT);
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

sb_status sb_gemm16_join_norm(sb_cuda_device *device, const sb_cuda_kernel_task *ahead, const sb_cuda_kernel_task *own,
                              sb_cuda_joined *joined, sb_error *error) {
    static const char *const modules[] = SB_GEMM_MODULES("gemm16_normed_64x8");
    sb_gemm16_normed *given = (sb_gemm16_normed *)(void *)joined->parameters;
    bool is_f16;
    _Static_assert(sizeof *given <= SB_CUDA_PARAMETER_BYTES, "a kernel's parameters");
    if (!is_product(own, &is_f16) || !is_norm(ahead, is_f16))
        return SB_OK;
    memcpy(&given->product, own->parameters, sizeof given->product);
    /* All blocks read the norm's rows while the first one writes its results, and others those of their products. */
    if (!describe(ahead->parameters, &given->product, &given->norm) || sb_cuda_writes_over_itself(ahead) ||
        sb_cuda_writes_into(own, ahead) || !reads_once(ahead, own))
        return SB_OK;
    joined->task = *own;
    SB_TRY(sb_gemm16_find(device, modules, sizeof *given, is_f16 ? SB_F16 : SB_BF16, false, false, &joined->task.kernel,
                          error));
    joined->task.join = NULL;
    joined->task.shared_bytes = fill_ring(&given->product);
    joined->task.parameters = given;
    sb_cuda_join_ranges(ahead, own, joined);
    joined->is_joined = true;
    return SB_OK;
}
