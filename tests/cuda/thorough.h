/* What tests leave out unless SAMEBIT_TESTS is "thorough", as it is in `make test-extended`: three of four cases of those that
 * take longest on the host. */
#ifndef THOROUGH_H
#define THOROUGH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline bool tests_are_thorough(void) {
    const char *tests = getenv("SAMEBIT_TESTS");
    return tests != NULL && strcmp(tests, "thorough") == 0;
}

/* Whether case `number` is left out. Which are has no pattern that cases' own patterns could fall in with: 2^32 over the golden
 * ratio scatters numbers. */
static inline bool is_left_out(int number) {
    return !tests_are_thorough() && ((uint32_t)number * UINT32_C(2654435769) >> 30) != 0;
}

/* Of two or more `ways` in which a test goes through each of several models, how far apart those are that a model goes: all if tests are
 * thorough, else half; under AddressSanitizer, where they take three times as long, one. */
static inline int ways_apart(int ways) {
#if defined(__SANITIZE_ADDRESS__)
    return ways;
#else
    return tests_are_thorough() ? 1 : ways / 2;
#endif
}

/* From one failing allocation to the next one that is tried: `step`, but more under AddressSanitizer, where these tests take thirteen times
 * as long. All that are tried without it fail in the ordinary build. */
static inline int64_t failing_step(int64_t step) {
#if defined(__SANITIZE_ADDRESS__)
    return 4 * step + 1;
#else
    return step;
#endif
}

#endif
