/* Runs something with its first allocation failing, then its second, … until it succeeds; each time
 * it must report that memory ran out and leave nothing behind. Include after cmocka.h. */
#ifndef SB_TESTS_FAILING_H
#define SB_TESTS_FAILING_H

#include "base/allocation.h"
#include "base/error.h"

/* `attempt` does its whole work, frees all of it, and returns its status. */
static inline void check_some_failing_allocations(sb_status (*attempt)(void *context), void *context, int stride) {
    for (int forever = 0; forever < 2; forever++) {
        for (int64_t successes = 0;; successes += stride) {
            int64_t before = sb_allocation_count().live_blocks;
            sb_allocation_fail_after(successes, forever != 0);
            sb_status status = attempt(context);
            sb_allocation_fail_after(-1, false);
            assert_int_equal(sb_allocation_count().live_blocks, before);
            if (status == SB_OK) {
                assert_true(successes > 0); /* else the work allocates nothing and the test tests nothing */
                break;
            }
            assert_int_equal(status, SB_ERROR_OUT_OF_MEMORY);
            assert_true(successes < 100000);
        }
    }
}

static inline void check_failing_allocations(sb_status (*attempt)(void *context), void *context) {
    check_some_failing_allocations(attempt, context, 1);
}

#endif
