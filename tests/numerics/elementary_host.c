#include "elementary_host.h"

#include "elementary.h"
#include "functions.h"

#define EVALUATE(name, exact, lowest, highest)                                                                         \
    static void evaluate_##name##_f32(const float *restrict x, float *restrict y, int count) {                         \
        for (int index = 0; index < count; index++) {                                                                  \
            y[index] = sb_##name##_f32(x[index]);                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void evaluate_##name##_f64(const double *restrict x, double *restrict y, int count) {                       \
        for (int index = 0; index < count; index++) {                                                                  \
            y[index] = sb_##name##_f64(x[index]);                                                                      \
        }                                                                                                              \
    }
SB_TEST_FUNCTIONS(EVALUATE)

#define ENTRY_F32(name, exact, lowest, highest) evaluate_##name##_f32,
#define ENTRY_F64(name, exact, lowest, highest) evaluate_##name##_f64,

void sb_host_evaluate_f32(int function, const float *x, float *y, int count) {
    static void (*const functions[])(const float *, float *, int) = {SB_TEST_FUNCTIONS(ENTRY_F32)};
    functions[function](x, y, count);
}

void sb_host_evaluate_f64(int function, const double *x, double *y, int count) {
    static void (*const functions[])(const double *, double *, int) = {SB_TEST_FUNCTIONS(ENTRY_F64)};
    functions[function](x, y, count);
}

void sb_host_pow_f32(const float *x, const float *y, float *z, int count) {
    for (int index = 0; index < count; index++) {
        z[index] = sb_pow_f32(x[index], y[index]);
    }
}

void sb_host_pow_f64(const double *x, const double *y, double *z, int count) {
    for (int index = 0; index < count; index++) {
        z[index] = sb_pow_f64(x[index], y[index]);
    }
}
