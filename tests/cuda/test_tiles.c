/* The choice of tiles for products in f32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/contraction/tiles.h"

/* The choice is among those that there are, whatever the extents. */
static void test_choice(void **unused) {
    for (int64_t batches = 0; batches < INT64_C(1) << 40; batches = batches * 1000 + 1) {
        for (int64_t m = 1; m < INT64_C(1) << 40; m *= 37) {
            for (int64_t n = 1; n < INT64_C(1) << 40; n *= 53)
                assert_non_null(sb_cuda_tile_choose(batches, m, n, 0, 132));
        }
    }
    assert_true(sb_cuda_tile_choose(1, 1, 768, 0, 132)->m <= 8);
    assert_true(sb_cuda_tile_choose(1, 4096, 4096, 0, 132)->m >= 128);
    /* A patch that takes time to make is made by more threads: 32 outputs at 49 positions. */
    assert_true(sb_cuda_tile_choose(1, 32, 49, 4, 132)->threads >= 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
