/* MatMul and Gemm in f32, f16 and bf16, alone or with element-wise nodes behind them, or in 16 bits with SwiGLU
 * (ops/gated_nodes.h); MatMulF32 alone. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/contraction/chain16.h"
#include "cpu/contraction/fused_epilogue.h"
#include "cpu/contraction/gemm.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "ops/gated.h"
#include "ops/gated_nodes.h"
#include "ops/matmul.h"

/* What is prepared once per node: the nodes behind. */
typedef struct matmul_state {
    sb_contraction_node contraction;
    sb_tile_program *program;
} matmul_state;

static bool is_gemm(const sb_contraction_node *contraction) {
    return strcmp(contraction->node->op->name, "Gemm") == 0;
}

static bool supports_matmul(const sb_kernel_query *query, char *why) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    if (!sb_contraction_node_is_matmul(&contraction)) {
        snprintf(why, SB_WHY_BYTES, "the fused nodes do not begin with MatMul or Gemm");
        return false;
    }
    const sb_fact *a = sb_contraction_node_fact(&contraction, query, 0);
    if (a->dtype != SB_F32 && a->dtype != SB_F16 && a->dtype != SB_BF16) {
        snprintf(why, SB_WHY_BYTES, "matrix products of %s have no kernel", sb_dtype_name(a->dtype));
        return false;
    }
    return sb_contraction_node_supports_epilogue(&contraction, query, a->dtype, why);
}

static bool supports_gated(const sb_kernel_query *query, char *why) {
    if (sb_gated_nodes_are(query->node))
        return true;
    snprintf(why, SB_WHY_BYTES, "the fused nodes are not a product of 16 bits with SwiGLU behind it");
    return false;
}

/* `tensor`, whose elements are at `data`, as a matrix operand: with its two dimensions swapped if Gemm says so. */
static sb_tensor operand_view(const sb_tensor *tensor, char *data, bool transpose) {
    sb_tensor view = {.dtype = tensor->dtype, .rank = tensor->rank, .data = data};
    memcpy(view.dims, tensor->dims, sizeof view.dims);
    memcpy(view.strides, tensor->strides, sizeof view.strides);
    if (transpose) {
        view.dims[0] = tensor->dims[1];
        view.dims[1] = tensor->dims[0];
        view.strides[0] = tensor->strides[1];
        view.strides[1] = tensor->strides[0];
    }
    return view;
}

static bool transposes_b(const sb_contraction_node *contraction) {
    return is_gemm(contraction) && ((const sb_gemm_params *)contraction->node->params)->transpose_b;
}

/* ---- packed B ---- */

static sb_status derives_matmul(const sb_kernel_query *query, sb_derived_form *form, sb_error *error) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    const sb_fact *b = sb_contraction_node_fact(&contraction, query, 1);
    bool transposes = transposes_b(&contraction), wide = b->dtype == SB_F32;
    int64_t dims[SB_MAX_RANK];
    if (b->rank != 2 || !sb_fact_is_concrete(b, dims))
        return SB_OK;
    int64_t k = dims[transposes ? 1 : 0], n = dims[transposes ? 0 : 1];
    form->input = sb_contraction_node_input(&contraction, 1);
    form->bytes =
        wide ? sb_gemm_f32_packed_bytes(sb_gemm_f32_kernels(query->isa), k, n) : sb_chain16_packed_bytes(k, n);
    form->layout = (wide ? 2 * (uint64_t)query->isa : 0) + transposes;
    return form->bytes != 0 ? SB_OK : sb_fail_memory(error, SIZE_MAX);
}

typedef struct packing {
    sb_isa isa;
    const sb_tensor *b;
    int64_t panel;
    void *packed;
} packing;

static void pack_panels(void *context, int64_t begin, int64_t end) {
    const packing *to = context;
    const sb_tensor *b = to->b;
    int64_t k = b->dims[0], n = b->dims[1], n0 = begin * to->panel, n1 = end * to->panel < n ? end * to->panel : n;
    if (b->dtype == SB_F32)
        sb_gemm_f32_pack_b(sb_gemm_f32_kernels(to->isa), k, n, (const float *)(const void *)b->data, b->strides[0],
                           b->strides[1], n0, n1, to->packed);
    else
        sb_chain16_pack_b(k, n, (const uint16_t *)(const void *)b->data, b->strides[0], b->strides[1], n0, n1,
                          to->packed);
}

