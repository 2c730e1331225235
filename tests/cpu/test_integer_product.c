/* Products of quantized networks by sums of integers: the bits of the definition, with shapes that fit no tile and scales that put
 * as many results as can be where roundings decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/contraction/integer_product.h"
#include "kernel/kernel.h"
#include "ops/integer_product.h"
#include "support/failing.h"
#include "support/graph_builder.h"
#include "support/random.h"

/* A product with its quantizations: left [rows…, k], right [k, n]. */
typedef struct product {
    int64_t batch, m, k, n;
    sb_dtype left, right, result;
    int64_t left_zero, right_zero, result_zero;
    float left_scale, unit, result_scale, back_scale;
    bool same_signs; /* sums grow as far as they can */
    bool transposed; /* the left one is a view whose rows lie across */
    bool one_scale;  /* of all columns */
    enum { MATMUL, GEMM, CONV } kind;
    bool rectifies, has_bias;
    bool swings; /* sums grow in a chain's last elements alone, and nearly vanish at its end */
    int64_t height, width, kernel, stride, pad, dilation; /* of a convolution, with m channels in and n out */
} product;

static const product plain = {.batch = 1,
                              .m = 7,
                              .k = 200,
                              .n = 80,
                              .left = SB_U8,
                              .right = SB_S8,
                              .result = SB_U8,
                              .left_zero = 113,
                              .result_zero = 128,
                              .left_scale = 0.0173f,
                              .unit = 0.0031f,
                              .result_scale = 0.41f,
                              .back_scale = 0.41f};

static sb_tensor *tensor_of(sb_dtype dtype, int rank, const int64_t *dims) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(dtype, rank, dims, &tensor, NULL), SB_OK);
    return tensor;
}

static sb_value_id float_list(builder *b, int64_t count, float first, float step) {
    sb_tensor *tensor = tensor_of(SB_F32, 1, &count);
    for (int64_t i = 0; i < count; i++)
        ((float *)(void *)tensor->data)[i] = first * (1 + step * (float)(i % 13));
    return builder_constant(b, tensor);
}

static sb_value_id integer_list(builder *b, sb_dtype dtype, int64_t count, int64_t value) {
    sb_tensor *tensor = tensor_of(dtype, 1, &count);
    for (int64_t i = 0; i < count; i++)
        memcpy(tensor->data + i * (int64_t)sb_dtype_size(dtype), &value, sb_dtype_size(dtype));
    return builder_constant(b, tensor);
}

static sb_value_id quantize(builder *b, const char *name, sb_value_id x, float scale, sb_dtype dtype, int64_t zero) {
    return builder_node(b, name, 3, (sb_value_id[]){x, float_list(b, 1, scale, 0), integer_list(b, dtype, 1, zero)},
                        NULL);
}

/* Behind 128 of nothing as many integers of either sign, and one more at the end. */
static int64_t swinging_weight(int64_t l, int64_t k) {
    int64_t half = (k - 130) / 2;
    return l == k - 1 ? 1 : l < 128 || l == k - 2 ? 0 : l < 128 + half ? 127 - l % 7 : (l - half) % 7 - 127;
}

/* Integers of all kinds: every fifth column holds few of them, every eleventh none. */
static int64_t weight_of(const product *p, random_source *random, int64_t column) {
    int64_t value = random_between(random, -128, 127);
    return column % 11 == 10 ? 0 : column % 5 == 4 ? value % 3 : p->same_signs ? labs(value % 127) : value;
}

/* [k, n] for a MatMul, [n, k] for a Gemm, [n, channels, kernel, kernel] for a Conv. */
static sb_value_id weights(builder *b, const product *p, random_source *random) {
    const int64_t inner = p->kind == CONV ? p->m * p->kernel * p->kernel : p->k;
    const bool by_rows = p->kind == MATMUL;
    sb_tensor *tensor = p->kind == CONV   ? tensor_of(p->right, 4, (int64_t[]){p->n, p->m, p->kernel, p->kernel})
                        : p->kind == GEMM ? tensor_of(p->right, 2, (int64_t[]){p->n, p->k})
                                          : tensor_of(p->right, 2, (int64_t[]){p->k, p->n});
    for (int64_t i = 0; i < inner * p->n; i++)
        tensor->data[i] = (char)((p->swings ? swinging_weight(i % inner, inner)
                                            : weight_of(p, random, by_rows ? i % p->n : i / inner)) +
                                 p->right_zero);
    int64_t scales = p->one_scale ? 1 : p->n;
    sb_attributes attributes = {0};
    assert_int_equal(sb_attributes_add_ints(&attributes, "axis", true, 1, &(int64_t){by_rows}, NULL), SB_OK);
    sb_value_id inputs[3] = {builder_constant(b, tensor), float_list(b, scales, p->unit, 0.37f),
                             integer_list(b, p->right, scales, p->right_zero)};
    return builder_node(b, "DequantizeLinear", 3, inputs, &attributes);
}

