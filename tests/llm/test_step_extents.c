/* The extents of steps: enough of everything, and few different ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "llm/step_extents.h"

enum { MOST_PARTS = 40, MOST_ROWS = 2048 };

static sb_llm_sequence sequences[MOST_PARTS];
static sb_llm_step_part parts[MOST_PARTS];
static sb_llm_choice choices[MOST_PARTS];

/* A step of `count` parts, one of `rows` rows and others of one, `wanted` of which have a wanted row and a choice. */
static sb_llm_stepping make_step(int count, int64_t rows, int wanted, bool padded, const sb_llm_ahead *ahead) {
    for (int i = 0; i < count; i++) {
        sequences[i].page_count = 3 + i;
        parts[i] =
            (sb_llm_step_part){.sequence = &sequences[i], .count = i == 0 ? rows : 1, .wanted_count = i < wanted};
        choices[i] = (sb_llm_choice){.by = {.top_p = 1}};
    }
    return (sb_llm_stepping){.count = count, .parts = parts, .ahead = ahead, .scored = true, .padded = padded};
}

static void test_rows(void **state) {
    int64_t before = 0;
    int different = 0;
    for (int64_t rows = 1; rows <= MOST_ROWS; rows++) {
        const sb_llm_stepping s = make_step(1, rows, 1, true, NULL);
        const sb_llm_step_extents e = sb_llm_step_extents_of(&s);
        assert_int_equal(e.used.rows, rows);
        assert_true(e.rows >= rows && e.rows >= before && (rows <= 16 ? e.rows < 2 * rows : 4 * e.rows < 5 * rows) &&
                    (rows <= 16 || e.rows < rows + 64));
        /* There is a sequence for rows behind those of the parts. */
        assert_int_equal(e.sequences, e.rows > rows ? 2 : 1);
        assert_true(e.wanted == 1 && e.scored == 1 && e.choices == 0 && e.columns == 4);
        different += e.rows != before;
        before = e.rows;
    }
    assert_int_equal(different, 49);
    assert_int_equal(before, MOST_ROWS);
}

static void test_parts(void **state) {
    for (int count = 1; count <= MOST_PARTS; count++) {
        for (int wanted = 0; wanted <= count; wanted++) {
            const sb_llm_ahead silent = {.count = wanted, .choices = choices};
            const sb_llm_ahead heard = {.count = wanted, .choices = choices, .logits = true};
            sb_llm_stepping s = make_step(count, 5, wanted, true, &silent);
            const sb_llm_step_extents quiet = sb_llm_step_extents_of(&s);
            s.ahead = &heard;
            const sb_llm_step_extents loud = sb_llm_step_extents_of(&s);
            s.ahead = NULL;
            const sb_llm_step_extents waited = sb_llm_step_extents_of(&s);
            assert_true(waited.wanted == loud.wanted && waited.choices == 0 && waited.used.wanted == wanted);
            s.ahead = &heard;
            s.padded = false;
            const sb_llm_step_extents exact = sb_llm_step_extents_of(&s);
            assert_true(quiet.sequences >= count + (quiet.rows > count + 4) && quiet.columns >= 2 + count);
            /* None, or one for each sequence. */
            assert_int_equal(quiet.wanted, wanted > 0 ? quiet.sequences : 0);
            assert_true(quiet.choices == quiet.wanted && quiet.scored == quiet.wanted);
            assert_true(quiet.used.wanted == wanted && quiet.used.choices == wanted);
            assert_true(loud.rows == quiet.rows && loud.choices == loud.wanted);
            assert_true(loud.wanted >= wanted && (wanted == 0 || loud.wanted < 2 * wanted));
            assert_true(exact.rows == count + 4 && exact.wanted == wanted && exact.choices == wanted);
        }
    }
}

/* A prompt of which every row is wanted, beside a token. */
static void test_scored(void **state) {
    const sb_llm_ahead ahead = {.count = 1, .choices = choices, .logits = true};
    sb_llm_stepping s = make_step(2, 100, 1, true, &ahead);
    parts[0].wanted_count = 100;
    const sb_llm_step_extents e = sb_llm_step_extents_of(&s);
    assert_true(e.rows == 112 && e.sequences == 4 && e.wanted == 100 && e.scored == 100 && e.choices == 1);
}

static void test_settings(void **state) {
    const sb_llm_ahead ahead = {.count = 2, .choices = choices};
    const sb_llm_stepping s = make_step(2, 1, 2, true, &ahead);
    assert_int_equal(sb_llm_step_extents_of(&s).settings, SB_CHOOSE_COLUMNS_OF_ALL);
    choices[1].by.top_k = 5;
    assert_int_equal(sb_llm_step_extents_of(&s).settings, SB_CHOOSE_REAL_COLUMNS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_scored),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
