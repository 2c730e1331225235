/* Products on the CPU against their definition: random shapes, strides, values, epilogues, row
 * maps; every schedule, instruction set and number of threads. */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "engines.h"
#include "kernel/contraction/check.h"
#include "product_cases.h"
#include "support/failing.h"

#define MOST_SAMPLES 40

/* A product with all of its memory. */
typedef struct product {
    sb_gemm gemm;
    block a, b, bias, residual, c;
    bool has_map;
    int samples;
    int64_t lengths[MOST_SAMPLES];
} product;

static void product_free(product *p) {
    block_free(&p->a);
    block_free(&p->b);
    block_free(&p->bias);
    block_free(&p->residual);
    block_free(&p->c);
}

/* Small numbers more often than large ones. */
static int64_t random_extent(random_source *source, int64_t least, int64_t most) {
    return random_between(source, least, random_between(source, least, most));
}

static sb_dtype wide_or(random_source *source, sb_dtype dtype) {
    return random_between(source, 0, 1) ? SB_F32 : dtype;
}

/* Cuts k into samples, some of them empty. */
static void random_samples(random_source *source, product *p, int64_t k) {
    p->has_map = random_between(source, 0, 2) == 0;
    p->samples = 1;
    p->lengths[0] = k;
    while (p->has_map && p->samples < MOST_SAMPLES && random_between(source, 0, 6) != 0) {
        int64_t *last = &p->lengths[p->samples - 1], cut = random_extent(source, 0, *last);
        p->lengths[p->samples++] = *last - cut;
        *last = cut;
    }
}

static void random_epilogue(random_source *source, product *p, bool special) {
    static const float scales[] = {1.0f, 1.0f, 1.0f, 0.088388346f, -3.25f, 1e-30f};
    sb_gemm *gemm = &p->gemm;
    sb_dtype dtype = gemm->a.dtype;
    int64_t batches = gemm->batches;
    gemm->scale = scales[random_between(source, 0, 5)];
    gemm->activation = (sb_activation)random_between(source, 0, 4);
    if (random_between(source, 0, 1)) {
        p->bias = make_block(source, random_matrix(source, wide_or(source, dtype), 1, gemm->b.columns, batches, false),
                             batches, special);
        gemm->bias = p->bias.matrix;
    }
    int64_t residual = random_between(source, 0, 3);
    if (residual == 0) {
        gemm->residual = gemm->c;
    } else if (residual < 3) {
        p->residual = make_block(
            source, random_matrix(source, wide_or(source, dtype), gemm->c.rows, gemm->c.columns, batches, false),
            batches, special);
        gemm->residual = p->residual.matrix;
    }
}

static product random_product(random_source *source) {
    product p = {.gemm = SB_GEMM_DEFAULT};
    sb_gemm *gemm = &p.gemm;
    sb_dtype dtype = random_between(source, 0, 1) ? SB_BF16 : SB_F16;
    bool special = random_between(source, 0, 1);
    int64_t m = random_extent(source, 1, 70), n = random_extent(source, 1, 70);
    int64_t k = random_between(source, 0, 9) ? random_extent(source, 1, 300) : 0;
    gemm->batches = random_extent(source, 1, 4);
    gemm->accumulate = random_between(source, 0, 3) == 0;
    gemm->gate = gemm->accumulate ? SB_GATE_NONE : (sb_gate)random_between(source, 0, 2);
    int64_t columns = gemm->gate == SB_GATE_NONE ? n : 2 * n;
    sb_dtype c_dtype = gemm->accumulate ? SB_F32 : wide_or(source, dtype);
    p.a = make_block(source, random_matrix(source, dtype, m, k, gemm->batches, false), gemm->batches, special);
    p.b = make_block(source, random_matrix(source, dtype, k, columns, gemm->batches, false), gemm->batches, special);
    p.c = make_block(source, random_matrix(source, c_dtype, m, n, gemm->batches, true), gemm->batches, special);
    gemm->a = p.a.matrix;
    gemm->b = p.b.matrix;
    gemm->c = p.c.matrix;
    if (!gemm->accumulate)
        random_epilogue(source, &p, special);
    random_samples(source, &p, k);
    return p;
}

