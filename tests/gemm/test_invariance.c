/* A row has the same bits alone and in any company, and a gradient's sums do not see how samples
 * were put together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engines.h"
#include "product_cases.h"

enum { K = 100, N = 70, MOST = 200 };

/* activation(x · W + bias), gated or not. */
typedef struct layer {
    block weights, bias;
    sb_gate gate;
    sb_dtype dtype;
} layer;

static layer make_layer(random_source *source, sb_dtype dtype, sb_gate gate) {
    int64_t columns = gate == SB_GATE_NONE ? N : 2 * N;
    return (layer){.weights = packed_block(source, dtype, K, columns, 1, false),
                   .bias = packed_block(source, SB_F32, 1, columns, 1, false),
                   .gate = gate,
                   .dtype = dtype};
}

static void layer_free(layer *layer) {
    block_free(&layer->weights);
    block_free(&layer->bias);
}

static void apply(const layer *layer, sb_engine *engine, sb_matrix rows, sb_matrix out) {
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.a = rows;
    gemm.b = layer->weights.matrix;
    gemm.c = out;
    gemm.bias = layer->bias.matrix;
    gemm.gate = layer->gate;
    gemm.activation = SB_ACTIVATION_SILU;
    CHECK_OK(sb_gemm_run(engine, NULL, &gemm, error));
}

/* Neighbours that spoil whatever they touch: NaN, infinities, the largest and the smallest numbers. */
static void fill_rows(random_source *source, sb_matrix rows, const uint16_t *row, int64_t where) {
    static const uint16_t nasty[] = {0x7fff, 0xff80, 0x7c00, 0x7f7f, 0x0001, 0x8000, 0x7bff, 0xffff};
    uint16_t *data = rows.data;
    for (int64_t i = 0; i < rows.rows; i++) {
        for (int64_t k = 0; k < K; k++)
            data[i * rows.row_stride + k * rows.column_stride] = i == where ? row[k] : nasty[random_bits(source) % 8];
    }
}

static void check_company(random_source *source, const layer *layer, const uint16_t *row, const uint16_t *alone,
                          int64_t count, int64_t where, sb_engine *engine) {
    bool odd = random_between(source, 0, 1);
    sb_matrix rows = {.dtype = layer->dtype,
                      .rows = count,
                      .columns = K,
                      .row_stride = odd ? 2 * K + 3 : K,
                      .column_stride = odd ? 2 : 1};
    uint16_t *memory = calloc((size_t)(count * (2 * K + 3)), sizeof *memory);
    uint16_t *out = calloc((size_t)(count * N), sizeof *out);
    assert_true(memory != NULL && out != NULL);
    rows.data = memory;
    fill_rows(source, rows, row, where);
    sb_matrix c = {
        .dtype = layer->dtype, .data = out, .rows = count, .columns = N, .row_stride = N, .column_stride = 1};
    /* In one call or in chunks. */
    for (int64_t begin = 0; begin < count;) {
        int64_t chunk = odd ? random_between(source, 1, count - begin) : count;
        apply(layer, engine, rows_of(rows, begin, chunk), rows_of(c, begin, chunk));
        begin += chunk;
    }
    assert_memory_equal(out + where * N, alone, N * sizeof *out);
    free(out);
    free(memory);
}

static void rows_in_any_company(void **state) {
    random_source source = {3};
    for (int trial = 0; trial < 4; trial++) {
        sb_dtype dtype = trial % 2 ? SB_BF16 : SB_F16;
        layer layer = make_layer(&source, dtype, (sb_gate)(trial % 3));
        block row = packed_block(&source, dtype, 1, K, 1, false);
        block alone = packed_block(&source, dtype, 1, N, 1, false);
        apply(&layer, engines[0], row.matrix, alone.matrix);
        const uint16_t *bits = (const uint16_t *)(const void *)row.bytes;
        const uint16_t *expected = (const uint16_t *)(const void *)alone.bytes;
        for (int64_t count = 1; count <= MOST; count += count < 20 ? 1 : 29) {
            sb_engine *engine = engines[count % engine_count];
            check_company(&source, &layer, bits, expected, count, 0, engine);
            check_company(&source, &layer, bits, expected, count, count - 1, engine);
            check_company(&source, &layer, bits, expected, count, random_between(&source, 0, count - 1), engine);
        }
        block_free(&alone);
        block_free(&row);
        layer_free(&layer);
    }
}

