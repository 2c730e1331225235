/* Moves of rectangles against loops over their elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/random.h"
#include "tensor/block.h"

enum { MOST = 70, ROOM = 1 << 18 };

static unsigned char source[ROOM], moved[ROOM], expected[ROOM];

/* How a side of a rectangle lies: which of its axes is adjacent, with what gaps, and which way it goes. */
static sb_block random_block(random_source *random, unsigned char *memory, int64_t size, int64_t rows, int64_t columns,
                             bool repeats) {
    bool turned = random_between(random, 0, 1) != 0;
    int64_t gap = random_between(random, 0, 2) == 0 ? random_between(random, 1, 3) : 0;
    int64_t inner = size * (random_between(random, 0, 3) == 0 ? 2 : 1);
    int64_t outer = inner * (turned ? rows : columns) + gap * size;
    sb_block block = {(char *)memory + size * random_between(random, 0, 3), turned ? inner : outer,
                      turned ? outer : inner};
    if (random_between(random, 0, 4) == 0 && rows > 0) {
        block.data += (rows - 1) * block.row;
        block.row = -block.row;
    }
    if (repeats && random_between(random, 0, 4) == 0)
        *(random_between(random, 0, 1) != 0 ? &block.row : &block.column) = 0;
    return block;
}

static void test_rectangles(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 4, 8, 16};
    random_source random = {7};
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)random_bits(&random);
    for (int round = 0; round < 6000; round++) {
        int64_t size = sizes[random_between(&random, 0, 4)];
        int64_t rows = random_between(&random, 0, MOST), columns = random_between(&random, 0, MOST);
        sb_block from = random_block(&random, source, size, rows, columns, true);
        sb_block to = random_block(&random, moved, size, rows, columns, false);
        memset(moved, 0xa5, sizeof moved);
        memset(expected, 0xa5, sizeof expected);
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = 0; c < columns; c++)
                memcpy(expected + (to.data - (char *)moved) + r * to.row + c * to.column,
                       from.data + r * from.row + c * from.column, (size_t)size);
        }
        sb_block_move((size_t)size, rows, columns, to, from);
        assert_memory_equal(moved, expected, sizeof moved);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rectangles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
