/* Inputs of a model from the command line: --input and --set. */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include "support.h"

#define INPUT_OPTIONS                                                                              \
    {"input", "NAME=FILE", true, "Read an input from a .npy, .npz or .pb file; FILE.npz alone holds inputs by their names"}, \
        {"set", "SYMBOL=N", true, "Require (or, where inputs are made up, use) this value of a symbolic extent"}

/** Checks every --set: SYMBOL=N with a symbol of the model's inputs. Exit codes as below. */
int check_settings(const arguments *arguments, const iv_model *model);

/** Reads all inputs into `values` (one per model input, nothing at first; the caller releases them even on failure).
 * Returns EXIT_RIGHT, or prints what is wrong and returns another exit code. With `make_up`, inputs that are not given are
 * filled with fixed pseudo-random numbers; symbols without a value become 1. */
int read_inputs(const arguments *arguments, const iv_model *model, bool make_up, iv_value *values);

#endif
