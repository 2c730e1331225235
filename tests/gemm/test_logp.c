/* sb_linear_logp on the CPU: against its definition by plain loops, bit for bit; against f64; its
 * corners and its errors. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "engines.h"
#include "kernel/logp/logp_check.h"
#include "kernel/logp/logp_run.h"
#include "logp_cases.h"
#include "support/must.h"

/* ---- passes over a case ---- */

/* How the work is cut: 0 for what the library chooses. */
typedef struct cut {
    int64_t rows, columns;
} cut;

static void run_cut(sb_engine *engine, sb_linear_logp *logp, const sb_linear_logp_gradient *gradient, cut cut) {
    sb_logp_plan plan;
    MUST(sb_logp_measure(engine, logp, gradient, &plan, error));
    if (cut.columns > 0)
        MUST(sb_logp_lay_out(&plan, plan.wants_d_weight ? plan.rows : cut.rows, cut.columns, error));
    /* Full of NaN, so that nothing is read that was not written. */
    logp->workspace_bytes = plan.bytes;
    logp->workspace = aligned_alloc(256, plan.bytes + 256);
    assert_non_null(logp->workspace);
    memset(logp->workspace, 0xff, plan.bytes + 256);
    if (cut.columns > 0) {
        MUST(sb_logp_check_memory(engine, &plan, error));
        MUST(sb_logp_run(engine, NULL, &plan, error));
    } else if (gradient != NULL) {
        MUST(sb_linear_logp_backward(engine, NULL, logp, gradient, error));
    } else {
        MUST(sb_linear_logp_forward(engine, NULL, logp, error));
    }
    for (int i = 0; i < 256; i++)
        assert_int_equal(((unsigned char *)logp->workspace)[plan.bytes + (size_t)i], 0xff);
    free(logp->workspace);
}

static void run_forward(sb_engine *engine, logp_case *c, cut cut) {
    sb_linear_logp logp = logp_describe(c);
    run_cut(engine, &logp, NULL, cut);
}

static void run_backward(sb_engine *engine, logp_case *c, cut cut) {
    sb_linear_logp logp = logp_describe(c);
    sb_row_map *map = NULL;
    if (c->samples > 0)
        MUST(sb_row_map_create(engine, c->samples, c->lengths, &map, error));
    sb_linear_logp_gradient gradient = logp_describe_gradient(c, map);
    run_cut(engine, &logp, &gradient, cut);
    sb_row_map_release(map);
}

/* ---- tests ---- */

/* Every instruction set and number of threads, whole and in chunks, has the definition's bits. */
static void test_definition(void **state) {
    random_source random = {17};
    for (int i = 0; i < 400; i++) {
        logp_case c = logp_random(&random, i % 8 ? 300 : 900), defined = logp_clone(&c);
        logp_define_forward(&defined);
        logp_define_backward(&defined);
        for (int e = 0; e < engine_count; e++) {
            cut cut = {0, 0};
            if (random_between(&random, 0, 2))
                cut.rows = random_between(&random, 1, 9);
            cut.columns = cut.rows > 0 ? 128 * random_between(&random, 1, 3) : 0;
            logp_case found = logp_clone(&c);
            run_forward(engines[e], &found, cut);
            run_backward(engines[e], &found, cut);
            LOGP_CHECK_SAME(&found, &defined, cut.rows > 0 ? "in chunks" : "at once");
            logp_free(&found);
        }
        logp_free(&c);
        logp_free(&defined);
    }
}

/* A row has the same bits alone and in its batch, forward and (but for d_weight, which sums over rows) backward. */
static void test_rows_alone(void **state) {
    random_source random = {5};
    logp_case c = {.dtype = SB_BF16,
                   .d_hidden_dtype = SB_BF16,
                   .m = 37,
                   .k = 70,
                   .v = 1301,
                   .inverse_temperature = 1.25f,
                   .ignore_index = -100,
                   .by_words = true,
                   .wants_d_hidden = true};
    logp_allocate(&c);
    logp_fill(&c, &random, 8.0f, true);
    run_forward(engines[engine_count - 1], &c, (cut){0, 0});
    run_backward(engines[engine_count - 1], &c, (cut){0, 0});
    for (int64_t row = 0; row < c.m; row++) {
        logp_case alone = c;
        float logp = -1, sum = -1;
        int32_t maximum = -1;
        uint16_t d_hidden[70];
        alone.m = 1;
        alone.hidden += row * c.k;
        alone.targets += row;
        alone.d_logp += row;
        alone.logp = &logp;
        alone.sum = &sum;
        alone.maximum = &maximum;
        alone.d_hidden = (char *)d_hidden;
        run_forward(engines[engine_count - 1], &alone, (cut){0, 0});
        run_backward(engines[engine_count - 1], &alone, (cut){1, 256});
        assert_memory_equal(&logp, &c.logp[row], 4);
        assert_memory_equal(&sum, &c.sum[row], 4);
        assert_memory_equal(&maximum, &c.maximum[row], 4);
        assert_memory_equal(d_hidden, c.d_hidden + row * c.k * 2, sizeof d_hidden);
    }
    logp_free(&c);
}

