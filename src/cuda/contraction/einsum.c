/* Einsum: what is a matrix product in f32 by the tiles of MatMul, which are the same chains; the
 * rest with a thread for each element. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/contraction/einsum_parameters.h"
#include "cuda/contraction/epilogue.h"
#include "cuda/contraction/tiles.h"
#include "cuda/driver/device.h"
#include "cuda/list.h"
#include "ops/einsum.h"

/* How many labels the loops have. */
static int count_labels(const sb_kernel_query *query) {
    const sb_einsum_params *params = query->node->params;
    bool seen[SB_EINSUM_LABELS] = {false};
    int count = 0, widest = 0;
    for (int t = 0; t < params->count; t++) {
        const sb_einsum_term *term = &params->terms[t];
        int wide = query->inputs[t]->rank - term->count + 1;
        for (int i = 0; i < term->count; i++) {
            if (term->labels[i] == SB_EINSUM_MARK) {
                widest = wide > widest ? wide : widest;
            } else if (!seen[term->labels[i]]) {
                seen[term->labels[i]] = true;
                count++;
            }
        }
    }
    return count + widest;
}

static bool supports_einsum(const sb_kernel_query *query, char *why) {
    const sb_einsum_params *params = query->node->params;
    int labels = count_labels(query);
    if (params->count <= SB_CUDA_EINSUM_OPERANDS && labels <= SB_CUDA_EINSUM_LABELS)
        return true;
    snprintf(why, SB_WHY_BYTES, "an Einsum of %d operands and %d labels; the GPU kernel takes at most %d and %d",
             params->count, labels, SB_CUDA_EINSUM_OPERANDS, SB_CUDA_EINSUM_LABELS);
    return false;
}

static void fill_parameters(sb_cuda_einsum *parameters, const sb_einsum_nest *loops, const sb_tensor *output) {
    int labels = loops->outer + loops->inner;
    *parameters = (sb_cuda_einsum){.elements = sb_tensor_elements(output),
                                   .rows = 1,
                                   .operands = loops->operands,
                                   .outer = loops->outer,
                                   .inner = loops->inner,
                                   .dtype = output->dtype,
                                   .out = output->data};
    memcpy(parameters->dims, loops->dims, (size_t)labels * sizeof loops->dims[0]);
    for (int d = loops->outer; d < labels - 1; d++)
        parameters->rows *= loops->dims[d];
    for (int t = 0; t < loops->operands; t++) {
        parameters->data[t] = loops->tensors[t]->data;
        memcpy(parameters->steps[t], loops->steps[t], (size_t)labels * sizeof loops->steps[t][0]);
    }
}

/* ---- matrix products ---- */

/* Summed labels that lie behind each other in both operands are one. False when they do not. */
static bool join_summed(const sb_einsum_nest *loops, sb_cuda_contraction *base) {
    int labels = loops->outer + loops->inner;
    base->k = loops->inner > 0 ? loops->dims[labels - 1] : 1;
    for (int d = labels - 2; d >= loops->outer; d--) {
        for (int t = 0; t < 2; t++) {
            if (loops->steps[t][d] != loops->steps[t][labels - 1] * base->k)
                return false;
        }
        base->k *= loops->dims[d];
    }
    return base->k > 0;
}

/* Whether the last two labels of the output are rows, which only operand `a` has, and columns,
 * which only the other has; those before them are batches. Steps of an extent of 1 are 0. */
static bool fill_product(const sb_einsum_nest *loops, int a, sb_cuda_matmul *matmul) {
    sb_cuda_contraction *base = &matmul->base;
    int m = loops->outer - 2, n = loops->outer - 1, last = loops->outer + loops->inner - 1;
    const int64_t *left = loops->steps[a], *right = loops->steps[1 - a];
    if (left[n] != 0 || right[m] != 0)
        return false;
    base->m = loops->dims[m];
    base->n = loops->dims[n];
    base->a = (sb_cuda_operand){.data = (const float *)(const void *)loops->tensors[a]->data,
                                .step = left[m],
                                .k_step = loops->inner > 0 ? left[last] : 0};
    base->b = (sb_cuda_operand){.data = (const float *)(const void *)loops->tensors[1 - a]->data,
                                .step = right[n],
                                .k_step = loops->inner > 0 ? right[last] : 0};
    /* Batches that the right operand does not have, and that are more rows of the left one. */
    int batches = m;
    while (batches > 0 && right[batches - 1] == 0 && left[batches - 1] == base->a.step * base->m && base->m > 1)
        base->m *= loops->dims[--batches];
    base->batches = 1;
    matmul->rank = batches;
    for (int d = 0; d < batches; d++) {
        base->batches *= loops->dims[d];
        matmul->dims[d] = loops->dims[d];
        matmul->a_steps[d] = left[d];
        matmul->b_steps[d] = right[d];
    }
    return true;
}

