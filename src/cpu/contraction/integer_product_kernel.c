/* MatMul of operands that are made of 8-bit integers, with QuantizeLinear and DequantizeLinear behind it. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/contraction/gemm.h"
#include "cpu/contraction/gemm_block.h"
#include "cpu/contraction/integer_product.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "kernel/contraction/contraction_node.h"
#include "numerics/convert.h"
#include "ops/integer_product.h"
#include "ops/matmul.h"

/* Pieces of work for each thread, if there are several. */
#define PIECES_PER_THREAD 4

static bool supports(const sb_kernel_query *query, char *why) {
    sb_integer_operand left;
    if (!sb_integer_operand_of(query->node, &left)) {
        snprintf(why, SB_WHY_BYTES, "the fused nodes are not a product of integers of 8 bits");
        return false;
    }
    if (sb_integer_kernels_of(query->isa) == NULL) {
        snprintf(why, SB_WHY_BYTES, "this processor has no sums of products of 8 bits (VNNI)");
        return false;
    }
    return true;
}

/* What is prepared once per node. */
typedef struct state {
    const sb_integer_kernels *kernels; /* looked up once: to ask a processor takes as long as a small product */
    sb_integer_operand left;
    sb_quantize_trip trip;
} state;

static sb_status prepare(const sb_kernel_query *query, void **result, sb_error *error) {
    const sb_graph *body = sb_node_graph(query->node, "body");
    sb_quantize_single there, back;
    state *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    if (!sb_integer_operand_of(query->node, &fresh->left) ||
        !sb_quantize_is_single(body, query->inputs, body->nodes[1], &there) ||
        !sb_quantize_is_single(body, query->inputs, body->nodes[2], &back)) {
        sb_free(fresh);
        return sb_fail(error, SB_ERROR_INTERNAL, "node %s: its scales are not known any more", query->node->name);
    }
    fresh->kernels = sb_integer_kernels_of(query->isa);
    fresh->trip = sb_quantize_trip_of(&there, &back);
    *result = fresh;
    return SB_OK;
}

static void release(void *state) {
    sb_free(state);
}

/* ---- what is made of B ---- */

/* Where its parts lie: B in f32 as products have it; integers; of each column the unit; and of each chunk and column the sum of
 * integers up to its end, and √(Σ w m²). */
typedef struct parts {
    int64_t k, n, columns, chunks, pitch;
    size_t integers, units, sums, norms, bytes;
} parts;

static bool find_parts(sb_isa isa, int64_t k, int64_t n, parts *parts) {
    size_t single = sb_gemm_f32_packed_bytes(sb_gemm_f32_kernels(isa), k, n), integers, units, chunks;
    parts->k = k;
    parts->n = n;
    parts->columns = (n + SB_INTEGER_COLUMNS - 1) / SB_INTEGER_COLUMNS * SB_INTEGER_COLUMNS;
    parts->chunks = (k + SB_INTEGER_CHUNK - 1) / SB_INTEGER_CHUNK;
    parts->pitch = (k + 3) / 4 * 4;
    if (single == 0 || single > SIZE_MAX / 2 ||
        __builtin_mul_overflow((size_t)parts->columns, (size_t)parts->pitch, &integers) ||
        __builtin_mul_overflow((size_t)parts->columns, sizeof(float), &units) ||
        __builtin_mul_overflow(units, (size_t)parts->chunks, &chunks))
        return false;
    parts->integers = sb_gemm_lines(single);
    return !__builtin_add_overflow(parts->integers, integers, &parts->units) &&
           !__builtin_add_overflow(parts->units, units, &parts->sums) &&
           !__builtin_add_overflow(parts->sums, chunks, &parts->norms) &&
           !__builtin_add_overflow(parts->norms, chunks, &parts->bytes);
}

static sb_status derives(const sb_kernel_query *query, sb_derived_form *form, sb_error *error) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    const sb_fact *b = sb_contraction_node_fact(&contraction, query, 1);
    int64_t dims[SB_MAX_RANK];
    parts parts;
    if (b->rank != 2 || !sb_fact_is_concrete(b, dims))
        return SB_OK;
    if (!find_parts(query->isa, dims[0], dims[1], &parts))
        return sb_fail_memory(error, SIZE_MAX);
    form->input = sb_contraction_node_input(&contraction, 1);
    form->bytes = parts.bytes;
    form->layout = (uint64_t)query->isa;
    return SB_OK;
}

typedef struct packing {
    sb_isa isa;
    const sb_tensor *b;
    parts parts;
    char *to;
} packing;

static const float *row_of(const sb_tensor *b, int64_t row) {
    return (const float *)(const void *)b->data + row * b->strides[0];
}

