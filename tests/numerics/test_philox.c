/* Philox4x32-10 against the known answers published with Random123, and the mapping to uniform numbers. */
#include "philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void check(const uint32_t counter[4], const uint32_t key[2], const uint32_t expected[4]) {
    sb_philox_block block = {{counter[0], counter[1], counter[2], counter[3]}};
    sb_philox_block result = sb_philox4x32_10(block, key[0], key[1]);
    for (int index = 0; index < 4; index++) {
        assert_int_equal(result.word[index], expected[index]);
    }
}

static void test_known_answers(void **unused) {
    (void)unused;
    const uint32_t zeros[4] = {0, 0, 0, 0};
    const uint32_t ones[4] = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
    const uint32_t pi_counter[4] = {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u};
    const uint32_t pi_key[2] = {0xa4093822u, 0x299f31d0u};
    const uint32_t of_zeros[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
    const uint32_t of_ones[4] = {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu};
    const uint32_t of_pi[4] = {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u};
    check(zeros, zeros, of_zeros);
    check(ones, ones, of_ones);
    check(pi_counter, pi_key, of_pi);
}

static void test_uniform_numbers(void **unused) {
    (void)unused;
    assert_true(sb_uniform_f32(0) == 0.0f);
    assert_true(sb_uniform_f32(0xffu) == 0.0f);
    assert_true(sb_uniform_f32(0x100u) == 0x1p-24f);
    assert_true(sb_uniform_f32(0x80000000u) == 0.5f);
    assert_true(sb_uniform_f32(0xffffffffu) == 0x1.fffffep-1f);
    assert_true(sb_uniform_open_f32(0) == 0x1p-24f);
    assert_true(sb_uniform_open_f32(0xffffffffu) == 0x1.fffffep-1f);
    assert_true(sb_uniform_f64(0, 0) == 0.0);
    assert_true(sb_uniform_f64(0x80000000u, 0) == 0.5);
    assert_true(sb_uniform_f64(0, 0x800u) == 0x1p-53);
    assert_true(sb_uniform_f64(0xffffffffu, 0xffffffffu) == 0x1.fffffffffffffp-1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_uniform_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
