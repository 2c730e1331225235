/* What is wrong with a product is said before anything is computed: a message of its own for each. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernel/contraction/check.h"
#include "kernel/contraction/layout.h"
#include "product_cases.h"

enum { M = 6, K = 20, N = 8 };

static sb_engine *engine;
static block a, b, c, bias, residual;
static sb_row_map *map;
static const int64_t lengths[] = {5, 15};

static int open_engine(void **state) {
    random_source source = {1};
    engine = make_engine(SB_ISA_BEST, 1);
    a = packed_block(&source, SB_BF16, M, K, 2, false);
    b = packed_block(&source, SB_BF16, K, 2 * N, 2, false);
    c = packed_block(&source, SB_F32, M, 2 * N, 2, false);
    bias = packed_block(&source, SB_F32, 1, 2 * N, 1, false);
    residual = packed_block(&source, SB_F32, M, 2 * N, 2, false);
    CHECK_OK(sb_row_map_create(engine, 2, lengths, &map, error));
    return 0;
}

static int close_engine(void **state) {
    sb_row_map_release(map);
    block_free(&residual);
    block_free(&bias);
    block_free(&c);
    block_free(&b);
    block_free(&a);
    sb_engine_destroy(engine);
    return 0;
}

/* Two batches of M × K · K × 2N in f32, to be spoiled. */
static sb_gemm good(void) {
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.batches = 2;
    gemm.a = a.matrix;
    gemm.b = b.matrix;
    gemm.c = c.matrix;
    return gemm;
}

static sb_gemm with_bias(void) {
    sb_gemm gemm = good();
    gemm.bias = bias.matrix;
    gemm.bias.batch_stride = 0;
    return gemm;
}

static sb_gemm with_residual(void) {
    sb_gemm gemm = good();
    gemm.residual = residual.matrix;
    return gemm;
}

static sb_gemm with_gate(void) {
    sb_gemm gemm = good();
    gemm.gate = SB_GATE_STACKED;
    gemm.c.columns = N;
    return gemm;
}

/* The product fails with a message that has all of the texts, and neither C nor anything else changes. */
static void refused(const sb_gemm *gemm, sb_status status, const char *first, const char *second) {
    sb_error error = {SB_OK, ""};
    char before[sizeof(float) * M * 2 * N * 2];
    const char *schedule = "untouched";
    memcpy(before, c.bytes, sizeof before);
    assert_int_equal(sb_gemm_run(engine, NULL, gemm, &error), status);
    if (strstr(error.message, first) == NULL || strstr(error.message, second) == NULL)
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", error.message, first, second);
    assert_memory_equal(before, c.bytes, sizeof before);
    assert_int_equal(sb_gemm_choose(engine, gemm, &schedule, NULL), status);
    assert_string_equal(schedule, "untouched");
    assert_int_equal(sb_gemm_run(engine, NULL, gemm, NULL), status);
}

static void accepted(const sb_gemm *gemm) {
    CHECK_OK(sb_gemm_run(engine, NULL, gemm, error));
}

