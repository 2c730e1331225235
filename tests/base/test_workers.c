/* Parallel loops: each index is computed once, whoever has the processors meanwhile. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/workers.h"

enum { THREADS = 4, OTHERS = 8, LOOPS = 400, INDICES = 1000, GRAIN = 16 };

static void count_indices(void *context, int64_t begin, int64_t end) {
    int *counts = context;
    for (int64_t i = begin; i < end; i++)
        counts[i]++;
}

static void run_loops(sb_workers *workers) {
    static int counts[INDICES];
    for (int l = 0; l < LOOPS; l++) {
        for (int i = 0; i < INDICES; i++)
            counts[i] = 0;
        int64_t count = l % 7 == 0 ? l % (INDICES + 1) : INDICES;
        sb_workers_run(workers, count, GRAIN, count_indices, counts);
        for (int i = 0; i < INDICES; i++)
            assert_int_equal(counts[i], i < count);
    }
}

static void test_every_index(void **state) {
    (void)state;
    sb_error error;
    sb_workers *workers;
    run_loops(NULL);
    for (int threads = 1; threads <= THREADS; threads++) {
        assert_int_equal(sb_workers_create(threads, &workers, &error), SB_OK);
        assert_int_equal(sb_workers_threads(workers), threads);
        run_loops(workers);
        sb_workers_destroy(workers);
    }
    assert_int_equal(sb_workers_create(1025, &workers, &error), SB_ERROR_INVALID_ARGUMENT);
}

static atomic_bool ended;

static void *keep_busy(void *argument) {
    (void)argument;
    while (!atomic_load(&ended)) {
    }
    return NULL;
}

/* More threads than any processor has time for: workers come late, and loops do without them. */
static void test_busy_processors(void **state) {
    (void)state;
    sb_error error;
    sb_workers *workers;
    pthread_t others[OTHERS];
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(pthread_create(&others[i], NULL, keep_busy, NULL), 0);
    assert_int_equal(sb_workers_create(2, &workers, &error), SB_OK);
    run_loops(workers);
    sb_workers_destroy(workers);
    atomic_store(&ended, true);
    for (int i = 0; i < OTHERS; i++)
        pthread_join(others[i], NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index),
        cmocka_unit_test(test_busy_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
