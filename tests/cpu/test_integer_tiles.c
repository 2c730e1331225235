/* Register tiles of integer products: every form of them gives what plain C gives, though a processor takes only one of each set. */
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
#define MOST_PAIRS 40

typedef struct operands {
    int16_t a[MOST_ROWS * MOST_PAIRS * 2];
    uint8_t panel[MOST_PAIRS * SB_INTEGER_PANEL * 2 + 64];
    int32_t sums[MOST_ROWS], zeros[SB_INTEGER_PANEL];
} operands;

static void fill(operands *operands, random_source *random) {
    for (size_t i = 0; i < sizeof operands->a / sizeof operands->a[0]; i++)
        operands->a[i] = (int16_t)random_between(random, -255, 255);
    for (size_t i = 0; i < sizeof operands->panel; i++)
        operands->panel[i] = (uint8_t)random_bits(random);
    for (int i = 0; i < MOST_ROWS; i++)
        operands->sums[i] = (int32_t)random_bits(random);
    for (int i = 0; i < SB_INTEGER_PANEL; i++)
        operands->zeros[i] = (int32_t)random_between(random, -128, 255);
}

static void check(sb_integer_multiply *multiply, const sb_integer_tile *like) {
    int32_t expected[MOST_ROWS * SB_INTEGER_PANEL], got[MOST_ROWS * SB_INTEGER_PANEL];
    sb_integer_tile tile = *like;
    memset(expected, 1, sizeof expected);
    memset(got, 1, sizeof got);
    tile.c = expected;
    sb_integer_multiply_scalar(&tile);
    tile.c = got;
    multiply(&tile);
    assert_memory_equal(got, expected, sizeof got);
}

static void test_tiles(void **state) {
    (void)state;
    random_source random = {7};
    operands *operands = malloc(sizeof *operands);
    for (int round = 0; round < 400; round++) {
        fill(operands, &random);
        sb_integer_tile tile = {.rows = random_between(&random, 1, MOST_ROWS),
                                .pairs = random_between(&random, 0, MOST_PAIRS),
                                .columns = random_between(&random, 1, SB_INTEGER_PANEL),
                                .dtype = round % 2 != 0 ? SB_S8 : SB_U8,
                                .a = operands->a,
                                .sums = operands->sums,
                                .panel = operands->panel,
                                .zeros = operands->zeros,
                                .c_stride = SB_INTEGER_PANEL};
        check(sb_integer_multiply_of(sb_isa_detect()), &tile);
#if SB_HAS_X86_KERNELS
        for (int isa = SB_ISA_AVX2; isa <= (int)sb_isa_detect(); isa++) {
            check(isa == SB_ISA_AVX512 ? sb_integer_multiply_avx512 : sb_integer_multiply_avx2, &tile);
            if (sb_isa_adds_products((sb_isa)isa))
                check(isa == SB_ISA_AVX512 ? sb_integer_multiply_avx512_vnni : sb_integer_multiply_avx2_vnni, &tile);
        }
#endif
    }
    free(operands);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
