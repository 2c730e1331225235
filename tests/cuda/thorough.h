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

#endif