static int input_dims(const product *p, int64_t *dims) {
    const int64_t of_conv[4] = {p->batch, p->m, p->height, p->width}, of_gemm[2] = {p->m, p->k};
    const int64_t of_matmul[3] = {p->batch, p->transposed ? p->k : p->m, p->transposed ? p->m : p->k};
    int rank = p->kind == CONV ? 4 : p->kind == GEMM ? 2 : 3;
    memcpy(dims, p->kind == CONV ? of_conv : p->kind == GEMM ? of_gemm : of_matmul, (size_t)rank * sizeof *dims);
    return rank;
}

static void add_ints(sb_attributes *attributes, const char *name, int count, int64_t value) {
    const int64_t values[4] = {value, value, value, value};
    assert_int_equal(sb_attributes_add_ints(attributes, name, false, count, values, NULL), SB_OK);
}

static sb_value_id product_node(builder *b, const product *p, sb_value_id x, sb_value_id w) {
    static const char *const names[] = {"MatMul", "Gemm", "Conv"};
    sb_attributes attributes = {0};
    sb_value_id inputs[3] = {x, w, SB_NO_VALUE};
    if (p->kind == GEMM)
        assert_int_equal(sb_attributes_add_ints(&attributes, "transB", true, 1, &(int64_t){1}, NULL), SB_OK);
    if (p->kind == CONV) {
        add_ints(&attributes, "pads", 4, p->pad);
        add_ints(&attributes, "strides", 2, p->stride);
        add_ints(&attributes, "dilations", 2, p->dilation);
    }
    if (p->has_bias)
        inputs[2] = float_list(b, p->n, p->result_scale * 7.3f, -0.29f);
    return builder_node(b, names[p->kind], p->has_bias ? 3 : 2, inputs, &attributes);
}

static builder graph_of(const product *p) {
    random_source random = {(uint64_t)(p->k * 131 + p->n)};
    builder b = builder_create();
    int64_t dims[4];
    int rank = input_dims(p, dims);
    sb_value_id x = builder_input(&b, SB_F32, rank, dims);
    x = quantize(&b, "QuantizeLinear", x, p->left_scale, p->left, p->left_zero);
    x = quantize(&b, "DequantizeLinear", x, p->left_scale, p->left, p->left_zero);
    if (p->transposed) {
        sb_attributes attributes = {0};
        assert_int_equal(sb_attributes_add_ints(&attributes, "perm", false, 3, (int64_t[]){0, 2, 1}, NULL), SB_OK);
        x = builder_node(&b, "Transpose", 1, &x, &attributes);
    }
    sb_value_id y = product_node(&b, p, x, weights(&b, p, &random));
    y = p->rectifies ? builder_unary(&b, "Relu", y) : y;
    y = quantize(&b, "QuantizeLinear", y, p->result_scale, p->result, p->result_zero);
    y = quantize(&b, "DequantizeLinear", y, p->back_scale, p->result, p->result_zero);
    assert_int_equal(sb_graph_add_output(b.graph, y, NULL), SB_OK);
    builder_finish(&b);
    return b;
}

static sb_tensor *input_of(const product *p) {
    random_source random = {(uint64_t)(p->m * 17 + p->k)};
    int64_t dims[4];
    int rank = input_dims(p, dims);
    sb_tensor *tensor = tensor_of(SB_F32, rank, dims);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++) {
        /* Of a swinging product all elements of a row are the same. */
        int64_t n = p->swings ? 101 + i % (p->height * p->width) % 150 : random_between(&random, -300, 300);
        ((float *)(void *)tensor->data)[i] = (float)(p->same_signs ? labs(n) : n) * p->left_scale;
    }
    return tensor;
}

static const sb_node *fused_node(const builder *b) {
    for (size_t i = 0; i < b->graph->node_count; i++) {
        sb_integer_operand operand;
        if (sb_integer_operand_of(b->graph->nodes[i], &operand))
            return b->graph->nodes[i];
    }
    return NULL;
}

