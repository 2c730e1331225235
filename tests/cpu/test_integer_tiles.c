/* Integer products on raw pointers: every form of them gives what plain loops over the definition give, though a processor takes only
 * one of each set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/contraction/integer.h"
#include "support/random.h"

#define MOST_ROWS 29
#define MOST_TERMS 200
#define MOST_COLUMNS 70
#define LONG 70001

/* a[m, k] and b[k, n], rows and columns in any order in memory, and a zero point for each row and column. */
typedef struct problem {
    int64_t m, k, n;
    sb_dtype a_dtype, b_dtype;
    const uint8_t *a, *b;
    int64_t a_row, a_k, b_k, b_column;
    int32_t a_zeros[MOST_ROWS], b_zeros[MOST_COLUMNS];
} problem;

static void define(const problem *problem, int32_t *c) {
    for (int64_t i = 0; i < problem->m; i++) {
        for (int64_t j = 0; j < problem->n; j++) {
            uint32_t sum = 0;
            for (int64_t l = 0; l < problem->k; l++) {
                int32_t a = sb_quantized_load(problem->a_dtype, problem->a, i * problem->a_row + l * problem->a_k);
                int32_t b = sb_quantized_load(problem->b_dtype, problem->b, l * problem->b_k + j * problem->b_column);
                sum += (uint32_t)((a - problem->a_zeros[i]) * (b - problem->b_zeros[j]));
            }
            c[i * problem->n + j] = (int32_t)sum;
        }
    }
}

static void compute(const sb_integer_form *form, const problem *problem, int32_t *c) {
    const int64_t k = problem->k, n = problem->n, words = sb_integer_words(form, k);
    const size_t bytes = sb_integer_packed_bytes(form, k, n);
    const sb_integer_right right = {problem->b_dtype, problem->b, problem->b_k, problem->b_column, k, n};
    uint8_t *packed = malloc(bytes), *again = malloc(bytes), *rows = malloc((size_t)(4 * problem->m * words + 1));
    int32_t zeros[MOST_ROWS];
    uint32_t sums[MOST_ROWS];
    memset(packed, 0x5a, bytes);
    memset(again, 0xa5, bytes);
    memset(rows, 0x5a, (size_t)(4 * problem->m * words + 1));
    sb_integer_pack(form, &right, 0, sb_integer_panels(form, n), packed);
    sb_integer_pack(form, &right, 0, sb_integer_panels(form, n), again);
    assert_memory_equal(packed, again, bytes); /* all of it is written */
    for (int64_t i = 0; i < problem->m; i++) {
        zeros[i] = problem->a_zeros[i] + sb_integer_left_shift(problem->a_dtype);
        sums[i] = form->row(problem->a_dtype, problem->a + i * problem->a_row, problem->a_k, k, rows + 4 * i * words) -
                  (uint32_t)k * (uint32_t)zeros[i];
    }
    assert_int_equal(rows[4 * problem->m * words], 0x5a);
    for (int64_t panel = 0; panel < sb_integer_panels(form, n); panel++) {
        const int64_t first = panel * form->panel, left = n - first;
        int32_t column_zeros[SB_INTEGER_PANEL] = {0};
        sb_integer_tile tile = {.rows = problem->m,
                                .words = words,
                                .columns = left < form->panel ? left : form->panel,
                                .a = rows,
                                .zeros = zeros,
                                .sums = sums,
                                .panel = packed + (size_t)panel * sb_integer_panel_bytes(form, k),
                                .column_zeros = column_zeros,
                                .c = c + first,
                                .c_stride = n};
        for (int64_t j = 0; j < tile.columns; j++)
            column_zeros[j] = problem->b_zeros[first + j] + sb_integer_right_shift(problem->b_dtype);
        form->multiply(&tile);
    }
    free(packed);
    free(again);
    free(rows);
}

static void check(const sb_integer_form *form, const problem *problem, const int32_t *expected) {
    int32_t got[MOST_ROWS * MOST_COLUMNS];
    const size_t bytes = (size_t)(problem->m * problem->n) * sizeof *got;
    memset(got, 1, bytes);
    compute(form, problem, got);
    assert_memory_equal(got, expected, bytes);
}

static void check_all(const problem *problem) {
    int32_t expected[MOST_ROWS * MOST_COLUMNS];
    define(problem, expected);
    check(&sb_integer_pairs_scalar, problem, expected);
#if SB_HAS_X86_KERNELS
    for (int isa = SB_ISA_AVX2; isa <= (int)sb_isa_detect(); isa++) {
        check(isa == SB_ISA_AVX512 ? &sb_integer_pairs_avx512 : &sb_integer_pairs_avx2, problem, expected);
        if (sb_isa_adds_products((sb_isa)isa))
            check(isa == SB_ISA_AVX512 ? &sb_integer_fours_avx512 : &sb_integer_fours_avx2, problem, expected);
    }
#endif
    check(sb_integer_form_of(sb_isa_detect()), problem, expected);
}

