/* Matrix products: B packed ahead or on the way, C of any strides, and the cutting of work for
 * threads. The loop nest is in gemm_block.c.
 *
 * B is packed as panels of [k][panel] columns, so that a register tile reads one stream. A B that
 * is not packed ahead is packed here, at most RAW_BYTES at a time and all of k at once, except
 * where too few rows use it to pay for that; then its rows are read where they lie. */
#include "cpu/contraction/gemm_block.h"

#include "base/isa.h"

/* What is packed on the way at a time, unless one panel alone is more: half an L2. */
#define RAW_BYTES ((int64_t)512 << 10)

/* Columns at a time when C's columns are strided and rows are computed beside it. */
#define STRIDED_COLUMNS 256

/* Up to this many tiles of rows read B's rows in place: then each value is read once or twice either way. */
#define IN_PLACE_TILES 2

static int64_t divide_up(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

const sb_gemm_kernels *sb_gemm_f32_kernels(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_gemm_f32_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_gemm_f32_kernels_avx2;
#endif
    (void)isa;
    return &sb_gemm_f32_kernels_scalar;
}

/* -- Packing ----------------------------------------------------------------------------------- */

/* Bytes of `columns` columns in panels; 0 when that overflows. A whole panel more is allotted, so
 * that a tile that starts inside a panel may load whole vectors in its last row. */
static size_t panel_bytes(const sb_gemm_kernels *kernels, int64_t k, int64_t columns) {
    int64_t panels, rows, bytes;
    if (k < 0 || columns < 0 || __builtin_mul_overflow(divide_up(columns, kernels->panel), k, &rows) ||
        __builtin_add_overflow(rows, 1, &rows) || __builtin_mul_overflow(rows, kernels->panel, &panels) ||
        __builtin_mul_overflow(panels, (int64_t)sizeof(float), &bytes) || bytes > INT64_MAX - 64)
        return 0;
    return sb_gemm_lines((size_t)bytes);
}

size_t sb_gemm_f32_packed_bytes(const sb_gemm_kernels *kernels, int64_t k, int64_t n) {
    return panel_bytes(kernels, k, n);
}

int64_t sb_gemm_f32_panel(const sb_gemm_kernels *kernels) {
    return kernels->panel;
}

void sb_gemm_f32_pack_b(const sb_gemm_kernels *kernels, int64_t k, int64_t n, const float *b, int64_t row_stride,
                        int64_t column_stride, int64_t n0, int64_t n1, float *packed) {
    const int64_t panel = kernels->panel;
    packed += n0 * k;
    for (int64_t column = n0; column < n1; column += panel, packed += k * panel) {
        int64_t columns = minimum(panel, n - column);
        kernels->copy(k, columns, b + column * column_stride, row_stride, column_stride, packed, panel);
        if (columns < panel)
            for (int64_t row = 0; row < k; row++)
                for (int64_t j = columns; j < panel; j++)
                    packed[row * panel + j] = 0.0f;
    }
    for (int64_t j = 0; j < panel && n1 == n; j++)
        packed[j] = 0.0f;
}

/* Columns of a raw B that are packed at a time. */
static int64_t raw_columns(const sb_gemm_kernels *kernels, const sb_gemm_args *args) {
    int64_t panel_size = kernels->panel * (int64_t)sizeof(float);
    int64_t panels = args->k > 0 ? RAW_BYTES / panel_size / args->k : args->n / kernels->panel + 1;
    return (panels > 0 ? panels : 1) * kernels->panel;
}

/* -- Workspace --------------------------------------------------------------------------------- */

/* One call's workspace: the block's own, then strided C's rows, then panels of a raw B. */
typedef struct gemm_workspace {
    const float *a[SB_GEMM_BLOCK_ROWS];
    float *c[SB_GEMM_BLOCK_ROWS];
} gemm_workspace;

static size_t strided_c_bytes(const sb_gemm_args *args) {
    return args->c_column_stride == 1 ? 0 : (size_t)SB_GEMM_BLOCK_ROWS * STRIDED_COLUMNS * sizeof(float);
}

size_t sb_gemm_f32_workspace_bytes(const sb_gemm_kernels *kernels, const sb_gemm_args *args) {
    size_t bytes = sb_gemm_lines(sizeof(gemm_workspace)) + sb_gemm_block_workspace_bytes() + strided_c_bytes(args);
    if (args->packed_b != NULL)
        return bytes;
    int64_t columns = minimum(raw_columns(kernels, args), divide_up(args->n, kernels->panel) * kernels->panel);
    size_t panels = panel_bytes(kernels, args->k, columns);
    return panels == 0 || panels > SIZE_MAX - bytes ? 0 : bytes + panels;
}

/* -- The product ------------------------------------------------------------------------------- */

/* Where columns [n0, n1) of B are read from. */
typedef struct columns {
    int64_t n0, n1;
    const float *b;
    int64_t step, panel_step, panel_offset;
} columns;

typedef struct call {
    const sb_gemm_kernels *kernels;
    const sb_gemm_args *args;
    gemm_workspace *pointers;
    void *block_workspace;
    float *c_rows; /* for strided C */
    float *panels; /* for raw B */
} call;

static void compute_rows(const call *call, const columns *columns, int64_t m, int64_t rows) {
    const sb_gemm_args *args = call->args;
    const bool strided = args->c_column_stride != 1;
    float *c = args->c + m * args->c_row_stride + columns->n0 * args->c_column_stride;
    const int64_t count = columns->n1 - columns->n0;
    for (int64_t r = 0; r < rows; r++) {
        call->pointers->a[r] = args->a + (m + r) * args->a_row_stride;
        call->pointers->c[r] = strided ? call->c_rows + r * STRIDED_COLUMNS : c + r * args->c_row_stride;
    }
    if (strided && args->continues)
        call->kernels->copy(rows, count, c, args->c_row_stride, args->c_column_stride, call->c_rows, STRIDED_COLUMNS);
    sb_gemm_block_compute(call->kernels,
                          &(sb_gemm_block){.rows = rows,
                                           .a = call->pointers->a,
                                           .a_column_stride = args->a_column_stride,
                                           .a_row_stride = args->a_row_stride,
                                           .runs = 1,
                                           .length = args->k,
                                           .b = columns->b,
                                           .b_step = columns->step,
                                           .b_panel_step = columns->panel_step,
                                           .panel_offset = columns->panel_offset,
                                           .n0 = columns->n0,
                                           .n1 = columns->n1,
                                           .c = call->pointers->c,
                                           .far = args->m >= SB_GEMM_FAR_BYTES / (int64_t)sizeof(float) / args->n,
                                           .continues = args->continues,
                                           .epilogue = args->epilogue,
                                           .m = m,
                                           .workspace = call->block_workspace});
    if (strided && args->c_row_stride == 1)
        call->kernels->copy(count, rows, call->c_rows, 1, STRIDED_COLUMNS, c, args->c_column_stride);
    else if (strided)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < count; j++)
                c[r * args->c_row_stride + j * args->c_column_stride] = call->c_rows[r * STRIDED_COLUMNS + j];
}