static void describe(const product *p, char *text, size_t size) {
    const sb_gemm *g = &p->gemm;
    snprintf(text, size,
             "%s to %s, %lld x %lld x %lld, %lld batches, scale %g, activation %d, gate %d, %s%s%s%d "
             "samples",
             sb_dtype_name(g->a.dtype), sb_dtype_name(g->c.dtype), (long long)g->c.rows, (long long)g->c.columns,
             (long long)g->a.columns, (long long)g->batches, (double)g->scale, g->activation, g->gate,
             g->bias.data ? "bias, " : "",
             g->residual.data == NULL        ? ""
             : g->residual.data == g->c.data ? "c as residual, "
                                             : "residual, ",
             g->accumulate ? "accumulate, " : "", p->samples);
}

/* Runs the product on an engine by one schedule; C's block must get the expected bytes. */
static void check_run(product *p, sb_engine *engine, const char *schedule, const char *before, const char *expected) {
    sb_row_map *map = NULL;
    if (p->has_map)
        CHECK_OK(sb_row_map_create(engine, p->samples, p->lengths, &map, error));
    memcpy(p->c.bytes, before, p->c.size);
    p->gemm.rows = map;
    p->gemm.schedule = schedule;
    CHECK_OK(sb_gemm_run(engine, NULL, &p->gemm, error));
    sb_row_map_release(map);
    if (memcmp(p->c.bytes, expected, p->c.size) == 0)
        return;
    char text[512];
    describe(p, text, sizeof text);
    size_t at = 0;
    while (p->c.bytes[at] == expected[at])
        at++;
    fail_msg("%s by %s: byte %zu of %zu differs", text, schedule, at, p->c.size);
}

static void check_product(product *p) {
    char *before = malloc(p->c.size + 1);
    assert_non_null(before);
    memcpy(before, p->c.bytes, p->c.size);
    char *expected = expected_block(&p->gemm, p->samples, p->lengths, &p->c);
    for (int i = 0; i < engine_count; i++)
        check_run(p, engines[i], "chain", before, expected);
    check_run(p, engines[engine_count - 1], "definition", before, expected);
    check_run(p, engines[0], NULL, before, expected);
    free(expected);
    free(before);
}

static void random_products(void **state) {
    random_source source = {20240611};
    for (int trial = 0; trial < 400; trial++) {
        product p = random_product(&source);
        check_product(&p);
        product_free(&p);
    }
}

/* More rows, columns and k than a tile has, so that all of its seams are met. */
static void products_of_several_tiles(void **state) {
    static const int64_t extents[][3] = {{131, 270, 40}, {3, 300, 1100}, {300, 5, 20}, {1, 1, 2500}, {128, 3, 3000}};
    random_source source = {5};
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        int64_t m = extents[i][0], n = extents[i][1], k = extents[i][2];
        product p = {.gemm = SB_GEMM_DEFAULT, .samples = 3, .has_map = i != 2};
        p.lengths[0] = k / 3;
        p.lengths[1] = 1;
        p.lengths[2] = k - k / 3 - 1;
        if (!p.has_map) {
            p.samples = 1;
            p.lengths[0] = k;
        }
        p.a = packed_block(&source, SB_BF16, m, k, 1, true);
        p.b = packed_block(&source, SB_BF16, k, 2 * n, 1, false);
        p.c = packed_block(&source, SB_BF16, m, n, 1, false);
        p.bias = packed_block(&source, SB_F32, 1, 2 * n, 1, false);
        p.gemm.a = p.a.matrix;
        p.gemm.b = p.b.matrix;
        p.gemm.c = p.c.matrix;
        p.gemm.bias = p.bias.matrix;
        p.gemm.gate = i % 2 ? SB_GATE_STACKED : SB_GATE_INTERLEAVED;
        p.gemm.activation = SB_ACTIVATION_SILU;
        check_product(&p);
        product_free(&p);
    }
}

/* Without elements of C nothing is done, whatever else there is. */
static void products_without_elements(void **state) {
    random_source source = {6};
    static const int64_t extents[][4] = {{0, 5, 7, 2}, {5, 0, 7, 2}, {5, 7, 3, 0}, {0, 0, 0, 1}};
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        product p = {.gemm = SB_GEMM_DEFAULT, .samples = 1, .lengths = {extents[i][2]}};
        p.gemm.batches = extents[i][3];
        p.a = packed_block(&source, SB_F16, extents[i][0], extents[i][2], extents[i][3], false);
        p.b = packed_block(&source, SB_F16, extents[i][2], extents[i][1], extents[i][3], false);
        p.c = packed_block(&source, SB_F16, extents[i][0], extents[i][1], extents[i][3], false);
        p.gemm.a = p.a.matrix;
        p.gemm.b = p.b.matrix;
        p.gemm.c = p.c.matrix;
        assert_null(p.gemm.c.data);
        check_product(&p);
        product_free(&p);
    }
}

