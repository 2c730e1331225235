/* MatMul and Gemm, alone or with element-wise nodes behind them, or of 16 bits with SwiGLU (ops/gated_nodes.h); MatMulF32 alone. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/contraction/contractions.h"
#include "cuda/contraction/gemm16_conv.h"
#include "cuda/contraction/matmul.h"
#include "cuda/contraction/tiles.h"
#include "cuda/driver/device.h"
#include "cuda/list.h"
#include "ops/gated_nodes.h"

static bool is_gemm(const sb_contraction_node *contraction) {
    return strcmp(contraction->node->op->name, "Gemm") == 0;
}

static bool supports_matmul(const sb_kernel_query *query, char *why) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    if (!sb_contraction_node_is_matmul(&contraction))
        return false;
    return sb_cuda_contraction_supports(query, &contraction, why);
}

static bool is_of_16_bits(sb_dtype dtype) {
    return dtype == SB_F16 || dtype == SB_BF16;
}

static bool supports_gated(const sb_kernel_query *query, char *why) {
    if (!sb_gated_nodes_are(query->node))
        return false;
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    const sb_fact *rows = sb_contraction_node_fact(&contraction, query, 0);
    if (rows == NULL || !is_of_16_bits(rows->dtype) || sb_contraction_node_input(&contraction, 1) < 0) {
        snprintf(why, SB_WHY_BYTES, "SwiGLU behind a product is computed with it where both are of f16 or bf16");
        return false;
    }
    return true;
}

/* The copy engine fetches A and B where their rows begin so: whatever they are multiplied by. */
static bool wants_gaps(const sb_kernel_query *query, int input) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    for (int operand = 0; operand < 2; operand++) {
        if (sb_contraction_node_input(&contraction, operand) == input)
            return is_of_16_bits(sb_contraction_node_fact(&contraction, query, operand)->dtype) &&
                   sb_gemm16_has_hopper_code(query->device);
    }
    return false;
}

/* ---- used extents ---- */

/* The axis of an operand (0: A, 1: B) of that rank that is summed, and the one that becomes rows or columns; -1: none. */
static void find_axes(const sb_contraction_node *contraction, int operand, int rank, int *summed, int *kept) {
    const sb_gemm_params *params = is_gemm(contraction) ? contraction->node->params : NULL;
    bool transposed = params != NULL && (operand == 0 ? params->transpose_a : params->transpose_b);
    *summed = rank == 1 ? 0 : (operand == 0) != transposed ? rank - 1 : rank - 2;
    *kept = rank == 1 ? -1 : 2 * rank - 3 - *summed;
}

static bool bounded_matmul(const sb_kernel_query *query, int input, int axis) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    for (int operand = 0; operand < 2; operand++) {
        int summed, kept;
        find_axes(&contraction, operand, sb_contraction_node_fact(&contraction, query, operand)->rank, &summed, &kept);
        if (sb_contraction_node_input(&contraction, operand) == input && summed == axis)
            return true;
    }
    return false;
}

static sb_gemm_used find_used(const sb_call *call, const sb_contraction_node *contraction,
                              const sb_cuda_product *product, sb_cuda_work *work) {
    const int64_t *summed[2] = {NULL, NULL}, *kept[2] = {NULL, NULL};
    if (contraction == NULL) /* of a product alone */
        return (sb_gemm_used){0};
    for (int operand = 0; operand < 2; operand++) {
        int input = sb_contraction_node_input(contraction, operand), summed_axis, kept_axis;
        if (input < 0)
            continue;
        find_axes(contraction, operand, call->inputs[input].tensor->rank, &summed_axis, &kept_axis);
        summed[operand] = sb_cuda_work_used(work, call, input, summed_axis);
        if (kept_axis >= 0)
            kept[operand] = sb_cuda_work_used(work, call, input, kept_axis);
    }
    /* Rows that are several matrices' are all computed: the used ones are not the first ones. */
    /* Of gates and values side by side, neither. */
    return (sb_gemm_used){product->rows == product->geometry.m ? kept[0] : NULL, product->gated ? NULL : kept[1],
                          summed[0] != NULL ? summed[0] : summed[1]};
}

/* ---- what is computed ---- */