static bool is_product(const sb_einsum_nest *loops, const sb_tensor *output, sb_cuda_matmul *matmul) {
    if (output->dtype != SB_F32 || loops->operands != 2 || loops->outer < 2 || loops->outer > SB_CUDA_RANK ||
        sb_tensor_elements(output) == 0)
        return false;
    if (!join_summed(loops, &matmul->base) || (!fill_product(loops, 0, matmul) && !fill_product(loops, 1, matmul)))
        return false;
    matmul->base.y = (float *)(void *)output->data;
    matmul->base.alpha = matmul->base.beta = 1;
    matmul->base.plain = 1;
    matmul->y_batch = matmul->base.m * matmul->base.n;
    return true;
}

/* Up to so many columns, with more rows, A and B are swapped: kernels take few rows and many columns. */
#define SWAPPED_COLUMNS 16

static void orient(sb_cuda_matmul *matmul) {
    sb_cuda_contraction *base = &matmul->base;
    base->y_row = base->n;
    base->y_column = 1;
    if (base->n <= SWAPPED_COLUMNS && base->m > base->n) {
        sb_cuda_operand operand = base->a;
        int64_t extent = base->m, steps[SB_CUDA_RANK];
        base->a = base->b;
        base->b = operand;
        base->m = base->n;
        base->n = extent;
        base->y_row = 1;
        base->y_column = base->m;
        memcpy(steps, matmul->a_steps, sizeof steps);
        memcpy(matmul->a_steps, matmul->b_steps, sizeof steps);
        memcpy(matmul->b_steps, steps, sizeof steps);
    }
    base->vectors = base->y_column == 1 && base->y_row % 4 == 0 && (uintptr_t)base->y % 16 == 0;
}

static sb_status launch_product(sb_call *call, sb_cuda_matmul *matmul, const sb_tensor *output) {
    sb_cuda_contraction *base = &matmul->base;
    sb_cuda_work work = {.parameters = matmul, .parameter_bytes = sizeof *matmul};
    sb_cuda_epilogue_role roles[SB_MAX_RANK];
    for (int d = 0; d < output->rank; d++)
        roles[d] = SB_CUDA_EPILOGUE_BATCH;
    orient(matmul);
    sb_cuda_work_reads(&work, sb_call_input(call, 0));
    sb_cuda_work_reads(&work, sb_call_input(call, 1));
    sb_cuda_work_writes(&work, output);
    SB_TRY(sb_cuda_epilogue_start(call, NULL, output, roles, &base->epilogue, &work));
    const sb_cuda_tile *tile =
        sb_cuda_tile_choose(base->batches, base->m, base->n, 0, sb_cuda_call_device(call)->multiprocessors);
    base->a.fetch = sb_cuda_tile_fetch(&base->a, tile->m, base->m, matmul->rank, matmul->a_steps);
    base->b.fetch = sb_cuda_tile_fetch(&base->b, tile->n, base->n, matmul->rank, matmul->b_steps);
    return sb_cuda_tile_launch(call, &work, "gemm_f32", "sb_cuda_matmul_f32_", tile, base);
}

static sb_status launch_einsum(sb_call *call) {
    const sb_einsum_params *params = call->node->params;
    const sb_tensor *tensors[SB_CUDA_EINSUM_OPERANDS];
    int64_t steps[SB_CUDA_EINSUM_OPERANDS][SB_EINSUM_LABELS] = {{0}};
    sb_einsum_nest loops = {.operands = params->count, .tensors = tensors, .steps = steps};
    sb_cuda_einsum parameters;
    sb_tensor *output;
    for (int t = 0; t < params->count; t++)
        tensors[t] = sb_call_input(call, t);
    SB_TRY(sb_einsum_plan(call, &loops));
    SB_TRY(sb_call_output(call, 0, &output));
    sb_cuda_matmul matmul = {0};
    if (is_product(&loops, output, &matmul))
        return launch_product(call, &matmul, output);
    fill_parameters(&parameters, &loops, output);
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    for (int t = 0; t < params->count; t++)
        sb_cuda_work_reads(&work, tensors[t]);
    bool moves = loops.operands == 1 && loops.inner == 0;
    const char *suffix = moves || !sb_dtype_is_float(output->dtype) ? sb_cuda_size_suffix(output->dtype)
                         : output->dtype == SB_F64                  ? "f64"
                                                                    : "f32";
    return sb_cuda_launch_each(call, &work, "einsum", "sb_cuda_einsum", suffix, parameters.elements);
}

const sb_kernel sb_cuda_kernels_einsum[] = {
    {.op = "Einsum", .name = "einsum", .supports = supports_einsum, .launch = launch_einsum},
    {0},
};