/* A product of packed operands in f32. */
static product plain_product(random_source *source, int64_t m, int64_t n, int64_t k) {
    product p = {.gemm = SB_GEMM_DEFAULT, .samples = 1, .lengths = {k}};
    p.a = packed_block(source, SB_BF16, m, k, 1, true);
    p.b = packed_block(source, SB_BF16, k, n, 1, true);
    p.c = packed_block(source, SB_F32, m, n, 1, false);
    p.gemm.a = p.a.matrix;
    p.gemm.b = p.b.matrix;
    p.gemm.c = p.c.matrix;
    return p;
}

/* Pieces of k that are multiples of 16 continue the chain: the last piece may be any. */
static void accumulated_pieces(void **state) {
    random_source source = {7};
    product p = plain_product(&source, 9, 33, 150);
    char *whole = expected_block(&p.gemm, 1, p.lengths, &p.c);
    for (int i = 0; i < engine_count; i++) {
        memset(p.c.bytes, 0, p.c.size);
        for (int64_t k = 0; k < 150;) {
            int64_t piece = 16 * random_between(&source, 0, 4);
            if (piece > 150 - k)
                piece = 150 - k;
            sb_gemm gemm = p.gemm;
            gemm.a = transposed(rows_of(transposed(gemm.a), k, piece));
            gemm.b = rows_of(gemm.b, k, piece);
            gemm.accumulate = true;
            CHECK_OK(sb_gemm_run(engines[i], NULL, &gemm, error));
            k += piece;
        }
        assert_memory_equal(p.c.bytes, whole, p.c.size);
    }
    free(whole);
    product_free(&p);
}

/* With a row map, pieces may end wherever a sample does: a gradient of weights is the same for
 * every way to put samples, in their order, into micro-batches. */
static void accumulated_samples(void **state) {
    enum { SAMPLES = 12 };
    random_source source = {8};
    int64_t lengths[SAMPLES], rows = 0;
    for (int s = 0; s < SAMPLES; s++)
        rows += lengths[s] = s == 3 ? 0 : random_between(&source, 1, 40);
    block gradient = packed_block(&source, SB_BF16, rows, 13, 1, true);
    block weights = packed_block(&source, SB_F32, 21, 13, 1, false);
    block inputs = packed_block(&source, SB_BF16, rows, 21, 1, true);
    sb_gemm whole = SB_GEMM_DEFAULT;
    whole.a = transposed(inputs.matrix);
    whole.b = gradient.matrix;
    whole.c = weights.matrix;
    char *expected = expected_block(&whole, SAMPLES, lengths, &weights);
    for (int trial = 0; trial < 20; trial++) {
        sb_engine *engine = engines[trial % engine_count];
        memset(weights.bytes, 0, weights.size);
        int64_t row = 0;
        for (int s = 0; s < SAMPLES;) {
            int taken = (int)random_between(&source, 1, SAMPLES - s);
            sb_row_map *map = NULL;
            CHECK_OK(sb_row_map_create(engine, taken, lengths + s, &map, error));
            sb_gemm piece = whole;
            piece.a = transposed(rows_of(inputs.matrix, row, sb_row_map_rows(map)));
            piece.b = rows_of(gradient.matrix, row, sb_row_map_rows(map));
            piece.rows = map;
            piece.accumulate = true;
            CHECK_OK(sb_gemm_run(engine, NULL, &piece, error));
            row += sb_row_map_rows(map);
            s += taken;
            sb_row_map_release(map);
        }
        assert_int_equal(row, rows);
        assert_memory_equal(weights.bytes, expected, weights.size);
    }
    free(expected);
    block_free(&inputs);
    block_free(&weights);
    block_free(&gradient);
}