/* A matrix with its two dimensions swapped if Gemm says so. */
static void transpose_operand(const sb_tensor *tensor, bool transpose, sb_tensor *view) {
    view->rank = tensor->rank;
    view->data = tensor->data;
    for (int d = 0; d < tensor->rank; d++) {
        int from = transpose ? 1 - d : d;
        view->dims[d] = tensor->dims[from];
        view->strides[d] = tensor->strides[from];
    }
}

/* Up to so many columns, with more rows, A and B are swapped: kernels take few rows and many columns. */
#define SWAPPED_COLUMNS 16

static bool is_swapped(const sb_cuda_product *product) {
    const sb_matmul_geometry *g = &product->geometry;
    return product->dtype == SB_F32 && g->n <= SWAPPED_COLUMNS && g->m > g->n;
}

static sb_status describe(sb_call *call, const sb_contraction_node *contraction, sb_cuda_product *product) {
    const sb_tensor *a = sb_contraction_node_tensor(contraction, call, 0),
                    *b = sb_contraction_node_tensor(contraction, call, 1);
    sb_tensor *c = NULL, *y, left, right;
    if (is_gemm(contraction)) {
        product->params = contraction->node->params;
        c = sb_contraction_node_tensor(contraction, call, 2);
    }
    SB_TRY(sb_call_output(call, 0, &y));
    product->dtype = a->dtype;
    product->gated = sb_gated_nodes_are(call->node);
    product->y = y;
    transpose_operand(a, product->params != NULL && product->params->transpose_a, &left);
    transpose_operand(b, product->params != NULL && product->params->transpose_b, &right);
    sb_matmul_geometry *g = &product->geometry;
    sb_matmul_geometry_of(&left, &right, g);
    product->a_tensor = a;
    product->b_tensor = b;
    product->a = left.data;
    product->b = right.data;
    product->rows = g->m;
    product->merged = sb_matmul_merge_batches(g);
    product->swapped = is_swapped(product);
    return c != NULL ? sb_tensor_broadcast(c, 2, y->dims, &product->addend, call->error) : SB_OK;
}

/* ---- parameters ---- */

static void swap_numbers(int64_t *left, int64_t *right) {
    int64_t kept = *left;
    *left = *right;
    *right = kept;
}

static void fill_operands(const sb_cuda_product *product, sb_cuda_matmul *matmul) {
    const sb_matmul_geometry *g = &product->geometry;
    sb_cuda_contraction *base = &matmul->base;
    sb_cuda_operand a = {
        .data = (const float *)(const void *)product->a, .step = g->a_row_stride, .k_step = g->a_k_stride};
    sb_cuda_operand b = {
        .data = (const float *)(const void *)product->b, .step = g->b_column_stride, .k_step = g->b_k_stride};
    bool swapped = product->swapped;
    base->m = swapped ? g->n : g->m;
    base->n = swapped ? g->m : g->n;
    base->k = g->k;
    base->a = swapped ? b : a;
    base->b = swapped ? a : b;
    base->batches = g->batches;
    matmul->rank = g->batch_rank;
    for (int d = 0; d < g->batch_rank; d++) {
        matmul->dims[d] = g->batch_dims[d];
        matmul->a_steps[d] = swapped ? g->b_batch_strides[d] : g->a_batch_strides[d];
        matmul->b_steps[d] = swapped ? g->a_batch_strides[d] : g->b_batch_strides[d];
    }
}

static void fill_output(const sb_cuda_product *product, sb_cuda_matmul *matmul) {
    const sb_matmul_geometry *g = &product->geometry;
    sb_cuda_contraction *base = &matmul->base;
    base->y = (float *)(void *)product->y->data;
    base->y_row = g->n;
    base->y_column = 1;
    matmul->y_batch = g->m * g->n;
    base->alpha = base->beta = 1;
    if (product->params != NULL) {
        base->alpha = product->params->alpha;
        base->beta = product->params->beta;
    }
    if (product->addend != NULL) {
        base->addend = (const float *)(const void *)product->addend->data;
        base->addend_row = product->addend->strides[0];
        base->addend_column = product->addend->strides[1];
    }
    if (product->swapped) {
        swap_numbers(&base->y_row, &base->y_column);
        swap_numbers(&base->addend_row, &base->addend_column);
    }
    base->vectors = base->y_column == 1 && base->y_row % 4 == 0 && (uintptr_t)base->y % 16 == 0;
}

