/* MatMul, Gemm and Conv of operands that are made of 8-bit integers, with Relu, QuantizeLinear and DequantizeLinear behind. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/channels_last.h"
#include "cpu/contraction/gemm.h"
#include "cpu/contraction/gemm_block.h"
#include "cpu/contraction/integer_product.h"
#include "cpu/contraction/integer_product_weights.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "kernel/contraction/contraction_node.h"
#include "ops/convolution.h"
#include "ops/integer_product.h"
#include "ops/matmul.h"

/* Pieces of work for each thread, if there are several. */
#define PIECES_PER_THREAD 4

/* Of fewer rows hardly a column of the weights goes without one whose result is not certain, so that f32 is read as well. */
#define LEAST_ROWS 128

/* Rows of the result; as many as can be where that is not known. */
static int64_t known_rows(const sb_kernel_query *query) {
    const sb_fact *y = &query->outputs[0];
    bool is_conv = sb_node_is(sb_contraction_node_of(query->node).node, "Conv");
    int64_t dims[SB_MAX_RANK], rows = 1;
    if (!sb_fact_is_concrete(y, dims))
        return INT64_MAX;
    for (int d = 0; d < y->rank; d++)
        rows *= d == (is_conv ? 1 : y->rank - 1) ? 1 : dims[d];
    return rows;
}

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
    if (known_rows(query) < LEAST_ROWS) {
        snprintf(why, SB_WHY_BYTES, "of fewer than %d rows f32 is quicker", LEAST_ROWS);
        return false;
    }
    return true;
}

/* What is prepared once per node. */
typedef struct state {
    sb_integer_operand left;
    sb_quantize_trip trip; /* Relu is its least number */
} state;

static sb_status prepare(const sb_kernel_query *query, void **result, sb_error *error) {
    const sb_graph *body = sb_node_graph(query->node, "body");
    const sb_integer_nodes nodes = sb_integer_nodes_of(query->node);
    sb_quantize_single there, back;
    state *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    if (!sb_integer_operand_of(query->node, &fresh->left) ||
        !sb_quantize_is_single(body, query->inputs, nodes.there, &there) ||
        !sb_quantize_is_single(body, query->inputs, nodes.back, &back)) {
        sb_free(fresh);
        return sb_fail(error, SB_ERROR_INTERNAL, "node %s: its scales are not known any more", query->node->name);
    }
    fresh->trip = sb_quantize_trip_of(&there, &back);
    if (nodes.rectifies && fresh->trip.least < 0)
        fresh->trip.least = 0;
    *result = fresh;
    return SB_OK;
}

static void release(void *state) {
    sb_free(state);
}

/* ---- what is made of the weights ---- */

/* Their shape, where they lie as constants do: without gaps. */
static bool find_weights(const sb_contraction_node *contraction, const sb_fact *fact, sb_integer_weights *shape) {
    sb_tensor weights = {.dtype = fact->dtype, .rank = fact->rank};
    if (!sb_fact_is_concrete(fact, weights.dims))
        return false;
    sb_row_major_strides(weights.rank, weights.dims, weights.strides);
    return sb_integer_weights_of(contraction->node, &weights, shape);
}

static sb_status derives(const sb_kernel_query *query, sb_derived_form *form, sb_error *error) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    sb_integer_weights shape;
    sb_integer_parts parts;
    if (!find_weights(&contraction, sb_contraction_node_fact(&contraction, query, 1), &shape))
        return SB_OK;
    if (!sb_integer_weights_parts(query->isa, &shape, &parts))
        return sb_fail_memory(error, SIZE_MAX);
    form->input = sb_contraction_node_input(&contraction, 1);
    form->bytes = parts.bytes;
    /* By the order in which rows and columns lie in the weights. */
    form->layout = 2 * (uint64_t)query->isa + (shape.column_stride == 1);
    return SB_OK;
}