/* Padding with rows of zeros at the end of each sample changes no bit of the gradient, since that
 * is what the product does itself. */
static void padded_samples(void **state) {
    enum { SAMPLES = 6, ROWS = 150, INPUTS = 20, OUTPUTS = 30 };
    static const int64_t lengths[SAMPLES] = {7, 33, 0, 16, 1, 93};
    random_source source = {4};
    block x = packed_block(&source, SB_BF16, ROWS, INPUTS, 1, false);
    block dy = packed_block(&source, SB_BF16, ROWS, OUTPUTS, 1, false);
    uint16_t *padded_x = calloc(SAMPLES * 112 * INPUTS, 2), *padded_dy = calloc(SAMPLES * 112 * OUTPUTS, 2);
    float sums[2][INPUTS * OUTPUTS];
    int64_t row = 0, padded = 0;
    for (int s = 0; s < SAMPLES; s++) {
        memcpy(padded_x + padded * INPUTS, x.bytes + row * INPUTS * 2, (size_t)lengths[s] * INPUTS * 2);
        memcpy(padded_dy + padded * OUTPUTS, dy.bytes + row * OUTPUTS * 2, (size_t)lengths[s] * OUTPUTS * 2);
        row += lengths[s];
        padded += (lengths[s] + 15) / 16 * 16;
    }
    assert_int_equal(row, ROWS);
    for (int i = 0; i < engine_count; i++) {
        sb_row_map *map = NULL;
        CHECK_OK(sb_row_map_create(engines[i], SAMPLES, lengths, &map, error));
        for (int with_zeros = 0; with_zeros < 2; with_zeros++) {
            sb_gemm gemm = SB_GEMM_DEFAULT;
            gemm.a = transposed(x.matrix);
            gemm.b = dy.matrix;
            gemm.c = (sb_matrix){SB_F32, sums[with_zeros], INPUTS, OUTPUTS, OUTPUTS, 1, 0};
            gemm.rows = map;
            if (with_zeros) {
                gemm.a.data = padded_x;
                gemm.b.data = padded_dy;
                gemm.a.columns = gemm.b.rows = padded;
                gemm.rows = NULL;
            }
            CHECK_OK(sb_gemm_run(engines[i], NULL, &gemm, error));
        }
        sb_row_map_release(map);
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    }
    free(padded_dy);
    free(padded_x);
    block_free(&dy);
    block_free(&x);
}

/* What the row map is for: without it, the same samples put together otherwise give other bits. */
static void groups_across_samples_differ(void **state) {
    random_source source = {13};
    block x = packed_block(&source, SB_BF16, 100, 8, 1, false);
    block dy = packed_block(&source, SB_BF16, 100, 8, 1, false);
    float sums[2][64];
    for (int from = 0; from < 2; from++) {
        sb_gemm gemm = SB_GEMM_DEFAULT;
        int64_t cut = from ? 7 : 0;
        gemm.c = (sb_matrix){SB_F32, memset(sums[from], 0, sizeof sums[0]), 8, 8, 8, 1, 0};
        gemm.accumulate = true;
        gemm.a = transposed(rows_of(x.matrix, 0, cut));
        gemm.b = rows_of(dy.matrix, 0, cut);
        CHECK_OK(sb_gemm_run(engines[0], NULL, &gemm, error));
        gemm.a = transposed(rows_of(x.matrix, cut, 100 - cut));
        gemm.b = rows_of(dy.matrix, cut, 100 - cut);
        CHECK_OK(sb_gemm_run(engines[0], NULL, &gemm, error));
    }
    assert_memory_not_equal(sums[0], sums[1], sizeof sums[0]);
    block_free(&dy);
    block_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_in_any_company),
        cmocka_unit_test(padded_samples),
        cmocka_unit_test(groups_across_samples_differ),
    };
    return cmocka_run_group_tests(tests, open_engines, close_engines);
}