/* The roles of y's dimensions in the matrices that the kernel computes. */
static void find_roles(const sb_cuda_product *product, int a_rank, int b_rank, sb_cuda_epilogue_role *roles) {
    int rank = product->y->rank, row = rank - 1 - (b_rank > 1);
    for (int d = 0; d < rank; d++) {
        bool is_column = b_rank > 1 && d == rank - 1;
        bool is_row = !is_column && (product->merged || (a_rank > 1 && d == row));
        roles[d] = is_column || is_row ? is_column != product->swapped ? SB_CUDA_EPILOGUE_COLUMN : SB_CUDA_EPILOGUE_ROW
                                       : SB_CUDA_EPILOGUE_BATCH;
    }
}

static void name_ranges(const sb_cuda_product *product, sb_cuda_work *work) {
    sb_cuda_work_reads(work, product->a_tensor);
    sb_cuda_work_reads(work, product->b_tensor);
    sb_cuda_work_reads(work, product->addend);
    sb_cuda_work_writes(work, product->y);
}

static bool bound(const sb_call *call, const sb_contraction_node *contraction, const sb_cuda_product *product,
                  sb_cuda_contraction *base, sb_cuda_work *work) {
    sb_gemm_used used = find_used(call, contraction, product, work);
    base->used_m = product->swapped ? used.n : used.m;
    base->used_n = product->swapped ? used.m : used.n;
    base->used_k = used.k;
    return used.m != NULL || used.n != NULL || used.k != NULL;
}

static sb_status launch_product(sb_call *call, const sb_contraction_node *contraction, const sb_cuda_product *product) {
    sb_cuda_epilogue_role roles[SB_MAX_RANK];
    sb_cuda_matmul matmul = {0};
    sb_cuda_contraction *base = &matmul.base;
    sb_cuda_work work = {.parameters = &matmul, .parameter_bytes = sizeof matmul};
    fill_operands(product, &matmul);
    fill_output(product, &matmul);
    find_roles(product, product->a_tensor->rank, product->b_tensor->rank, roles);
    name_ranges(product, &work);
    SB_TRY(sb_cuda_epilogue_start(call, call->state, product->y, roles, &base->epilogue, &work));
    base->plain = base->alpha == 1.0f && base->addend == NULL && base->epilogue.code.count == 0;
    const sb_cuda_tile *tile =
        sb_cuda_tile_choose(base->batches, base->m, base->n, 0, sb_cuda_call_device(call)->multiprocessors);
    base->a.fetch = sb_cuda_tile_fetch(&base->a, tile->m, base->m, matmul.rank, matmul.a_steps);
    base->b.fetch = sb_cuda_tile_fetch(&base->b, tile->n, base->n, matmul.rank, matmul.b_steps);
    if (bound(call, contraction, product, base, &work))
        return sb_cuda_tile_launch(call, &work, "gemm_f32_bounded", "sb_cuda_matmul_f32_bounded_", tile, base);
    return sb_cuda_tile_launch(call, &work, "gemm_f32", "sb_cuda_matmul_f32_", tile, base);
}

/* Kernels of dtypes without tiles; signed integers take those of unsigned ones. */
static const char *suffix_of(sb_dtype dtype) {
    return dtype == SB_S32 ? "u32" : dtype == SB_S64 ? "u64" : sb_dtype_name(dtype);
}

static sb_status launch_any(sb_call *call, const sb_contraction_node *contraction, const sb_cuda_product *product) {
    const sb_matmul_geometry *g = &product->geometry;
    sb_cuda_any_matmul to = {
        .elements = sb_tensor_elements(product->y),
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .rank = g->batch_rank,
        .a_row = g->a_row_stride,
        .a_k = g->a_k_stride,
        .b_k = g->b_k_stride,
        .b_column = g->b_column_stride,
        .a = product->a,
        .b = product->b,
        .y = product->y->data,
        .alpha = product->params != NULL ? product->params->alpha : 1,
        .beta = product->params != NULL ? product->params->beta : 1,
    };
    sb_cuda_work work = {.parameters = &to, .parameter_bytes = sizeof to};
    for (int d = 0; d < g->batch_rank; d++) {
        to.dims[d] = g->batch_dims[d];
        to.a_steps[d] = g->a_batch_strides[d];
        to.b_steps[d] = g->b_batch_strides[d];
    }
    if (product->addend != NULL) {
        to.addend = product->addend->data;
        to.addend_row = product->addend->strides[0];
        to.addend_column = product->addend->strides[1];
    }
    name_ranges(product, &work);
    sb_gemm_used used = find_used(call, contraction, product, &work);
    to.used_m = used.m;
    to.used_n = used.n;
    to.used_k = used.k;
    return sb_cuda_launch_each(call, &work, "contraction_any", "sb_cuda_matmul_any", suffix_of(product->y->dtype),
                               to.elements);
}