static sb_status derive_matmul(sb_call *call, const sb_tensor *from, void *derived) {
    sb_contraction_node contraction = sb_contraction_node_of(call->node);
    sb_tensor b = operand_view(from, from->data, transposes_b(&contraction));
    packing to = {.isa = call->isa, .b = &b, .panel = SB_CHAIN16_PANEL, .packed = derived};
    if (b.dtype == SB_F32)
        to.panel = sb_gemm_f32_panel(sb_gemm_f32_kernels(call->isa));
    if (b.dims[1] == 0)
        pack_panels(&to, 0, 0);
    sb_workers_run(call->workers, (b.dims[1] + to.panel - 1) / to.panel, 1, pack_panels, &to);
    return SB_OK;
}

/* Where element (k, n) of the packed form lies, in elements. */
static int64_t packed_place(sb_isa isa, sb_dtype dtype, int64_t length, int64_t k, int64_t n) {
    int64_t panel = dtype == SB_F32 ? sb_gemm_f32_panel(sb_gemm_f32_kernels(isa)) : SB_CHAIN16_PANEL;
    int64_t within = n % panel;
    if (dtype == SB_F32)
        return (n - within) * length + k * panel + within;
    return sb_chain16_packed_place(length, k, n);
}

static void restore_matmul(const sb_node *node, sb_isa isa, const void *derived, const sb_tensor *to) {
    sb_contraction_node contraction = sb_contraction_node_of(node);
    sb_tensor b = operand_view(to, to->data, transposes_b(&contraction));
    for (int64_t k = 0; k < b.dims[0]; k++) {
        for (int64_t n = 0; n < b.dims[1]; n++) {
            int64_t at = k * b.strides[0] + n * b.strides[1], place = packed_place(isa, b.dtype, b.dims[0], k, n);
            if (b.dtype == SB_F32)
                ((uint32_t *)(void *)b.data)[at] = ((const uint32_t *)derived)[place];
            else
                ((uint16_t *)(void *)b.data)[at] = ((const uint16_t *)derived)[place];
        }
    }
}

/* ---- preparing ---- */

static void release_matmul(void *context) {
    matmul_state *state = context;
    if (state == NULL)
        return;
    sb_tile_program_destroy(state->program);
    sb_free(state);
}

static sb_status prepare_matmul(const sb_kernel_query *query, void **result, sb_error *error) {
    matmul_state *state = sb_allocate_array(1, sizeof *state);
    if (state == NULL)
        return sb_fail_memory(error, sizeof *state);
    state->contraction = sb_contraction_node_of(query->node);
    sb_status status = sb_contraction_node_program(&state->contraction, query, &state->program, error);
    if (status != SB_OK) {
        release_matmul(state);
        return status;
    }
    *result = state;
    return SB_OK;
}

/* ---- running ---- */

/* One product: `batches` matrices, each cut by `split`. */
typedef struct product {
    const void *packed; /* B; NULL where it only comes with the call */
    sb_isa isa;
    sb_dtype dtype, y_dtype;      /* of the operands; of the result, the same or f32 */
    const sb_gemm_params *params; /* NULL for MatMul */
    const sb_tensor *addend;      /* Gemm's C as a view of the output's shape, or NULL */
    sb_matmul_geometry geometry;
    const char *a, *b;
    char *y;
    sb_gemm_split split;
    sb_fused_epilogue fused;
} product;

/* Gemm's alpha, beta and C on a segment of a row, for all forms that no simpler step covers. */
static void gemm_epilogue(void *context, float *row, int64_t m, int64_t n, int64_t count) {
    const product *product = context;
    const sb_tensor *c = product->addend;
    const char *from = NULL;
    if (c != NULL)
        from = c->data + (m * c->strides[0] + n * c->strides[1]) * (int64_t)sb_dtype_size(c->dtype);
    sb_gemm_scale_and_add_f32(product->params, count, row, product->dtype, from, c != NULL ? c->strides[1] : 0);
}

static void append_gemm(const product *product, sb_epilogue *epilogue) {
    const sb_gemm_params *params = product->params;
    const sb_tensor *c = product->addend;
    if (params == NULL || (params->alpha == 1.0f && c == NULL))
        return;
    sb_epilogue_step *step = &epilogue->steps[epilogue->count++];
    if (params->alpha == 1.0f && params->beta == 1.0f && product->dtype == SB_F32 && c->strides[1] == 1) {
        *step = (sb_epilogue_step){.kind = c->strides[0] == 0 ? SB_EPILOGUE_ADD_COLUMNS : SB_EPILOGUE_ADD_MATRIX,
                                   .vector = (const float *)(const void *)c->data,
                                   .row_stride = c->strides[0],
                                   .column_stride = 1,
                                   .scalar = 1};
        return;
    }
    *step = (sb_epilogue_step){
        .kind = SB_EPILOGUE_CALL, .call = gemm_epilogue, .context = (void *)product, .nature = SB_EPILOGUE_MONOTONE};
}

