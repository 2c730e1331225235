/* A language model from the command line: what `generate` and `info` have in common. */
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

/** Loads the first operand, for receipts if `receipts`. Exit codes as in options.h, after printing what is wrong. */
int load_language_model(const arguments *arguments, const sb_model_options *model, bool receipts, sb_llm **llm);

#endif
