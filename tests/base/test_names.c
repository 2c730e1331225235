/* Tables of names: what was put is found, what was removed is not, whatever lies in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/names.h"
#include "support/random.h"

enum { NAMES = 300 };

static char texts[NAMES][16];

static void check(const sb_names *names, const bool *present) {
    size_t count = 0;
    for (int i = 0; i < NAMES; i++) {
        const int32_t *found = sb_names_find(names, texts[i]);
        assert_int_equal(found != NULL, present[i]);
        if (found != NULL)
            assert_int_equal(*found, i);
        count += present[i];
    }
    assert_int_equal(names->count, count);
}

/* Puts names in any order and takes the upper part out again, until tables of all sizes were
 * emptied and filled in many ways. */
static void test_remove(void **state) {
    (void)state;
    random_source source = {7};
    for (int i = 0; i < NAMES; i++)
        snprintf(texts[i], sizeof texts[i], "name%d", i);
    for (int round = 0; round < 200; round++) {
        sb_names names = {0};
        bool present[NAMES] = {false};
        int limit = (int)random_between(&source, 1, NAMES);
        sb_names_remove_from(&names, 0);
        for (int step = 0; step < 4; step++) {
            for (int put = 0; put < limit; put++) {
                int i = (int)random_between(&source, 0, limit - 1);
                if (!present[i])
                    assert_true(sb_names_put(&names, texts[i], i));
                present[i] = true;
            }
            check(&names, present);
            int least = (int)random_between(&source, 0, limit);
            sb_names_remove_from(&names, least);
            for (int i = least; i < NAMES; i++)
                present[i] = false;
            check(&names, present);
        }
        sb_names_clear(&names);
    }
}

/* Names of any bytes: with a NUL inside, none at all, and the beginnings of others. */
static void test_spans(void **state) {
    (void)state;
    static const char bytes[] = "a\0b\0c";
    sb_names names = {0};
    for (int32_t length = 0; length < 6; length++)
        assert_true(sb_names_put_span(&names, bytes, (size_t)length, length));
    for (int32_t length = 0; length < 6; length++)
        assert_int_equal(*sb_names_find_span(&names, bytes, (size_t)length), length);
    assert_int_equal(*sb_names_find(&names, "a"), 1);
    assert_null(sb_names_find_span(&names, "a\0c", 3));
    assert_null(sb_names_find(&names, "b"));
    sb_names_clear(&names);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_remove), cmocka_unit_test(test_spans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