/* The element `at` of a matrix. Of weights that are read packed there may be none: then `at` is 0. */
static const void *element(const void *matrix, int64_t at, size_t size) {
    return matrix != NULL ? (const char *)matrix + at * (int64_t)size : NULL;
}

/* The arguments for one matrix of an f32 product; without its pointers when `batch` is -1. */
static sb_gemm_args args_f32(const product *product, int64_t a, int64_t b, int64_t row, const sb_epilogue *epilogue) {
    const sb_matmul_geometry *g = &product->geometry;
    return (sb_gemm_args){.m = g->m,
                          .n = g->n,
                          .k = g->k,
                          .a = (const float *)(const void *)product->a + a,
                          .a_row_stride = g->a_row_stride,
                          .a_column_stride = g->a_k_stride,
                          .packed_b = product->packed,
                          .b = element(product->b, b, sizeof(float)),
                          .b_row_stride = g->b_k_stride,
                          .b_column_stride = g->b_column_stride,
                          .c = (float *)(void *)product->y + row * g->n,
                          .c_row_stride = g->n,
                          .c_column_stride = 1,
                          .epilogue = epilogue};
}

static sb_chain16_args args_16(const product *product, int64_t a, int64_t b, int64_t row, const sb_epilogue *epilogue) {
    const sb_matmul_geometry *g = &product->geometry;
    return (sb_chain16_args){.dtype = product->dtype,
                             .m = g->m,
                             .n = g->n,
                             .k = g->k,
                             .a = (const uint16_t *)(const void *)product->a + a,
                             .a_row_stride = g->a_row_stride,
                             .a_column_stride = g->a_k_stride,
                             .packed_b = product->packed,
                             .b = element(product->b, b, sizeof(uint16_t)),
                             .b_row_stride = g->b_k_stride,
                             .b_column_stride = g->b_column_stride,
                             .c = product->y + row * g->n * (int64_t)sb_dtype_size(product->y_dtype),
                             .c_dtype = product->y_dtype,
                             .c_row_stride = g->n,
                             .c_column_stride = 1,
                             .epilogue = epilogue};
}

static void run_rectangle(void *context, int64_t index, void *workspace) {
    const product *product = context;
    int64_t parts = product->split.m_parts * product->split.n_parts, batch = index / parts;
    int64_t a, b, m0, m1, n0, n1;
    sb_matmul_batch_offsets(&product->geometry, batch, &a, &b);
    sb_gemm_split_rectangle(&product->split, index % parts, &m0, &m1, &n0, &n1);
    int64_t first_row = batch * product->geometry.m;
    sb_fused_epilogue fused = product->fused;
    sb_epilogue epilogue = {0};
    fused.first_row = first_row;
    append_gemm(product, &epilogue);
    if (product->dtype == SB_F32) {
        sb_fused_epilogue_append(&fused, &epilogue);
        sb_gemm_args args = args_f32(product, a, b, first_row, &epilogue);
        sb_gemm_f32_run(sb_gemm_f32_kernels(product->isa), &args, m0, m1, n0, n1, workspace);
    } else {
        sb_chain16_args args = args_16(product, a, b, first_row, &epilogue);
        sb_chain16_run(sb_chain16_kernels_of(product->isa), &args, m0, m1, n0, n1, workspace);
        for (int64_t m = m0; fused.program != NULL && m < m1; m++)
            sb_fused_epilogue_finish_16(&fused, m, n0, n1 - n0, (uint16_t *)args.c + m * product->geometry.n + n0);
    }
}