static void check(const product *p) {
    builder plain_graph = graph_of(p), joined = graph_of(p);
    sb_tensor *input = input_of(p), *expected, *got;
    sb_error error = {SB_OK, ""};
    if (sb_passes_run(joined.graph, joined.scope, &error) != SB_OK)
        fail_msg("%s", error.message);
    int64_t products = p->kind == CONV ? p->m * p->kernel * p->kernel : p->k;
    assert_int_equal(fused_node(&joined) != NULL,
                     p->n >= 16 && products >= 192 && (p->kind != CONV || p->m >= 16)); /* less is left to f32 */
    builder_run(&plain_graph, true, SB_ISA_SCALAR, 1, &input, &expected);
    for (int isa = SB_ISA_SCALAR; isa <= (int)sb_isa_detect(); isa++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            builder_run(&joined, false, (sb_isa)isa, threads, &input, &got);
            if (!sb_tensor_equal(got, expected))
                fail_msg("%lld x %lld x %lld with %s", (long long)p->m, (long long)p->k, (long long)p->n,
                         sb_isa_name((sb_isa)isa));
            sb_tensor_release(got);
        }
    }
    sb_tensor_release(input);
    sb_tensor_release(expected);
    builder_destroy(&plain_graph);
    builder_destroy(&joined);
}

static void test_shapes(void **state) {
    (void)state;
    static const int64_t rows[] = {128, 129, 131, 140, 239, 241, 487}, depths[] = {191, 192, 193, 256, 257, 300, 515},
                         columns[] = {1, 15, 16, 17, 64, 65, 130};
    for (int i = 0; i < 7; i++) {
        for (int j = 0; j < 7; j++) {
            product p = plain;
            p.m = rows[i];
            p.k = depths[j];
            p.n = columns[(i + j) % 7];
            p.batch = j % 3 == 2 ? 3 : 1;
            p.transposed = i % 2 == 1;
            p.one_scale = j % 2 == 1;
            check(&p);
        }
    }
}

/* Kernels of one position and of many, channels that fill no vector, padding, strides, dilations and several images. */
static void test_convolutions(void **state) {
    (void)state;
    static const struct {
        int64_t channels, columns, kernel, stride, pad, dilation, height, width, batch;
    } cases[] = {{24, 33, 3, 1, 1, 1, 13, 17, 1},  {32, 64, 3, 2, 1, 1, 23, 21, 2},  {200, 48, 1, 1, 0, 1, 12, 11, 1},
                 {256, 16, 1, 2, 0, 1, 25, 25, 1}, {128, 70, 3, 1, 2, 2, 12, 12, 1}, {17, 17, 5, 1, 2, 1, 12, 12, 1},
                 {50, 20, 2, 1, 0, 1, 13, 13, 3},  {200, 20, 1, 1, 0, 1, 150, 1, 1}, {200, 20, 1, 1, 0, 1, 1, 150, 2},
                 {140, 31, 2, 1, 1, 1, 12, 12, 1}, {16, 130, 7, 3, 3, 1, 40, 37, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int j = 0; j < 4; j++) {
            product p = plain;
            p.kind = CONV;
            p.m = cases[i].channels;
            p.n = cases[i].columns;
            p.kernel = cases[i].kernel;
            p.stride = cases[i].stride;
            p.pad = cases[i].pad;
            p.dilation = cases[i].dilation;
            p.height = cases[i].height;
            p.width = cases[i].width;
            p.batch = cases[i].batch;
            p.has_bias = j % 2 == 0;
            p.rectifies = j >= 2;
            p.one_scale = j == 3;
            if (j == 3)
                p.result_scale = 2 * (p.left_scale * p.unit);
            check(&p);
        }
    }
}

/* A bound that left out what lies behind the first chunk of a pixel would take these for certain. */
static void test_swings(void **state) {
    (void)state;
    static const float nearly[] = {1 + 0x1p-9f, 1 - 0x1p-10f, 1 + 0x1p-11f, 1 - 0x1p-12f};
    for (int i = 0; i < 4; i++) {
        product p = plain;
        p.kind = CONV;
        p.m = 200;
        p.n = 16;
        p.kernel = p.stride = p.dilation = 1;
        p.height = 10;
        p.width = 15;
        p.left_zero = 0;
        p.result = SB_S16;
        p.result_zero = 0;
        p.swings = p.one_scale = true;
        p.result_scale = 2 * (p.left_scale * p.unit) * nearly[i];
        check(&p);
    }
}

