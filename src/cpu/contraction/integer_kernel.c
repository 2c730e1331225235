/* The kernels of MatMulInteger and QLinearMatMul, and the table with that of ConvInteger. Rows of the left side are
 * made words of once; threads take panels of columns by pieces of rows. */
#include <string.h>

#include "cpu/contraction/integer.h"
#include "cpu/contraction/integer_conv.h"
#include "cpu/list.h"
#include "cpu/supports.h"
#include "ops/matmul.h"
#include "ops/matmul_integer.h"

/* Rows that a thread takes by a panel at once, at most: their elements stay in L2. */
#define PIECE_ROWS 192
/* Words of products that are worth a thread of their own. */
#define GRAIN_WORDS 100000
/* Results that are worth a thread of their own where they are rescaled. */
#define GRAIN_RESULTS 32768

/* Where an operator has its right side. */
static bool rescales(const sb_node *node) {
    return strcmp(node->op->name, "QLinearMatMul") == 0;
}

static int right_of(const sb_node *node) {
    return rescales(node) ? 3 : 1;
}

/* ---- the right side ---- */

static sb_status derives_right(const sb_kernel_query *query, sb_derived_form *form, sb_error *error) {
    const sb_fact *b = query->inputs[right_of(query->node)];
    int64_t dims[SB_MAX_RANK];
    if (b->rank != 2 || !sb_fact_is_concrete(b, dims) || dims[0] == 0 || dims[1] == 0)
        return SB_OK;
    form->input = right_of(query->node);
    const sb_integer_form *integers = sb_integer_form_of(query->isa);
    form->layout = sb_integer_layout(integers);
    form->bytes = sb_integer_packed_bytes(integers, dims[0], dims[1]);
    return form->bytes != 0 ? SB_OK : sb_fail_memory(error, SIZE_MAX);
}

typedef struct packing {
    const sb_integer_form *form;
    sb_integer_right right;
    uint8_t *packed;
} packing;

static void pack_panels(void *context, int64_t begin, int64_t end) {
    const packing *to = context;
    sb_integer_pack(to->form, &to->right, begin, end, to->packed);
}

static void pack(sb_workers *workers, packing *to) {
    sb_workers_run(workers, sb_integer_panels(to->form, to->right.n), 1 + GRAIN_WORDS / (to->form->panel * to->right.k),
                   pack_panels, to);
}

static sb_status derive_right(sb_call *call, const sb_tensor *from, void *derived) {
    packing to = {.form = sb_integer_form_of(call->isa),
                  .right = {.dtype = from->dtype,
                            .b = from->data,
                            .k_stride = from->strides[0],
                            .column_stride = from->strides[1],
                            .k = from->dims[0],
                            .n = from->dims[1]},
                  .packed = derived};
    pack(call->workers, &to);
    return SB_OK;
}

/* ---- zero points ---- */

/* One number for all, or one for each of `count` (of whose tensors the rank is at least 2); `count` is 1 then or that many. */
typedef struct zero_points {
    const sb_tensor *tensor; /* NULL: 0 */
    int64_t count;
} zero_points;

static bool find_zeros(const sb_tensor *tensor, const sb_tensor *of, int64_t count, zero_points *zeros) {
    *zeros = (zero_points){.tensor = tensor, .count = 1};
    if (tensor == NULL)
        return true;
    if (sb_tensor_elements(tensor) == 1)
        return tensor->rank <= of->rank;
    zeros->count = count;
    return tensor->rank == 1 && of->rank >= 2 && tensor->dims[0] == count;
}

static int32_t zero_at(const zero_points *zeros, int64_t index) {
    if (zeros->tensor == NULL)
        return 0;
    int64_t step = zeros->count == 1 ? 0 : zeros->tensor->strides[0];
    return sb_quantized_load(zeros->tensor->dtype, zeros->tensor->data, index * step);
}

/* ---- products ---- */

typedef struct product {
    sb_matmul_geometry geometry;
    const sb_integer_form *form;
    sb_dtype dtype; /* of the left side */
    const char *a;  /* of the present batch */
    zero_points a_zero, b_zero;
    int64_t zero_rows;  /* after which the rows' zero points begin again */
    int64_t row_pieces; /* of PIECE_ROWS */
    uint8_t *rows;      /* [m][words][4] */
    int32_t *zeros;     /* [m], shifted */
    uint32_t *sums;     /* [m] */
    const uint8_t *packed;
    sb_dtype packed_dtype;
    int32_t *y; /* [m][n] of the present batch */
} product;

static void take_rows(void *context, int64_t begin, int64_t end) {
    const product *work = context;
    const sb_matmul_geometry *g = &work->geometry;
    const int64_t words = sb_integer_words(work->form, g->k);
    for (int64_t row = begin; row < end; row++) {
        const int32_t zero = zero_at(&work->a_zero, row % work->zero_rows) + sb_integer_left_shift(work->dtype);
        const uint32_t sum = work->form->row(work->dtype, work->a + row * g->a_row_stride, g->a_k_stride, g->k,
                                             work->rows + 4 * row * words);
        work->zeros[row] = zero;
        work->sums[row] = sum - (uint32_t)g->k * (uint32_t)zero;
    }
}

