/* The table of commands. */
#include "commands.h"

const command commands[] = {
    {.name = "conformance",
     .operands = "DIR…",
     .least_operands = 1,
     .most_operands = -1,
     .summary = "Run ONNX backend test folders",
     .description = "Each DIR is a case (model.onnx and test_data_set_*) or holds cases at any depth. Every output is "
                    "compared with the recorded one. Closes with a line of counts.",
     .options = conformance_options,
     .run = run_conformance},
    {0},
};
