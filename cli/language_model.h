/* A language model from the command line: what `generate`, `verify`, `perplexity`, `info` and `bench` have in common. */
#ifndef CLI_LANGUAGE_MODEL_H
#define CLI_LANGUAGE_MODEL_H

#include "support.h"

#define LANGUAGE_MODEL_OPTIONS                                                                                         \
    {"dtype", "NAME", false,                                                                                           \
     "Compute in f32, f16 or bf16; by default as most weights are, and bf16 where they are quantised"},                \
    {                                                                                                                  \
        "context", "N", false,                                                                                         \
            "The most positions that a sequence may have; by default what the checkpoint declares, or 4096 where "     \
            "that is more"                                                                                             \
    }

/* How it is run. */
#define LANGUAGE_MODEL_RUN_OPTIONS                                                                                     \
    {"isa", "NAME", false, "Instruction set: scalar, avx2, avx512 or best"},                                           \
        {"no-passes", NULL, false, "Run the graph as it was built"},                                                   \
        {"reference-evaluation", NULL, false,                                                                          \
         "Run the reference evaluation of every node: slow, the definition of the bits"},                              \
        {"threads", "N", false, "Worker threads; 0 means one per processor"},                                          \
        {"memory-limit", "BYTES", false, "The most memory for the model, and for its runs, such as 500M or 2G"},       \
        {"device", "NAME", false, "Where to run: cpu, cuda, cuda:N, or auto for a GPU where there is one"}, {          \
        "require-device", NULL, false, "Fail when a node cannot run on the device, and list all such nodes"            \
    }

/** Reads --dtype; `*dtype` stays where it is not given. False after printing what is wrong. */
bool read_language_dtype(const arguments *arguments, sb_dtype *dtype);

/** Loads the first operand, for receipts if `receipts`. Exit codes as in options.h, after printing what is wrong. */
int load_language_model(const arguments *arguments, const sb_model_options *model, bool receipts, sb_llm **llm);

/** Reads --cache-memory: how many positions of a cache fit into it (INT64_MAX where it is not given). Exit codes as in options.h, after
 * printing what is wrong, which it is where `positions` do not fit. */
int read_cache_memory(const arguments *arguments, const sb_llm *llm, int64_t positions, int64_t *fit);

#endif