/* A test that spoils `gemm`, which begins as `start`, by the statements. */
#define REFUSED(name, start, status, first, second, ...)                                                               \
    static void name(void **state) {                                                                                   \
        sb_gemm gemm = start();                                                                                        \
        accepted(&gemm);                                                                                               \
        __VA_ARGS__;                                                                                                   \
        refused(&gemm, SB_ERROR_##status, first, second);                                                              \
    }

REFUSED(wrong_struct_bytes, good, INVALID_ARGUMENT, "sb_gemm has 8 bytes", "SB_GEMM_DEFAULT", gemm.struct_bytes = 8)
REFUSED(unknown_activation, good, INVALID_ARGUMENT, "activation 9", "sb_activation", gemm.activation = (sb_activation)9)
REFUSED(negative_activation, good, INVALID_ARGUMENT, "activation -1", "sb_activation",
        gemm.activation = (sb_activation)-1)
REFUSED(unknown_gate, good, INVALID_ARGUMENT, "gate 3", "sb_gate", gemm.gate = (sb_gate)3)
REFUSED(negative_batches, good, INVALID_ARGUMENT, "-1 batches", "SB_GEMM_DEFAULT", gemm.batches = -1)
REFUSED(too_many_batches, good, INVALID_ARGUMENT, "batches: give a number from 0 to 2^48", "", gemm.batches = INT64_MAX)
REFUSED(negative_extent, good, SHAPE, "a (bf16, -6 x 20", "and -6 does not", gemm.a.rows = -M)
REFUSED(negative_columns, good, SHAPE, "c (f32, 6 x -1", "and -1 does not", gemm.c.columns = -1)
REFUSED(extent_too_large, good, SHAPE, "b (bf16, 9223372036854775807 x 16", "0 to 2^48", gemm.b.rows = INT64_MAX)
REFUSED(negative_extent_of_bias, with_bias, SHAPE, "bias (f32, 1 x -16", "and -16 does not", gemm.bias.columns = -16)

REFUSED(dtype_of_a, good, SHAPE, "a (f32, 6 x 20, strides 20 and 1, batch stride 120)", "take bf16 and f16, not f32",
        gemm.a.dtype = SB_F32)
REFUSED(dtypes_of_a_and_b, good, SHAPE, "b (f16", "a is bf16 and b is f16", gemm.b.dtype = SB_F16)
REFUSED(dtype_of_c, good, SHAPE, "c (f16", "c must be f32 or a's bf16, not f16", gemm.c.dtype = SB_F16)
REFUSED(dtype_of_bias, with_bias, SHAPE, "bias (f64", "bias must be f32 or a's bf16, not f64", gemm.bias.dtype = SB_F64)
REFUSED(dtype_of_residual, with_residual, SHAPE, "residual (f16", "residual must be f32 or a's bf16, not f16",
        gemm.residual.dtype = SB_F16)
REFUSED(number_that_is_no_dtype, good, SHAPE, "take bf16 and f16", "a (", gemm.a.dtype = (sb_dtype)77)

REFUSED(different_k, good, SHAPE, "a (bf16, 6 x 19", "b (bf16, 20 x 16", gemm.a.columns = K - 1)
REFUSED(different_m, good, SHAPE, "c (f32, 5 x 16", "both are M", gemm.c.rows = M - 1)
REFUSED(different_n, good, SHAPE, "c (f32, 6 x 15", "both are N", gemm.c.columns = 2 * N - 1)
REFUSED(gate_without_twice_the_columns, with_gate, SHAPE, "b (bf16, 20 x 8",
        "a gate and a value for each of the 8 columns of c, 16 in all", gemm.b.columns = N)
REFUSED(bias_of_another_length, with_bias, SHAPE, "bias (f32, 1 x 15", "must be 1 x 16", gemm.bias.columns--)
REFUSED(bias_of_two_rows, with_bias, SHAPE, "bias (f32, 2 x 16", "must be 1 x 16", gemm.bias.rows = 2)
REFUSED(residual_of_another_shape, with_residual, SHAPE, "residual (f32, 1 x 16",
        "must be 6 x 16 as c is; give a stride of 0", gemm.residual.rows = 1)

static sb_gemm accumulating(void) {
    sb_gemm gemm = good();
    gemm.accumulate = true;
    return gemm;
}

REFUSED(accumulate_in_16_bits, accumulating, SHAPE, "c (bf16",
        "accumulate continues chains, which are f32, and c is bf16", gemm.c.dtype = SB_BF16)
REFUSED(accumulate_with_scale, accumulating, INVALID_ARGUMENT, "accumulate with a scale", "", gemm.scale = 2)
REFUSED(accumulate_with_nan, accumulating, INVALID_ARGUMENT, "accumulate with a scale", "", gemm.scale = NAN)
REFUSED(accumulate_with_bias, accumulating, INVALID_ARGUMENT, "accumulate with a bias", "", gemm.bias = bias.matrix)
REFUSED(accumulate_with_activation, accumulating, INVALID_ARGUMENT, "accumulate with an activation", "",
        gemm.activation = SB_ACTIVATION_RELU)
REFUSED(accumulate_with_gate, accumulating, INVALID_ARGUMENT, "accumulate with a gate", "",
        gemm.gate = SB_GATE_INTERLEAVED, gemm.c.columns = N)
REFUSED(accumulate_with_residual, accumulating, INVALID_ARGUMENT, "accumulate with a residual", "",
        gemm.residual = residual.matrix)

static sb_gemm with_map(void) {
    sb_gemm gemm = good();
    gemm.rows = map;
    return gemm;
}

REFUSED(map_of_other_rows, with_map, SHAPE, "its K is 17", "samples of the row map have 20 rows together",
        gemm.a.columns = gemm.b.rows = 17)

/* Also where the new engine has the old one's place in memory. */
static void map_of_another_engine(void **state) {
    sb_engine *other = make_engine(SB_ISA_SCALAR, 1);
    sb_row_map *others = NULL;
    CHECK_OK(sb_row_map_create(other, 2, lengths, &others, error));
    sb_engine_destroy(other);
    sb_gemm gemm = good();
    gemm.rows = others;
    refused(&gemm, SB_ERROR_INVALID_ARGUMENT, "made by another engine", "sb_row_map_create");
    other = make_engine(SB_ISA_SCALAR, 1);
    assert_int_equal(sb_gemm_run(other, NULL, &gemm, NULL), SB_ERROR_INVALID_ARGUMENT);
    sb_engine_destroy(other);
    sb_row_map_release(others);
}

/* ---- memory ---- */

REFUSED(null_a, good, INVALID_ARGUMENT, "a (bf16, 6 x 20", "its data is NULL", gemm.a.data = NULL)
REFUSED(null_b, good, INVALID_ARGUMENT, "b (bf16", "its data is NULL", gemm.b.data = NULL)
REFUSED(null_c, good, INVALID_ARGUMENT, "c (f32", "its data is NULL", gemm.c.data = NULL)
REFUSED(misaligned_a, good, INVALID_ARGUMENT, "a (bf16", "not aligned to the 2 bytes",
        gemm.a.data = (char *)gemm.a.data + 1)
REFUSED(misaligned_c, good, INVALID_ARGUMENT, "c (f32", "not aligned to the 4 bytes",
        gemm.c.data = (char *)gemm.c.data + 2)
REFUSED(misaligned_bias, with_bias, INVALID_ARGUMENT, "bias (f32", "not aligned to the 4 bytes",
        gemm.bias.data = (char *)gemm.bias.data + 1)
REFUSED(misaligned_residual, with_residual, INVALID_ARGUMENT, "residual (f32", "not aligned",
        gemm.residual.data = (char *)gemm.residual.data + 3)
REFUSED(stride_that_overflows, good, INVALID_ARGUMENT, "a (bf16, 6 x 20, strides 4611686018427387904",
        "further apart than addresses reach", gemm.a.row_stride = INT64_MAX / 2 + 1)
REFUSED(stride_that_overflows_in_bytes, good, INVALID_ARGUMENT, "b (bf16", "addresses reach",
        gemm.b.column_stride = INT64_MAX / 16)
REFUSED(most_negative_stride, good, INVALID_ARGUMENT, "c (f32", "addresses reach", gemm.c.batch_stride = INT64_MIN)
REFUSED(sum_of_strides_that_overflows, good, INVALID_ARGUMENT, "a (bf16", "addresses reach",
        gemm.a.row_stride = INT64_MAX / 20, gemm.a.column_stride = INT64_MAX / 70)
REFUSED(addresses_that_wrap, good, INVALID_ARGUMENT, "a (bf16", "addresses reach",
        gemm.a.row_stride = -(INT64_MAX / 16))

REFUSED(elements_of_c_coincide, good, INVALID_ARGUMENT, "c (f32, 6 x 16, strides 0 and 1", "elements of c coincide",
        gemm.c.row_stride = 0)
REFUSED(rows_of_c_overlap, good, INVALID_ARGUMENT, "c (f32, 6 x 16, strides 15 and 1", "elements of c coincide",
        gemm.c.row_stride = 2 * N - 1)
REFUSED(batches_of_c_coincide, good, INVALID_ARGUMENT, "with 2 batches elements of c coincide", "batch stride 0",
        gemm.c.batch_stride = 0)

/* Outputs in the memory of inputs. */
REFUSED(c_is_a, good, INVALID_ARGUMENT, "overlaps a (bf16", "give c its own memory", gemm.a.data = gemm.c.data)
REFUSED(c_is_in_b, good, INVALID_ARGUMENT, "overlaps b (bf16", "is read while c is written",
        gemm.b.data = (char *)gemm.c.data + 100)
REFUSED(c_ends_in_a, good, INVALID_ARGUMENT, "overlaps a (bf16", "give c its own memory",
        gemm.a.data = (char *)gemm.c.data + c.size - 2)
REFUSED(c_is_the_bias, with_bias, INVALID_ARGUMENT, "overlaps bias (f32", "give c its own memory",
        gemm.bias.data = (char *)gemm.c.data + 8)
REFUSED(c_is_behind_the_residual, with_residual, INVALID_ARGUMENT, "overlaps residual (f32",
        "c's very data, dtype and strides", gemm.residual.data = (float *)gemm.c.data + 1)
REFUSED(residual_has_other_strides, with_residual, INVALID_ARGUMENT, "overlaps residual (f32",
        "c's very data, dtype and strides", gemm.residual = gemm.c, gemm.residual.row_stride = 0)
REFUSED(residual_has_another_dtype, with_residual, INVALID_ARGUMENT, "overlaps residual (bf16",
        "c's very data, dtype and strides", gemm.residual = gemm.c, gemm.residual.dtype = SB_BF16)

/* Memory that is in order. */
static void layouts_that_are_accepted(void **state) {
    sb_gemm gemm = good();
    gemm.residual = gemm.c;
    accepted(&gemm);
    gemm = good(); /* strides of extents of 1 lead nowhere */
    gemm.batches = 1;
    gemm.a.batch_stride = gemm.b.batch_stride = gemm.c.batch_stride = INT64_MIN;
    accepted(&gemm);
    gemm.residual = gemm.c;
    gemm.residual.batch_stride = 3;
    accepted(&gemm);
    gemm = with_bias(); /* the row stride of a bias is not read */
    gemm.bias.row_stride = INT64_MIN;
    accepted(&gemm);
    gemm = good();
    gemm.scale = NAN;
    accepted(&gemm);
    gemm = good(); /* no elements, no address */
    gemm.a.columns = gemm.b.rows = 0;
    gemm.a.data = gemm.b.data = NULL;
    accepted(&gemm);
    gemm.a.data = (char *)c.bytes + 1;
    accepted(&gemm);
    gemm = good();
    gemm.batches = 0;
    gemm.a.data = gemm.b.data = gemm.c.data = NULL;
    accepted(&gemm);
}

/* A and C as two slices of columns of one buffer; one column more, and they overlap. */
static void slices_of_one_buffer(void **state) {
    uint16_t *buffer = calloc(2 * M * (K + 2 * N), sizeof *buffer);
    assert_non_null(buffer);
    sb_gemm gemm = good();
    gemm.a.data = buffer;
    gemm.c.data = buffer + K;
    gemm.c.dtype = SB_BF16;
    gemm.a.row_stride = gemm.c.row_stride = K + 2 * N;
    gemm.a.batch_stride = gemm.c.batch_stride = M * (K + 2 * N);
    accepted(&gemm);
    gemm.c.data = buffer;
    gemm.a.data = buffer + 2 * N;
    accepted(&gemm);
    gemm.a.row_stride = -gemm.a.row_stride;
    gemm.a.data = buffer + 2 * N + (M - 1) * (K + 2 * N);
    accepted(&gemm);
    gemm.a.data = (uint16_t *)gemm.a.data - 1;
    refused(&gemm, SB_ERROR_INVALID_ARGUMENT, "overlaps a (bf16", "");
    free(buffer);
}

/* Against every pair of elements, for small layouts of any strides: what counts as apart is apart,
 * and what counts as distinct is. */
static bool touches(const sb_gemm_layout *layout, uintptr_t byte, int *times) {
    *times = 0;
    for (uint64_t i = 0; i < (layout->rank > 0 ? layout->counts[0] : 1); i++) {
        for (uint64_t j = 0; j < (layout->rank > 1 ? layout->counts[1] : 1); j++) {
            for (uint64_t k = 0; k < (layout->rank > 2 ? layout->counts[2] : 1); k++) {
                uintptr_t at = layout->first;
                at += layout->rank > 0 ? i * layout->steps[0] : 0;
                at += layout->rank > 1 ? j * layout->steps[1] : 0;
                at += layout->rank > 2 ? k * layout->steps[2] : 0;
                *times += byte >= at && byte < at + layout->size;
            }
        }
    }
    return *times > 0;
}

static sb_gemm_layout random_layout(random_source *source) {
    sb_matrix matrix = {.dtype = random_between(source, 0, 1) ? SB_F32 : SB_BF16,
                        .data = (void *)(uintptr_t)(4000 + 4 * random_between(source, 0, 30)),
                        .rows = random_between(source, 1, 4),
                        .columns = random_between(source, 1, 4),
                        .row_stride = random_between(source, -12, 12),
                        .column_stride = random_between(source, -12, 12),
                        .batch_stride = random_between(source, -24, 24)};
    sb_gemm_layout layout;
    assert_true(sb_gemm_layout_of(&matrix, matrix.row_stride, random_between(source, 1, 2), &layout));
    return layout;
}

static void layouts_by_their_bytes(void **state) {
    random_source source = {2};
    int apart = 0, interleaved = 0, distinct = 0;
    for (int trial = 0; trial < 4000; trial++) {
        sb_gemm_layout one = random_layout(&source), other = random_layout(&source);
        bool together = false, repeated = false;
        int times, others;
        for (uintptr_t byte = one.first; byte < one.first + one.span; byte++) {
            if (touches(&one, byte, &times) && touches(&other, byte, &others))
                together = true;
            repeated = repeated || times > 1;
        }
        touches(&one, one.first, &times);
        assert_true(times > 0);
        touches(&one, one.first + one.span - 1, &times);
        assert_true(times > 0);
        bool whole = one.first + one.span <= other.first || other.first + other.span <= one.first;
        bool found = sb_gemm_layouts_are_apart(&one, &other);
        assert_int_equal(found, sb_gemm_layouts_are_apart(&other, &one));
        assert_false(found && together);
        assert_true(found || !whole);
        assert_false(sb_gemm_layout_is_distinct(&one) && repeated);
        apart += found;
        interleaved += found && !whole;
        distinct += sb_gemm_layout_is_distinct(&one);
    }
    assert_true(apart > 500 && interleaved > 20 && distinct > 500);
}

/* Where matrix `number` begins. */
static void place_of(const sb_gemm_batches *batches, int64_t number, int64_t *a, int64_t *b) {
    *a = *b = 0;
    for (int d = batches->rank - 1; d >= 0; d--) {
        *a += number % batches->dims[d] * batches->a_steps[d];
        *b += number % batches->dims[d] * batches->b_steps[d];
        number /= batches->dims[d];
    }
    assert_int_equal(number, 0);
}

/* Steps of dimensions that go on as the next one does, or not, or not at all. */
static int64_t random_step(random_source *source, int64_t inside) {
    int64_t kind = random_between(source, 0, 5);
    return kind == 0 ? 0 : kind == 1 ? random_between(source, -40, 40) : inside;
}

/* Merging changes no matrix's place or number, and leaves nothing that could be merged. */
static void batches_merged(void **state) {
    random_source source = {3};
    int shorter = 0, longest = 0;
    for (int trial = 0; trial < 4000; trial++) {
        sb_gemm_batches batches = {.rank = (int)random_between(&source, 0, 5)};
        int64_t count = 1, a_inside = random_between(&source, -9, 9), b_inside = random_between(&source, -9, 9);
        for (int d = batches.rank - 1; d >= 0; d--) {
            batches.dims[d] = random_between(&source, 1, 3);
            batches.a_steps[d] = random_step(&source, a_inside);
            batches.b_steps[d] = random_step(&source, b_inside);
            a_inside = batches.a_steps[d] * batches.dims[d];
            b_inside = batches.b_steps[d] * batches.dims[d];
            count *= batches.dims[d];
        }
        sb_gemm_batches merged = sb_gemm_batches_merged(&batches);
        for (int64_t number = 0; number < count; number++) {
            int64_t a, b, merged_a, merged_b;
            place_of(&batches, number, &a, &b);
            place_of(&merged, number, &merged_a, &merged_b);
            assert_int_equal(a, merged_a);
            assert_int_equal(b, merged_b);
        }
        for (int d = 0; d < merged.rank; d++) {
            assert_true(merged.dims[d] > 1);
            assert_false(d > 0 && merged.a_steps[d - 1] == merged.a_steps[d] * merged.dims[d] &&
                         merged.b_steps[d - 1] == merged.b_steps[d] * merged.dims[d]);
        }
        shorter += merged.rank < batches.rank;
        longest = merged.rank > longest ? merged.rank : longest;
    }
    assert_true(shorter > 1000 && longest == 5);
}

/* ---- the engine ---- */

REFUSED(unknown_schedule, good, INVALID_ARGUMENT, "no schedule is called \"quick\"",
        "this engine has chain, definition", gemm.schedule = "quick")

static void no_engine_or_product(void **state) {
    sb_gemm gemm = good();
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_gemm_run(NULL, NULL, &gemm, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "an engine, which is NULL"));
    assert_int_equal(sb_gemm_run(engine, NULL, NULL, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "an sb_gemm that describes it, which is NULL"));
}