/* A case of one feature, whose logits are the weights. */
static logp_case direct_case(sb_dtype dtype, int64_t v) {
    logp_case c = {.dtype = dtype,
                   .d_hidden_dtype = SB_F32,
                   .m = 1,
                   .k = 1,
                   .v = v,
                   .inverse_temperature = 1.0f,
                   .ignore_index = -100,
                   .wants_d_hidden = true};
    logp_allocate(&c);
    c.hidden[0] = logp_from_f32(dtype, 1.0f);
    c.d_logp[0] = 1.0f;
    return c;
}

/* log softmax of the chains' logits in long double. */
static long double exact_logp(const float *logits, int64_t v, int64_t target, double inverse_temperature) {
    long double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < v; i++)
        largest = fmaxl(largest, (long double)logits[i] * inverse_temperature);
    for (int64_t i = 0; i < v; i++)
        sum += expl((long double)logits[i] * inverse_temperature - largest);
    return (long double)logits[target] * inverse_temperature - largest - logl(sum);
}

/* The page's bound, with and without the half ulp of the result: (34 roundings of a lane and a
 * mantissa) * 2^-24, and the scale's own error, which moves all logits together. */
static void check_accuracy(int64_t v, float spread, float inverse_temperature, double *worst) {
    random_source random = {(uint64_t)v};
    logp_case c = {.dtype = SB_BF16,
                   .m = 6,
                   .k = 3,
                   .v = v,
                   .inverse_temperature = inverse_temperature,
                   .ignore_index = -100,
                   .by_words = true};
    logp_allocate(&c);
    logp_fill(&c, &random, spread, false);
    float *logits = logp_room(v, 4);
    for (int64_t row = 0; row < c.m; row++)
        c.targets[row] = random_between(&random, 0, v - 1);
    logp_define_logits(&c, 0, logits);
    for (int64_t i = 0; i < v; i++) /* the likeliest is an important target */
        c.targets[0] = logits[i] > logits[c.targets[0]] ? i : c.targets[0];
    run_forward(engines[engine_count - 1], &c, (cut){0, 0});
    for (int64_t row = 0; row < c.m; row++) {
        logp_define_logits(&c, row, logits);
        long double exact = exact_logp(logits, v, c.targets[row], inverse_temperature);
        double error = (double)fabsl(c.logp[row] - exact);
        double bound =
            0x1p-24 * (double)fabsl(exact) + 36 * 0x1p-24 + 0x1p-23 * ((double)fabsl(exact) + log((double)v));
        double beyond = error - 0x1p-24 * (double)fabsl(exact);
        if (error > bound || c.logp[row] > 0)
            fail_msg("v %lld, spread %g: logp is %.9g, exactly %.12Lg", (long long)v, (double)spread,
                     (double)c.logp[row], exact);
        *worst = beyond > *worst ? beyond : *worst;
    }
    free(logits);
    logp_free(&c);
}

/* Equal logits, where all lanes of all blocks round alike. */
static void test_accuracy_of_equal_logits(void **state) {
    logp_case c = direct_case(SB_BF16, 1280);
    double worst = 0;
    for (int step = 0; step < 300; step++) {
        for (int64_t v = 0; v < c.v; v++)
            c.weight[v] = sb_bf16_from_f32((float)step * 0.25f);
        c.inverse_temperature = 1.0f + (float)step * 0x1p-10f;
        run_forward(engines[engine_count - 1], &c, (cut){0, 0});
        double error = fabs((double)c.logp[0] + log(1280.0)) - 0x1p-24 * log(1280.0);
        worst = error > worst ? error : worst;
    }
    if (worst > 1.5e-7)
        fail_msg("the error is up to %g", worst);
    print_message("[          ] largest error beyond half an ulp: %.3g\n", worst);
    logp_free(&c);
}