static sb_status run_product(sb_call *call, product *product) {
    sb_matmul_geometry *g = &product->geometry;
    if (g->batches == 0 || g->m == 0 || g->n == 0)
        return SB_OK;
    sb_matmul_merge_batches(g);
    /* Threads share out the batch first; only what is left over cuts a matrix. */
    int64_t threads = sb_workers_threads(call->workers);
    int per_matrix = (int)((threads + g->batches - 1) / g->batches);
    size_t workspace;
    if (product->dtype == SB_F32) {
        const sb_gemm_kernels *kernels = sb_gemm_f32_kernels(product->isa);
        sb_gemm_args args = args_f32(product, 0, 0, 0, NULL);
        product->split = sb_gemm_f32_split(kernels, g->m, g->n, g->k, per_matrix);
        workspace = sb_gemm_f32_workspace_bytes(kernels, &args);
    } else {
        sb_chain16_args args = args_16(product, 0, 0, 0, NULL);
        product->split = sb_chain16_split(g->m, g->n, per_matrix);
        workspace = sb_chain16_workspace_bytes(&args);
    }
    if (workspace == 0)
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the workspace's size overflows");
    return sb_pieces_run(call, g->batches * product->split.m_parts * product->split.n_parts, workspace, run_rectangle,
                         product);
}

static sb_status launch_matmul(sb_call *call) {
    const matmul_state *state = call->state;
    const sb_tensor *a = sb_contraction_node_tensor(&state->contraction, call, 0);
    const sb_tensor *b = sb_contraction_node_tensor(&state->contraction, call, 1);
    sb_tensor *c = NULL, *y, *addend = NULL;
    product product = {.packed = call->derived, .isa = call->isa, .dtype = a->dtype};
    if (is_gemm(&state->contraction)) {
        product.params = state->contraction.node->params;
        c = sb_contraction_node_tensor(&state->contraction, call, 2);
    }
    const sb_gemm_params *params = product.params;
    sb_tensor left = operand_view(a, a->data, params != NULL && params->transpose_a);
    /* B's elements may be gone where there is a packed form. */
    sb_tensor right = operand_view(b, call->derived == NULL ? b->data : NULL, params != NULL && params->transpose_b);
    sb_matmul_geometry_of(&left, &right, &product.geometry);
    SB_TRY(sb_call_output(call, 0, &y));
    product.a = left.data;
    product.b = right.data;
    product.y = y->data;
    product.y_dtype = y->dtype;
    bool one_pass = a->dtype == SB_F32 && sb_gemm_f32_in_one_pass(product.geometry.k);
    SB_TRY(sb_fused_epilogue_start(call, state->program, y, b->rank > 1 ? y->rank - 1 : -1, one_pass, &product.fused));
    if (c != NULL)
        SB_TRY(sb_tensor_broadcast(c, 2, y->dims, &addend, call->error));
    product.addend = addend;
    sb_status status = run_product(call, &product);
    sb_tensor_release(addend);
    return status;
}

/* ---- with SwiGLU behind ---- */

typedef struct gated_product {
    product product; /* of all columns: gates, then values */
    void *swiglu;    /* the node's parameters */
    int64_t columns; /* of either, and of y */
    size_t room;     /* where in a workspace a rectangle of gates begins, and behind it one of values */
} gated_product;

/* A rectangle of gates or of values, rounded as the product's node rounds them, to `room`: their first column is `first`. */
static void fill_room(const gated_product *gated, sb_chain16_args *args, int64_t m0, int64_t m1, int64_t first,
                      int64_t count, char *room, void *workspace) {
    const int64_t pitch = gated->product.split.n_step;
    /* Elements are found from that of row and column 0, which the room does not have. */
    args->c = (void *)((uintptr_t)room - (uintptr_t)(m0 * pitch + first) * sizeof(uint16_t));
    args->c_row_stride = pitch;
    sb_chain16_run(sb_chain16_kernels_of(gated->product.isa), args, m0, m1, first, first + count, workspace);
}

static void run_gated_rectangle(void *context, int64_t index, void *workspace) {
    const gated_product *gated = context;
    const product *product = &gated->product;
    const sb_gemm_split *split = &product->split;
    const int64_t parts = split->m_parts * split->n_parts, batch = index / parts, size = sizeof(uint16_t);
    static const int64_t steps[3] = {sizeof(uint16_t), sizeof(uint16_t), sizeof(uint16_t)};
    int64_t a, b, m0, m1, n0, n1;
    sb_matmul_batch_offsets(&product->geometry, batch, &a, &b);
    sb_gemm_split_rectangle(split, index % parts, &m0, &m1, &n0, &n1);
    sb_chain16_args args = args_16(product, a, b, 0, NULL);
    char *gates = (char *)workspace + gated->room, *values = gates + split->m_step * split->n_step * size;
    fill_room(gated, &args, m0, m1, n0, n1 - n0, gates, workspace);
    fill_room(gated, &args, m0, m1, gated->columns + n0, n1 - n0, values, workspace);
    for (int64_t m = m0; m < m1; m++) {
        const int64_t row = (m - m0) * split->n_step * size;
        char *y = product->y + ((batch * product->geometry.m + m) * gated->columns + n0) * size;
        char *data[3] = {y, gates + row, values + row};
        SB_PICK_LOOPS(sb_gated_loops, product->isa)[0][product->dtype](gated->swiglu, n1 - n0, data, steps);
    }
}

