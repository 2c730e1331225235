/* samebit bench --llm: tokens a second. */
#ifndef CLI_BENCH_LANGUAGE_H
#define CLI_BENCH_LANGUAGE_H

#include "support.h"

#define LANGUAGE_BENCH_OPTIONS                                                                                         \
    {"llm", NULL, false, "MODEL is a language model: measure prompts and what is generated behind them"},              \
        {"prompts", "N,…", false, "With --llm: the lengths of the prompts; 128,512 by default"},                       \
        {"count", "N", false, "With --llm: new tokens behind each prompt; 32 by default"},                             \
        {"dtype", "NAME", false, "With --llm: compute in f32, f16 or bf16, as for generate"},                          \
        {"bandwidth", "GB/S", false,                                                                                   \
         "With --llm: what the memory can give, in 10^9 bytes a second; prints the share that generating takes"},      \
        {"explain-step", NULL, false,                                                                                  \
         "With --llm: list the kernels of a new token behind the longest prompt, what each reads and how long it "     \
         "takes"},                                                                                                     \
    {                                                                                                                  \
        "lines", NULL, false, "With --llm: print a line for scripts for each measurement"                              \
    }

/** Measures; exit codes as in options.h, after printing what is wrong. */
int bench_language_model(const arguments *arguments);

/** Whether none of the options that want --llm is given; prints what is wrong. */
bool check_no_language_bench(const arguments *arguments);

#endif