static void test_accuracy(void **state) {
    static const int64_t vocabularies[] = {1, 2, 7, 127, 128, 129, 1000, 32000, 151936};
    static const float spreads[] = {0.0f, 1.0f, 10.0f, 100.0f, 5000.0f};
    double worst = 0;
    for (int i = 0; i < 9; i++) {
        for (int j = 0; j < 5; j++) {
            check_accuracy(vocabularies[i], spreads[j], 1.0f, &worst);
            check_accuracy(vocabularies[i], spreads[j], 1.0f / 0.7f, &worst);
        }
    }
    /* What was measured, with some room: far from the bound, since roundings do not all go one way. */
    if (worst > 1.5e-7)
        fail_msg("the error is up to %g", worst);
    print_message("[          ] largest error beyond half an ulp: %.3g\n", worst);
}

static float logp_of(logp_case *c, const float *logits, int64_t target) {
    for (int64_t i = 0; i < c->v; i++)
        c->weight[i] = logp_from_f32(c->dtype, logits[i]);
    c->targets[0] = target;
    run_forward(engines[0], c, (cut){0, 0});
    return c->logp[0];
}

static void test_corners(void **state) {
    logp_case c = direct_case(SB_BF16, 3);
    const float inf = INFINITY;
    /* Alone in the running: exactly 0, of positive sign. */
    assert_int_equal(sb_bits_from_f32(logp_of(&c, (float[]){5, -inf, -inf}, 0)), 0);
    assert_int_equal(sb_bits_from_f32(logp_of(&c, (float[]){5, -1000, -1e30f}, 0)), 0);
    assert_true(logp_of(&c, (float[]){5, -inf, 1}, 1) == -inf);
    assert_true(logp_of(&c, (float[]){0, -1000, -inf}, 1) == -1000.0f);
    assert_true(logp_of(&c, (float[]){999424, -999424, 0}, 1) == -1998848.0f);
    /* Ignored logits change nothing of the others. */
    float two = logp_of(&c, (float[]){1, -inf, 2}, 0);
    assert_true(fabsf(two - -1.3132617f) < 2e-7f);
    /* What is not told apart is NaN, and so is the pair. */
    static const float beyond[] = {INFINITY, NAN, 1454080.0f, 1e30f};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sb_bits_from_f32(logp_of(&c, (float[]){1, beyond[i], 2}, 0)), 0x7fc00000);
        assert_int_equal(sb_bits_from_f32(c.sum[0]), 0x7fc00000);
        assert_int_equal(c.maximum[0], 0);
    }
    assert_true(isnan(logp_of(&c, (float[]){-inf, -inf, -inf}, 0)));
    assert_true(isnan(logp_of(&c, (float[]){-2e6f, -3e6f, -inf}, 0)));
    /* … but for a row that is ignored. */
    assert_int_equal(sb_bits_from_f32(logp_of(&c, (float[]){NAN, inf, 2}, -100)), 0);
    logp_free(&c);
}