static void multiply_pieces(void *context, int64_t begin, int64_t end) {
    const product *work = context;
    const sb_matmul_geometry *g = &work->geometry;
    const int64_t words = sb_integer_words(work->form, g->k), panel = work->form->panel;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t column = piece / work->row_pieces * panel;
        const int64_t row = piece % work->row_pieces * PIECE_ROWS;
        int32_t zeros[SB_INTEGER_PANEL] = {0};
        sb_integer_tile tile = {.rows = g->m - row < PIECE_ROWS ? g->m - row : PIECE_ROWS,
                                .words = words,
                                .columns = g->n - column < panel ? g->n - column : panel,
                                .a = work->rows + 4 * row * words,
                                .zeros = work->zeros + row,
                                .sums = work->sums + row,
                                .panel =
                                    work->packed + (size_t)(column / panel) * sb_integer_panel_bytes(work->form, g->k),
                                .column_zeros = zeros,
                                .c = work->y + row * g->n + column,
                                .c_stride = g->n};
        for (int64_t j = 0; j < tile.columns; j++)
            zeros[j] = zero_at(&work->b_zero, column + j) + sb_integer_right_shift(work->packed_dtype);
        work->form->multiply(&tile);
    }
}

static void multiply_batch(sb_workers *workers, product *work) {
    const sb_matmul_geometry *g = &work->geometry;
    const int64_t words = sb_integer_words(work->form, g->k);
    work->row_pieces = (g->m + PIECE_ROWS - 1) / PIECE_ROWS;
    sb_workers_run(workers, g->m, 1 + GRAIN_WORDS / words, take_rows, work);
    int64_t rows = g->m < PIECE_ROWS ? g->m : PIECE_ROWS;
    sb_workers_run(workers, sb_integer_panels(work->form, g->n) * work->row_pieces, 1 + GRAIN_WORDS / (rows * words),
                   multiply_pieces, work);
}

static void multiply_all(sb_call *call, const sb_tensor *b, product *work, int32_t *y, uint8_t *memory) {
    const sb_matmul_geometry *g = &work->geometry;
    const char *a = work->a;
    work->packed_dtype = b->dtype;
    for (int64_t batch = 0; batch < g->batches; batch++) {
        int64_t a_offset, b_offset;
        sb_matmul_batch_offsets(g, batch, &a_offset, &b_offset);
        work->a = a + a_offset;
        work->y = y + batch * g->m * g->n;
        work->packed = call->derived;
        if (work->packed == NULL) {
            packing to = {.form = work->form,
                          .right = {.dtype = b->dtype,
                                    .b = b->data + b_offset,
                                    .k_stride = g->b_k_stride,
                                    .column_stride = g->b_column_stride,
                                    .k = g->k,
                                    .n = g->n},
                          .packed = memory};
            pack(call->workers, &to);
            work->packed = memory;
        }
        multiply_batch(call->workers, work);
    }
}

/* Workspace for the left side and, where nobody has packed the right one, for that. */
static sb_status take_workspace(sb_call *call, product *work, void **packed) {
    const sb_matmul_geometry *g = &work->geometry;
    const size_t row_bytes = (size_t)sb_integer_words(work->form, g->k) * 4;
    void *memory;
    size_t bytes = sb_integer_packed_bytes(work->form, g->k, g->n);
    if (bytes == 0)
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the packed matrix's size overflows");
    *packed = NULL;
    if (call->derived == NULL)
        SB_TRY(sb_call_workspace(call, bytes, packed));
    SB_TRY(sb_call_workspace(call, (size_t)g->m * row_bytes, &memory));
    work->rows = memory;
    SB_TRY(sb_call_workspace(call, (size_t)g->m * sizeof *work->zeros, &memory));
    work->zeros = memory;
    SB_TRY(sb_call_workspace(call, (size_t)g->m * sizeof *work->sums, &memory));
    work->sums = memory;
    return SB_OK;
}

/* ---- QLinearMatMul: sums rescaled row by row ---- */

typedef struct rescaling {
    sb_integer_rescale *rescale;
    zero_points a_scale, b_scale; /* shaped as zero points are */
    float y_scale;
    int32_t y_zero;
    int64_t zero_rows, n;
    float *multipliers; /* [n], of the present row */
    int32_t *bias;      /* [n] zeros */
    const int32_t *sums;
    sb_tensor *y;
} rescaling;

static float scale_at(const zero_points *scales, int64_t index) {
    int64_t step = scales->count == 1 ? 0 : scales->tensor->strides[0];
    return ((const float *)(const void *)scales->tensor->data)[index * step];
}

