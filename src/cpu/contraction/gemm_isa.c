/* Register tiles of the matrix product, compiled once per instruction set.
 *
 * A tile of R rows and V vectors of columns keeps R × V accumulators in registers; one step of k
 * loads V vectors of B, broadcasts R values of A and does R × V multiply-adds. Lanes are columns,
 * so every element is one chain in ascending k whatever R and V are.
 *
 * R × V = 14 × 2 on 32 registers, 6 × 2 on 16: 28 (12) multiply-adds per 16 (8) loads, and far more
 * independent chains than the latency of a multiply-add needs. Two vectors rather than three or
 * four because layers have multiples of 32 columns more often than of 48 or 64, and few enough rows
 * per B vector are left over at 14 = 196 / 14. A is read through row pointers, not packed: the
 * pointer loads fit in the free load slots. */
#include "cpu/contraction/gemm_kernels.h"

#include "base/isa.h"
#include "cpu/contraction/gemm_epilogue.h"
#include "cpu/simd.h"

#define VECTORS 2
#define PANEL (VECTORS * SB_VF_LANES)
#if SB_VF_LANES == 1
#define ROWS 4
#elif SB_VF_REGISTERS == 32
#define ROWS 14
#else
#define ROWS 6
#endif

#define UNROLL SB_UNROLL
#define ALWAYS SB_VF_INLINE

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

/* -- Epilogue ---------------------------------------------------------------------------------- */

/* A matrix whose columns lie apart. */
static void apply_strided(const sb_epilogue_step *step, float *row, int64_t m, int64_t n, int64_t count) {
    const float *operand = step->vector + m * step->row_stride + n * step->column_stride;
    for (int64_t i = 0; i < count; i++) {
        const float other = operand[i * step->column_stride];
        row[i] = step->kind == SB_EPILOGUE_MUL_MATRIX ? row[i] * other : row[i] + step->scalar * other;
    }
}

static void epilogue_row(const sb_epilogue_step *step, int steps, float *row, int64_t m, int64_t n, int64_t count) {
    for (int s = 0; s < steps; s++, step++) {
        if (step->kind == SB_EPILOGUE_CALL) {
            step->call(step->context, row, m, n, count);
        } else if (!sb_epilogue_in_registers(step)) {
            apply_strided(step, row, m, n, count);
        } else {
            for (int64_t i = 0; i < count; i += SB_VF_LANES) {
                const bool whole = i + SB_VF_LANES <= count;
                const sb_epilogue_block block = {.m = m, .n = n + i, .columns = count - i};
                vf y = sb_epilogue_load(row + i, count - i, whole);
                sb_epilogue_apply(step, &block, &y, 1, 1, 1, whole);
                if (whole)
                    vf_store(row + i, y);
                else
                    vf_store_first(row + i, y, count - i);
            }
        }
    }
}

/* -- Tiles ------------------------------------------------------------------------------------- */

/* Lanes of vector v that lie within `columns`. */
ALWAYS int64_t lanes_within(int64_t columns, int v) {
    int64_t lanes = columns - (int64_t)v * SB_VF_LANES;
    return lanes < 0 ? 0 : lanes > SB_VF_LANES ? SB_VF_LANES : lanes;
}

/* Epilogue in registers and store. */
ALWAYS void store_tile(const sb_gemm_tile *tile, vf (*acc)[VECTORS * 4], const int rows, const int vectors,
                       const bool whole) {
    const sb_epilogue_block block = {.m = tile->m, .n = tile->n, .columns = tile->columns, .last_row = rows};
    for (int s = 0; s < tile->steps; s++)
        sb_epilogue_apply(tile->step + s, &block, acc[0], VECTORS * 4, rows, vectors, whole);
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int v = 0; v < vectors; v++) {
            if (whole)
                vf_store(tile->c[r] + tile->c_offset + v * SB_VF_LANES, acc[r][v]);
            else
                vf_store_first(tile->c[r] + tile->c_offset + v * SB_VF_LANES, acc[r][v],
                               lanes_within(tile->columns, v));
        }
    }
}

