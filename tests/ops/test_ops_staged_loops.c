/* The loops of formulas in two parts (src/ops/staged_loops.h) against the formulas of src/numerics, for each instruction set
 * of the machine: equal bits, NaNs being one value. SB_TEST_STRIDE (default 1009) is the step over the 2^32 inputs; 1 covers
 * all. */
#include "base/isa.h"
#include "ops/unary.h"
#include "ops/unary_formulas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

enum { ROW = 4096 + 37, FLOAT = sizeof(float) };

typedef float formula(float x, float a, float b);

/* A row, and what it computes one by one. */
typedef struct pair {
    const char *name;
    int row;
    formula *formula;
} pair;

#define ENTRY(op, unused) {#op, SB_UNARY_ROW_##op, sb_unary_##op##_f32},
static const pair PAIRS[] = {SB_UNARY_STAGED_FLOATS(ENTRY, )};
enum { PAIR_COUNT = sizeof PAIRS / sizeof PAIRS[0] };

static const sb_unary_params PARAMS = {.a = 1.7f, .b = 0.3f};

static uint64_t stride(void) {
    const char *text = getenv("SB_TEST_STRIDE");
    long value = text != NULL ? strtol(text, NULL, 10) : 0;
    return value > 0 ? (uint64_t)value : 1009;
}

static uint32_t canonical(float x) {
    return sb_bits_from_f32(x == x ? x : sb_nan_f32());
}

static void check_row(const pair *pair, sb_walk_row *loop, int64_t count, const float *x) {
    static float y[ROW];
    loop((void *)(uintptr_t)&PARAMS, count, (char *const[]){(char *)y, (char *)(uintptr_t)x},
         (const int64_t[]){FLOAT, FLOAT});
    for (int64_t i = 0; i < count; i++) {
        const float expected = pair->formula(x[i], PARAMS.a, PARAMS.b);
        if (canonical(y[i]) != canonical(expected))
            fail_msg("%s(%a): %a instead of %a", pair->name, (double)x[i], (double)y[i], (double)expected);
    }
}

static sb_walk_row *loop_of(const pair *pair, sb_isa isa) {
    return SB_PICK_LOOPS(sb_unary_loops, isa)[pair->row][SB_F32];
}

/* Instruction sets that the machine has; plain C is the first. */
static int isas_here(sb_isa *isas) {
    static const sb_isa all[] = {SB_ISA_SCALAR, SB_ISA_AVX2, SB_ISA_AVX512};
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sb_isa resolved;
        if (sb_isa_resolve(all[i], &resolved, NULL) == SB_OK && resolved == all[i])
            isas[count++] = all[i];
    }
    return count;
}

static void test_all_floats(void **state) {
    static float x[ROW];
    const uint64_t step = stride();
    sb_isa isas[3];
    const int isa_count = isas_here(isas);
    for (int p = 0; p < PAIR_COUNT; p++)
        for (uint64_t start = 0; start < UINT64_C(0x100000000); start += step * ROW) {
            for (uint64_t i = 0; i < ROW; i++)
                x[i] = sb_bits_to_f32((uint32_t)(start + i * step));
            for (int isa = 0; isa < isa_count; isa++)
                check_row(&PAIRS[p], loop_of(&PAIRS[p], isas[isa]), ROW, x);
        }
}

/* Rows of every length around a vector and a piece, with each special value at each place of the first ones. */
static void test_lengths_and_specials(void **state) {
    static const uint32_t specials[] = {0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                        0xff800001u, 0x00000001u, 0x807fffffu, 0x7f7fffffu, 0xc2d20000u};
    static float x[ROW];
    sb_isa isas[3];
    const int isa_count = isas_here(isas);
    for (int p = 0; p < PAIR_COUNT; p++)
        for (int isa = 0; isa < isa_count; isa++) {
            for (int64_t count = 0; count < 600; count += count < 70 ? 1 : 31) {
                for (int64_t i = 0; i < count; i++)
                    x[i] = (float)(i % 61 - 30) * 0.37f;
                check_row(&PAIRS[p], loop_of(&PAIRS[p], isas[isa]), count, x);
                for (int64_t i = 0; i < count && count < 70; i++) {
                    const float usual = x[i];
                    x[i] = sb_bits_to_f32(specials[(uint64_t)(i + count) % (sizeof specials / sizeof *specials)]);
                    check_row(&PAIRS[p], loop_of(&PAIRS[p], isas[isa]), count, x);
                    x[i] = usual;
                }
            }
        }
}

/* The output may be the input, and steps may be wider than elements. */
static void test_in_place_and_steps(void **state) {
    enum { COUNT = 517 };
    static float in_place[COUNT], apart[2 * COUNT], x[3 * COUNT];
    sb_isa isas[3];
    const int isa_count = isas_here(isas);
    for (int p = 0; p < PAIR_COUNT; p++)
        for (int isa = 0; isa < isa_count; isa++) {
            for (int i = 0; i < COUNT; i++)
                in_place[i] = x[3 * i] = (float)(i % 89 - 44) * 0.21f;
            sb_walk_row *loop = loop_of(&PAIRS[p], isas[isa]);
            void *params = (void *)(uintptr_t)&PARAMS;
            loop(params, COUNT, (char *const[]){(char *)in_place, (char *)in_place}, (const int64_t[]){FLOAT, FLOAT});
            loop(params, COUNT, (char *const[]){(char *)apart, (char *)x}, (const int64_t[]){2 * FLOAT, 3 * FLOAT});
            for (int i = 0; i < COUNT; i++) {
                const uint32_t expected = canonical(PAIRS[p].formula(x[3 * i], PARAMS.a, PARAMS.b));
                assert_int_equal(canonical(in_place[i]), expected);
                assert_int_equal(canonical(apart[2 * i]), expected);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_floats),
        cmocka_unit_test(test_lengths_and_specials),
        cmocka_unit_test(test_in_place_and_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