/* The groups of a map: none across samples, all rows once, in order. */
static void groups_of_maps(void **state) {
    static const int64_t lengths[] = {0, 1, 16, 17, 0, 48, 15};
    static const int64_t expected[][2] = {{0, 1}, {1, 16}, {17, 16}, {33, 1}, {34, 16}, {50, 16}, {66, 16}, {82, 15}};
    sb_row_map *map = NULL;
    CHECK_OK(sb_row_map_create(engines[0], 7, lengths, &map, error));
    assert_int_equal(sb_row_map_rows(map), 97);
    assert_int_equal(map->count, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(map->groups[i].row, expected[i][0]);
        assert_int_equal(map->groups[i].count, expected[i][1]);
    }
    sb_row_map_release(map);
    CHECK_OK(sb_row_map_create(engines[0], 0, NULL, &map, error));
    assert_int_equal(sb_row_map_rows(map), 0);
    assert_int_equal(map->count, 0);
    sb_row_map_release(map);
    sb_row_map_release(NULL);
}

/* The caller's rounding mode neither counts nor changes. */
static void callers_rounding_mode(void **state) {
    random_source source = {9};
    product p = plain_product(&source, 5, 70, 100);
    block residual = packed_block(&source, SB_F32, 5, 70, 1, false);
    p.gemm.residual = residual.matrix;
    p.gemm.scale = 0.1f;
    char *expected = expected_block(&p.gemm, 1, p.lengths, &p.c);
    for (int i = 0; i < engine_count; i++) {
        fesetround(FE_UPWARD);
        sb_status status = sb_gemm_run(engines[i], NULL, &p.gemm, NULL);
        int mode = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(status, SB_OK);
        assert_int_equal(mode, FE_UPWARD);
        assert_memory_equal(p.c.bytes, expected, p.c.size);
    }
    free(expected);
    block_free(&residual);
    product_free(&p);
}

static void runs_allocate_nothing(void **state) {
    random_source source = {10};
    product p = plain_product(&source, 140, 300, 70);
    for (int i = 0; i < engine_count; i++) {
        int64_t before = sb_allocation_count().allocations;
        CHECK_OK(sb_gemm_run(engines[i], NULL, &p.gemm, error));
        assert_int_equal(sb_allocation_count().allocations, before);
    }
    product_free(&p);
}

static sb_status whole_life(void *context) {
    product *p = context;
    sb_engine *engine = NULL;
    sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
    options.threads = 2;
    SB_TRY(sb_engine_create(&options, &engine, NULL));
    sb_row_map *map = NULL;
    sb_status status = sb_row_map_create(engine, p->samples, p->lengths, &map, NULL);
    p->gemm.rows = map;
    if (status == SB_OK)
        status = sb_gemm_run(engine, NULL, &p->gemm, NULL);
    sb_row_map_release(map);
    sb_engine_destroy(engine);
    return status;
}

static void failing_allocations(void **state) {
    random_source source = {11};
    product p = plain_product(&source, 3, 4, 5);
    check_failing_allocations(whole_life, &p);
    product_free(&p);
}

static void schedules_of_the_cpu(void **state) {
    random_source source = {12};
    product p = plain_product(&source, 2, 3, 4);
    const char *schedule = NULL;
    assert_int_equal(sb_gemm_schedule_count(engines[0]), 2);
    assert_string_equal(sb_gemm_schedule_name(engines[0], 0), "chain");
    assert_string_equal(sb_gemm_schedule_name(engines[0], 1), "definition");
    assert_null(sb_gemm_schedule_name(engines[0], 2));
    assert_null(sb_gemm_schedule_name(engines[0], -1));
    CHECK_OK(sb_gemm_choose(engines[0], &p.gemm, &schedule, error));
    assert_string_equal(schedule, "chain");
    p.gemm.schedule = "definition";
    CHECK_OK(sb_gemm_choose(engines[0], &p.gemm, &schedule, error));
    assert_string_equal(schedule, "definition");
    product_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products),           cmocka_unit_test(products_of_several_tiles),
        cmocka_unit_test(products_without_elements), cmocka_unit_test(accumulated_pieces),
        cmocka_unit_test(accumulated_samples),       cmocka_unit_test(groups_of_maps),
        cmocka_unit_test(callers_rounding_mode),     cmocka_unit_test(runs_allocate_nothing),
        cmocka_unit_test(failing_allocations),       cmocka_unit_test(schedules_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, open_engines, close_engines);
}