/* The integers of SB_INTEGER_COLUMNS columns from `first` on, with what is added up of them. */
static void pack_columns(const packing *to, int64_t first) {
    const parts *parts = &to->parts;
    const int64_t count = parts->n - first < SB_INTEGER_COLUMNS ? parts->n - first : SB_INTEGER_COLUMNS;
    const int64_t panel = sb_integer_kernels_of(to->isa)->panel, stride = to->b->strides[1];
    int8_t *integers = (int8_t *)to->to + parts->integers;
    const float *units = (const float *)(const void *)(to->to + parts->units) + first;
    int32_t sums[SB_INTEGER_COLUMNS] = {0};
    float squares[SB_INTEGER_COLUMNS] = {0};
    for (int64_t l = 0; l < parts->k; l++) {
        const float *row = row_of(to->b, l) + first * stride;
        int64_t chunk = l / SB_INTEGER_CHUNK, end = (chunk + 1) * SB_INTEGER_CHUNK < parts->k ? (chunk + 1) * SB_INTEGER_CHUNK : parts->k;
        int64_t place = chunk * parts->columns + first;
        for (int64_t j = 0; j < count; j++) {
            int64_t n = first + j, within = n % panel;
            int32_t integer = sb_i32_from_f32(sb_round_half_even_f32(row[j * stride] / units[j]));
            integers[(n - within) * parts->pitch + (l / 4 * panel + within) * 4 + l % 4] = (int8_t)integer;
            sums[j] += integer;
            squares[j] += (float)(end - l + SB_INTEGER_WEIGHT) * (float)(integer * integer);
        }
        if (l + 1 < end)
            continue;
        for (int64_t j = 0; j < count; j++) {
            ((int32_t *)(void *)(to->to + parts->sums))[place + j] = sums[j];
            ((float *)(void *)(to->to + parts->norms))[place + j] = __builtin_sqrtf(squares[j]);
            squares[j] = 0;
        }
    }
}

static void pack_all_columns(void *context, int64_t begin, int64_t end) {
    const packing *to = context;
    const sb_tensor *b = to->b;
    int64_t n1 = end * SB_INTEGER_COLUMNS < to->parts.n ? end * SB_INTEGER_COLUMNS : to->parts.n;
    sb_gemm_f32_pack_b(sb_gemm_f32_kernels(to->isa), to->parts.k, to->parts.n, row_of(b, 0), b->strides[0], b->strides[1],
                       begin * SB_INTEGER_COLUMNS, n1, (float *)(void *)to->to);
    for (int64_t group = begin; group < end; group++)
        pack_columns(to, group * SB_INTEGER_COLUMNS);
}

static sb_status derive(sb_call *call, const sb_tensor *from, void *derived) {
    packing to = {.isa = call->isa, .b = from, .to = derived};
    if (!find_parts(call->isa, from->dims[0], from->dims[1], &to.parts))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the packed weights' size overflows");
    memset(to.to + to.parts.integers, 0, to.parts.bytes - to.parts.integers);
    if (!sb_integer_columns_find(from, (float *)(void *)(to.to + to.parts.units)))
        return sb_call_fail(call, SB_ERROR_INTERNAL, "the weights are not made of integers any more");
    sb_workers_run(call->workers, to.parts.columns / SB_INTEGER_COLUMNS, 1, pack_all_columns, &to);
    return SB_OK;
}

static void restore(const sb_node *node, sb_isa isa, const void *derived, const sb_tensor *to) {
    (void)node;
    const int64_t panel = sb_gemm_f32_panel(sb_gemm_f32_kernels(isa)), k = to->dims[0];
    for (int64_t l = 0; l < k; l++) {
        for (int64_t n = 0; n < to->dims[1]; n++) {
            int64_t within = n % panel;
            memcpy(to->data + (l * to->strides[0] + n * to->strides[1]) * (int64_t)sizeof(float),
                   (const float *)derived + (n - within) * k + l * panel + within, sizeof(float));
        }
    }
}

/* ---- running ---- */

typedef struct product {
    const sb_integer_kernels *kernels;
    sb_matmul_geometry geometry;
    sb_integer_block block; /* but for rows and what is a thread's own */
    int64_t panels, row_parts, column_parts;
} product;

static size_t workspace_bytes(const product *product) {
    const sb_integer_block *block = &product->block;
    return sb_gemm_lines(SB_INTEGER_ROWS * (size_t)block->pitch) + SB_INTEGER_ROWS * (size_t)block->chunks * sizeof(float);
}

