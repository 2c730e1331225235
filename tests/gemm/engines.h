/* The engines that tests of products and log-probabilities run on, as cmocka's set-up and tear-down of a group. */
#ifndef GEMM_ENGINES_H
#define GEMM_ENGINES_H

#include <samebit/gemm.h>

#define MOST_ENGINES 6
static sb_engine *engines[MOST_ENGINES];
static int engine_count;

/* One for each instruction set of this machine, in turn with one thread and with three. */
static int open_engines(void **state) {
    static const sb_isa isas[] = {SB_ISA_SCALAR, SB_ISA_AVX2, SB_ISA_AVX512};
    for (int i = 0; i < MOST_ENGINES; i++) {
        sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
        options.isa = isas[i / 2];
        options.threads = i % 2 ? 3 : 1;
        if (sb_engine_create(&options, &engines[engine_count], NULL) == SB_OK)
            engine_count++;
    }
    return engine_count > 0 ? 0 : -1;
}

static int close_engines(void **state) {
    for (int i = 0; i < engine_count; i++)
        sb_engine_destroy(engines[i]);
    return 0;
}

#endif