static void test_gemm(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        product p = plain;
        p.kind = GEMM;
        p.m = 128 + 31 * i;
        p.n = 64 + 5 * i;
        p.has_bias = i % 2 == 0;
        p.rectifies = i % 4 >= 2;
        p.result_zero = i % 3 == 0 ? 0 : 128;
        check(&p);
    }
}

/* A run with its own number of rows by a program that others have run. */
static sb_tensor *run_rows(sb_program *program, sb_tensor *input) {
    sb_runner *runner;
    sb_run_settings settings = {0};
    sb_value in = sb_value_of_tensor(input), out;
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_workers_create(2, &settings.workers, NULL), SB_OK);
    assert_int_equal(sb_runner_create(program, &settings, 0, &runner, NULL), SB_OK);
    if (sb_runner_run(runner, true, &in, &out, &error) != SB_OK)
        fail_msg("%s", error.message);
    sb_runner_destroy(runner);
    sb_workers_destroy(settings.workers);
    return out.tensor;
}

/* One model takes few rows in f32 and many by integers, in any order, though each kernel keeps weights of its own. */
static void test_open_rows(void **state) {
    (void)state;
    static const int64_t rows[] = {3, 300, 127, 128, 5};
    product p = plain;
    p.m = -1;
    builder joined = graph_of(&p);
    sb_program *program;
    assert_int_equal(sb_passes_run(joined.graph, joined.scope, NULL), SB_OK);
    assert_non_null(fused_node(&joined));
    assert_int_equal(sb_program_create(joined.graph, sb_isa_detect(), false, &program, NULL), SB_OK);
    for (int i = 0; i < 5; i++) {
        p.m = rows[i];
        builder alone = graph_of(&p);
        sb_tensor *input = input_of(&p), *expected, *got = run_rows(program, input);
        builder_run(&alone, true, SB_ISA_SCALAR, 1, &input, &expected);
        assert_true(sb_tensor_equal(got, expected));
        sb_tensor_release(got);
        sb_tensor_release(expected);
        sb_tensor_release(input);
        builder_destroy(&alone);
    }
    sb_program_destroy(program);
    builder_destroy(&joined);
}

static void test_types(void **state) {
    (void)state;
    static const struct {
        sb_dtype left, right, result;
        int64_t left_zero, right_zero, result_zero;
    } types[] = {{SB_U8, SB_S8, SB_S8, 0, 0, 0},
                 {SB_S8, SB_S8, SB_U8, 0, 0, 255},
                 {SB_S8, SB_U8, SB_S8, -128, 128, -128},
                 {SB_S8, SB_S8, SB_S16, 127, 0, -5},
                 {SB_U8, SB_U8, SB_U16, 255, 128, 30000}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        product p = plain;
        p.m = 150;
        p.left = types[i].left;
        p.right = types[i].right;
        p.result = types[i].result;
        p.left_zero = types[i].left_zero;
        p.right_zero = types[i].right_zero;
        p.result_zero = types[i].result_zero;
        p.back_scale = -0.37f;
        check(&p);
        p.result_scale = 0.003f;
        check(&p);
    }
}

/* Every second exact sum lies half way between two results, where what chains of f32 round decides; or nearly. */
static void test_ties(void **state) {
    (void)state;
    static const int64_t depths[] = {193, 256, 384, 1536};
    static const float nearly[] = {1, 1 + 0x1p-20f, 1 - 0x1p-18f, 1 + 0x1p-12f};
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            for (int signs = 0; signs < 2; signs++) {
                product p = plain;
                p.m = 130;
                p.k = depths[i];
                p.kind = j == 3 ? GEMM : MATMUL;
                p.has_bias = j == 3;
                p.result = SB_S16;
                p.result_zero = 0;
                p.same_signs = signs;
                p.left_zero = signs ? 0 : 128;
                p.one_scale = true;
                p.result_scale = 2 * (p.left_scale * p.unit) * nearly[j];
                check(&p);
                p.result_scale *= 64;
                check(&p);
            }
        }
    }
}

/* What the bound of roundings rests on is not there: nothing is joined. */
static void check_left(const product *p) {
    builder b = graph_of(p);
    assert_int_equal(sb_passes_run(b.graph, b.scope, NULL), SB_OK);
    assert_null(fused_node(&b));
    builder_destroy(&b);
}