bool sb_gemm_f32_in_one_pass(int64_t k) {
    return sb_gemm_in_one_pass(1, k);
}

/* All rows of the rectangle, in blocks of whole tiles; strided C a few columns at a time. */
static void compute_columns(const call *call, const columns *all, int64_t m0, int64_t m1) {
    const int64_t panel = call->kernels->panel;
    const int64_t block_rows = SB_GEMM_BLOCK_ROWS / call->kernels->rows * call->kernels->rows;
    const int64_t blocks = divide_up(m1 - m0, block_rows);
    const int64_t width =
        call->args->c_column_stride == 1 ? all->n1 - all->n0 + panel : STRIDED_COLUMNS / panel * panel;
    for (int64_t b = 0, m = m0; b < blocks; b++) {
        int64_t rows =
            minimum(divide_up(divide_up(m1 - m, blocks - b), call->kernels->rows) * call->kernels->rows, m1 - m);
        columns part = *all;
        while (part.n0 < all->n1) {
            part.n1 = minimum(part.n0 + width - part.panel_offset, all->n1);
            compute_rows(call, &part, m, rows);
            part.b += part.panel_step * (width / panel) - part.panel_offset;
            part.panel_offset = 0;
            part.n0 = part.n1;
        }
        m += rows;
    }
}

/* A raw B: read in place up to the last whole panel when few rows use it, else packed some columns
 * at a time. */
static void compute_raw(const call *call, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    const sb_gemm_kernels *kernels = call->kernels;
    const sb_gemm_args *args = call->args;
    const int64_t panel = kernels->panel;
    const float *b = args->b + n0 * args->b_column_stride;
    if (args->b_column_stride == 1 && m1 - m0 <= IN_PLACE_TILES * kernels->rows) {
        int64_t whole = (n1 - n0) / panel * panel;
        columns in_place = {.n0 = n0, .n1 = n0 + whole, .b = b, .step = args->b_row_stride, .panel_step = panel};
        compute_columns(call, &in_place, m0, m1);
        n0 += whole;
        b += whole;
    }
    for (const int64_t most = raw_columns(kernels, args); n0 < n1;) {
        int64_t count = minimum(most, n1 - n0);
        sb_gemm_f32_pack_b(kernels, args->k, count, b, args->b_row_stride, args->b_column_stride, 0, count,
                           call->panels);
        columns packed = {.n0 = n0, .n1 = n0 + count, .b = call->panels, .step = panel, .panel_step = args->k * panel};
        compute_columns(call, &packed, m0, m1);
        n0 += count;
        b += count * args->b_column_stride;
    }
}

void sb_gemm_f32_run(const sb_gemm_kernels *kernels, const sb_gemm_args *args, int64_t m0, int64_t m1, int64_t n0,
                     int64_t n1, void *workspace) {
    if (m0 >= m1 || n0 >= n1)
        return;
    char *bytes = workspace;
    call call = {.kernels = kernels, .args = args, .pointers = (gemm_workspace *)(void *)bytes};
    bytes += sb_gemm_lines(sizeof(gemm_workspace));
    call.block_workspace = bytes;
    bytes += sb_gemm_block_workspace_bytes();
    call.c_rows = (float *)(void *)bytes;
    bytes += strided_c_bytes(args);
    call.panels = (float *)(void *)bytes;

    if (args->packed_b == NULL) {
        compute_raw(&call, m0, m1, n0, n1);
        return;
    }
    const int64_t panel = kernels->panel;
    columns packed = {.n0 = n0,
                      .n1 = n1,
                      .b = args->packed_b + n0 / panel * panel * args->k + n0 % panel,
                      .step = panel,
                      .panel_step = args->k * panel,
                      .panel_offset = n0 % panel};
    compute_columns(&call, &packed, m0, m1);
}
