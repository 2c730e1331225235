/* How products and convolutions are cut for threads, how much memory they say they need, and what is refused. What they
 * compute: tests/harness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "cpu/contraction/chain16.h"
#include "cpu/contraction/conv.h"
#include "cpu/contraction/gemm.h"
#include "support/random.h"

/* ---- rectangles ---- */

static void f32_splits_cover(void **unused) {
    random_source source = {.state = 13};
    sb_isa sets[3];
    int count = 0;
    for (int isa = SB_ISA_SCALAR; isa <= SB_ISA_AVX512; isa++) {
        if (sb_isa_resolve((sb_isa)isa, &sets[count], NULL) == SB_OK)
            count++;
    }
    for (int i = 0; i < 300; i++) {
        int64_t m = random_between(&source, 0, 300), n = random_between(&source, 0, 300);
        sb_gemm_split split = sb_gemm_f32_split(sb_gemm_f32_kernels(sets[i % count]), m, n,
                                                random_between(&source, 0, 100000), (int)random_between(&source, 1, 9));
        unsigned char *seen = sb_allocate_array((size_t)(m * n + 1), 1);
        assert_non_null(seen);
        for (int64_t part = 0; part < split.m_parts * split.n_parts; part++) {
            int64_t m0, m1, n0, n1;
            sb_gemm_split_rectangle(&split, part, &m0, &m1, &n0, &n1);
            assert_true(0 <= m0 && m1 <= m && 0 <= n0 && n1 <= n);
            for (int64_t r = m0; r < m1; r++)
                for (int64_t c = n0; c < n1; c++)
                    seen[r * n + c]++;
        }
        for (int64_t e = 0; e < m * n; e++)
            assert_int_equal(seen[e], 1);
        sb_free(seen);
    }
}

static void halves_splits_cover(void **unused) {
    random_source source = {.state = 14};
    for (int trial = 0; trial < 500; trial++) {
        int64_t m = random_between(&source, 0, 400), n = random_between(&source, 0, 2000);
        int threads = (int)random_between(&source, 1, 16);
        sb_gemm_split split = sb_chain16_split(m, n, threads);
        int64_t area = 0;
        assert_true(split.n_parts <= 1 || split.n_step % SB_CHAIN16_PANEL == 0);
        for (int64_t i = 0; i < split.m_parts * split.n_parts; i++) {
            int64_t m0, m1, n0, n1;
            sb_gemm_split_rectangle(&split, i, &m0, &m1, &n0, &n1);
            assert_true(0 <= m0 && m0 < m1 && m1 <= m && 0 <= n0 && n0 < n1 && n1 <= n);
            area += (m1 - m0) * (n1 - n0);
        }
        assert_int_equal(area, m * n);
        /* Where there is enough to do, every thread has something. */
        assert_true(n < 64 * 16 || m < 1 || split.m_parts * split.n_parts >= threads);
    }
}

/* ---- sizes ---- */

static void f32_sizes_that_do_not_fit(void **unused) {
    const sb_gemm_kernels *kernels = sb_gemm_f32_kernels(SB_ISA_SCALAR);
    assert_int_equal(sb_gemm_f32_packed_bytes(kernels, INT64_MAX / 8, 1 << 10), 0);
    assert_int_equal(sb_gemm_f32_packed_bytes(kernels, INT64_MAX, 1), 0);
    assert_true(sb_gemm_f32_packed_bytes(kernels, 0, 0) > 0);
    sb_gemm_args args = {.m = 1, .n = 1, .k = INT64_MAX, .c_column_stride = 1};
    assert_int_equal(sb_gemm_f32_workspace_bytes(kernels, &args), 0);
}

static void halves_sizes_that_do_not_fit(void **unused) {
    assert_int_equal(sb_chain16_packed_bytes(INT64_MAX, 4), 0);
    assert_int_equal(sb_chain16_packed_bytes(4, INT64_MAX), 0);
    assert_int_equal(sb_chain16_packed_bytes((int64_t)1 << 40, (int64_t)1 << 40), 0);
    assert_true(sb_chain16_packed_bytes(0, 0) > 0);
    assert_true(sb_chain16_packed_bytes(17, 65) >= 32 * 128 * 2);
    sb_chain16_args args = {.m = 4, .n = 4, .k = INT64_MAX};
    assert_int_equal(sb_chain16_workspace_bytes(&args), 0);
    args.packed_b = (const uint16_t *)(const void *)&args;
    assert_int_equal(sb_chain16_workspace_bytes(&args), 0);
    args.k = 0;
    assert_true(sb_chain16_workspace_bytes(&args) > 0);
}

/* ---- refusals ---- */

static void convolutions_that_are_refused(void **unused) {
    const sb_conv_shape good = {.rank = 1,
                                .batch = 1,
                                .groups = 1,
                                .input_channels = 1,
                                .output_channels = 1,
                                .input = {4},
                                .output = {4},
                                .kernel = {1},
                                .stride = {1},
                                .dilation = {1},
                                .x_channel_stride = 1,
                                .y_channel_stride = 1};
    const sb_gemm_kernels *kernels = sb_gemm_f32_kernels(SB_ISA_SCALAR);
    sb_conv_plan plan;
    sb_error error;
    assert_int_equal(sb_conv_f32_plan(kernels, &good, &plan, &error), SB_OK);
    sb_conv_shape bad = good;
    bad.stride[0] = 0;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.groups = 2;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.rank = SB_CONV_RANK + 1;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
    bad = good;
    bad.dilation[0] = INT64_MAX;
    bad.kernel[0] = 3;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
    bad = good;
    bad.batch = INT64_MAX;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
    bad = good;
    bad.pad[0] = INT64_MIN;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
    bad = good;
    bad.input_channels = bad.output_channels = INT64_MAX / 2;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_splits_cover),
        cmocka_unit_test(halves_splits_cover),
        cmocka_unit_test(f32_sizes_that_do_not_fit),
        cmocka_unit_test(halves_sizes_that_do_not_fit),
        cmocka_unit_test(convolutions_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