/* `panels` panels of `vectors` vectors each; only one panel, the last, may have fewer columns. */
ALWAYS void compute(const sb_gemm_tile *tile, const int rows, const int vectors, const int panels) {
    vf acc[ROWS][VECTORS * 4];
    const int all = vectors * panels;
    const bool whole = tile->columns == (int64_t)all * SB_VF_LANES;
    if (!tile->continues) {
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < all; v++) acc[r][v] = vf_zero();
    } else if (whole) {
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < all; v++) acc[r][v] =
            vf_load(tile->c[r] + tile->c_offset + v * SB_VF_LANES);
    } else {
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < all; v++) acc[r][v] =
            vf_load_first(tile->c[r] + tile->c_offset + v * SB_VF_LANES, lanes_within(tile->columns, v));
    }

    const float *const *pointers = tile->a;
    const float *b = tile->b;
    const int64_t b_step = tile->b_step;
    const int64_t b_panel_step = tile->b_panel_step;
    const int64_t bytes = tile->length * (int64_t)sizeof(float);
    const char *prefetch = tile->prefetch;
    for (int64_t run = 0; run < tile->runs; run++, pointers += tile->a_run_step) {
        const char *a[ROWS];
        UNROLL for (int r = 0; r < rows; r++) a[r] = (const char *)(pointers[r] + tile->a_offset);
        /* One index for the rows and what is fetched: there are more pointers than registers. */
        for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(float), b += b_step) {
            __builtin_prefetch(prefetch + 8 * i, 0, 2);
            vf column[VECTORS * 4];
            UNROLL for (int p = 0; p < panels; p++) UNROLL for (int v = 0; v < vectors; v++) column[p * vectors + v] =
                vf_load(b + p * b_panel_step + v * SB_VF_LANES);
            UNROLL for (int r = 0; r < rows; r++) {
                vf value = vf_set(*(const float *)(const void *)(a[r] + i));
                UNROLL for (int v = 0; v < all; v++) acc[r][v] = vf_fma(value, column[v], acc[r][v]);
            }
        }
        prefetch += 8 * bytes;
    }
    if (whole)
        store_tile(tile, acc, rows, all, true);
    else
        store_tile(tile, acc, rows, all, false);
}

#define TILE(rows)                                                                                                     \
    static void tile_##rows(const sb_gemm_tile *tile) {                                                                \
        if (tile->columns > SB_VF_LANES)                                                                               \
            compute(tile, rows, VECTORS, 1);                                                                           \
        else                                                                                                           \
            compute(tile, rows, 1, 1);                                                                                 \
    }
#define WIDE(rows, panels)                                                                                             \
    static void wide_##rows(const sb_gemm_tile *tile) {                                                                \
        compute(tile, rows, VECTORS, panels);                                                                          \
    }

TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if ROWS >= 6
TILE(5)
TILE(6)
#endif
#if ROWS == 14
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)
#endif

/* Few rows: enough panels for eight or more accumulators. */
#if SB_VF_REGISTERS == 32
#define WIDE_PANELS 4, 4, 3
WIDE(1, 4)
WIDE(2, 4)
WIDE(3, 3)
#else
#define WIDE_PANELS 4, 2, 2
WIDE(1, 4)
WIDE(2, 2)
WIDE(3, 2)
#endif

static sb_gemm_tile_function *const tiles[ROWS] = {
    tile_1, tile_2, tile_3, tile_4,
#if ROWS >= 6
    tile_5, tile_6,
#endif
#if ROWS == 14
    tile_7, tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14,
#endif
};

static sb_gemm_tile_function *const wide[SB_GEMM_WIDE_ROWS] = {wide_1, wide_2, wide_3};

/* -- Data movement ----------------------------------------------------------------------------- */

