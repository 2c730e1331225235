/* The engines that tests of products and log-probabilities run on, as cmocka's set-up and tear-down of a group. */
#ifndef GEMM_ENGINES_H
#define GEMM_ENGINES_H

#include <invar/gemm.h>

#define MOST_ENGINES 6
static iv_engine *engines[MOST_ENGINES];
static int engine_count;

/* One for each instruction set of this machine, in turn with one thread and with three. */
static int open_engines(void **state) {
    static const iv_isa isas[] = {IV_ISA_SCALAR, IV_ISA_AVX2, IV_ISA_AVX512};
    for (int i = 0; i < MOST_ENGINES; i++) {
        iv_engine_options options = IV_ENGINE_OPTIONS_DEFAULT;
        options.isa = isas[i / 2];
        options.threads = i % 2 ? 3 : 1;
        if (iv_engine_create(&options, &engines[engine_count], NULL) == IV_OK)
            engine_count++;
    }
    return engine_count > 0 ? 0 : -1;
}

static int close_engines(void **state) {
    for (int i = 0; i < engine_count; i++)
        iv_engine_destroy(engines[i]);
    return 0;
}

#endif