/* The addend of the body's one node behind MatMul, if it is an Add of a row of y's dtype. */
static const sb_tensor *find_bias(const sb_call *call, const sb_contraction_node *contraction,
                                  const sb_cuda_product *product) {
    const sb_graph *body = contraction->body;
    if (body == NULL || body->node_count != 2 || product->params != NULL)
        return NULL;
    const sb_node *add = body->nodes[1];
    if (add->op->domain[0] != '\0' || strcmp(add->op->name, "Add") != 0)
        return NULL;
    sb_value_id addend = add->inputs[add->inputs[0] == contraction->node->outputs[0] ? 1 : 0];
    const sb_tensor *tensor = NULL;
    for (size_t i = 0; i < body->input_count; i++)
        tensor = body->inputs[i] == addend ? call->inputs[i].tensor : tensor;
    bool is_row = tensor != NULL && tensor->dtype == product->dtype && tensor->rank > 0 &&
                  sb_tensor_elements(tensor) == product->geometry.n &&
                  tensor->dims[tensor->rank - 1] == product->geometry.n;
    return is_row ? tensor : NULL;
}

static sb_status launch_16(sb_call *call, const sb_contraction_node *contraction, const sb_cuda_product *product) {
    sb_cuda_work unread = {0};
    sb_cuda_epilogue_role roles[SB_MAX_RANK];
    sb_gemm_used used = find_used(call, contraction, product, &unread);
    find_roles(product, product->a_tensor->rank, product->b_tensor->rank, roles);
    return sb_cuda_product_16(call, product, &used, roles);
}

static sb_status launch_dtype(sb_call *call, const sb_contraction_node *contraction, const sb_cuda_product *product) {
    if (sb_tensor_elements(product->y) == 0)
        return SB_OK;
    return product->dtype == SB_F32        ? launch_product(call, contraction, product)
           : is_of_16_bits(product->dtype) ? launch_16(call, contraction, product)
                                           : launch_any(call, contraction, product);
}

sb_status sb_cuda_product_alone(sb_call *call, const sb_matmul_geometry *geometry, const sb_tensor *a,
                                const sb_tensor *b, const sb_tensor *y) {
    sb_cuda_product product = {.geometry = *geometry,
                               .a = a->data,
                               .b = b->data,
                               .a_tensor = a,
                               .b_tensor = b,
                               .dtype = a->dtype,
                               .y = y,
                               .rows = geometry->m};
    product.swapped = is_swapped(&product);
    return launch_dtype(call, NULL, &product);
}

static sb_status launch_matmul(sb_call *call) {
    sb_contraction_node contraction = sb_contraction_node_of(call->node);
    sb_cuda_product product = {0};
    SB_TRY(describe(call, &contraction, &product));
    product.bias = is_of_16_bits(product.dtype) ? find_bias(call, &contraction, &product) : NULL;
    sb_status status = launch_dtype(call, &contraction, &product);
    sb_tensor_release(product.addend);
    return status;
}

#define MATMUL_KERNEL(op_name, op_domain, kernel_name)                                                                 \
    {                                                                                                                  \
        .op = op_name, .domain = op_domain, .name = kernel_name, .supports = supports_matmul,                          \
        .prepare = sb_cuda_contraction_prepare, .release = sb_cuda_contraction_release, .bounded = bounded_matmul,     \
        .wants_gaps = wants_gaps, .launch = launch_matmul                                                              \
    }

const sb_kernel sb_cuda_kernels_matmul[] = {
    {.op = "Fused",
     .domain = "samebit",
     .name = "matmul-gated",
     .supports = supports_gated,
     .bounded = bounded_matmul,
     .wants_gaps = wants_gaps,
     .host_inputs = UINT64_C(1) << 2, /* how columns are cut, which has been looked at */
     .launch = launch_matmul},
    MATMUL_KERNEL("MatMul", "", "matmul"),
    MATMUL_KERNEL("Gemm", "", "gemm"),
    MATMUL_KERNEL("MatMulF32", "samebit", "matmul"),
    MATMUL_KERNEL("Fused", "samebit", "matmul-fused"),
    {0},
};