/* Anything; or, `extreme`, what is furthest from 0 of either type, and 0. */
static uint8_t element(random_source *random, bool extreme) {
    static const uint8_t extremes[] = {0, 0x7f, 0x80, 0xff};
    return extreme ? extremes[random_between(random, 0, 3)] : (uint8_t)random_bits(random);
}

static void fill(random_source *random, bool extreme, size_t count, uint8_t *to) {
    for (size_t i = 0; i < count; i++)
        to[i] = element(random, extreme);
}

static void fill_zeros(random_source *random, bool extreme, sb_dtype dtype, int count, int32_t *to) {
    for (int i = 0; i < count; i++) {
        const uint8_t zero = element(random, extreme);
        to[i] = sb_quantized_load(dtype, &zero, 0);
    }
}

static void test_products(void **state) {
    (void)state;
    random_source random = {7};
    uint8_t *a = malloc(MOST_ROWS * MOST_TERMS), *b = malloc(MOST_TERMS * MOST_COLUMNS);
    for (int round = 0; round < 600; round++) {
        const bool extreme = round % 5 == 0;
        problem problem = {.m = random_between(&random, 1, MOST_ROWS),
                           .k = random_between(&random, 1, round % 2 == 0 ? MOST_TERMS : 9),
                           .n = random_between(&random, 1, MOST_COLUMNS),
                           .a_dtype = round & 1 ? SB_S8 : SB_U8,
                           .b_dtype = round & 2 ? SB_S8 : SB_U8,
                           .a = a,
                           .b = b};
        problem.a_row = round & 4 ? 1 : problem.k;
        problem.a_k = round & 4 ? problem.m : 1;
        problem.b_k = round & 8 ? 1 : problem.n;
        problem.b_column = round & 8 ? problem.k : 1;
        fill(&random, extreme, MOST_ROWS * MOST_TERMS, a);
        fill(&random, extreme, MOST_TERMS * MOST_COLUMNS, b);
        fill_zeros(&random, extreme, problem.a_dtype, MOST_ROWS, problem.a_zeros);
        fill_zeros(&random, extreme, problem.b_dtype, MOST_COLUMNS, problem.b_zeros);
        check_all(&problem);
    }
    free(a);
    free(b);
}

/* Sums beyond 2^31 and 2^32, of products as large as they get, of either sign: one that saturates would differ. So many rows have
 * one sum for each element. */
static void test_wraps(void **state) {
    (void)state;
    enum { ROWS = 5, COLUMNS = 3 };
    uint8_t *a = malloc((size_t)ROWS * LONG), *b = malloc((size_t)COLUMNS * LONG);
    for (int round = 0; round < 8; round++) {
        problem problem = {.m = ROWS,
                           .k = LONG,
                           .n = COLUMNS,
                           .a_dtype = round & 1 ? SB_S8 : SB_U8,
                           .b_dtype = round & 2 ? SB_S8 : SB_U8,
                           .a = a,
                           .b = b,
                           .a_row = LONG,
                           .a_k = 1,
                           .b_k = 1,
                           .b_column = LONG};
        const uint8_t least_a = problem.a_dtype == SB_S8 ? 0x80 : 0, least_b = problem.b_dtype == SB_S8 ? 0x80 : 0;
        const uint8_t ends_a[] = {least_a, least_a ^ 0xff}, ends_b[] = {least_b, least_b ^ 0xff};
        for (int i = 0; i < ROWS; i++) {
            memset(a + i * LONG, ends_a[i < ROWS - 1], LONG);
            problem.a_zeros[i] = sb_quantized_load(problem.a_dtype, ends_a, i % 2);
        }
        for (int j = 0; j < COLUMNS; j++) {
            memset(b + j * LONG, j < 2 ? ends_b[j] : 1, LONG);
            problem.b_zeros[j] = sb_quantized_load(problem.b_dtype, ends_b, round >> 2 & 1);
        }
        check_all(&problem);
    }
    free(a);
    free(b);
}

static void test_sizes(void **state) {
    (void)state;
    const sb_integer_form *form = sb_integer_form_of(sb_isa_detect());
    assert_true(sb_integer_packed_bytes(form, 1, 1) > 0);
    assert_int_equal(sb_integer_packed_bytes(form, INT64_MAX, 1), 0);
    assert_int_equal(sb_integer_packed_bytes(form, (int64_t)1 << 40, (int64_t)1 << 40), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_wraps),
                                       cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
