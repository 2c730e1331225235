/* The words by which headers of tests/support demand something, for a program that is not one of cmocka's: what is not
 * so ends the program, which says which case it was at. */
#ifndef HARNESS_CHECKS_H
#define HARNESS_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Ends the program with a message, the present case's name and the command that runs it alone. */
_Noreturn void harness_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define fail_msg harness_fail
#define assert_true(condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            harness_fail("%s:%d: not so: %s", __FILE__, __LINE__, #condition);                                         \
    } while (0)
#define assert_non_null(pointer) assert_true((pointer) != NULL)
#define assert_int_equal(left, right) assert_true((left) == (right))
#define assert_string_equal(left, right)                                                                               \
    do {                                                                                                               \
        if (strcmp(left, right) != 0)                                                                                  \
            harness_fail("%s:%d: \"%s\" in place of \"%s\"", __FILE__, __LINE__, left, right);                         \
    } while (0)

#endif