static sb_status derive(sb_call *call, const sb_tensor *from, void *derived) {
    sb_contraction_node contraction = sb_contraction_node_of(call->node);
    sb_integer_weights shape;
    if (!sb_integer_weights_of(contraction.node, from, &shape) ||
        !sb_integer_weights_pack(call->isa, &shape, (const float *)(const void *)from->data, call->workers, derived))
        return sb_call_fail(call, SB_ERROR_INTERNAL, "the weights are not made of integers any more");
    return SB_OK;
}

static void restore(const sb_node *node, sb_isa isa, const void *derived, const sb_tensor *to) {
    sb_contraction_node contraction = sb_contraction_node_of(node);
    sb_integer_weights shape;
    if (sb_integer_weights_of(contraction.node, to, &shape))
        sb_integer_weights_unpack(isa, &shape, derived, (float *)(void *)to->data);
}

/* The form of the weights, made here where nobody keeps one. */
static sb_status find_derived(sb_call *call, const sb_tensor *weights, size_t bytes, const char **derived) {
    void *memory;
    *derived = call->derived;
    if (*derived != NULL)
        return SB_OK;
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    *derived = memory;
    return derive(call, weights, memory);
}

/* ---- running ---- */

typedef struct product {
    const sb_integer_kernels *kernels;
    sb_integer_block block; /* but for rows and what is a thread's own */
    int64_t rows, block_rows, panels, row_parts, column_parts;
    const float *x;
    sb_matmul_geometry geometry; /* of a product of matrices */
    sb_conv_extents extents;     /* of a convolution: axes of 0 where it is none */
    int64_t batch_stride, pixel_stride;
    const float *zeros;                        /* a position in the padding */
    int64_t image_pixels, pixels, pixel_parts; /* of one image, of all; chunks of a pixel's channels */
    uint8_t *image;                            /* [pixels][channels]: integers, as rows have them */
    float *norms; /* [pixels][pixel_parts]: of a pixel's channels, or of each chunk of them */
} product;

/* Where pixel `number` of all images begins. */
static const float *pixel_at(const product *product, int64_t number) {
    const int64_t image = product->image_pixels;
    return product->x + number / image * product->batch_stride + number % image * product->pixel_stride;
}

/* An output's taps: their numbers among all pixels, -1 in the padding, and where they begin. */
static void find_taps(const product *product, int64_t row, int64_t *taps, const float **rows) {
    const int64_t batch = row / product->extents.positions;
    const float *image = product->x + batch * product->batch_stride;
    sb_conv_find_taps(&product->extents, row % product->extents.positions, taps);
    for (int64_t t = 0; t < product->block.taps; t++) {
        bool inside = taps[t] >= 0;
        rows[t] = inside ? image + taps[t] * product->pixel_stride : product->zeros;
        taps[t] = inside ? batch * product->image_pixels + taps[t] : -1;
    }
}

static void find_rows(const product *product, int64_t first, int64_t count, const float **rows) {
    const sb_matmul_geometry *g = &product->geometry;
    for (int64_t r = 0; r < count; r++) {
        int64_t a, b;
        sb_matmul_batch_offsets(g, (first + r) / g->m, &a, &b);
        rows[r] = product->x + a + (first + r) % g->m * g->a_row_stride;
    }
}

/* ---- integers of images: each pixel's once, and not once for each window that it is in ---- */

static void convert_pixels(void *context, int64_t index, void *workspace) {
    const product *product = context;
    const float **table = workspace;
    const int64_t first = index * SB_INTEGER_ROWS, left = product->pixels - first;
    sb_integer_block block = product->block;
    block.rows = left < SB_INTEGER_ROWS ? left : SB_INTEGER_ROWS;
    block.taps = 1;
    block.k = block.pitch = block.channels;
    block.chunk = block.channels < block.chunk ? block.channels : block.chunk;
    block.chunks = product->pixel_parts;
    block.integers = product->image + first * block.channels;
    block.row_norms = product->norms + first * block.chunks;
    block.a = table;
    for (int64_t r = 0; r < block.rows; r++)
        table[r] = pixel_at(product, first + r);
    product->kernels->convert(&block);
}