static void stream_on_the_cpu(void **state) {
    sb_gemm gemm = good();
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_gemm_run(engine, &gemm, &gemm, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "engine on the CPU"));
}

static void options_of_engines(void **state) {
    sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
    sb_engine *other = NULL;
    sb_error error = {SB_OK, ""};
    options.struct_bytes = 4000;
    assert_int_equal(sb_engine_create(&options, &other, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "sb_engine_options has 4000 bytes"));
    options = (sb_engine_options)SB_ENGINE_OPTIONS_DEFAULT;
    options.threads = -1;
    assert_int_equal(sb_engine_create(&options, &other, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "-1 threads"));
    options.threads = 1;
    options.isa = (sb_isa)17;
    assert_int_not_equal(sb_engine_create(&options, &other, &error), SB_OK);
    assert_null(other);
    options.isa = SB_ISA_BEST;
    CHECK_OK(sb_engine_create(NULL, &other, error));
    sb_engine_destroy(other);
    sb_engine_destroy(NULL);
}

static void samples_of_row_maps(void **state) {
    const int64_t negative[] = {3, -1}, many[] = {(int64_t)1 << 47, (int64_t)1 << 47, 1};
    sb_row_map *other = NULL;
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_row_map_create(NULL, 2, lengths, &other, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "no engine"));
    assert_int_equal(sb_row_map_create(engine, -2, lengths, &other, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "-2 samples"));
    assert_int_equal(sb_row_map_create(engine, 2, NULL, &other, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "lengths of 2 samples are NULL"));
    assert_int_equal(sb_row_map_create(engine, 2, negative, &other, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "sample 1 of 2 has -1 rows"));
    assert_int_equal(sb_row_map_create(engine, 3, many, &other, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "samples 0 to 2 are more than 2^48"));
    assert_null(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_struct_bytes),
        cmocka_unit_test(unknown_activation),
        cmocka_unit_test(negative_activation),
        cmocka_unit_test(unknown_gate),
        cmocka_unit_test(negative_batches),
        cmocka_unit_test(too_many_batches),
        cmocka_unit_test(negative_extent),
        cmocka_unit_test(negative_columns),
        cmocka_unit_test(extent_too_large),
        cmocka_unit_test(negative_extent_of_bias),
        cmocka_unit_test(dtype_of_a),
        cmocka_unit_test(dtypes_of_a_and_b),
        cmocka_unit_test(dtype_of_c),
        cmocka_unit_test(dtype_of_bias),
        cmocka_unit_test(dtype_of_residual),
        cmocka_unit_test(number_that_is_no_dtype),
        cmocka_unit_test(different_k),
        cmocka_unit_test(different_m),
        cmocka_unit_test(different_n),
        cmocka_unit_test(gate_without_twice_the_columns),
        cmocka_unit_test(bias_of_another_length),
        cmocka_unit_test(bias_of_two_rows),
        cmocka_unit_test(residual_of_another_shape),
        cmocka_unit_test(accumulate_in_16_bits),
        cmocka_unit_test(accumulate_with_scale),
        cmocka_unit_test(accumulate_with_nan),
        cmocka_unit_test(accumulate_with_bias),
        cmocka_unit_test(accumulate_with_activation),
        cmocka_unit_test(accumulate_with_gate),
        cmocka_unit_test(accumulate_with_residual),
        cmocka_unit_test(map_of_other_rows),
        cmocka_unit_test(map_of_another_engine),
        cmocka_unit_test(null_a),
        cmocka_unit_test(null_b),
        cmocka_unit_test(null_c),
        cmocka_unit_test(misaligned_a),
        cmocka_unit_test(misaligned_c),
        cmocka_unit_test(misaligned_bias),
        cmocka_unit_test(misaligned_residual),
        cmocka_unit_test(stride_that_overflows),
        cmocka_unit_test(stride_that_overflows_in_bytes),
        cmocka_unit_test(most_negative_stride),
        cmocka_unit_test(sum_of_strides_that_overflows),
        cmocka_unit_test(addresses_that_wrap),
        cmocka_unit_test(elements_of_c_coincide),
        cmocka_unit_test(rows_of_c_overlap),
        cmocka_unit_test(batches_of_c_coincide),
        cmocka_unit_test(c_is_a),
        cmocka_unit_test(c_is_in_b),
        cmocka_unit_test(c_ends_in_a),
        cmocka_unit_test(c_is_the_bias),
        cmocka_unit_test(c_is_behind_the_residual),
        cmocka_unit_test(residual_has_other_strides),
        cmocka_unit_test(residual_has_another_dtype),
        cmocka_unit_test(layouts_that_are_accepted),
        cmocka_unit_test(slices_of_one_buffer),
        cmocka_unit_test(layouts_by_their_bytes),
        cmocka_unit_test(batches_merged),
        cmocka_unit_test(unknown_schedule),
        cmocka_unit_test(no_engine_or_product),
        cmocka_unit_test(stream_on_the_cpu),
        cmocka_unit_test(options_of_engines),
        cmocka_unit_test(samples_of_row_maps),
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