/* Ignored rows have no gradient, whatever their logits and d_logp are. */
static void test_ignored_rows(void **state) {
    logp_case c = direct_case(SB_F16, 4);
    static const float logits[] = {1, 2, 3, 4};
    logp_of(&c, logits, -100);
    c.d_logp[0] = NAN;
    c.wants_d_weight = true;
    memset(c.d_hidden, 0xff, 4);
    run_backward(engines[0], &c, (cut){0, 0});
    assert_int_equal(sb_bits_from_f32(*(float *)(void *)c.d_hidden), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(sb_bits_from_f32(c.d_weight[i]), 0);
    logp_free(&c);
}

/* The sum over rows of d_logp * logp in double, from the values of the 16-bit operands. */
static double objective(const logp_case *c, const double *hidden, const double *weight) {
    double total = 0;
    for (int64_t row = 0; row < c->m; row++) {
        double sum = 0, own = 0;
        if (c->targets[row] == c->ignore_index)
            continue;
        for (int64_t v = 0; v < c->v; v++) {
            double z = 0;
            for (int64_t k = 0; k < c->k; k++)
                z += hidden[row * c->k + k] * weight[v * c->k + k];
            sum += exp(z * (double)c->inverse_temperature);
            own = v == c->targets[row] ? z * (double)c->inverse_temperature : own;
        }
        total += (double)c->d_logp[row] * (own - log(sum));
    }
    return total;
}

/* A d_weight of 16 bits is that of f32, rounded: in chunks, with samples, and whichever way it lies. */
static void test_rounded_d_weight(void **state) {
    random_source random = {21};
    for (int i = 0; i < 60; i++) {
        sb_engine *engine = engines[i % engine_count];
        cut cut = {i % 2, i % 2 ? 128 : 0};
        logp_case c = logp_random(&random, 300);
        c.accumulate = false;
        c.wants_d_weight = true;
        run_forward(engine, &c, cut);
        logp_case rounded = logp_clone(&c);
        rounded.rounds_d_weight = true;
        run_backward(engine, &c, cut);
        run_backward(engine, &rounded, cut);
        for (int64_t at = 0; at < c.k * c.v; at++) {
            int64_t place = logp_weight_at(&c, at / c.v, at % c.v);
            uint16_t expected = logp_from_f32(c.dtype, c.d_weight[place]);
            uint16_t found = ((const uint16_t *)(const void *)rounded.d_weight)[place];
            if (found != expected)
                fail_msg("case %d, element %lld: %04x, and %g rounds to %04x", i, (long long)at, found,
                         (double)c.d_weight[place], expected);
        }
        logp_free(&rounded);
        logp_free(&c);
    }
}

/* Central differences of the objective, one operand's element after the other. */
static void check_differences(const logp_case *c, double *hidden, double *weight, double *moved, int64_t count,
                              const float *found, const char *what) {
    const double step = 1e-4;
    for (int64_t i = 0; i < count; i++) {
        double before = moved[i];
        moved[i] = before + step;
        double above = objective(c, hidden, weight);
        moved[i] = before - step;
        double below = objective(c, hidden, weight);
        moved[i] = before;
        double expected = (above - below) / (2 * step);
        /* Gradients of logits have 8 bits, and several are added. */
        if (fabs(expected - (double)found[i]) > 0.01 * fabs(expected) + 0.01)
            fail_msg("%s[%lld] is %g, by differences %g", what, (long long)i, (double)found[i], expected);
    }
}

static void test_differences(void **state) {
    random_source random = {3};
    logp_case c = {.dtype = SB_BF16,
                   .d_hidden_dtype = SB_F32,
                   .m = 5,
                   .k = 4,
                   .v = 9,
                   .inverse_temperature = 0.8f,
                   .ignore_index = 2,
                   .by_words = true,
                   .wants_d_hidden = true,
                   .wants_d_weight = true};
    logp_allocate(&c);
    logp_fill(&c, &random, 3.0f, false);
    double hidden[5 * 4], weight[9 * 4];
    for (int i = 0; i < 5 * 4; i++)
        hidden[i] = (double)logp_to_f32(c.dtype, c.hidden[i]);
    for (int i = 0; i < 9 * 4; i++)
        weight[i] = (double)logp_to_f32(c.dtype, c.weight[i]);
    run_forward(engines[0], &c, (cut){0, 0});
    run_backward(engines[0], &c, (cut){0, 0});
    check_differences(&c, hidden, weight, hidden, 5 * 4, (float *)(void *)c.d_hidden, "d_hidden");
    check_differences(&c, hidden, weight, weight, 9 * 4, c.d_weight, "d_weight");
    logp_free(&c);
}

/* Gradients of a real vocabulary's size against f64: rounding each logit's gradient to 16 bits is
 * the largest error. */
static void test_gradient_of_large_vocabulary(void **state) {
    random_source random = {8};
    logp_case c = {.dtype = SB_BF16,
                   .d_hidden_dtype = SB_F32,
                   .m = 3,
                   .k = 5,
                   .v = 20011,
                   .inverse_temperature = 1.0f,
                   .ignore_index = -1,
                   .by_words = true,
                   .wants_d_hidden = true};
    logp_allocate(&c);
    logp_fill(&c, &random, 6.0f, false);
    float *logits = logp_room(c.v, 4);
    for (int64_t row = 0; row < c.m; row++)
        c.targets[row] = row * 7000;
    run_forward(engines[engine_count - 1], &c, (cut){0, 0});
    run_backward(engines[engine_count - 1], &c, (cut){1, 4096});
    for (int64_t row = 0; row < c.m; row++) {
        logp_define_logits(&c, row, logits);
        for (int64_t k = 0; k < c.k; k++) {
            double expected = 0, magnitude = 0;
            for (int64_t v = 0; v < c.v; v++) {
                double y = exp((double)logits[v] - (double)logits[c.targets[row]] + (double)c.logp[row]);
                double d = ((v == c.targets[row]) - y) * (double)c.d_logp[row];
                double w = (double)logp_to_f32(c.dtype, c.weight[v * c.k + k]);
                expected += d * w;
                magnitude += fabs(d * w);
            }
            double found = (double)((float *)(void *)c.d_hidden)[row * c.k + k];
            if (fabs(found - expected) > magnitude * 0x1p-9)
                fail_msg("row %lld, k %lld: %g where %g is right", (long long)row, (long long)k, found, expected);
        }
    }
    free(logits);
    logp_free(&c);
}

/* ---- errors ---- */

/* Each entry spoils one thing of a valid pair of passes. */
#define SPOILED(X)                                                                                                     \
    X("struct_bytes", l.struct_bytes--, "start from SB_LINEAR_LOGP_DEFAULT")                                           \
    X("gradient bytes", g.struct_bytes = 0, "start from SB_LINEAR_LOGP_GRADIENT_DEFAULT")                              \
    X("temperature", l.inverse_temperature = 0.0f, "from 2^-20 to 2^20")                                               \
    X("temperature NaN", l.inverse_temperature = NAN, "from 2^-20 to 2^20")                                            \
    X("hidden's dtype", l.hidden.dtype = SB_F32, "bf16 and f16")                                                       \
    X("weight's dtype", l.weight.dtype = SB_F16, "one dtype")                                                          \
    X("K", l.weight.rows++, "are both K")                                                                              \
    X("negative", l.hidden.rows = -1, "from 0 to 2^48")                                                                \
    X("vocabulary", l.weight.columns = (1 << 24) + 1, "at most 2^24 words")                                            \
    X("hidden NULL", l.hidden.data = NULL, "hidden is NULL")                                                           \
    X("targets NULL", l.targets = NULL, "targets is NULL")                                                             \
    X("sum NULL", l.sum = NULL, "sum is NULL")                                                                         \
    X("weight odd", l.weight.data = (char *)l.weight.data + 1, "not aligned")                                          \
    X("targets odd", l.targets = (const int64_t *)((const char *)l.targets + 4), "not aligned")                        \
    X("stride", l.weight.column_stride = INT64_MAX / 2, "further apart than addresses reach")                          \
    X("small workspace", l.workspace_bytes--, "ask sb_linear_logp_workspace")                                          \
    X("odd workspace", l.workspace = (char *)l.workspace + 128, "not aligned to 256")                                  \
    X("workspace in use", l.weight.data = l.workspace, "workspace overlaps weight")                                    \
    X("target", c.targets[1] = 70, "row 1 is 70")                                                                      \
    X("negative target", c.targets[2] = -1, "row 2 is -1")                                                             \
    X("schedule", l.schedule = "fast", "no schedule is called")                                                        \
    X("d_hidden's extents", g.d_hidden.rows--, "d_hidden is 2 x 8")                                                    \
    X("d_hidden's dtype", g.d_hidden.dtype = SB_F16, "f32 or hidden's bf16")                                           \
    X("d_hidden's strides", g.d_hidden.row_stride = 4, "elements coincide")                                            \
    X("d_weight's extents", g.d_weight.columns--, "d_weight is 8 x 69")                                                \
    X("d_weight's dtype", g.d_weight.dtype = SB_F16, "f32 or hidden's bf16")                                           \
    X("d_weight's chains", (g.d_weight.dtype = SB_BF16, g.accumulate = true), "takes f32, in which they are kept")     \
    X("d_logp", g.d_logp = NULL, "d_logp is NULL")                                                                     \
    X("d_hidden on sum", g.d_hidden.data = l.sum, "d_hidden overlaps")                                                 \
    X("the map's rows", g.rows = map, "the row map have 2 rows")                                                       \
    X("the map's engine", g.rows = foreign, "another engine")

static void test_errors(void **state) {
    random_source random = {4};
    logp_case c = {.dtype = SB_BF16,
                   .d_hidden_dtype = SB_F32,
                   .m = 3,
                   .k = 8,
                   .v = 70,
                   .inverse_temperature = 1.0f,
                   .ignore_index = -100,
                   .wants_d_hidden = true,
                   .wants_d_weight = true};
    logp_allocate(&c);
    logp_fill(&c, &random, 1.0f, false);
    const int64_t two = 2, three = 3;
    sb_row_map *map = NULL, *foreign = NULL;
    MUST(sb_row_map_create(engines[0], 1, &two, &map, error));
    MUST(sb_row_map_create(engines[1], 1, &three, &foreign, error));
    int64_t targets[3];
    memcpy(targets, c.targets, sizeof targets);
    size_t bytes = 0;
    void *workspace = aligned_alloc(256, 1 << 16);
    assert_non_null(workspace);
#define TRY_SPOILED(title, spoil, says)                                                                                \
    {                                                                                                                  \
        sb_linear_logp l = logp_describe(&c);                                                                          \
        sb_linear_logp_gradient g = logp_describe_gradient(&c, NULL);                                                  \
        sb_error error = {SB_OK, ""};                                                                                  \
        memcpy(c.targets, targets, sizeof targets);                                                                    \
        MUST(sb_linear_logp_workspace(engines[0], &l, &g, &bytes, error));                                             \
        assert_true(bytes <= 1 << 16);                                                                                 \
        l.workspace = workspace;                                                                                       \
        l.workspace_bytes = bytes;                                                                                     \
        MUST(sb_linear_logp_backward(engines[0], NULL, &l, &g, error));                                                \
        spoil;                                                                                                         \
        sb_status status = sb_linear_logp_backward(engines[0], NULL, &l, &g, &error);                                  \
        if (status == SB_OK || strstr(error.message, says) == NULL)                                                    \
            fail_msg("%s: status %d, \"%s\" does not say \"%s\"", title, (int)status, error.message, says);            \
    }
    SPOILED(TRY_SPOILED)
    sb_error error = {SB_OK, ""};
    sb_linear_logp l = logp_describe(&c);
    memcpy(c.targets, targets, sizeof targets);
    assert_int_equal(sb_linear_logp_forward(NULL, NULL, &l, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_linear_logp_forward(engines[0], NULL, NULL, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_linear_logp_backward(engines[0], NULL, &l, NULL, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_linear_logp_forward(engines[0], &c, &l, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "stream"));
    sb_row_map_release(map);
    sb_row_map_release(foreign);
    free(workspace);
    logp_free(&c);
}

/* The page's and the header's figures. */
static void test_workspace(void **state) {
    sb_linear_logp l = SB_LINEAR_LOGP_DEFAULT;
    sb_linear_logp_gradient g = SB_LINEAR_LOGP_GRADIENT_DEFAULT;
    size_t bytes = 0;
    l.hidden = logp_matrix(SB_BF16, NULL, 4096, 4096, 0);
    l.weight = logp_matrix(SB_BF16, NULL, 4096, 151936, 0);
    MUST(sb_linear_logp_workspace(engines[0], &l, NULL, &bytes, error));
    assert_true(bytes < 73000000);
    g.d_hidden = logp_matrix(SB_BF16, &bytes, 4096, 4096, 0);
    g.d_weight = logp_matrix(SB_F32, &bytes, 4096, 151936, 0);
    MUST(sb_linear_logp_workspace(engines[0], &l, &g, &bytes, error));
    assert_true(bytes < 275000000);
    /* More rows take no more in the forward pass. */
    l.hidden.rows = 1 << 20;
    MUST(sb_linear_logp_workspace(engines[0], &l, NULL, &bytes, error));
    assert_true(bytes < 73000000);
    /* Sizes that no memory has are refused. */
    sb_error error = {SB_OK, ""};
    l.hidden.rows = (int64_t)1 << 48;
    g.d_hidden.rows = l.hidden.rows;
    l.weight.columns = g.d_weight.columns = 1 << 24;
    assert_int_equal(sb_linear_logp_workspace(engines[0], &l, &g, &bytes, &error), SB_OK);
    l.hidden.columns = l.weight.rows = g.d_hidden.columns = g.d_weight.rows = (int64_t)1 << 48;
    assert_int_equal(sb_linear_logp_workspace(engines[0], &l, &g, &bytes, &error), SB_ERROR_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_rows_alone),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_accuracy_of_equal_logits),
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_ignored_rows),
        cmocka_unit_test(test_rounded_d_weight),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_gradient_of_large_vocabulary),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_workspace),
    };
    return cmocka_run_group_tests(tests, open_engines, close_engines);
}