static void copy_bytes(uint8_t *restrict to, const uint8_t *restrict from, int64_t count) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        memcpy(to + i, from + i, 16);
    for (; i < count; i++)
        to[i] = from[i];
}

/* A row's integers and norms: those of its taps' pixels. */
static void gather_row(const product *product, const sb_integer_block *block, const int64_t *taps, uint8_t *to,
                       float *norms) {
    const int64_t channels = block->channels, parts = product->pixel_parts;
    memset(norms, 0, (size_t)block->chunks * sizeof *norms);
    for (int64_t t = 0; t < block->taps; t++) {
        float *chunk = norms + t * channels / block->chunk;
        if (taps[t] < 0) {
            memset(to + t * channels, -block->a_least, (size_t)channels); /* as zeros are written */
            continue;
        }
        copy_bytes(to + t * channels, product->image + taps[t] * channels, channels);
        for (int64_t i = 0; i < parts; i++)
            chunk[i] += product->norms[taps[t] * parts + i] * product->norms[taps[t] * parts + i];
    }
    for (int64_t c = 0; c < block->chunks; c++)
        norms[c] = __builtin_sqrtf(norms[c]);
    memset(to + block->k, 0, (size_t)(block->pitch - block->k));
}

/* What a thread needs for a block of rows. */
typedef struct room {
    size_t norms, table, taps, bytes; /* integers begin it */
} room;

static room room_of(const product *product) {
    const sb_integer_block *block = &product->block;
    const size_t rows = (size_t)product->block_rows;
    size_t norms = sb_gemm_lines(rows * (size_t)block->pitch);
    size_t table = norms + sb_gemm_lines(rows * (size_t)block->chunks * sizeof(float));
    size_t taps = table + sb_gemm_lines(rows * (size_t)block->taps * sizeof(float *));
    return (room){norms, table, taps, taps + (size_t)block->taps * sizeof(int64_t)};
}

static void run_piece(void *context, int64_t index, void *workspace) {
    const product *product = context;
    const int64_t most = product->block_rows, first = index / product->column_parts * most;
    const int64_t part = index % product->column_parts;
    const room room = room_of(product);
    const float **table = (const float **)(void *)((char *)workspace + room.table);
    int64_t *taps = (int64_t *)(void *)((char *)workspace + room.taps);
    sb_integer_block block = product->block;
    block.rows = product->rows - first < most ? product->rows - first : most;
    block.y += first * block.n;
    block.first_panel = part * product->panels / product->column_parts;
    block.last_panel = (part + 1) * product->panels / product->column_parts;
    block.integers = workspace;
    block.row_norms = (float *)(void *)((char *)workspace + room.norms);
    block.a = table;
    if (product->image != NULL) {
        for (int64_t r = 0; r < block.rows; r++) {
            find_taps(product, first + r, taps, table + r * block.taps);
            gather_row(product, &block, taps, block.integers + r * block.pitch, block.row_norms + r * block.chunks);
        }
    } else {
        find_rows(product, first, block.rows, table);
        product->kernels->convert(&block);
    }
    product->kernels->compute(&block);
}