static void run_piece(void *context, int64_t index, void *workspace) {
    const product *product = context;
    const sb_matmul_geometry *g = &product->geometry;
    const int64_t parts = product->row_parts * product->column_parts, batch = index / parts;
    const int64_t row = index % parts / product->column_parts * SB_INTEGER_ROWS, column_part = index % product->column_parts;
    int64_t a, b;
    sb_integer_block block = product->block;
    sb_matmul_batch_offsets(g, batch, &a, &b);
    block.rows = g->m - row < SB_INTEGER_ROWS ? g->m - row : SB_INTEGER_ROWS;
    block.a += a + row * g->a_row_stride;
    block.y += (batch * g->m + row) * g->n;
    block.first_panel = column_part * product->panels / product->column_parts;
    block.last_panel = (column_part + 1) * product->panels / product->column_parts;
    block.integers = workspace;
    block.row_norms = (float *)(void *)((char *)workspace + sb_gemm_lines(SB_INTEGER_ROWS * (size_t)block.pitch));
    product->kernels->convert(&block);
    product->kernels->compute(&block);
}

/* From sums of integers to quotients, for this left operand and these scales. */
static sb_status scale_columns(sb_call *call, const state *state, const parts *parts, const char *derived,
                               sb_integer_block *block) {
    const int32_t *sums = (const int32_t *)(const void *)(derived + parts->sums);
    const float *units = (const float *)(const void *)(derived + parts->units);
    const double scale = (double)state->left.scale / state->trip.scale;
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)((parts->chunks + 1) * parts->columns) * sizeof(float), &memory));
    float *factors = memory;
    int32_t *starts = (int32_t *)memory + parts->columns;
    for (int64_t j = 0; j < parts->columns; j++)
        factors[j] = (float)(scale * units[j]);
    for (int64_t j = 0; j < parts->chunks * parts->columns; j++)
        starts[j] = state->left.least * sums[j];
    block->starts = starts;
    block->factors = factors;
    block->norms = (const float *)(const void *)(derived + parts->norms);
    return SB_OK;
}

/* The form of B, made here where nobody keeps one. */
static sb_status find_derived(sb_call *call, const sb_tensor *b, const parts *parts, const char **derived) {
    void *memory;
    *derived = call->derived;
    if (*derived != NULL)
        return SB_OK;
    SB_TRY(sb_call_workspace(call, parts->bytes, &memory));
    *derived = memory;
    return derive(call, b, memory);
}

static sb_status launch(sb_call *call) {
    const state *state = call->state;
    sb_contraction_node contraction = sb_contraction_node_of(call->node);
    const sb_tensor *a = sb_contraction_node_tensor(&contraction, call, 0);
    const sb_tensor *b = sb_contraction_node_tensor(&contraction, call, 1);
    product product = {.kernels = state->kernels};
    sb_matmul_geometry *g = &product.geometry;
    sb_integer_block *block = &product.block;
    const char *derived;
    sb_tensor *y;
    parts parts;
    sb_matmul_geometry_of(a, b, g);
    SB_TRY(sb_call_output(call, 0, &y));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    if (!find_parts(call->isa, g->k, g->n, &parts))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the packed weights' size overflows");
    SB_TRY(find_derived(call, b, &parts, &derived));
    SB_TRY(scale_columns(call, state, &parts, derived, block));
    sb_matmul_merge_batches(g);
    block->k = g->k;
    block->n = block->y_row_stride = g->n;
    block->a = (const float *)(const void *)a->data;
    block->a_row_stride = g->a_row_stride;
    block->a_k_stride = g->a_k_stride;
    block->a_reciprocal = 1.0f / state->left.scale;
    block->a_least = state->left.least;
    block->pitch = parts.pitch;
    block->chunks = parts.chunks;
    block->columns = parts.columns;
    block->panels = (const int8_t *)derived + parts.integers;
    block->packed = (const float *)(const void *)derived;
    block->packed_panel = sb_gemm_f32_panel(sb_gemm_f32_kernels(call->isa));
    block->y = (float *)(void *)y->data;
    block->trip = &state->trip;
    int64_t threads = sb_workers_threads(call->workers), wanted = threads > 1 ? PIECES_PER_THREAD * threads : 1;
    product.panels = (g->n + state->kernels->panel - 1) / state->kernels->panel;
    product.row_parts = (g->m + SB_INTEGER_ROWS - 1) / SB_INTEGER_ROWS;
    product.column_parts = (wanted + g->batches * product.row_parts - 1) / (g->batches * product.row_parts);
    if (product.column_parts > product.panels)
        product.column_parts = product.panels;
    return sb_pieces_run(call, g->batches * product.row_parts * product.column_parts, workspace_bytes(&product), run_piece,
                         &product);
}

const sb_kernel sb_cpu_kernels_integer_product[] = {
    {.op = "Fused",
     .domain = "samebit",
     .name = "matmul-integers",
     .supports = supports,
     .prepare = prepare,
     .release = release,
     .derives = derives,
     .derive = derive,
     .restore = restore,
     .launch = launch},
    {0},
};
