/* Every one-argument f32 function over all 2^32 inputs: at most 1 unit in the last place.
 *
 *     exhaustive [-t threads] [function ...]
 *
 * The reference is the C library's function in double, whose error of a few 2^-53 is below 10^-7
 * units of f32; that is itself checked against MPFR on every 2^20th input. A result further than
 * 0.999 units from it, or of another kind (NaN, infinity, zero), is settled by MPFR. */
#include "convert.h"
#include "elementary.h"
#include "functions.h"
#include "reference.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHUNK = 1 << 14, MAX_THREADS = 256 };
#define CHUNKS (UINT64_C(0x100000000) / CHUNK)

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static double softplus(double x) {
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double rsqrt(double x) {
    return 1.0 / sqrt(x);
}

typedef struct function {
    const char *name;
    void (*evaluate)(const float *x, float *y);
    double (*reference)(double);
    sb_reference_function exact;
} function;

/* The loops that the kernels would run, so that the vectorised code is what is checked. */
#define EVALUATE(name, exact, lowest, highest)                                                                         \
    static void evaluate_##name(const float *restrict x, float *restrict y) {                                          \
        for (int index = 0; index < CHUNK; index++) {                                                                  \
            y[index] = sb_##name##_f32(x[index]);                                                                      \
        }                                                                                                              \
    }
SB_TEST_FUNCTIONS(EVALUATE)

#define ENTRY(name, exact, lowest, highest) {#name, evaluate_##name, name, exact},
static const function FUNCTIONS[] = {SB_TEST_FUNCTIONS(ENTRY)};
enum { FUNCTION_COUNT = sizeof FUNCTIONS / sizeof FUNCTIONS[0] };

/* What all threads of one function share. */
typedef struct job {
    const function *item;
    atomic_ullong next_chunk;
    pthread_mutex_t lock; /* of what follows */
    double worst;
    float worst_at;
    uint64_t wrong;
    uint64_t settled;
    double worst_reference;
} job;

/* The error in units of the last place as far as doubles show it; negative where they cannot. */
static double quick_error(float result, double reference) {
    double y = (double)result;
    uint64_t bits = sb_bits_from_f64(reference);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent == 1024 || !(fabs(y) < INFINITY)) {
        int both_nan = y != y && reference != reference;
        int both_infinite = fabs(y) == INFINITY && fabs(reference) >= 0x1.ffffffp127 && (y > 0.0) == (reference > 0.0);
        return both_nan || both_infinite ? 0.0 : -1.0;
    }
    if ((sb_bits_from_f64(y) ^ bits) >> 63 != 0) {
        return -1.0;
    }
    exponent = exponent < -126 ? -126 : exponent;
    return fabs(y - reference) * sb_power_of_two_f64(23 - exponent);
}

/* How far the double reference itself is from the exact value, in units of f32. */
static double reference_error(const function *item, float x, double reference) {
    mpfr_t argument, exact;
    mpfr_init2(argument, 24);
    mpfr_init2(exact, 160);
    mpfr_set_flt(argument, x, MPFR_RNDN);
    item->exact(exact, argument, MPFR_RNDN);
    double error = sb_reference_error_f64(reference, exact);
    mpfr_clears(argument, exact, (mpfr_ptr)0);
    return error * 0x1p-29;
}

static void *run_thread(void *pointer) {
    job *work = pointer;
    float x[CHUNK];
    float y[CHUNK];
    double worst = 0.0, worst_reference = 0.0;
    float worst_at = 0.0f;
    uint64_t wrong = 0, settled = 0;
    double allowed = SB_TEST_ALLOWED_ERROR(work->item->name);
    for (;;) {
        uint64_t chunk = atomic_fetch_add(&work->next_chunk, 1);
        if (chunk >= CHUNKS) {
            break;
        }
        for (int index = 0; index < CHUNK; index++) {
            x[index] = sb_bits_to_f32((uint32_t)(chunk * CHUNK) + (uint32_t)index);
        }
        work->item->evaluate(x, y);
        for (int index = 0; index < CHUNK; index++) {
            double reference = work->item->reference((double)x[index]);
            double error = quick_error(y[index], reference);
            if (error < 0.0 || error > 0.999) {
                error = sb_reference_error_of_f32(work->item->exact, x[index], y[index]);
                settled++;
            }
            wrong += !(error <= allowed);
            worst_at = error > worst ? x[index] : worst_at;
            worst = error > worst ? error : worst;
        }
        if (chunk % 64 == 0 && isfinite(x[777])) {
            double reference = work->item->reference((double)x[777]);
            double error = isfinite(reference) && fabs(reference) > 0x1p-1000
                               ? reference_error(work->item, x[777], reference)
                               : 0.0;
            worst_reference = error > worst_reference ? error : worst_reference;
        }
    }
    pthread_mutex_lock(&work->lock);
    work->worst_at = worst > work->worst ? worst_at : work->worst_at;
    work->worst = worst > work->worst ? worst : work->worst;
    work->worst_reference = worst_reference > work->worst_reference ? worst_reference : work->worst_reference;
    work->wrong += wrong;
    work->settled += settled;
    pthread_mutex_unlock(&work->lock);
    mpfr_free_cache();
    return NULL;
}

static int run_function(const function *item, int threads) {
    job work = {.item = item};
    pthread_mutex_init(&work.lock, NULL);
    pthread_t handles[MAX_THREADS];
    int started = 0;
    while (started < threads && pthread_create(&handles[started], NULL, run_thread, &work) == 0) {
        started++;
    }
    if (started == 0) {
        run_thread(&work);
    }
    for (int index = 0; index < started; index++) {
        pthread_join(handles[index], NULL);
    }
    pthread_mutex_destroy(&work.lock);
    printf("%-10s largest error %.6f ulp at %a, %llu wrong, %llu settled by MPFR, reference within "
           "%.1e\n",
           item->name, work.worst, (double)work.worst_at, (unsigned long long)work.wrong,
           (unsigned long long)work.settled, work.worst_reference);
    fflush(stdout);
    return work.wrong == 0 && work.worst_reference < 1e-6;
}

int main(int count, char **arguments) {
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int first = 1;
    if (count > 2 && strcmp(arguments[1], "-t") == 0) {
        threads = atoi(arguments[2]);
        first = 3;
    }
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    int right = 1, found = 0;
    for (int index = 0; index < FUNCTION_COUNT; index++) {
        int wanted = first >= count;
        for (int argument = first; argument < count; argument++) {
            wanted |= strcmp(arguments[argument], FUNCTIONS[index].name) == 0;
        }
        if (wanted) {
            found++;
            right &= run_function(&FUNCTIONS[index], threads);
        }
    }
    if (found == 0) {
        fprintf(stderr, "exhaustive: no such function\n");
        return 2;
    }
    return right ? 0 : 1;
}