/* From sums of integers to quotients, for this left operand, these scales and this bias (NULL: none). */
static sb_status scale_columns(sb_call *call, const state *state, const sb_integer_parts *parts, const char *derived,
                               const sb_tensor *bias, sb_integer_block *block) {
    const int32_t *sums = (const int32_t *)(const void *)(derived + parts->sums);
    const float *units = (const float *)(const void *)(derived + parts->units);
    const double scale = (double)state->left.scale / state->trip.scale;
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)((parts->chunks + 3) * parts->columns) * sizeof(float), &memory));
    float *factors = memory, *offsets = factors + parts->columns, *biases = offsets + parts->columns;
    int32_t *starts = (int32_t *)memory + 3 * parts->columns;
    for (int64_t j = 0; j < parts->columns; j++) {
        bool has_bias = bias != NULL && j < block->n;
        biases[j] = has_bias ? ((const float *)(const void *)bias->data)[j * bias->strides[0]] : 0;
        offsets[j] = (float)((double)biases[j] / state->trip.scale);
        factors[j] = (float)(scale * units[j]);
    }
    for (int64_t j = 0; j < parts->chunks * parts->columns; j++)
        starts[j] = state->left.least * sums[j];
    block->starts = starts;
    block->factors = factors;
    block->offsets = offsets;
    block->biases = biases;
    block->norms = (const float *)(const void *)(derived + parts->norms);
    return SB_OK;
}

static sb_status describe_matrix(sb_call *call, const sb_tensor *a, const sb_integer_weights *shape, product *product,
                                 sb_tensor **y) {
    sb_matmul_geometry *g = &product->geometry;
    sb_tensor b = {.dtype = SB_F32, .rank = 2, .dims = {shape->channels, shape->columns}};
    sb_matmul_geometry_of(a, &b, g);
    sb_matmul_merge_batches(g);
    product->rows = g->batches * g->m;
    product->x = (const float *)(const void *)a->data;
    product->block.a_step = g->a_k_stride;
    return sb_call_output(call, 0, y);
}

/* How far pixels that follow each other lie apart, where that is the same everywhere and channels are innermost; 0: it is not. */
static int64_t distance_of_pixels(const sb_tensor *x) {
    int64_t distance = 0, behind = 0;
    for (int d = x->rank - 1; d >= 2; d--) {
        if (x->dims[d] == 1)
            continue;
        if (distance == 0)
            distance = behind = x->strides[d];
        if (x->strides[d] != behind)
            return 0;
        behind *= x->dims[d];
    }
    return x->strides[1] != 1 ? 0 : distance != 0 ? distance : x->dims[1];
}

static int64_t pixels_of(const sb_conv_extents *extents) {
    int64_t pixels = 1;
    for (int i = 0; i < extents->axes; i++)
        pixels *= extents->axis[i].in;
    return pixels;
}

static sb_status describe_convolution(sb_call *call, const sb_contraction_node *contraction, const sb_tensor *x,
                                      const sb_tensor *w, product *product, sb_tensor **y) {
    const sb_conv_params *params = contraction->node->params;
    SB_TRY(sb_channels_last_output(call, x->rank, y));
    if (sb_tensor_elements(*y) == 0)
        return SB_OK;
    sb_conv_extents_of(params, x, w, (*y)->dims, &product->extents);
    product->rows = product->extents.batch * product->extents.positions;
    product->block.a_step = 1;
    product->image_pixels = pixels_of(&product->extents);
    product->pixels = product->extents.batch * product->image_pixels;
    product->pixel_stride = distance_of_pixels(x);
    if (product->pixel_stride != 0) {
        product->x = (const float *)(const void *)x->data;
        product->batch_stride = x->strides[0];
    } else {
        int64_t strides[SB_MAX_RANK];
        SB_TRY(sb_channels_last_copy(call, x, &product->x, strides));
        product->batch_stride = strides[0];
        product->pixel_stride = x->dims[1];
    }
    void *zeros;
    size_t bytes = (size_t)x->dims[1] * sizeof(float);
    SB_TRY(sb_call_workspace(call, bytes, &zeros));
    memset(zeros, 0, bytes);
    product->zeros = zeros;
    return SB_OK;
}