/* False where the definition has to do it: scales of 16 bits or of other shapes. */
static bool find_rescaling(const sb_call *call, const sb_matmul_geometry *g, rescaling *to) {
    const sb_tensor *a = sb_call_input(call, 0), *b = sb_call_input(call, 3);
    const sb_tensor *a_scale = sb_call_input(call, 1), *b_scale = sb_call_input(call, 4);
    const sb_tensor *y_scale = sb_call_input(call, 6), *y_zero = sb_call_input(call, 7);
    if (a_scale->dtype != SB_F32 || b_scale->dtype != SB_F32 || y_scale->dtype != SB_F32 ||
        sb_tensor_elements(y_scale) != 1 || sb_tensor_elements(y_zero) != 1 || y_scale->rank > 1 || y_zero->rank > 1 ||
        !find_zeros(a_scale, a, g->m, &to->a_scale) || !find_zeros(b_scale, b, g->n, &to->b_scale))
        return false;
    to->y_scale = *(const float *)(const void *)y_scale->data;
    to->y_zero = sb_quantized_load(y_zero->dtype, y_zero->data, 0);
    to->zero_rows = g->m;
    to->n = g->n;
    return true;
}

static void find_multipliers(const rescaling *to, int64_t row) {
    const float a_scale = scale_at(&to->a_scale, row % to->zero_rows);
    for (int64_t j = 0; j < to->n; j++)
        to->multipliers[j] = (a_scale * scale_at(&to->b_scale, j)) / to->y_scale;
}

static void rescale_rows(void *context, int64_t begin, int64_t end) {
    const rescaling *to = context;
    for (int64_t row = begin; row < end; row++)
        to->rescale(to->y->dtype, to->n, to->sums + row * to->n, to->bias, to->multipliers, to->y_zero,
                    to->y->data + row * to->n);
}

static sb_status rescale_all(sb_call *call, rescaling *to, int64_t rows) {
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)to->n * sizeof *to->multipliers, &memory));
    to->multipliers = memory;
    SB_TRY(sb_call_workspace(call, (size_t)to->n * sizeof *to->bias, &memory));
    to->bias = memory;
    memset(memory, 0, (size_t)to->n * sizeof *to->bias);
    if (to->a_scale.count == 1) {
        find_multipliers(to, 0);
        sb_workers_run(call->workers, rows, 1 + GRAIN_RESULTS / to->n, rescale_rows, to);
        return SB_OK;
    }
    for (int64_t row = 0; row < rows; row++) {
        find_multipliers(to, row);
        rescale_rows(to, row, row + 1);
    }
    return SB_OK;
}

static sb_integer_rescale *rescale_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_integer_rescale_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_integer_rescale_avx2;
#endif
    (void)isa;
    return sb_integer_rescale_scalar;
}

static sb_status launch_product(sb_call *call) {
    const bool quantizes = rescales(call->node);
    const int right = right_of(call->node);
    const sb_tensor *a = sb_call_input(call, 0), *b = sb_call_input(call, right);
    sb_tensor *y;
    product work = {.form = sb_integer_form_of(call->isa), .dtype = a->dtype, .a = a->data};
    rescaling to = {.rescale = rescale_for(call->isa)};
    void *packed, *sums;
    sb_matmul_geometry *g = &work.geometry;
    sb_matmul_geometry_of(a, b, g);
    /* Zero points of other shapes are for the definition, as are empty operands. */
    if (!find_zeros(sb_call_input(call, 2), a, g->m, &work.a_zero) ||
        !find_zeros(sb_call_input(call, right + 2), b, g->n, &work.b_zero) || g->batches == 0 || g->m == 0 ||
        g->n == 0 || g->k == 0 || (quantizes && !find_rescaling(call, g, &to)))
        return call->node->op->eval(call);
    const int64_t rows = g->batches * g->m;
    work.zero_rows = g->m;
    sb_matmul_merge_batches(g);
    SB_TRY(sb_call_output(call, 0, &y));
    SB_TRY(take_workspace(call, &work, &packed));
    sums = y->data;
    if (quantizes)
        SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(y) * sizeof(int32_t), &sums));
    multiply_all(call, b, &work, sums, packed);
    if (!quantizes)
        return SB_OK;
    to.sums = sums;
    to.y = y;
    return rescale_all(call, &to, rows);
}

const sb_kernel sb_cpu_kernels_matmul_integer[] = {
    {.op = "MatMulInteger",
     .name = "integer-product",
     .supports = sb_cpu_supports_all,
     .derives = derives_right,
     .derive = derive_right,
     .launch = launch_product},
    {.op = "QLinearMatMul",
     .name = "integer-product",
     .supports = sb_cpu_supports_all,
     .derives = derives_right,
     .derive = derive_right,
     .launch = launch_product},
    {.op = "ConvInteger",
     .name = "integer-convolution",
     .supports = sb_integer_conv_supports,
     .derives = sb_integer_conv_derives,
     .derive = sb_integer_conv_derive,
     .launch = sb_integer_conv_launch},
    {.op = "QLinearConv",
     .name = "integer-convolution",
     .supports = sb_integer_conv_supports,
     .derives = sb_integer_conv_derives,
     .derive = sb_integer_conv_derive,
     .launch = sb_integer_conv_launch},
    {0},
};