#if SB_VF_LANES >= 8
/* destination[j][i] = source[i][j] for an 8 × 8 block. */
ALWAYS void transpose_8x8(const float *source, int64_t source_stride, float *destination, int64_t destination_stride) {
    __m256 r[8], pair[8];
    UNROLL for (int i = 0; i < 4; i++) {
        /* Rows i and i + 4 side by side, so that the last step needs no exchange of halves. */
        const float *upper = source + i * source_stride, *lower = source + (i + 4) * source_stride;
        r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(upper)), _mm_loadu_ps(lower), 1);
        r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(upper + 4)), _mm_loadu_ps(lower + 4), 1);
    }
    UNROLL for (int i = 0; i < 8; i += 4) {
        pair[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
        pair[i + 2] = _mm256_unpacklo_ps(r[i + 2], r[i + 3]);
        pair[i + 3] = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
    }
    UNROLL for (int i = 0; i < 8; i += 4) {
        float *row = destination + i * destination_stride;
        _mm256_storeu_ps(row, _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44));
        _mm256_storeu_ps(row + destination_stride, _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee));
        row += 2 * destination_stride;
        _mm256_storeu_ps(row, _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44));
        _mm256_storeu_ps(row + destination_stride, _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee));
    }
}
#endif

static void copy_elements(int64_t rows, int64_t columns, const float *source, int64_t row_stride, int64_t column_stride,
                          float *destination, int64_t destination_stride) {
    if (columns < rows && row_stride == 1) { /* planes to few channels: long loops over a plane */
        for (int64_t j = 0; j < columns; j++, source += column_stride, destination++)
            for (int64_t i = 0; i < rows; i++)
                destination[i * destination_stride] = source[i];
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            destination[i * destination_stride + j] = source[i * row_stride + j * column_stride];
}

static void copy(int64_t rows, int64_t columns, const float *source, int64_t row_stride, int64_t column_stride,
                 float *destination, int64_t destination_stride) {
    if (column_stride == 1) {
        for (int64_t i = 0; i < rows; i++) {
            const float *from = source + i * row_stride;
            float *to = destination + i * destination_stride;
            int64_t j = 0;
            for (; j + SB_VF_LANES <= columns; j += SB_VF_LANES)
                vf_store(to + j, vf_load(from + j));
            for (; j < columns; j++)
                to[j] = from[j];
        }
        return;
    }
#if SB_VF_LANES >= 8
    if (row_stride == 1) {
        const int64_t whole_rows = rows & ~(int64_t)7, whole_columns = columns & ~(int64_t)7;
        for (int64_t i = 0; i < whole_rows; i += 8)
            for (int64_t j = 0; j < whole_columns; j += 8)
                transpose_8x8(source + i + j * column_stride, column_stride, destination + i * destination_stride + j,
                              destination_stride);
        copy_elements(whole_rows, columns - whole_columns, source + whole_columns * column_stride, 1, column_stride,
                      destination + whole_columns, destination_stride);
        copy_elements(rows - whole_rows, columns, source + whole_rows, 1, column_stride,
                      destination + whole_rows * destination_stride, destination_stride);
        return;
    }
#endif
    copy_elements(rows, columns, source, row_stride, column_stride, destination, destination_stride);
}

const sb_gemm_kernels SB_ISA_NAME(sb_gemm_f32_kernels) = {
    .name = TEXT(SB_ISA),
    .lanes = SB_VF_LANES,
    .rows = ROWS,
    .panel = PANEL,
    .tile = tiles,
    .wide = wide,
    .wide_panels = {WIDE_PANELS},
    .copy = copy,
    .epilogue_row = epilogue_row,
    .depthwise = SB_ISA_NAME(sb_depthwise_f32_tile),
    .depthwise_line = SB_ISA_NAME(sb_depthwise_f32_line),
    .conv_line = SB_ISA_NAME(sb_conv_f32_line),
    .conv_planes = SB_ISA_NAME(sb_conv_f32_planes),
};