static void test_left_alone(void **state) {
    (void)state;
    product p = plain;
    p.left = SB_S16;
    check_left(&p);
    p = plain;
    p.left_scale = -0.5f;
    check_left(&p);
    p = plain;
    p.result_scale = 0x1p-60f;
    check_left(&p);
    p = plain;
    p.unit = 0x1p-60f;
    check_left(&p);
    p = plain;
    p.right = SB_U8;
    p.right_zero = 0; /* integers up to 255 */
    check_left(&p);
    p = plain;
    p.kind = CONV;
    p.m = 33; /* no number of positions has whole words of channels */
    p.kernel = 3;
    p.stride = p.dilation = p.height = p.width = 1;
    p.pad = 1;
    check_left(&p);
}

/* Whichever allocation of the passes fails, that is what is said, and nothing stays behind. */
static void test_failing_passes(void **state) {
    (void)state;
    sb_status status = SB_ERROR_OUT_OF_MEMORY;
    int64_t before = sb_allocation_count().live_blocks;
    for (int64_t successes = 0; status != SB_OK; successes++) {
        builder b = graph_of(&plain);
        sb_allocation_fail_after(successes, false);
        status = sb_passes_run(b.graph, b.scope, NULL);
        sb_allocation_fail_after(-1, false);
        assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
        assert_true(status != SB_OK || (successes > 20 && fused_node(&b) != NULL));
        builder_destroy(&b);
        assert_int_equal(sb_allocation_count().live_blocks, before);
    }
}

/* And of a run. */
typedef struct attempt {
    const sb_graph *graph;
    sb_tensor *input;
} attempt;

static sb_status run_once(void *context) {
    const attempt *attempt = context;
    sb_run_settings settings = {0};
    sb_program *program = NULL;
    sb_runner *runner = NULL;
    sb_value in = sb_value_of_tensor(attempt->input), out = {0};
    sb_status status = sb_workers_create(1, &settings.workers, NULL);
    if (status == SB_OK)
        status = sb_program_create(attempt->graph, sb_isa_detect(), false, &program, NULL);
    if (status == SB_OK)
        status = sb_runner_create(program, &settings, 0, &runner, NULL);
    if (status == SB_OK)
        status = sb_runner_run(runner, true, &in, &out, NULL);
    if (status == SB_OK)
        sb_tensor_release(out.tensor);
    sb_runner_destroy(runner);
    sb_program_destroy(program);
    sb_workers_destroy(settings.workers);
    return status;
}

static void test_failing_runs(void **state) {
    (void)state;
    product p = plain;
    p.kind = CONV;
    p.m = 32;
    p.kernel = 3;
    p.stride = p.dilation = p.pad = 1;
    p.height = p.width = 12;
    p.has_bias = true;
    builder b = graph_of(&p);
    assert_int_equal(sb_passes_run(b.graph, b.scope, NULL), SB_OK);
    assert_non_null(fused_node(&b));
    attempt attempt = {b.graph, input_of(&p)};
    check_failing_allocations(run_once, &attempt);
    sb_tensor_release(attempt.input);
    builder_destroy(&b);
}

static void test_columns(void **state) {
    (void)state;
    const sb_integer_weights shape = {1, 100, 2, 0, 2, 1};
    float units[2], data[200];
    for (int i = 0; i < 200; i++)
        data[i] = 0.3f * (float)(i % 2 != 0 ? i % 128 - 127 : 2);
    assert_true(sb_integer_columns_find(data, &shape, units));
    data[199] += 0.01f; /* behind what units are told apart by */
    assert_false(sb_integer_columns_find(data, &shape, units));
    data[199] = __builtin_nanf("");
    assert_false(sb_integer_columns_find(data, &shape, units));
    data[199] = 0.3f;
    data[0] = 0.3f;
    data[2] = 0.3f * 128; /* one more than there are, beside 1 */
    assert_false(sb_integer_columns_find(data, &shape, units));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),         cmocka_unit_test(test_convolutions), cmocka_unit_test(test_swings),
        cmocka_unit_test(test_gemm),           cmocka_unit_test(test_open_rows),    cmocka_unit_test(test_types),
        cmocka_unit_test(test_ties),           cmocka_unit_test(test_left_alone),   cmocka_unit_test(test_columns),
        cmocka_unit_test(test_failing_passes), cmocka_unit_test(test_failing_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
