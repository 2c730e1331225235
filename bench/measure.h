/* What the programs here share. MUST(call): a call whose last argument is `error`; where it fails the program says why and ends. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <samebit/error.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        sb_error error_ = {SB_OK, ""}, *error = &error_;                                                               \
        if ((call) != SB_OK) {                                                                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, error->message);                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

#endif