/* Room for an image's integers. */
static sb_status make_image(sb_call *call, product *product) {
    const sb_integer_block *block = &product->block;
    void *image, *norms;
    /* The last may be shorter, of a kernel of one position: else channels are whole chunks, or chunks whole pixels. */
    product->pixel_parts = (block->channels + block->chunk - 1) / block->chunk;
    SB_TRY(sb_call_workspace(call, (size_t)(product->pixels * block->channels), &image));
    SB_TRY(sb_call_workspace(call, (size_t)(product->pixels * product->pixel_parts) * sizeof(float), &norms));
    product->image = image;
    product->norms = norms;
    return sb_pieces_run(call, (product->pixels + SB_INTEGER_ROWS - 1) / SB_INTEGER_ROWS,
                         SB_INTEGER_ROWS * sizeof(float *), convert_pixels, product);
}

static void cut(sb_call *call, product *product) {
    const sb_integer_block *block = &product->block;
    int64_t threads = sb_workers_threads(call->workers), wanted = threads > 1 ? PIECES_PER_THREAD * threads : 1;
    product->panels = (block->n + product->kernels->panel - 1) / product->kernels->panel;
    /* Whole tiles, of 5 rows. */
    int64_t most = SB_INTEGER_BYTES / block->pitch / 5 * 5;
    most = most > SB_INTEGER_ROWS ? SB_INTEGER_ROWS : most < 40 ? 40 : most;
    product->block_rows = product->rows < most ? product->rows : most;
    product->row_parts = (product->rows + product->block_rows - 1) / product->block_rows;
    product->column_parts = (wanted + product->row_parts - 1) / product->row_parts;
    if (product->column_parts > product->panels)
        product->column_parts = product->panels;
}

static sb_status launch(sb_call *call) {
    const state *state = call->state;
    sb_contraction_node contraction = sb_contraction_node_of(call->node);
    const sb_tensor *a = sb_contraction_node_tensor(&contraction, call, 0);
    const sb_tensor *w = sb_contraction_node_tensor(&contraction, call, 1);
    product product = {.kernels = sb_integer_kernels_of(call->isa)};
    sb_integer_block *block = &product.block;
    sb_integer_weights shape;
    sb_integer_parts parts;
    const char *derived;
    sb_tensor *y;
    if (!sb_integer_weights_of(contraction.node, w, &shape) || !sb_integer_weights_parts(call->isa, &shape, &parts))
        return sb_call_fail(call, SB_ERROR_INTERNAL, "the weights have another shape than before");
    if (sb_node_is(contraction.node, "Conv"))
        SB_TRY(describe_convolution(call, &contraction, a, w, &product, &y));
    else
        SB_TRY(describe_matrix(call, a, &shape, &product, &y));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    block->taps = shape.taps;
    block->channels = shape.channels;
    block->k = parts.k;
    block->n = block->y_row_stride = shape.columns;
    block->chunk = parts.chunk;
    block->chunks = parts.chunks;
    block->columns = parts.columns;
    block->pitch = parts.pitch;
    SB_TRY(find_derived(call, w, parts.bytes, &derived));
    SB_TRY(scale_columns(call, state, &parts, derived, sb_contraction_node_tensor(&contraction, call, 2), block));
    block->a_reciprocal = 1.0f / state->left.scale;
    block->a_least = state->left.least;
    block->panels = (const int8_t *)derived + parts.integers;
    block->packed = (const float *)(const void *)derived;
    block->packed_panel = sb_gemm_f32_panel(sb_gemm_f32_kernels(call->isa));
    block->y = (float *)(void *)y->data;
    block->trip = &state->trip;
    if (product.extents.axes > 0)
        SB_TRY(make_image(call, &product));
    cut(call, &product);
    return sb_pieces_run(call, product.row_parts * product.column_parts, room_of(&product).bytes, run_piece, &product);
}

const sb_kernel sb_cpu_kernels_integer_product[] = {
    {.op = "Fused",
     .domain = "samebit",
     .name = "product-of-integers",
     .supports = supports,
     .prepare = prepare,
     .release = release,
     .derives = derives,
     .derive = derive,
     .restore = restore,
     .launch = launch},
    {0},
};