/* How rectangles are cut, and what a thread needs for one; false: that is more than a number holds. */
static bool cut_gated(gated_product *gated, int threads, size_t *workspace) {
    product *product = &gated->product;
    sb_chain16_args args = args_16(product, 0, 0, 0, NULL);
    size_t bytes = sb_chain16_workspace_bytes(&args), rectangle;
    product->split = sb_chain16_split(product->geometry.m, gated->columns, threads);
    gated->room = (bytes + 63) / 64 * 64;
    return bytes != 0 && bytes <= SIZE_MAX - 63 &&
           !__builtin_mul_overflow((size_t)product->split.m_step, (size_t)product->split.n_step, &rectangle) &&
           !__builtin_mul_overflow(rectangle, 2 * sizeof(uint16_t), &rectangle) &&
           !__builtin_add_overflow(gated->room, rectangle, workspace);
}

static sb_status launch_gated(sb_call *call) {
    const sb_contraction_node contraction = sb_contraction_node_of(call->node);
    const sb_tensor *a = sb_contraction_node_tensor(&contraction, call, 0);
    const sb_tensor *b = sb_contraction_node_tensor(&contraction, call, 1);
    gated_product gated = {
        .product = {.packed = call->derived, .isa = call->isa, .dtype = a->dtype, .y_dtype = a->dtype, .a = a->data},
        .swiglu = contraction.body->nodes[2]->params};
    product *product = &gated.product;
    sb_matmul_geometry *g = &product->geometry;
    sb_tensor *y;
    size_t workspace;
    product->b = call->derived == NULL ? b->data : NULL; /* elements may be gone where there is a packed form */
    sb_matmul_geometry_of(a, b, g);
    gated.columns = g->n / 2;
    SB_TRY(sb_call_output(call, 0, &y));
    product->y = y->data;
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    sb_matmul_merge_batches(g);
    int64_t threads = sb_workers_threads(call->workers);
    if (!cut_gated(&gated, (int)((threads + g->batches - 1) / g->batches), &workspace))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the workspace's size overflows");
    return sb_pieces_run(call, g->batches * product->split.m_parts * product->split.n_parts, workspace,
                         run_gated_rectangle, &gated);
}

/* The sum's other operand, unless chains are so long that they pause in y. Gemm's own sum may need
 * a pass of its own. */
static int in_place_matmul(const sb_kernel_query *query) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    const sb_fact *a = sb_contraction_node_fact(&contraction, query, 0);
    int64_t dims[SB_MAX_RANK];
    if (is_gemm(&contraction) || a->dtype != SB_F32 || a->rank < 1 || !sb_fact_is_concrete(a, dims))
        return -1;
    return sb_gemm_f32_in_one_pass(dims[a->rank - 1]) ? sb_contraction_node_addend(&contraction, query) : -1;
}

#define MATMUL_KERNEL(op_name, op_domain, kernel_name)                                                                 \
    {                                                                                                                  \
        .op = op_name, .domain = op_domain, .name = kernel_name, .supports = supports_matmul,                          \
        .prepare = prepare_matmul, .release = release_matmul, .in_place = in_place_matmul, .derives = derives_matmul,  \
        .derive = derive_matmul, .restore = restore_matmul, .launch = launch_matmul                                    \
    }

const sb_kernel sb_cpu_kernels_matmul[] = {
    {.op = "Fused",
     .domain = "samebit",
     .name = "matmul-gated",
     .supports = supports_gated,
     .derives = derives_matmul,
     .derive = derive_matmul,
     .restore = restore_matmul,
     .launch = launch_gated},
    MATMUL_KERNEL("MatMul", "", "matmul"),
    MATMUL_KERNEL("Gemm", "", "gemm"),
    MATMUL_KERNEL("MatMulF32", "samebit", "matmul"),
    MATMUL_KERNEL("Fused", "samebit", "matmul-fused"),
    {0},
};
